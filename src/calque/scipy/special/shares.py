"""Exponentials as shares of their sum, over all axes unless told otherwise."""

from typing import Any

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.nn import normalisation
from calque.numpy.promotion import check_arraylike


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Exponentials as shares of their sum.

    Args:
        x: an array.
        axis: the axis, or a tuple of axes, to sum over; None is all.
    Returns:
        Floats that add up to 1.

    >>> special.softmax(jnp.zeros(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)"""
    return _over_axes("softmax", normalisation.softmax, x, axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The logarithm of `softmax`, without overflow.

    Args:
        x: an array.
        axis: the axis, or a tuple of axes, to sum over; None is all.
    Returns:
        Floats up to 0.

    >>> special.log_softmax(jnp.zeros(1))
    Array([0.], dtype=float32)"""
    return _over_axes("log_softmax", normalisation.log_softmax, x, axis)


def _over_axes(name: str, f: Any, x: Any, axis: Any) -> Any:
    check_arraylike(name, x)
    x = jnp.asarray(x)
    if x.ndim == 0 and axis is None:
        return f(x.reshape(1), 0).reshape(())
    return f(x, tuple(range(x.ndim)) if axis is None else axis)
