"""What the help of folds, running folds and quantiles says."""

from __future__ import annotations

from typing import Final

from calque.numpy.descriptions.parts import described, entries

__all__ = ["of_fold"]

_TABLE: Final = """
sum: The sum of the elements, over all axes or some.
= The sums. Bools and small integers are summed in the default integer dtype (int32, with
x64 int64), other numbers in their own dtype; float16 and bfloat16 are summed in float32 and
rounded once.
>>> jnp.sum(jnp.arange(6).reshape(2, 3), axis=0)
Array([3, 5, 7], dtype=int32)

prod: The product of the elements, over all axes or some.
= The products. Bools and small integers are multiplied in the default integer dtype (int32,
with x64 int64), other numbers in their own dtype; 1 for no elements.
>>> jnp.prod(jnp.arange(1, 7).reshape(2, 3), axis=1)
Array([  6, 120], dtype=int32)

max: The largest element, over all axes or some; nan if there is one. The derivative is shared by
elements that are equally large.
= The largest elements, in the dtype of `a`.
>>> jnp.max(jnp.array([[1, 5], [7, 2]]), axis=1)
Array([5, 7], dtype=int32)

min: The smallest element, over all axes or some; nan if there is one. The derivative is shared by
elements that are equally small.
= The smallest elements, in the dtype of `a`.
>>> jnp.min(jnp.array([[1, 5], [7, 2]]), axis=1)
Array([1, 2], dtype=int32)

all: Tells whether all elements are true, over all axes or some. Anything but 0 is true, nan too.
= Bools; true for no elements.
>>> jnp.all(jnp.array([[1, 0], [1, 1]]), axis=1)
Array([False,  True], dtype=bool)

any: Tells whether any element is true, over all axes or some. Anything but 0 is true, nan too.
= Bools; false for no elements.
>>> jnp.any(jnp.array([[0, 0], [0, 1]]), axis=1)
Array([False,  True], dtype=bool)

argmax: The position of the largest element: of the first, if there are several; of the first nan,
if there is one.
= Positions in the default integer dtype: in the flattened array where `axis` is None, else
along the axis.
>>> jnp.argmax(jnp.array([[1, 5], [7, 2]]), axis=1)
Array([1, 0], dtype=int32)

argmin: The position of the smallest element: of the first, if there are several; of the first
nan, if there is one.
= Positions in the default integer dtype: in the flattened array where `axis` is None, else
along the axis.
>>> jnp.argmin(jnp.array([[1, 5], [7, 2]]), axis=1)
Array([0, 1], dtype=int32)

cumsum: The running sum along an axis: each element with all before it.
= An array of the shape of `a`, of one axis where `axis` is None. It has the dtype of `a`,
the default integer dtype for bools.
>>> jnp.cumsum(jnp.array([1, 2, 3, 4]))
Array([ 1,  3,  6, 10], dtype=int32)

cumprod: The running product along an axis: each element with all before it.
= An array of the shape of `a`, of one axis where `axis` is None. It has the dtype of `a`,
the default integer dtype for bools.
>>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
Array([ 1,  2,  6, 24], dtype=int32)

nansum: The sum of the elements that are not nan, over all axes or some.
= The sums, as of `sum`; 0 where all elements are nan.
>>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
Array(4., dtype=float32)

nanprod: The product of the elements that are not nan, over all axes or some.
= The products, as of `prod`; 1 where all elements are nan.
>>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
Array(6., dtype=float32)

nanmax: The largest element that is not nan, over all axes or some.
= The largest elements, in the dtype of `a`; nan where there is nothing else.
>>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
Array(3., dtype=float32)

nanmin: The smallest element that is not nan, over all axes or some.
= The smallest elements, in the dtype of `a`; nan where there is nothing else.
>>> jnp.nanmin(jnp.array([1.0, jnp.nan, 3.0]))
Array(1., dtype=float32)

nanargmax: The position of the largest element that is not nan.
= Positions in the default integer dtype; -1 where all elements are nan.
! All nan gives -1 and is no error.
>>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
Array(2, dtype=int32)

nanargmin: The position of the smallest element that is not nan.
= Positions in the default integer dtype; -1 where all elements are nan.
! All nan gives -1 and is no error.
>>> jnp.nanargmin(jnp.array([jnp.nan, 1.0, 3.0]))
Array(1, dtype=int32)

nancumsum: The running sum along an axis, in which nan counts as 0.
= An array of the shape of `a`, of one axis where `axis` is None.
>>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
Array([1., 1., 4.], dtype=float32)

nancumprod: The running product along an axis, in which nan counts as 1.
= An array of the shape of `a`, of one axis where `axis` is None.
>>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
Array([2., 2., 6.], dtype=float32)

quantile: The value below which a fraction `q` of the elements lies, over all axes or some; nan
where an element is nan.
= An array of floats: the axis of `q`, if it has one, and then the axes of `a` that are
left.
>>> jnp.quantile(jnp.arange(5), jnp.array([0.25, 0.5]))
Array([1., 2.], dtype=float32)

nanquantile: The value below which a fraction `q` of the elements lies that are not nan.
= An array of floats: the axis of `q`, if it has one, and then the axes of `a` that are
left.
>>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
Array(2., dtype=float32)

nanpercentile: The value below which `q` percent of the elements lie that are not nan.
= An array of floats: the axis of `q`, if it has one, and then the axes of `a` that are
left.
>>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
Array(2., dtype=float32)

median: The middle element in order, the mean of the middle two for an even count; nan where an
element is nan.
= An array of floats: the axes of `a` that are left.
>>> jnp.median(jnp.array([[3, 1, 2], [6, 5, 9]]), axis=1)
Array([2., 6.], dtype=float32)

nanmedian: The middle of the elements that are not nan.
= An array of floats: the axes of `a` that are left; nan where all elements are nan.
>>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 3.0]))
Array(2., dtype=float32)
"""
_ENTRIES: Final = entries(_TABLE)

