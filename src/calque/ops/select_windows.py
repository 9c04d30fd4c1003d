"""Selection in windows, which the derivatives of maximum and minimum over windows are made of:
select_and_gather_add takes a value where each window's extreme stands, select_and_scatter_add puts
one there; select_and_scatter is general.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.jaxprs import Jaxpr
from calque.core.primitives import NotApplicable, Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.ops.common import batch_size, front, initial_value, zero_like
from calque.ops.layout import Shape
from calque.ops.padding import Pads
from calque.ops.scalar_programs import run_scalars
from calque.ops.windows import batched_params, padded_for_windows, window_shape, windows_of

Params = dict[str, Any]

# ---------------------------------------------------------------- which element each window selects


def _without_dilation(p: Params) -> Params:
    ones = (1,) * len(p["window_dimensions"])
    return {"base_dilation": ones, "window_dilation": ones, **p}


def _selected(x: np.ndarray, select_prim: Primitive, p: Params) -> tuple[np.ndarray, np.ndarray]:
    """For each window the position, among the window's, of its first greatest (least) element; and
    whether it has any. NaN counts as greater (less) than all. Padding is never selected."""
    values = _flat_windows(x, 0, p)
    real = _flat_windows(np.ones(x.shape, bool), False, p)
    if select_prim.name not in ("ge", "le"):
        raise NotImplementedError(f"windows select by ge or le, not by {select_prim.name}")
    if values.shape[-1] == 0:
        return np.zeros(values.shape[:-1], np.int64), np.zeros(values.shape[:-1], bool)
    better = np.maximum if select_prim.name == "ge" else np.minimum
    # among the real elements only: padding takes the value of the first real one of its window
    first = np.argmax(real, axis=-1)[..., None]
    values = np.where(real, values, np.take_along_axis(values, first, -1))
    best = better.reduce(values, axis=-1)[..., None]
    hits = real & ((values == best) | ((values != values) & (best != best)))
    return np.argmax(hits, axis=-1), np.asarray(real.any(axis=-1))


def _flat_windows(x: np.ndarray, fill: Any, p: Params) -> np.ndarray:
    view = windows_of(padded_for_windows(x, fill, p), p)
    return view.reshape(
        (*view.shape[: x.ndim], int(np.prod(p["window_dimensions"], dtype=np.int64)))
    )


def _gather_windows(
    values: np.ndarray, x: np.ndarray, *, select_prim: Primitive, **p: Any
) -> np.ndarray:
    at, some = _selected(x, select_prim, p)
    view = _flat_windows(values, 0, p)
    if view.shape[-1] == 0:
        return np.zeros(view.shape[:-1], values.dtype)
    picked = np.take_along_axis(view, at[..., None], -1)[..., 0]
    return np.where(some, picked, np.zeros((), values.dtype))


def _scatter_windows(
    source: np.ndarray, x: np.ndarray, *, select_prim: Primitive, **p: Any
) -> np.ndarray:
    p = _without_dilation(p)
    at, some = _selected(x, select_prim, p)
    numbers = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    where = _flat_windows(numbers, 0, p)
    out = np.zeros(x.size, source.dtype)
    if where.size:
        target = np.take_along_axis(where, at[..., None], -1)[..., 0]
        np.add.at(out, target[some], source[some])
    return out.reshape(x.shape)


# ---------------------------------------------------------------- shapes


def _gather_shape(
    values: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **p: Any
) -> ShapedArray:
    if values.shape != x.shape:
        raise TypeError(
            f"select_and_gather_add: tangents {values.str_short()} and operand {x.str_short()} must"
            " have one shape"
        )
    return ShapedArray(window_shape("select_and_gather_add", x.shape, p), values.dtype)


def _scatter_shape(
    source: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **p: Any
) -> ShapedArray:
    want = window_shape("select_and_scatter_add", x.shape, _without_dilation(p))
    if source.shape != want:
        raise TypeError(
            f"select_and_scatter_add: source {source.str_short()} must have the shape of the"
            f" windows, {want}, over {x.str_short()}"
        )
    return ShapedArray(x.shape, source.dtype)


# ---------------------------------------------------------------- rules


def _first_linear_jvp(name: str) -> Any:
    """Linear in the first operand; the second only selects, so that its tangent changes nothing."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **p: Any) -> tuple[Any, Any]:
        values, x = primals
        out = do[name](values, x, **p)
        t = tangents[0]
        return out, zero_like(out) if type(t) is Zero else do[name](t, x, **p)

    return jvp


