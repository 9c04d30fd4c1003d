"""Folds that leave nan out."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from calque.core.arrays import Array
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy import nans as _nans
from calque.numpy.descriptions.writing import written
from calque.numpy.signatures import FoldAxes

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmin",
    "nanprod",
    "nansum",
]


@written(_nans.nansum)
def nansum(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum of the elements that are not nan, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all. Names stand for mapped axes.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
    Returns:
        The sums, as of `sum`; 0 where all elements are nan.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
    Array(4., dtype=float32)"""


@written(_nans.nanprod)
def nanprod(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product of the elements that are not nan, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
    Returns:
        The products, as of `prod`; 1 where all elements are nan.

    >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array(6., dtype=float32)"""


@written(_nans.nanmax)
def nanmax(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element that is not nan, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
            It needs `initial`.
    Returns:
        The largest elements, in the dtype of `a`; nan where there is nothing else.

    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(3., dtype=float32)"""


@written(_nans.nanmin)
def nanmin(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element that is not nan, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        initial: a number that is folded as well; None for none.
        where: bools that broadcast to `a`, true for the elements to fold; None folds all.
            It needs `initial`.
    Returns:
        The smallest elements, in the dtype of `a`; nan where there is nothing else.

    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)"""


@written(_nans.nanargmax)
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the largest element that is not nan.

    Args:
        a: an array of real numbers.
        axis: the axis to search; None searches the flattened array.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        Positions in the default integer dtype; -1 where all elements are nan.
    Differs from NumPy:
        All nan gives -1 and is no error.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2, dtype=int32)"""


@written(_nans.nanargmin)
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the smallest element that is not nan.

    Args:
        a: an array of real numbers.
        axis: the axis to search; None searches the flattened array.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        Positions in the default integer dtype; -1 where all elements are nan.
    Differs from NumPy:
        All nan gives -1 and is no error.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 1.0, 3.0]))
    Array(1, dtype=int32)"""


@written(_nans.nancumsum)
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The running sum along an axis, in which nan counts as 0.

    Args:
        a: an array.
        axis: the axis to run along; None runs through the flattened array.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
    Returns:
        An array of the shape of `a`, of one axis where `axis` is None.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)"""


@written(_nans.nancumprod)
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The running product along an axis, in which nan counts as 1.

    Args:
        a: an array.
        axis: the axis to run along; None runs through the flattened array.
        dtype: of the elements and of the result; None decides as said below.
        out: must be None: arrays are immutable.
    Returns:
        An array of the shape of `a`, of one axis where `axis` is None.

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)"""
