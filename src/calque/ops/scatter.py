"""Scatters: an array with windows of it replaced by, or combined with, updates at positions that
another array holds.

Updates are applied one after the other, in row-major order of the index vectors: of several updates
of one element by `scatter` the last remains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import surely_less
from calque.core.dtypes import is_integer
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.ops.common import batch_size, front, instantiate, zero_like, zeros
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.indexing import (
    add_at,
    clipped,
    element_indices,
    offsets_of,
    window_starts,
    windows_inside,
)
from calque.ops.scalar_programs import run_scalars
from calque.ops.window_checks import check_apart, check_batching, check_dims, check_index_map

Params = Any

# ---------------------------------------------------------------- shape


def window_sizes(
    x: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers
) -> list[int]:
    """The size of the windows along each dimension of the operand."""
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window = iter([updates.shape[d] for d in numbers.update_window_dims])
    return [1 if d in dropped else next(window) for d in range(x.ndim)]


def _scatter_shape(name: str) -> Callable[..., ShapedArray]:
    def shape(
        x: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Params,
    ) -> ShapedArray:
        if not is_integer(indices.dtype) or indices.ndim == 0:
            raise TypeError(
                f"{name}: indices must be integers with an index vector dimension, got"
                f" {indices.str_short()}"
            )
        if x.dtype != updates.dtype:
            raise TypeError(
                f"{name}: operand and updates must have the same dtype, got {x.str_short()} and"
                f" {updates.str_short()}"
            )
        _check_numbers(x, indices, updates, dimension_numbers)
        _check_windows(x, indices, updates, dimension_numbers)
        return x.strip_weak_type() if not updates.weak_type else x

    return shape


def _check_numbers(
    x: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers
) -> None:
    """The lists of dimensions, one by one and together."""
    window, inserted, index_map, batching, indices_batching = numbers
    own, to = "operand_batching_dims", "scatter_dims_to_operand_dims"
    check_dims("scatter", "update_window_dims", window, updates.ndim)
    check_dims("scatter", "inserted_window_dims", inserted, x.ndim)
    check_dims("scatter", own, batching, x.ndim)
    check_apart("scatter", "inserted_window_dims", inserted, own, batching)
    check_index_map("scatter", to, " mapping", index_map, x, indices)
    check_apart("scatter", to, index_map, own, batching)
    check_batching(
        "scatter", "scatter_indices_batching_dims", batching, indices_batching, x, indices
    )


def _check_windows(
    x: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers
) -> None:
    window = numbers.update_window_dims
    count = len(window) + len(numbers.inserted_window_dims) + len(numbers.operand_batching_dims)
    if count != x.ndim:
        raise TypeError(
            f"Scatter op has window of size {count}; doesn't match operand of rank {x.ndim}."
        )
    rank = indices.ndim - 1 + len(window)
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    for d, (n, size) in enumerate(zip(window_sizes(x, updates, numbers), x.shape)):
        if surely_less(size, n) and updates.size:
            if d in numbers.inserted_window_dims:
                continue  # no update lies inside of an axis without elements
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the"
                f" corresponding dimensions of operand: got updates {updates.str_short()} and"
                f" operand {x.str_short()}"
            )
    batch = tuple([updates.shape[d] for d in offsets_of(updates.ndim, window)])
    if batch != indices.shape[:-1]:
        raise TypeError(
            "Bounds of the scatter dimensions of updates must be the same as the bounds of the"
            f" corresponding dimensions of scatter indices: updates {updates.str_short()} have"
            f" {batch}, indices {indices.str_short()} have {indices.shape[:-1]}"
        )


# ---------------------------------------------------------------- meaning


def _targets(
    x: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    numbers: ScatterDimensionNumbers,
    mode: GatherScatterMode,
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Positions in the operand and the updates that go there, both in the order of application,
    those outside left out."""
    window, inserted, index_map, batching, indices_batching = numbers
    batch = indices.shape[:-1]
    sizes = window_sizes(
        ShapedArray(x.shape, np.dtype(bool)), ShapedArray(updates.shape, np.dtype(bool)), numbers
    )
    starts = window_starts(indices, x.ndim, index_map, batching, indices_batching)
    ordered = np.transpose(updates, [*offsets_of(updates.ndim, window), *window])
    if mode is GatherScatterMode.CLIP:
        starts = clipped(starts, x.shape, sizes)
    inside = windows_inside(starts, x.shape, sizes, batch)
    at = element_indices(starts, sizes, (*inserted, *batching), batch)
    if inside.all():
        return at, ordered
    full = [np.broadcast_to(a, ordered.shape)[inside] for a in at]
    return tuple(full), ordered[inside]


