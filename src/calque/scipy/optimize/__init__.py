"""Minimisation of functions of several variables."""

from calque.scipy.optimize.minimizing import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
