"""Stands first on the path of processes that a program served by calque has started."""

import sys

del sys.modules[__name__]
import jax  # noqa: E402

import jaxlib  # noqa: E402
