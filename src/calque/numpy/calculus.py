"""Differences, gradients, integrals, interpolation, convolution."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import surely_less, whole
from calque.core.dtypes import canonicalize, is_complex, is_inexact
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes, DTypeLike
from calque.numpy import reductions, ufuncs
from calque.numpy.conversions import asarray
from calque.numpy.indexing.found_sizes import refuse_empty
from calque.numpy.joining import concatenate
from calque.numpy.moving import flip, section
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    convert,
    promote_inexact,
    result_dtype,
)
from calque.numpy.shaping import moveaxis, ravel, reshape, where
from calque.numpy.sorting import argsort, searchsorted
from calque.ops.dimension_numbers import PrecisionLike
from calque.ops.products.convolution_functions import conv_general_dilated

if TYPE_CHECKING:
    from calque.core.generics import Asked

__all__ = [
    "convolve", "correlate", "cumulative_prod", "cumulative_sum", "diff", "ediff1d", "gradient",
    "interp", "trapezoid", "unwrap",
]  # fmt: skip


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences between neighbours along an axis.

    Args:
        a: an array with at least one axis.
        n: how many times to take differences.
        axis: the axis.
        prepend: values put before the array first; a number stands for a slice of it.
        append: values put after it.
    Returns:
        An array that is shorter by `n` along the axis. For bools, whether neighbours differ.

    >>> jnp.diff(jnp.array([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int32)"""
    a = array_of("diff", a)
    n = whole(n, "diff: n")
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    k = canonical_axis(axis, a.ndim)
    if n == 0:
        return a

    def edge(v: Any) -> Array:
        return (
            broadcast_to(v, tuple(1 if i == k else d for i, d in enumerate(a.shape)))
            if v.ndim == 0
            else v
        )

    parts = [edge(array_of("diff", prepend))] if prepend is not None else []
    parts += [a] + ([edge(array_of("diff", append))] if append is not None else [])
    x = concatenate(parts, axis=k) if len(parts) > 1 else a
    minus = ufuncs.not_equal if x.dtype == np.dtype(bool) else ufuncs.subtract
    for _ in range(n):
        size = typeof(x).shape[k]
        if size == 0:
            return x
        x = minus(section(x, k, 1, size), section(x, k, 0, size - 1))
    return x


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """The differences between neighbours in the flattened array, with values at both ends.

    Args:
        ary: an array.
        to_end: values put after the differences.
        to_begin: values put before them.
    Returns:
        An array of one axis.
    Differs from NumPy:
        `to_end` and `to_begin` are cast to the dtype of `ary` without a question.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)"""
    a = ravel(array_of("ediff1d", ary))
    out = a[1:] - a[:-1]
    parts = [
        convert(ravel(array_of("ediff1d", v)), a.dtype) if v is not None else None
        for v in (to_begin, to_end)
    ]
    joined = [p for p in (parts[0], out, parts[1]) if p is not None]
    return concatenate(joined) if len(joined) > 1 else out


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike | Sequence[ArrayLike],
    axis: Axes | None = None,
    edge_order: int | None = None,
) -> Asked:  # type: ignore[type-var]
    """The slope at each element: half the difference between its neighbours, and at the ends the
    difference to the one neighbour.

    Args:
        f: an array of samples.
        *varargs: the spacing: nothing (1), one number for all axes, or for each axis a number or
            the coordinates of its samples.
        axis: the axis or axes; None is all.
        edge_order: must be None or 1.
    Returns:
        An array of the shape of `f`; a list of one for each axis, if they are several.
    Differs from NumPy:
        `edge_order=2` is refused.

    >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]))
    Array([3., 4., 6., 7.], dtype=float32)"""
    f, *steps = arrays("gradient", f, *varargs)
    if edge_order not in (None, 1):
        raise NotImplementedError(
            "The 'edge_order' argument to jnp.gradient is only supported for edge_order=1."
        )
    f, *steps = promote_inexact(f, *steps)
    axes = canonical_axes(axis, f.ndim)
    if not steps:
        steps = [asarray(1.0)] * len(axes)
    elif len(steps) == 1:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for axis={axis}")
    if any(f.shape[k] < 2 for k in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are"
            f" required; got {f.shape}"
        )
    out: list[Any] = [_gradient_along(f, k, h) for k, h in zip(axes, steps)]
    found: Any = out[0] if len(out) == 1 else out
    return found


