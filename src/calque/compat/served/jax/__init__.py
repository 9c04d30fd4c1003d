"""Stands first on the path of processes that a program served by calque has started."""

import os
import sys

_served = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_package = os.path.dirname(os.path.dirname(os.path.dirname(_served)))
del sys.modules[__name__]
try:
    import calque.compat.switch
except ModuleNotFoundError:  # another directory than the one the parent was started from
    sys.path.append(_package)
    import calque.compat.switch
calque.compat.switch.as_jax()
