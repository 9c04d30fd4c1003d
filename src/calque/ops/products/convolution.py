"""Convolutions of any number of spatial dimensions, strides, dilations, groups and layouts:
conv_general_dilated.

Inside the rules arrays stand in one order: lhs (batch, feature, *spatial), rhs (out, in, *spatial).
In each spatial dimension `out[o] = sum_k lhs'[o * stride + k * rhs_dilation] * rhs[k]`, where lhs'
is lhs dilated and padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.ops.common import add_tangents, move, zero_like
from calque.ops.dimension_numbers import ConvDimensionNumbers
from calque.ops.joining import pad_p, same_dtype
from calque.ops.layout import Shape, inverse, size_of
from calque.ops.padding import Pads, dilated, window_count
from calque.ops.products.dot import compute_dtype

Params = dict[str, Any]

# ---------------------------------------------------------------- shape


def _conv_shape(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any,
) -> ShapedArray:
    spatial = lhs.ndim - 2
    if spatial < 0 or rhs.ndim != lhs.ndim:
        raise ValueError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, at least 2,"
            f" got {lhs.str_short()} and {rhs.str_short()}"
        )
    if lhs.dtype != rhs.dtype:
        same_dtype("conv_general_dilated", [lhs, rhs])
    for name, value in (
        ("window_strides", window_strides),
        ("padding", padding),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if len(value) != spatial:
            raise ValueError(
                f"conv_general_dilated: {name} {value} must have one entry for each of {spatial}"
                " spatial dimensions"
            )
    n, c, *extent = [lhs.shape[d] for d in dimension_numbers.lhs_spec]
    o, i, *kernel = [rhs.shape[d] for d in dimension_numbers.rhs_spec]
    _check_groups(c, o, i, n, feature_group_count, batch_group_count, lhs, rhs)
    out = [n // batch_group_count, o]
    for size, k, stride, (low, high), ld, rd in zip(
        extent, kernel, window_strides, padding, lhs_dilation, rhs_dilation
    ):
        if stride < 1 or ld < 1 or rd < 1:
            raise ValueError(
                "conv_general_dilated: strides and dilations must be positive, got"
                f" {window_strides}, {lhs_dilation}, {rhs_dilation}"
            )
        out.append(window_count(dilated(size, ld) + low + high, dilated(k, rd), stride))
    shape = [0] * lhs.ndim
    for d, size in zip(dimension_numbers.out_spec, out):
        shape[d] = size
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    return ShapedArray(
        tuple(shape), dtype, lhs.weak_type and rhs.weak_type and preferred_element_type is None
    )


def _check_groups(
    c: int,
    o: int,
    i: int,
    n: int,
    groups: int,
    batch_groups: int,
    lhs: ShapedArray,
    rhs: ShapedArray,
) -> None:
    of = f"for lhs {lhs.str_short()} and rhs {rhs.str_short()}"
    if groups < 1 or batch_groups < 1 or (groups > 1 and batch_groups > 1):
        raise ValueError(
            f"conv_general_dilated: at most one of feature_group_count ({groups}) and"
            f" batch_group_count ({batch_groups}) may exceed 1, both must be positive"
        )
    if c != i * groups:
        raise ValueError(
            f"conv_general_dilated: lhs feature dimension {c} must be rhs input feature dimension"
            f" {i} times feature_group_count {groups} {of}"
        )
    if o % groups or o % batch_groups:
        raise ValueError(
            f"conv_general_dilated: rhs output feature dimension {o} must be divisible by the group"
            f" counts {groups} and {batch_groups} {of}"
        )
    if n % batch_groups:
        raise ValueError(
            f"conv_general_dilated: lhs batch dimension {n} must be divisible by batch_group_count"
            f" {batch_groups} {of}"
        )


# ---------------------------------------------------------------- meaning


def _conv_meaning(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    window_strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> np.ndarray:
    """For each position of the kernel a product of matrices (out features, in features) @ (in
    features, positions), whose sum is in float64: kernels may be as long as what they meet."""
    dtype = (
        lhs.dtype if params["preferred_element_type"] is None else params["preferred_element_type"]
    )
    wide = compute_dtype(lhs.dtype, rhs.dtype, dtype)
    x = np.transpose(lhs, dimension_numbers.lhs_spec).astype(wide)
    w = np.transpose(rhs, dimension_numbers.rhs_spec).astype(wide)
    config = [(0, 0, 0), (0, 0, 0)]
    for n, (low, high), d in zip(x.shape[2:], padding, lhs_dilation):
        config.append(
            (low, max(high, -low - dilated(n, d)), d - 1)
        )  # what is cut away to less than nothing is empty
    holes = wide.kind in "fc" and any(c > 0 for each in config for c in each)
    there = pad_p.meaning(np.ones(x.shape[2:], bool), np.False_, padding_config=tuple(config[2:]))
    x = pad_p.meaning(x, np.zeros((), wide), padding_config=tuple(config))
    counts = [
        window_count(n, dilated(k, d), s)
        for n, k, d, s in zip(x.shape[2:], w.shape[2:], rhs_dilation, window_strides)
    ]
    x, w = _grouped(x, w, feature_group_count, batch_group_count)
    groups, batch, _, *_ = x.shape
    summed = np.result_type(wide, np.float64) if wide.kind in "fc" else wide
    out = np.zeros((groups, batch, w.shape[1], size_of(counts)), summed)
    for k in np.ndindex(*w.shape[3:]) if out.size else ():
        cut = [
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(k, rhs_dilation, counts, window_strides)
        ]
        part = x[(slice(None), slice(None), slice(None), *cut)]
        with np.errstate(invalid="ignore"):
            products = np.matmul(
                w[(slice(None), slice(None), slice(None), *k)][:, None],
                part.reshape((*part.shape[:3], out.shape[3])),
            )
        # a hole is no element: not even an infinite weight makes something of it
        out += np.where(there[tuple(cut)].ravel(), products, 0) if holes else products
    out = np.moveaxis(out, 0, 1).reshape(batch, groups * out.shape[2], *counts)
    return np.transpose(out, inverse(dimension_numbers.out_spec)).astype(dtype)


def _grouped(
    x: np.ndarray, w: np.ndarray, groups: int, batch_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Operands with the groups as a leading dimension."""
    n, c, *extent = x.shape
    g = groups * batch_groups
    if batch_groups > 1:
        x = x.reshape(batch_groups, n // batch_groups, c, *extent)
    else:
        x = np.moveaxis(x.reshape(n, groups, c // groups, *extent), 1, 0)
    return x, w.reshape(g, w.shape[0] // g, *w.shape[1:])


# ---------------------------------------------------------------- derivatives


def _conv_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (x, w), (dx, dw) = primals, tangents
    out = do.conv_general_dilated(x, w, **params)
    a = dx if type(dx) is Zero else do.conv_general_dilated(dx, w, **params)
    b = dw if type(dw) is Zero else do.conv_general_dilated(x, dw, **params)
    total = add_tangents(a, b)
    return out, zero_like(out) if type(total) is Zero else total


def _conv_transpose_rule(ct: Any, x: Any, w: Any, **params: Any) -> list[Any]:
    linear = x if type(x) is UndefinedPrimal else w
    if type(ct) is not Zero:  # of the type preferred for the result; the operands may be narrower
        x, w = (_as_dtype(v, typeof(ct).dtype) for v in (x, w))
    if type(ct) is Zero:
        back: Any = Zero(linear.aval)
    elif linear is x:
        back = _lhs_ct(ct, x.aval, w, params)
    else:
        back = _rhs_ct(ct, x, w.aval, params)
    if type(back) is not Zero and typeof(back).dtype != linear.aval.dtype:
        back = do.convert_element_type(back, new_dtype=linear.aval.dtype)
    return [back, None] if linear is x else [None, back]


def _as_dtype(x: Any, dtype: Any) -> Any:
    if type(x) is UndefinedPrimal or typeof(x).dtype == dtype:
        return x
    return do.convert_element_type(x, new_dtype=dtype)


def _extents(
    lhs: ShapedArray, rhs: ShapedArray, ct: ShapedArray, p: Params
) -> list[tuple[Any, Any, Any, int, int]]:
    """For each spatial dimension: the dilated extents of lhs, rhs and ct, and the padding."""
    numbers = p["dimension_numbers"]
    return [
        (dilated(lhs.shape[i], ld), dilated(rhs.shape[j], rd), dilated(ct.shape[k], s), low, high)
        for i, j, k, ld, rd, s, (low, high) in zip(
            numbers.lhs_spec[2:],
            numbers.rhs_spec[2:],
            numbers.out_spec[2:],
            p["lhs_dilation"],
            p["rhs_dilation"],
            p["window_strides"],
            p["padding"],
        )
    ]


def _lhs_ct(ct: Any, aval: ShapedArray, w: Any, p: Params) -> Any:
    """The result's cotangent, dilated by the stride, convolved with the reversed kernel in steps of
    the lhs dilation."""
    numbers: ConvDimensionNumbers = p["dimension_numbers"]
    groups, batch_groups = p["feature_group_count"], p["batch_group_count"]
    pads = tuple(
        [(k - 1 - low, x + low - c) for x, k, c, low, _ in _extents(aval, typeof(w), typeof(ct), p)]
    )
    w = do.rev(w, dimensions=tuple(numbers.rhs_spec[2:]))
    out_dim, in_dim = numbers.rhs_spec[:2]
    if groups * batch_groups > 1:  # (groups, out, in) becomes (groups, in, out)
        g = groups * batch_groups
        w = _merge(_split(w, out_dim, g), out_dim, in_dim + (in_dim > out_dim))
    back = do.conv_general_dilated(
        ct,
        w,
        **{
            **p,
            "window_strides": p["lhs_dilation"],
            "padding": pads,
            "lhs_dilation": p["window_strides"],
            "dimension_numbers": ConvDimensionNumbers(
                numbers.out_spec, (in_dim, out_dim, *numbers.rhs_spec[2:]), numbers.lhs_spec
            ),
            "feature_group_count": groups * batch_groups,
            "batch_group_count": 1,
        },
    )
    if (
        batch_groups > 1
    ):  # the groups stand in the feature dimension; they belong in the batch dimension
        batch_dim, feature_dim = numbers.lhs_spec[:2]
        back = _split(back, feature_dim, batch_groups)
        back = _merge(back, feature_dim, batch_dim + (batch_dim > feature_dim))
    return back


def _rhs_ct(ct: Any, x: Any, aval: ShapedArray, p: Params) -> Any:
    """lhs convolved with the result's cotangent: features play the batch, the batch is summed
    over."""
    numbers: ConvDimensionNumbers = p["dimension_numbers"]
    pads = tuple(
        [
            (low, k - 1 + c - lx - low)
            for lx, k, c, low, _ in _extents(typeof(x), aval, typeof(ct), p)
        ]
    )

    def swapped(spec: Sequence[int]) -> tuple[int, ...]:
        return (spec[1], spec[0], *spec[2:])

    return do.conv_general_dilated(
        x,
        ct,
        **{
            **p,
            "window_strides": p["rhs_dilation"],
            "padding": pads,
            "rhs_dilation": p["window_strides"],
            "dimension_numbers": ConvDimensionNumbers(
                swapped(numbers.lhs_spec), swapped(numbers.out_spec), swapped(numbers.rhs_spec)
            ),
            "feature_group_count": p["batch_group_count"],
            "batch_group_count": p["feature_group_count"],
        },
    )


# ---------------------------------------------------------------- batching


def _split(x: Any, d: int, first: int) -> Any:
    """Dimension `d` as two: `first` groups of its elements."""
    shape = typeof(x).shape
    sizes = (*shape[:d], first, shape[d] // max(first, 1), *shape[d + 1 :])
    return do.reshape(x, new_sizes=sizes)


def _merge(x: Any, outer: int, inner: int) -> Any:
    """Dimension `outer` moved before `inner` and merged with it. `inner` is counted with `outer`
    still there."""
    target = inner - (outer < inner)
    x = move(x, outer, target)
    shape = typeof(x).shape
    sizes = (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :])
    return do.reshape(x, new_sizes=sizes)


def _grow(x: Any, b: int, d: int, groups: int) -> Any:
    """The batch dimension `b` merged into dimension `d` (counted without `b`), inside each of its
    `groups`."""
    if groups == 1:
        return _merge(x, b, d + (b <= d))
    x = _split(move(x, b, 0), d + 1, groups)
    return _merge(_merge(x, 0, d + 2), d, d + 1)


def _shrink(x: Any, d: int, groups: int, size: int) -> tuple[Any, int]:
    """Undo `_grow` on the result: the batch dimension out of dimension `d`, and where it stands."""
    if groups == 1:
        return _split_at(x, d, size)
    shape = typeof(x).shape
    inner = shape[d] // max(groups * size, 1)
    x = do.reshape(
        x,
        new_sizes=(*shape[:d], groups, size, inner, *shape[d + 1 :]),
    )
    return _merge(move(x, d + 1, 0), d + 1, d + 2), 0


def _conv_batch(args: Sequence[Any], dims: Sequence[int | None], **p: Any) -> tuple[Any, int]:
    (x, w), (bx, bw) = args, dims
    numbers: ConvDimensionNumbers = p["dimension_numbers"]
    groups, batch_groups = p["feature_group_count"], p["batch_group_count"]
    sizes = [typeof(v).shape[b] for v, b in zip(args, dims) if b is not None]
    if type(sizes[0]) is int and sizes[0] == 0:
        return _empty_result(x, w, bx, bw, p)
    if bw is None:
        assert bx is not None
        size = typeof(x).shape[bx]
        out = do.conv_general_dilated(_grow(x, bx, numbers.lhs_spec[0], batch_groups), w, **p)
        return _split_at(out, numbers.out_spec[0], size)
    size = typeof(w).shape[bw]
    out_dim = numbers.rhs_spec[0]
    if bx is None:
        out = do.conv_general_dilated(x, _grow(w, bw, out_dim, groups * batch_groups), **p)
        return _shrink(out, numbers.out_spec[1], groups * batch_groups, size)
    # both: one group for each example
    if size == 0:  # also where it only turns out to be
        return _empty_result(x, w, bx, bw, p)
    which = "batch_group_count" if batch_groups > 1 else "feature_group_count"
    x = _grow(x, bx, numbers.lhs_spec[0 if batch_groups > 1 else 1], 1)
    out = do.conv_general_dilated(x, _grow(w, bw, out_dim, 1), **{**p, which: size * p[which]})
    return _split_at(out, numbers.out_spec[1], size)


def _split_at(x: Any, d: int, size: int) -> tuple[Any, int]:
    return _split(x, d, size), d


def _empty_result(x: Any, w: Any, bx: int | None, bw: int | None, p: Params) -> tuple[Any, int]:
    """A batch of nothing is no part of another dimension; only the shape of the result matters."""

    def one(v: Any, b: int | None) -> ShapedArray:
        if b is None:
            return ShapedArray(typeof(v).shape, typeof(v).dtype)
        return ShapedArray(typeof(v).shape[:b] + typeof(v).shape[b + 1 :], typeof(v).dtype)

    aval = _conv_shape(one(x, bx), one(w, bw), **p)
    return (
        do.broadcast_in_dim(
            np.zeros((), aval.dtype), shape=(0, *aval.shape), broadcast_dimensions=()
        ),
        0,
    )


conv_general_dilated_p = Primitive(
    "conv_general_dilated",
    meaning=_conv_meaning,
    shape=_conv_shape,
    jvp=_conv_jvp,
    transpose=_conv_transpose_rule,
    batch=_conv_batch,
)
