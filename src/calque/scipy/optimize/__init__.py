"""Minimisation of functions of several variables."""

from calque.core import guards as _guards
from calque.scipy.optimize.minimizing import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]

_guards.guard_public(globals())
