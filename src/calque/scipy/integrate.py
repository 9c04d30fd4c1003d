"""calque.scipy.integrate: integrals of samples."""

from typing import Any

from calque import numpy as jnp

__all__ = ["trapezoid"]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule, of samples at the points `x` or `dx`
    apart.

    >>> import calque.scipy.integrate as integrate
    >>> integrate.trapezoid(jnp.array([1.0, 2.0, 4.0]))
    Array(4.5, dtype=float32)"""
    return jnp.trapezoid(y, x, dx, axis)