def _gradient_along(f: Any, k: int, h: Any) -> Any:
    n = f.shape[k]

    def cut(a: Any, b: Any) -> Array:
        return section(f, k, a, b)

    def column(v: Any) -> Array:
        return reshape(v, tuple(-1 if i == k else 1 for i in range(f.ndim)))

    if h.ndim == 0:
        middle = (cut(2, n) - cut(0, n - 2)) / (h * 2)
        first, last = (cut(1, 2) - cut(0, 1)) / h, (cut(n - 1, n) - cut(n - 2, n - 1)) / h
        return concatenate([first, middle, last], axis=k)
    if h.shape != (n,):
        raise ValueError(
            f"Spacing arrays must be 1-dimensional with the size of their axis, {n}; got shape"
            f" {h.shape}"
        )
    d = h[1:] - h[:-1]
    left, right = column(d[:-1]), column(d[1:])
    total = left + right
    middle = (
        -right / (left * total) * cut(0, n - 2)
        + (right - left) / (left * right) * cut(1, n - 1)
        + left / (right * total) * cut(2, n)
    )
    first, last = (
        (cut(1, 2) - cut(0, 1)) / column(d[:1]),
        (cut(n - 1, n) - cut(n - 2, n - 1)) / column(d[-1:]),
    )
    return concatenate([first, middle, last], axis=k)


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

    >>> jnp.trapezoid(jnp.array([0.0, 1.0, 2.0]), dx=0.5)
    Array(1., dtype=float32)"""
    if x is None:
        (y,) = promote_inexact(array_of("trapezoid", y))
        width: Any = array_of("trapezoid", dx)
        if width.ndim:  # the axes of the last ones of y
            missing = typeof(y).ndim - width.ndim
            width = moveaxis(width.reshape((1,) * missing + width.shape), axis, -1)
    else:
        y, x = promote_inexact(*arrays("trapezoid", y, x))
        width = diff(x) if typeof(x).ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    y = moveaxis(asarray(y), axis, -1)
    pairs = y[..., 1:] + y[..., :-1]
    out = reductions.sum(width * pairs, axis=-1) * 0.5
    return out


# ---------------------------------------------------------------- running sums of the array API


def _cumulative(
    name: str, scan: Any, unit: int, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Any:
    x = array_of(name, x)
    if x.ndim == 0:
        raise ValueError(
            f"The input must be non-scalar to take a cumulative {name.rpartition('_')[2]}, however"
            " a scalar value or scalar array was given."
        )
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"The input array has rank {x.ndim}, however axis was not set to an explicit value."
                " The axis argument is only optional for one-dimensional arrays."
            )
        axis = 0
    k = canonical_axis(axis, x.ndim)
    target = result_dtype(dtype)
    if target is None and scan is reductions.cumsum:
        target = reductions.accumulator_dtype(x.dtype)
    out = scan(x, axis=k, dtype=target)
    if not include_initial:
        return out
    first = broadcast_to(
        np.asarray(unit).astype(out.dtype),
        tuple(1 if i == k else d for i, d in enumerate(out.shape)),
    )
    return concatenate([first, out], axis=k)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The running sum along an axis; `cumsum` in the array API.

    Args:
        x: an array with at least one axis.
        axis: the axis; None is allowed for one axis only.
        dtype: of the result; None is that of `x`, the default integer dtype for bools.
        include_initial: whether the sum of nothing, 0, comes first.
    Returns:
        An array, longer by one along the axis with `include_initial`.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)"""
    return _cumulative("cumulative_sum", reductions.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The running product along an axis; `cumprod` in the array API.

    Args:
        x: an array with at least one axis.
        axis: the axis; None is allowed for one axis only.
        dtype: of the result; None is that of `x`, the default integer dtype for bools.
        include_initial: whether the product of nothing, 1, comes first.
    Returns:
        An array, longer by one along the axis with `include_initial`.

    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)"""
    return _cumulative("cumulative_prod", reductions.cumprod, 1, x, axis, dtype, include_initial)


# ---------------------------------------------------------------- interpolation and phases


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Values between known points, on the straight lines that join them.

    Args:
        x: where to interpolate.
        xp: the coordinates of the points, rising, unless there is a period.
        fp: the values at the points.
        left: for what lies before the first point: a number, or "extrapolate" for the first line.
            None is the first value.
        right: for what lies after the last point: a number, or "extrapolate" for the last line.
            None is the last value.
        period: if it is given, coordinates are taken modulo it, and sorted.
    Returns:
        Values in the shape of `x`.
    Differs from NumPy:
        "extrapolate" is not in NumPy.

    >>> jnp.interp(jnp.array([0.5, 2.0]), jnp.array([0.0, 1.0]), jnp.array([10.0, 20.0]))
    Array([15., 20.], dtype=float32)"""
    x, xp, fp = arrays("interp", x, xp, fp)
    if xp.shape != fp.shape or xp.ndim != 1:
        raise ValueError(
            "interp: xp and fp must be one-dimensional arrays of equal size, got shapes"
            f" {xp.shape} and {fp.shape}"
        )
    if is_complex(x.dtype) or is_complex(xp.dtype):
        raise ValueError("jnp.interp: complex x values not supported.")
    x, xp = (asarray(v) for v in promote_inexact(x, xp))
    (fp,) = promote_inexact(fp)
    for name, v in (("left", left), ("right", right)):
        if isinstance(v, str) and v != "extrapolate":
            raise ValueError(
                f"the only valid string value of `{name}` is 'extrapolate', but got: {v!r}"
            )
    if period is not None:
        x, xp, fp, left, right = _periodic(x, xp, fp, period)
    i = (
        ufuncs.minimum(ufuncs.maximum(searchsorted(xp, x, side="right"), 1), xp.shape[0] - 1)
        if xp.shape[0] > 1
        else None
    )
    if i is None:
        first, _ = promote_inexact(fp[0], x)  # of the dtype of all
        value = broadcast_to(asarray(first), x.shape)
    else:
        x0, x1, f0, f1 = xp[i - 1], xp[i], fp[i - 1], fp[i]
        dx = x1 - x0
        tiny = (
            ufuncs.absolute(dx) <= np.finfo(dx.dtype).eps * np.finfo(dx.dtype).tiny
            if dx.dtype.kind == "f"
            else dx == 0
        )
        part = (x - x0) / where(tiny, 1, dx)
        # at equal places the last value counts, as everywhere else by the search from the right
        value = where(tiny, where(x < x1, f0, f1), _mixed(part, f0, f1))
    if period is None:
        value = _ends(x, xp, fp, value, left, right)
    return value