def _gather_transpose(ct: Any, values: UndefinedPrimal, x: Any, **p: Any) -> list[Any]:
    if type(ct) is Zero:
        return [Zero(values.aval), None]
    if any(d != 1 for d in p["window_dilation"]):
        raise NotImplementedError(
            "the gradient of a maximum or minimum over dilated windows is not implemented:"
            " take the maximum of the windows of lax.conv_general_dilated_patches"
        )
    rest = {k: p[k] for k in ("select_prim", "window_dimensions", "window_strides", "padding")}
    dilation = p["base_dilation"]
    if all(d == 1 for d in dilation):
        return [do.select_and_scatter_add(ct, x, **rest), None]
    # the holes hold what no window selects unless it has nothing else, and are cut out again
    low = -np.inf if p["select_prim"].name == "ge" else np.inf
    hole = initial_value(low, typeof(x))
    wide = do.pad(x, hole, padding_config=tuple([(0, 0, d - 1) for d in dilation]))
    found = do.select_and_scatter_add(ct, wide, **rest)
    shape = typeof(found).shape
    return [
        do.slice(found, start_indices=(0,) * len(shape), limit_indices=shape, strides=dilation),
        None,
    ]


def _scatter_transpose(ct: Any, source: UndefinedPrimal, x: Any, **p: Any) -> list[Any]:
    if type(ct) is Zero:
        return [Zero(source.aval), None]
    return [do.select_and_gather_add(ct, x, **_without_dilation(p)), None]


def _batch(name: str) -> Any:
    def batch(args: Sequence[Any], dims: Sequence[int | None], **p: Any) -> tuple[Any, int]:
        size = batch_size(args, dims)
        values, x = (front(a, d, size) for a, d in zip(args, dims))
        return do[name](values, x, **batched_params(p, 0)), 0

    return batch


select_and_gather_add_p = Primitive(
    "select_and_gather_add",
    meaning=_gather_windows,
    shape=_gather_shape,
    jvp=_first_linear_jvp("select_and_gather_add"),
    transpose=_gather_transpose,
    batch=_batch("select_and_gather_add"),
)
select_and_scatter_add_p = Primitive(
    "select_and_scatter_add",
    meaning=_scatter_windows,
    shape=_scatter_shape,
    jvp=_first_linear_jvp("select_and_scatter_add"),
    transpose=_scatter_transpose,
    batch=_batch("select_and_scatter_add"),
)

# ---------------------------------------------------------------- select_and_scatter


def _general_shape(
    x: ShapedArray,
    source: ShapedArray,
    init: ShapedArray,
    *,
    select_jaxpr: Jaxpr,
    select_consts: Sequence[Any],
    scatter_jaxpr: Jaxpr,
    scatter_consts: Sequence[Any],
    window_dimensions: Shape,
    window_strides: Shape,
    padding: Pads,
) -> ShapedArray:
    p = _without_dilation(
        {
            "window_dimensions": window_dimensions,
            "window_strides": window_strides,
            "padding": padding,
        }
    )
    want = window_shape("select_and_scatter", x.shape, p)
    if source.shape != want or init.ndim or not x.dtype == source.dtype == init.dtype:
        raise TypeError(
            f"select_and_scatter: source {source.str_short()} must have the shape of the windows,"
            f" {want}, over {x.str_short()}, and the initial value {init.str_short()} must be a"
            " scalar of the same dtype"
        )
    return ShapedArray(x.shape, x.dtype)


def _general_meaning(
    x: np.ndarray,
    source: np.ndarray,
    init: np.ndarray,
    *,
    select_jaxpr: Jaxpr,
    select_consts: Sequence[Any],
    scatter_jaxpr: Jaxpr,
    scatter_consts: Sequence[Any],
    **p: Any,
) -> np.ndarray:
    """Window by window in row-major order: the selected element is combined with the source."""
    p = _without_dilation(p)
    values, real = _flat_windows(x, 0, p), _flat_windows(np.ones(x.shape, bool), False, p)
    where = _flat_windows(np.arange(x.size, dtype=np.int64).reshape(x.shape), 0, p)
    best, target, some = (np.zeros(values.shape[:-1], d) for d in (x.dtype, np.int64, bool))
    for k in range(values.shape[-1]):
        keep = run_scalars(select_jaxpr, select_consts, best, values[..., k])[0].astype(bool)
        take = real[..., k] & ~(some & keep)
        best, target = np.where(take, values[..., k], best), np.where(take, where[..., k], target)
        some = some | take
    out = np.full(x.size, init, x.dtype)
    for t, s in zip(target[some], source[some]):
        out[t : t + 1] = run_scalars(
            scatter_jaxpr, scatter_consts, out[t : t + 1], np.array([s], x.dtype)
        )[0]
    return out.reshape(x.shape)


def _general_batch(args: Sequence[Any], dims: Sequence[int | None], **p: Any) -> tuple[Any, int]:
    if dims[2] is not None:
        raise NotImplementedError("select_and_scatter cannot be batched over its initial value")
    size = batch_size(args, dims)
    x, source = front(args[0], dims[0], size), front(args[1], dims[1], size)
    return do.select_and_scatter(x, source, args[2], **batched_params(p, 0)), 0


select_and_scatter_p = Primitive(
    "select_and_scatter",
    meaning=_general_meaning,
    shape=_general_shape,
    jvp=NotApplicable("select_and_scatter has no derivative; use select_and_scatter_add"),
    transpose=NotApplicable("select_and_scatter is not linear; use select_and_scatter_add"),
    batch=_general_batch,
)
