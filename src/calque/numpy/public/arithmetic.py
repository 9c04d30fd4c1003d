"""Arithmetic by elements: signs, quotients, whole numbers."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy import elementwise as _elementwise
from calque.numpy import ufuncs as _ufuncs
from calque.numpy.descriptions.writing import written

__all__ = [
    "abs",
    "absolute",
    "ceil",
    "copysign",
    "divide",
    "fabs",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "hypot",
    "mod",
    "nextafter",
    "positive",
    "reciprocal",
    "remainder",
    "rint",
    "sign",
    "spacing",
    "square",
    "true_divide",
    "trunc",
]


@written(_ufuncs.absolute)
def absolute(x: ArrayLike, /) -> Array:
    """The absolute value; of a complex number, its modulus.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape and dtype; of real numbers for complex ones.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.absolute(jnp.array([-1.5, 2.0]))
    Array([1.5, 2. ], dtype=float32)"""


abs = absolute


@written(_ufuncs.fabs)
def fabs(x: ArrayLike, /) -> Array:
    """The absolute value in floating point. Complex numbers are refused: `absolute` takes them.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape, of floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.fabs(jnp.array([-3, 4]))
    Array([3., 4.], dtype=float32)"""


@written(_ufuncs.positive)
def positive(x: ArrayLike, /) -> Array:
    """The numbers as they are, `+x`.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.positive(jnp.array([1, -2]))
    Array([ 1, -2], dtype=int32)"""


@written(_ufuncs.sign)
def sign(x: ArrayLike, /) -> Array:
    """The sign: -1, 0 or 1; `x / abs(x)` for complex numbers, nan for nan.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.sign(jnp.array([-2.5, 0.0, 4.0]))
    Array([-1.,  0.,  1.], dtype=float32)"""


@written(_elementwise.copysign)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The size of `x1` with the sign of `x2`, that of -0.0 included.

    Args:
        x1, x2: arrays or numbers; integers and bools count as floats. Their shapes broadcast.
    Returns:
        An array of the common shape, of floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.copysign(jnp.array([1.0, -2.0]), -0.0)
    Array([-1., -2.], dtype=float32)"""


@written(_ufuncs.true_divide)
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotients `x1 / x2`, in floating point also for integers; infinite or nan where
    `x2` is 0.

    Args:
        x1, x2: arrays or numbers; integers and bools count as floats. Their shapes broadcast.
    Returns:
        An array of the common shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.true_divide(jnp.array([1, 3]), 2)
    Array([0.5, 1.5], dtype=float32)"""


divide = true_divide


@written(_ufuncs.floor_divide)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotients rounded down, `x1 // x2`. Complex numbers are refused.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of the common shape: their dtype together, an integer one for bools.
    Differs from NumPy:
        Integers divided by 0 give a number without meaning, and no warning.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)"""


@written(_ufuncs.remainder)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """What is left by `floor_divide`, with the sign of the divisor, as `x1 % x2` in Python.
    Integers modulo 0 are 0, floats nan.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of the common shape: their dtype together, an integer one for bools.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.remainder(jnp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)"""


mod = remainder


@written(_ufuncs.fmod)
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """What is left by a division rounded towards 0: it has the sign of `x1`, as in C.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of the common shape: their dtype together, an integer one for bools.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.fmod(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)"""


@written(_elementwise.fmax)
def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The larger of two numbers; where one is nan, the other.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of the common shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.5)
    Array([1. , 0.5], dtype=float32)"""


@written(_elementwise.fmin)
def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The smaller of two numbers; where one is nan, the other.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of the common shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.5)
    Array([0.5, 0.5], dtype=float32)"""


@written(_ufuncs.reciprocal)
def reciprocal(x: ArrayLike, /) -> Array:
    """`1 / x`, in floating point for integers as well.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        Integers give floats, where NumPy divides them as integers.

    >>> jnp.reciprocal(jnp.array([2, 4]))
    Array([0.5 , 0.25], dtype=float32)"""


@written(_ufuncs.square)
def square(x: ArrayLike, /) -> Array:
    """`x * x`. Bools count as int32.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.square(jnp.array([2, -3]))
    Array([4, 9], dtype=int32)"""


@written(_ufuncs.floor)
def floor(x: ArrayLike, /) -> Array:
    """The largest whole number that is not above `x`. Integers stay integers.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.floor(jnp.array([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)"""


@written(_ufuncs.ceil)
def ceil(x: ArrayLike, /) -> Array:
    """The smallest whole number that is not below `x`. Integers stay integers.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.ceil(jnp.array([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)"""


@written(_ufuncs.rint)
def rint(x: ArrayLike, /) -> Array:
    """The nearest whole number; halves go to the even one. Integers become floats.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape, of floats, or complex numbers where `x` is.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.rint(jnp.array([0.5, 1.5, 2.7]))
    Array([0., 2., 3.], dtype=float32)"""


@written(_ufuncs.trunc)
def trunc(x: ArrayLike, /) -> Array:
    """The whole number next to `x` on the side of 0. Integers stay integers; complex numbers are
    refused.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.trunc(jnp.array([-1.7, 1.7]))
    Array([-1.,  1.], dtype=float32)"""


@written(_elementwise.hypot)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The length of the hypotenuse, `sqrt(x1**2 + x2**2)`, without overflow on the way. Complex
    numbers are refused.

    Args:
        x1, x2: arrays or numbers; integers and bools count as floats. Their shapes broadcast.
    Returns:
        An array of the common shape: floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.hypot(jnp.array([3.0, 1e30]), jnp.array([4.0, 0.0]))
    Array([5.e+00, 1.e+30], dtype=float32)"""


@written(_ufuncs.nextafter)
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The next number after `x` that the dtype has, on the way to `y`.

    Args:
        x, y: arrays or numbers; integers and bools count as floats. Their shapes broadcast.
    Returns:
        An array of the common shape, of floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.nextafter(jnp.array([1.0]), 2.0) - 1
    Array([1.1920929e-07], dtype=float32)"""


@written(_elementwise.spacing)
def spacing(x: ArrayLike, /) -> Array:
    """The distance from `x` to the next float away from zero; of a float16, to the next above it.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape, of floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.spacing(jnp.array([1.0, 1e6]))
    Array([1.1920929e-07, 6.2500000e-02], dtype=float32)"""


@written(_elementwise.heaviside)
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The step function: 0 where `x1` is negative, 1 where it is positive, `x2` where it is 0.

    Args:
        x1, x2: arrays or numbers; integers and bools count as floats. Their shapes broadcast.
    Returns:
        An array of the common shape: floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)"""