def _mixed(part: Any, f0: Any, f1: Any) -> Any:
    """The value at a part of the way from f0 to f1. Where one of them is infinite, the sum of one
    and a part of the difference may be nan where that of the other is not."""
    rise = f1 - f0
    value = f0 + part * rise
    still = (part == 0) | ((f0 == f1) & ~ufuncs.isnan(part))
    return where(ufuncs.isnan(value), where(still, f0, f1 - (1 - part) * rise), value)


def _ends(x: Any, xp: Any, fp: Any, value: Any, left: Any, right: Any) -> Any:
    if not isinstance(left, str):
        value = where(x < xp[0], fp[0] if left is None else left, value)
    if not isinstance(right, str):
        value = where(x > xp[-1], fp[-1] if right is None else right, value)
    return value


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Array, Array, Array, None, None]:
    period = array_of("interp", period)
    if period.ndim:
        raise ValueError(f"period must be a scalar; got shape {period.shape}")
    x, xp, period = (asarray(v) for v in promote_inexact(x, xp, period))
    period = ufuncs.absolute(period)
    x, xp = x % period, xp % period
    order = argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]]), None, None


def unwrap(
    p: ArrayLike,
    discont: ArrayLike | None = None,
    axis: int = -1,
    period: Any = 2 * np.pi,
) -> Array:
    """Angles without jumps: where neighbours differ by more than `discont`, multiples of the period
    are added.

    Args:
        p: an array of angles.
        discont: the largest difference that is left as it is; None is half a period, and less
            counts as that.
        axis: the axis to follow.
        period: after how much angles repeat.
    Returns:
        An array of the shape of `p`.

    >>> jnp.unwrap(jnp.array([0.0, 3.0, 6.0, 9.0 - 2 * jnp.pi]))
    Array([0., 3., 6., 9.], dtype=float32)"""
    p = array_of("unwrap", p)
    if is_complex(p.dtype):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if p.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    if not is_inexact(p.dtype) and not isinstance(period, int):
        p = convert(p, canonicalize(float))
    if p.shape[canonical_axis(axis, p.ndim)] == 0:
        return p
    k = canonical_axis(axis, p.ndim)
    half = period // 2 if not is_inexact(p.dtype) else period / 2
    d = diff(p, axis=k)
    rest = (d + half) % period - half
    if is_inexact(p.dtype) or period % 2 == 0:  # else no step is half a period
        rest = where((rest == -half) & (d > 0), half, rest)
    fix = rest - d
    if discont is not None:
        fix = where(ufuncs.absolute(d) < ufuncs.maximum(discont, half), 0, fix)
    else:
        fix = where(ufuncs.absolute(d) < half, 0, fix)
    fix = convert(fix, p.dtype)
    size = p.shape[k]
    moved = section(p, k, 1, size) + reductions.cumsum(fix, axis=k)
    return concatenate([section(p, k, 0, 1), moved], axis=k)