def _scatter_meaning(
    apply: Callable[[np.ndarray, tuple[np.ndarray, ...], np.ndarray], None],
) -> Callable[..., np.ndarray]:
    def meaning(
        x: np.ndarray,
        indices: np.ndarray,
        updates: np.ndarray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode,
        **params: Params,
    ) -> np.ndarray:
        out = np.array(x)
        at, values = _targets(out, indices, updates, dimension_numbers, mode)
        if values.size:
            if out.ndim == 0:
                line = out.reshape(1)
                apply(line, (np.zeros(values.shape, np.int64),), values, **_combine(params))
                return line.reshape(())
            apply(out, at, values, **_combine(params))
        return out

    return meaning


def _combine(params: dict[str, Any]) -> dict[str, Any]:
    return {k: params[k] for k in ("update_jaxpr", "update_consts")}


def _replace(
    out: np.ndarray,
    at: tuple[np.ndarray, ...],
    values: np.ndarray,
    update_jaxpr: Any,
    update_consts: Any,
) -> None:
    if update_jaxpr is None:
        out[at] = values
        return
    for some, chosen in _rounds(out, at, values):
        out[some] = run_scalars(update_jaxpr, update_consts, out[some], chosen)[0]


def _rounds(out: np.ndarray, at: tuple[np.ndarray, ...], values: np.ndarray) -> Any:
    """Updates in rounds in which no element occurs twice: the first update of each element, then
    the second, ..."""
    flat = np.ravel_multi_index(tuple(np.broadcast_arrays(*at)), out.shape).reshape(-1)
    line = np.broadcast_to(values, np.broadcast_shapes(*(a.shape for a in at))).reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(len(ordered)) - np.repeat(begins, np.diff(np.r_[begins, len(ordered)]))
    for k in range(int(turn.max()) + 1 if len(turn) else 0):
        some = order[turn == k]
        yield np.unravel_index(flat[some], out.shape), line[some]


def _accumulate(ufunc: np.ufunc) -> Callable[..., None]:
    def apply(
        out: np.ndarray,
        at: tuple[np.ndarray, ...],
        values: np.ndarray,
        update_jaxpr: Any,
        update_consts: Any,
    ) -> None:
        ufunc.at(out, at, values)

    return apply


# ---------------------------------------------------------------- derivatives

Tangents = Sequence[Any]


def _gather_like(x: Any, indices: Any, updates: ShapedArray, p: dict[str, Any]) -> Any:
    """The elements of `x` (of the operand's shape) that the updates meet; zero for updates
    outside."""
    if updates.size == 0:  # windows of an operand without elements do not fit into it
        return zeros(ShapedArray(updates.shape, typeof(x).dtype))
    numbers: ScatterDimensionNumbers = p["dimension_numbers"]
    clip = p["mode"] is GatherScatterMode.CLIP
    return do.gather(
        x,
        indices,
        dimension_numbers=GatherDimensionNumbers(*numbers),
        slice_sizes=tuple(window_sizes(typeof(x), updates, numbers)),
        unique_indices=p["unique_indices"],
        indices_are_sorted=p["indices_are_sorted"],
        mode=GatherScatterMode.CLIP if clip else GatherScatterMode.FILL_OR_DROP,
        fill_value=None if clip else 0,
    )


