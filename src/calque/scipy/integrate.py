"""calque.scipy.integrate: integrals of samples."""

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike

__all__ = ["trapezoid"]


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral along an axis by the trapezoidal rule, of samples at the points `x` or `dx`
    apart.

    >>> import calque.scipy.integrate as integrate
    >>> integrate.trapezoid(jnp.array([1.0, 2.0, 4.0]))
    Array(4.5, dtype=float32)"""
    return jnp.trapezoid(y, x, dx, axis)
