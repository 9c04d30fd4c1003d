"""Stands first on the path of processes that a program served by calque has started."""

import os
import sys

_compat = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
del sys.modules[__name__]
sys.path.insert(0, os.path.dirname(os.path.dirname(_compat)))  # the very calque of the parent
try:
    import calque.compat.switch
finally:
    del sys.path[0]
calque.compat.switch.as_jax()