def _scatter_add(x: Any, indices: Any, updates: Any, p: dict[str, Any]) -> Any:
    return add_at(
        x,
        indices,
        updates,
        p["dimension_numbers"],
        p["indices_are_sorted"],
        p["unique_indices"],
        p["mode"],
    )


def _set(x: Any, indices: Any, updates: Any, p: dict[str, Any]) -> Any:
    return do.scatter(x, indices, updates, **{**p, "update_jaxpr": None, "update_consts": ()})


def _jvp(name: str, tangent: Callable[..., Any]) -> Callable[..., Any]:
    """`tangent(out, x, indices, updates, dx, du, params)`, called unless both tangents are Zero."""

    def jvp(primals: Sequence[Any], tangents: Tangents, **params: Params) -> tuple[Any, Any]:
        out = do[name](*primals, **params)
        dx, _, du = tangents
        if type(dx) is Zero and type(du) is Zero:
            return out, zero_like(out)
        return out, tangent(out, *primals, dx, du, params)

    return jvp


def _linear_tangent(name: str) -> Callable[..., Any]:
    def tangent(
        out: Any, x: Any, indices: Any, updates: Any, dx: Any, du: Any, p: dict[str, Any]
    ) -> Any:
        return do[name](instantiate(dx), indices, instantiate(du), **p)

    return tangent


def _set_tangent(
    out: Any, x: Any, indices: Any, updates: Any, dx: Any, du: Any, p: dict[str, Any]
) -> Any:
    if p["update_jaxpr"] is not None:
        raise NotImplementedError(
            "scatter_apply has no derivative; gather the elements, apply the function, and scatter"
            " the results: x.at[i].set(f(x[i]))"
        )
    return _set(instantiate(dx), indices, instantiate(du), p)


def _mul_tangent(
    out: Any, x: Any, indices: Any, updates: Any, dx: Any, du: Any, p: dict[str, Any]
) -> Any:
    terms = []
    if type(dx) is not Zero:
        terms.append(do.scatter_mul(dx, indices, updates, **p))
    if type(du) is not Zero:
        if not p["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul gradients are only implemented if `unique_indices=True`"
            )
        factor = _gather_like(x, indices, typeof(updates), p)
        terms.append(_scatter_add(zeros(typeof(x)), indices, do.mul(du, factor), p))
    return terms[0] if len(terms) == 1 else do.add_any(*terms)


def _extremal_tangent(
    out: Any, x: Any, indices: Any, updates: Any, dx: Any, du: Any, p: dict[str, Any]
) -> Any:
    """The mean of the tangents of all, the operand's element and the updates, that attain the
    result."""

    def as_number(mask: Any, like: Any) -> Any:
        return do.convert_element_type(mask, new_dtype=typeof(like).dtype)

    mine = as_number(do.eq(x, out), x)
    theirs = as_number(do.eq(updates, _gather_like(out, indices, typeof(updates), p)), x)
    count = _scatter_add(mine, indices, theirs, p)
    total = _scatter_add(do.mul(instantiate(dx), mine), indices, do.mul(instantiate(du), theirs), p)
    return do.div(total, count)


# ---------------------------------------------------------------- transposition


def _transpose(rule: Callable[..., Any]) -> Callable[..., Any]:
    """`rule(ct, indices, updates_aval, params) -> cotangents of operand and updates`, as functions
    called when wanted."""

    def transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Params) -> list[Any]:
        linear = [type(v) is UndefinedPrimal for v in (x, updates)]
        if type(ct) is Zero:
            back = [
                Zero(v.aval) if is_linear else None for v, is_linear in zip((x, updates), linear)
            ]
        else:
            aval = updates.aval if linear[1] else typeof(updates)
            back = [
                f() if wanted else None
                for f, wanted in zip(rule(ct, indices, aval, params), linear)
            ]
        return [back[0], None, back[1]]

    return transpose


def _add_transpose(ct: Any, indices: Any, aval: ShapedArray, p: dict[str, Any]) -> Any:
    return lambda: ct, lambda: _gather_like(ct, indices, aval, p)


