"""Comparisons, questions and bits, by elements."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy import elementwise as _elementwise
from calque.numpy import ufuncs as _ufuncs
from calque.numpy.descriptions.writing import written

__all__ = [
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_right_shift",
    "equal",
    "greater",
    "greater_equal",
    "invert",
    "iscomplex",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "left_shift",
    "less",
    "less_equal",
    "logical_not",
    "not_equal",
    "right_shift",
    "signbit",
]


@written(_ufuncs.equal)
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tells where `x` equals `y`; nan equals nothing.

    Args:
        x, y: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.equal(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)"""


@written(_ufuncs.not_equal)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tells where `x` differs from `y`; nan differs from everything.

    Args:
        x, y: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.not_equal(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)"""


@written(_ufuncs.less)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tells where `x` is less than `y`. Complex numbers are compared by their real parts, then by
    their imaginary parts.

    Args:
        x, y: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.less(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)"""


@written(_ufuncs.less_equal)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tells where `x` is at most `y`. Complex numbers are compared by their real parts, then
    by their imaginary parts.

    Args:
        x, y: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)"""


@written(_ufuncs.greater)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tells where `x` is greater than `y`. Complex numbers are compared by their real parts, then
    by their imaginary parts.

    Args:
        x, y: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.greater(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)"""


@written(_ufuncs.greater_equal)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tells where `x` is at least `y`. Complex numbers are compared by their real parts,
    then by their imaginary parts.

    Args:
        x, y: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)"""


@written(_ufuncs.isnan)
def isnan(x: ArrayLike, /) -> Array:
    """Tells which elements are not a number. A complex number is nan if either part is.

    Args:
        x: an array or a number.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
    Array([False,  True], dtype=bool)"""


@written(_ufuncs.isinf)
def isinf(x: ArrayLike, /) -> Array:
    """Tells which elements are infinite. A complex number is infinite if either part is.

    Args:
        x: an array or a number.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.isinf(jnp.array([1.0, -jnp.inf]))
    Array([False,  True], dtype=bool)"""


@written(_ufuncs.isfinite)
def isfinite(x: ArrayLike, /) -> Array:
    """Tells which elements are neither infinite nor nan.

    Args:
        x: an array or a number.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)"""


@written(_ufuncs.isposinf)
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Tells which elements are positive infinity. Complex numbers are refused.

    Args:
        x: an array or a number.
        out: must be None: arrays are immutable.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)"""


@written(_ufuncs.isneginf)
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Tells which elements are negative infinity. Complex numbers are refused.

    Args:
        x: an array or a number.
        out: must be None: arrays are immutable.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)"""


@written(_elementwise.iscomplex)
def iscomplex(x: ArrayLike, /) -> Array:
    """Tells which elements have an imaginary part other than 0.

    Args:
        x: an array or a number.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.iscomplex(jnp.array([1 + 0j, 1 + 2j]))
    Array([False,  True], dtype=bool)"""


@written(_elementwise.isreal)
def isreal(x: ArrayLike, /) -> Array:
    """Tells which elements have no imaginary part, or 0 as one.

    Args:
        x: an array or a number.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.isreal(jnp.array([1 + 0j, 1 + 2j]))
    Array([ True, False], dtype=bool)"""


@written(_ufuncs.signbit)
def signbit(x: ArrayLike, /) -> Array:
    """Tells which elements have their sign bit set: negative numbers and -0.0.

    Args:
        x: an array or a number.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.signbit(jnp.array([-1.0, -0.0, 0.0]))
    Array([ True,  True, False], dtype=bool)"""


@written(_ufuncs.logical_not)
def logical_not(x: ArrayLike, /) -> Array:
    """Tells which elements are 0 or false.

    Args:
        x: an array or a number; anything but 0 is true.
    Returns:
        An array of bools of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.logical_not(jnp.array([0, 3]))
    Array([ True, False], dtype=bool)"""


@written(_ufuncs.bitwise_not)
def bitwise_not(x: ArrayLike, /) -> Array:
    """Every bit inverted: `-x - 1` for signed integers, not for bools.

    Args:
        x: an array or a number of integers or bools.
    Returns:
        An array of the same shape and dtype.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)"""


invert = bitwise_invert = bitwise_not


@written(_ufuncs.bitwise_count)
def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits of the absolute value are set.

    Args:
        x: an array or a number of integers or bools.
    Returns:
        An array of uint8 of the same shape.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.bitwise_count(jnp.array([7, -8]))
    Array([3, 1], dtype=uint8)"""


@written(_ufuncs.left_shift)
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of `x` moved `y` places up, `x << y`: times 2 to the power `y`.

    Args:
        x, y: arrays or numbers of integers or bools. Their shapes broadcast.
    Returns:
        An array of the common shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.left_shift(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)"""


@written(_ufuncs.bitwise_left_shift)
def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of `x` moved `y` places up, `x << y`: times 2 to the power `y`.

    Args:
        x, y: arrays or numbers of integers or bools. Their shapes broadcast.
    Returns:
        An array of the common shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.bitwise_left_shift(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)"""


@written(_ufuncs.right_shift)
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of `x1` moved `x2` places down, `x1 >> x2`: over 2 to the power `x2`, rounded
    down. Signed numbers keep their sign.

    Args:
        x1, x2: arrays or numbers of integers or bools. Their shapes broadcast.
    Returns:
        An array of the common shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.right_shift(jnp.array([8, -8]), 2)
    Array([ 2, -2], dtype=int32)"""


bitwise_right_shift = right_shift
