"""Folds of axes and running folds."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from calque.core.arrays import Array
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy import reductions as _reductions
from calque.numpy.descriptions.writing import written
from calque.numpy.signatures import FoldAxes

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "max",
    "min",
    "prod",
    "sum",
]


@written(_reductions.sum)
def sum(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of the elements, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all. Names stand for mapped axes.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
        promote_integers: whether small integers are folded in the default integer dtype
            rather than in their own.
    Returns:
        The sums. Bools and small integers are summed in the default integer dtype (int32, with
        x64 int64), other numbers in their own dtype; float16 and bfloat16 are summed in float32 and
        rounded once.

    >>> jnp.sum(jnp.arange(6).reshape(2, 3), axis=0)
    Array([3, 5, 7], dtype=int32)"""


@written(_reductions.prod)
def prod(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product of the elements, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
        promote_integers: whether small integers are folded in the default integer dtype
            rather than in their own.
    Returns:
        The products. Bools and small integers are multiplied in the default integer dtype (int32,
        with x64 int64), other numbers in their own dtype; 1 for no elements.

    >>> jnp.prod(jnp.arange(1, 7).reshape(2, 3), axis=1)
    Array([  6, 120], dtype=int32)"""


@written(_reductions.max)
def max(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element, over all axes or some; nan if there is one. The derivative is shared by
    elements that are equally large.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all. Names stand for mapped axes.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
            It needs `initial`.
    Returns:
        The largest elements, in the dtype of `a`.

    >>> jnp.max(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([5, 7], dtype=int32)"""


amax = max


@written(_reductions.min)
def min(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element, over all axes or some; nan if there is one. The derivative is shared by
    elements that are equally small.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all. Names stand for mapped axes.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
            It needs `initial`.
    Returns:
        The smallest elements, in the dtype of `a`.

    >>> jnp.min(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([1, 2], dtype=int32)"""


amin = min


@written(_reductions.all)
def all(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Tells whether all elements are true, over all axes or some. Anything but 0 is true, nan too.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
    Returns:
        Bools; true for no elements.

    >>> jnp.all(jnp.array([[1, 0], [1, 1]]), axis=1)
    Array([False,  True], dtype=bool)"""


@written(_reductions.any)
def any(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Tells whether any element is true, over all axes or some. Anything but 0 is true, nan too.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
    Returns:
        Bools; false for no elements.

    >>> jnp.any(jnp.array([[0, 0], [0, 1]]), axis=1)
    Array([False,  True], dtype=bool)"""


@written(_reductions.argmax)
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the largest element: of the first, if there are several; of the first nan,
    if there is one.

    Args:
        a: an array of real numbers.
        axis: the axis to search; None searches the flattened array.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        Positions in the default integer dtype: in the flattened array where `axis` is None, else
        along the axis.

    >>> jnp.argmax(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([1, 0], dtype=int32)"""


@written(_reductions.argmin)
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the smallest element: of the first, if there are several; of the first
    nan, if there is one.

    Args:
        a: an array of real numbers.
        axis: the axis to search; None searches the flattened array.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        Positions in the default integer dtype: in the flattened array where `axis` is None, else
        along the axis.

    >>> jnp.argmin(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([0, 1], dtype=int32)"""


@written(_reductions.cumsum)
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The running sum along an axis: each element with all before it.

    Args:
        a: an array.
        axis: the axis to run along; None runs through the flattened array.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
    Returns:
        An array of the shape of `a`, of one axis where `axis` is None. It has the dtype of `a`,
        the default integer dtype for bools.

    >>> jnp.cumsum(jnp.array([1, 2, 3, 4]))
    Array([ 1,  3,  6, 10], dtype=int32)"""


@written(_reductions.cumprod)
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The running product along an axis: each element with all before it.

    Args:
        a: an array.
        axis: the axis to run along; None runs through the flattened array.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
    Returns:
        An array of the shape of `a`, of one axis where `axis` is None. It has the dtype of `a`,
        the default integer dtype for bools.

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)"""