def _sub_transpose(ct: Any, indices: Any, aval: ShapedArray, p: dict[str, Any]) -> Any:
    return lambda: ct, lambda: do.neg(_gather_like(ct, indices, aval, p))


def _set_transpose(ct: Any, indices: Any, aval: ShapedArray, p: dict[str, Any]) -> Any:
    def of_operand() -> Any:
        return _set(ct, indices, zeros(ShapedArray(aval.shape, typeof(ct).dtype)), p)

    def of_updates() -> Any:
        back = _gather_like(ct, indices, aval, p)
        if p["unique_indices"] or aval.size == 0:
            return back
        number = do.iota(dtype=np.dtype("int32"), shape=(aval.size,), dimension=0)
        number = do.reshape(number, new_sizes=aval.shape)
        winner = _set(zeros(ShapedArray(typeof(ct).shape, np.dtype("int32"))), indices, number, p)
        won = do.eq(_gather_like(winner, indices, aval, p), number)
        return do.select_n(won, zeros(typeof(back)), back)

    return of_operand, of_updates


def _mul_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Params) -> list[Any]:
    """Linear in the operand for given updates (the only form in which it appears in a tangent)."""
    if type(updates) is UndefinedPrimal:
        raise NotImplementedError("scatter_mul is transposed with respect to its operand only")
    if type(ct) is Zero:
        return [Zero(x.aval), None, None]
    return [do.scatter_mul(ct, indices, updates, **params), None, None]


# ---------------------------------------------------------------- batching


def _scatter_batch(name: str) -> Callable[..., Any]:
    def batch(
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Params,
    ) -> tuple[Any, int]:
        size = batch_size(args, dims)
        x, updates = front(args[0], dims[0], size), front(args[2], dims[2], size)
        window, inserted, index_map, batching, indices_batching = dimension_numbers

        def later(ds: Sequence[int]) -> tuple[int, ...]:
            return tuple([d + 1 for d in ds])

        if dims[1] is None:
            indices = args[1]
            numbers = ScatterDimensionNumbers(
                (0, *later(window)),
                later(inserted),
                later(index_map),
                later(batching),
                indices_batching,
            )
        else:
            indices = front(args[1], dims[1], size)
            numbers = ScatterDimensionNumbers(
                later(window),
                later(inserted),
                later(index_map),
                (0, *later(batching)),
                (0, *later(indices_batching)),
            )
        return do[name](x, indices, updates, dimension_numbers=numbers, **params), 0

    return batch


# ---------------------------------------------------------------- the primitives

NOT_LINEAR = "the maximum or minimum with an update is not linear and has no transpose"


def _refuse_transpose(ct: Any, *args: Any, **params: Params) -> Any:
    raise NotImplementedError(NOT_LINEAR)


def _primitive(
    name: str,
    apply: Callable[..., None],
    tangent: Callable[..., Any],
    transpose: Callable[..., Any],
) -> Primitive:
    return Primitive(
        name,
        meaning=_scatter_meaning(apply),
        shape=_scatter_shape(name),
        jvp=_jvp(name, tangent),
        transpose=transpose,
        batch=_scatter_batch(name),
    )


scatter_p = _primitive("scatter", _replace, _set_tangent, _transpose(_set_transpose))
scatter_add_p = _primitive(
    "scatter-add", _accumulate(np.add), _linear_tangent("scatter-add"), _transpose(_add_transpose)
)
scatter_sub_p = _primitive(
    "scatter-sub",
    _accumulate(np.subtract),
    _linear_tangent("scatter-sub"),
    _transpose(_sub_transpose),
)
scatter_mul_p = _primitive("scatter-mul", _accumulate(np.multiply), _mul_tangent, _mul_transpose)
scatter_min_p = _primitive(
    "scatter-min", _accumulate(np.minimum), _extremal_tangent, _refuse_transpose
)
scatter_max_p = _primitive(
    "scatter-max", _accumulate(np.maximum), _extremal_tangent, _refuse_transpose
)
