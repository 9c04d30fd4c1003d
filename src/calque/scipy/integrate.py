"""calque.scipy.integrate: integrals of samples."""

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.types import ArrayLike

__all__ = ["trapezoid"]


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral along an axis, by the trapezoidal rule.

    Args:
        y: samples of the function.
        x: where they were taken: an array of one axis, or of the shape of `y`. None means `dx`
            apart.
        dx: the distance between samples, where `x` is None.
        axis: the axis to integrate along.
    Returns:
        The integrals, an array without the axis.

    >>> scipy.integrate.trapezoid(jnp.array([0.0, 1.0, 2.0]))
    Array(2., dtype=float32)"""
    return jnp.trapezoid(y, x, dx, axis)


_guards.guard_public(globals())
