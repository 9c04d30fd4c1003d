"""Quantiles and medians."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy import averages as _averages
from calque.numpy.descriptions.writing import written

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "quantile"]


@written(_averages.quantile)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which a fraction `q` of the elements lies, over all axes or some; nan
    where an element is nan.

    Args:
        a: an array or a number.
        q: the fractions, between 0 and 1, a number or an array of one axis.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        overwrite_input: must be false: arrays are immutable.
        method: between two elements "linear" takes their mean by distance, "lower", "higher",
            "midpoint" and "nearest" what they say; "inverted_cdf" is the only one with weights.
        keepdims: whether folded axes stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of the folded axes; None is
            1 for all.
    Returns:
        An array of floats: the axis of `q`, if it has one, and then the axes of `a` that are
        left.

    >>> jnp.quantile(jnp.arange(5), jnp.array([0.25, 0.5]))
    Array([1., 2.], dtype=float32)"""


@written(_averages.nanquantile)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which a fraction `q` of the elements lies that are not nan.

    Args:
        a: an array or a number.
        q: the fractions, between 0 and 1, a number or an array of one axis.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        overwrite_input: must be false: arrays are immutable.
        method: between two elements "linear" takes their mean by distance, "lower", "higher",
            "midpoint" and "nearest" what they say; "inverted_cdf" is the only one with weights.
        keepdims: whether folded axes stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of the folded axes; None is
            1 for all.
    Returns:
        An array of floats: the axis of `q`, if it has one, and then the axes of `a` that are
        left.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
    Array(2., dtype=float32)"""


@written(_averages.nanpercentile)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which `q` percent of the elements lie that are not nan.

    Args:
        a: an array or a number.
        q: the percentages, between 0 and 100, a number or an array of one axis.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        overwrite_input: must be false: arrays are immutable.
        method: between two elements "linear" takes their mean by distance, "lower", "higher",
            "midpoint" and "nearest" what they say; "inverted_cdf" is the only one with weights.
        keepdims: whether folded axes stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of the folded axes; None is
            1 for all.
    Returns:
        An array of floats: the axis of `q`, if it has one, and then the axes of `a` that are
        left.

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
    Array(2., dtype=float32)"""


@written(_averages.median)
def median(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element in order, the mean of the middle two for an even count; nan where an
    element is nan.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        overwrite_input: must be false: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        An array of floats: the axes of `a` that are left.

    >>> jnp.median(jnp.array([[3, 1, 2], [6, 5, 9]]), axis=1)
    Array([2., 6.], dtype=float32)"""


@written(_averages.nanmedian)
def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle of the elements that are not nan.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        overwrite_input: must be false: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        An array of floats: the axes of `a` that are left; nan where all elements are nan.

    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)"""