# ---------------------------------------------------------------- convolution


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The discrete convolution of two sequences.

    Args:
        a: an array of one axis.
        v: another.
        mode: "full" is every overlap, "same" as many as the longer has, "valid" only full overlaps.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in; None is that of the result.
    Returns:
        An array of one axis.
    Differs from NumPy:
        Integers are computed in floating point.

    >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1., 3., 5., 3.], dtype=float32)"""
    a, v = arrays("convolve", a, v)
    return _convolution("convolve", a, v, mode, precision, preferred_element_type)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two sequences: sums of products at every shift, with `v` conjugated.

    Args:
        a: an array of one axis.
        v: another.
        mode: "valid" is only full overlaps, "same" as many as the longer has, "full" every overlap.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in; None is that of the result.
    Returns:
        An array of one axis.
    Differs from NumPy:
        Integers are computed in floating point.

    >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([0, 1]))
    Array([2., 3.], dtype=float32)"""
    a, v = arrays("correlate", a, v)
    if a.ndim == 1 and v.ndim == 1 and v.shape[0] > a.shape[0]:
        swapped = _convolution(
            "correlate", v, flip(ufuncs.conjugate(a)), mode, precision, preferred_element_type
        )
        return ufuncs.conjugate(flip(swapped))
    return _convolution(
        "correlate", a, flip(ufuncs.conjugate(v)), mode, precision, preferred_element_type
    )


def _convolution(name: str, x: Any, y: Any, mode: str, precision: Any, preferred: Any) -> Any:
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            f"{name}() only support 1-dimensional inputs, got shapes {x.shape} and {y.shape}."
        )
    if not x.shape[0] or not y.shape[0]:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {x.shape} and {y.shape}.")
    refuse_empty([x.shape[0], y.shape[0]], ValueError(f"{name}: inputs cannot be empty."))
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}")
    x, y = (asarray(v) for v in promote_inexact(x, y))
    if (surely_less if mode == "full" else operator.lt)(
        x.shape[0], y.shape[0]
    ):  # both orders are right for "full"
        x, y = y, x
    n = y.shape[0]
    padding = {"full": (n - 1, n - 1), "same": (n // 2, n - n // 2 - 1), "valid": (0, 0)}[mode]
    out = conv_general_dilated(
        reshape(x, (1, 1, -1)),
        reshape(flip(y), (1, 1, -1)),
        (1,),
        [padding],
        precision=precision,
        preferred_element_type=result_dtype(preferred),
    )
    return out[0, 0]