_AXES = """\
a: an array or a number.
axis: the axis to fold, or a tuple of axes; None folds all."""
_NAMED_AXES = f"{_AXES} Names stand for mapped axes."
_KEPT = """\
out: must be None: arrays are immutable.
keepdims: whether folded axes stay, with size 1."""
_DTYPE = "dtype: of the elements and of the result; None decides as said below."
_INITIAL = "initial: a number that is folded as well; None for none."
_WHERE = "where: bools that broadcast to `a`, true for the elements to fold; None folds all."
_SUM = f"{_NAMED_AXES}\n{_DTYPE}\n{_KEPT}\n{_INITIAL}\n{_WHERE}"
_EXTREME = f"{_NAMED_AXES}\n{_KEPT}\n{_INITIAL}\n{_WHERE}\n    It needs `initial`."
_PLACE = f"""\
a: an array of real numbers.
axis: the axis to search; None searches the flattened array.
{_KEPT}"""
_RUNNING = f"""\
a: an array.
axis: the axis to run along; None runs through the flattened array.
{_DTYPE}
out: must be None: arrays are immutable."""
_MIDDLE = f"""\
{_AXES}
out: must be None: arrays are immutable.
overwrite_input: must be false: arrays are immutable."""
_QUANTILE = f"""\
{_MIDDLE.replace(chr(10), chr(10) + "q: the {}, a number or an array of one axis." + chr(10), 1)}
method: between two elements "linear" takes their mean by distance, "lower", "higher",
    "midpoint" and "nearest" what they say; "inverted_cdf" is the only one with weights.
keepdims: whether folded axes stay, with size 1.
weights: how much each element counts, of the shape of `a` or of the folded axes; None is 1 for
    all."""

# name -> its arguments
_ARGUMENTS: Final = {
    **dict.fromkeys(
        ("sum", "prod"),
        f"{_SUM}\npromote_integers: whether small integers are folded in the default integer dtype"
        "\n    rather than in their own.",
    ),
    **dict.fromkeys(("nansum", "nanprod"), _SUM),
    **dict.fromkeys(("max", "min", "nanmax", "nanmin"), _EXTREME),
    **dict.fromkeys(("all", "any"), f"{_AXES}\n{_KEPT}\n{_WHERE}"),
    **dict.fromkeys(("argmax", "argmin", "nanargmax", "nanargmin"), _PLACE),
    **dict.fromkeys(("cumsum", "cumprod", "nancumsum", "nancumprod"), _RUNNING),
    **dict.fromkeys(
        ("median", "nanmedian"), f"{_MIDDLE}\nkeepdims: whether folded axes stay, with size 1."
    ),
    **dict.fromkeys(("quantile", "nanquantile"), _QUANTILE.format("fractions, between 0 and 1")),
    "nanpercentile": _QUANTILE.format("percentages, between 0 and 100"),
}


def of_fold(name: str) -> str:
    """The help of a fold, a running fold or a quantile."""
    does, returns, differs, example = _ENTRIES[name]
    return described(does, _ARGUMENTS[name], returns, example, differs)
