"""Indexing with NumPy's rules: x[...] and x.at[...].

An index is parsed once into a `Plan`: basic parts (ints, slices, None, Ellipsis) become slice,
squeeze, rev and broadcast; integer arrays and traced ints become one gather or scatter over the
axes they stand for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import ArrayImpl, is_concrete, to_numpy
from calque.core.config import config
from calque.core.dims import Dim, is_found, surely_equal, surely_same
from calque.core.dtypes import (
    PYTHON_SCALARS,
    canonicalize,
    iinfo,
    is_extended,
    is_inexact,
    is_integer,
    is_signed,
    is_unsigned,
    promote,
)
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.numpy.indexing import found_sizes as found
from calque.numpy.indexing import scalar_masks
from calque.numpy.indexing.checks import check_bounds, check_static
from calque.numpy.indexing.parsing import Plan, _is_array_part, expand, mode_of, parse
from calque.numpy.promotion import broadcast_to, convert, promote_dtypes
from calque.ops import indexing as lax_indexing
from calque.ops import scatter_functions as lax_scatter
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.sizes import as_number, exactly, index_dtype, places
from calque.transforms.devices.several_processes import spans
from calque.transforms.devices.typed_values import split_as

# ---------------------------------------------------------------- reading


def getitem(
    x: Any,
    index: Any,
    mode: Any = None,
    fill_value: Any = None,
    unique: bool = False,
    ordered: bool = False,
) -> Any:
    """x[index]"""
    x, index = scalar_masks.opened(x, index)
    if needs_opening(index, x.shape):
        x, index = opened_windows(x, index)
    plan = parse(index, x.shape)
    if config.debug_index and mode is None:
        check_bounds(plan.shape, plan.arrays, expand(index, plan.shape))
    if config.check_static_indices and mode in (None, "promise_in_bounds"):
        check_static(plan.shape, expand(index, plan.shape))
    if not plan.arrays and outside(plan, index):
        plan = parse(with_places_outside(plan, index), x.shape)
    if plan.arrays:
        return gather(x, plan, mode_of(mode), fill_value, unique, ordered)
    return basic(x, plan)


def needs_opening(index: Any, shape: tuple[int, ...]) -> bool:
    """Whether a part of the index might be a slice of a length that only the program knows, or lie
    on an axis of such a size."""
    if any(isinstance(n, Dim) for n in shape):
        return any(map(is_found, shape))
    parts = index if type(index) is tuple else (index,)
    return any(
        [
            type(p) is slice and any([isinstance(v, Tracer) for v in (p.start, p.stop, p.step)])
            for p in parts
        ]
    )


def opened_windows(x: Any, index: Any) -> tuple[Any, Any]:
    """The operand cut along the axes of slices that the program bounds, and the index of the
    rest."""
    parts = expand(index, x.shape)
    axis = 0
    for k, p in enumerate(parts):
        if p is None:
            continue
        if found.is_window(p, x.shape[axis]):
            x = found.cut(x, axis, p)
            parts[k] = slice(None)
        elif type(p) is int and is_found(x.shape[axis]):
            parts[k] = np.asarray(_place(p), np.int32)
        axis += 1
    return x, tuple(parts)


def windows_as_places(index: Any, shape: tuple[int, ...]) -> Any:
    """An index whose slice that the program bounds is a vector of places."""
    parts = expand(index, shape)
    axes = [p for p in parts if p is not None]
    places = {id(p): found.window(p, n) for p, n in zip(axes, shape) if found.is_window(p, n)}
    if len(places) > 1 or (places and any(map(_is_array_part, parts))):
        raise NotImplementedError(
            "x.at[...]: one slice with traced bounds, and no index arrays beside it; update a part"
            " and put it back in two steps"
        )
    sizes = iter(shape)
    whole = [None if p is None else next(sizes) for p in parts]

    def number(p: Any, n: Any) -> Any:
        return np.asarray(_place(p), np.int32) if type(p) is int and is_found(n) else p

    return tuple(places.get(id(p), number(p, n)) for p, n in zip(parts, whole))


def _place(p: int) -> int:
    """An index on an axis of a size that the program finds, which is below 2**31."""
    return min(max(p, -(2**31)), 2**31 - 1)


def fill_scalar(x: Any, fill_value: Any) -> Any:
    dtype = typeof(x).dtype
    if is_extended(dtype):  # a random key of no value: all its bits are set
        if fill_value is not None:
            return fill_value
        word = np.full(dtype.impl.key_shape, np.iinfo(np.uint32).max, np.uint32)
        return do.random_wrap(word, impl=dtype.impl)
    if fill_value is None:
        fill_value = (
            np.nan
            if is_inexact(dtype)
            else (
                True
                if dtype == np.dtype(bool)
                else iinfo(dtype).min
                if is_signed(dtype)
                else iinfo(dtype).max
            )
        )
    with np.errstate(all="ignore"):
        return np.asarray(fill_value).astype(dtype)


def basic(x: Any, plan: Plan) -> Any:
    """ints, slices and None: slice, rev, squeeze, broadcast."""
    shape = plan.shape
    starts, limits, steps, flips, drop = [], [], [], [], []
    for axis in range(len(shape)):
        start, length, step = plan.slices[axis]
        if length == -1:
            drop.append(axis)
            length = 1
        if step < 0:
            flips.append(axis)
            start, step = start + (length - 1) * step, -step
        if step == 1:
            limit = start + length
        else:
            start, limit = (start, start + (length - 1) * step + 1) if length else (0, 0)
        starts.append(start)
        limits.append(limit)
        steps.append(step)
    whole = all(
        surely_equal(s, 0) and surely_equal(e, d) and t == 1
        for s, e, t, d in zip(starts, limits, steps, shape)
    )
    if not whole:
        strides = tuple(steps) if any(t != 1 for t in steps) else None
        x = do.slice(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=strides)
    if flips:
        x = do.rev(x, dimensions=tuple(flips))
    if drop:
        x = do.squeeze(x, dimensions=tuple(drop))
    if "new" in plan.result:
        shape_out, dims, kept = [], [], iter(x.shape)
        for i, r in enumerate(plan.result):
            shape_out.append(1 if r == "new" else next(kept))
            if r != "new":
                dims.append(i)
        x = do.broadcast_in_dim(x, shape=tuple(shape_out), broadcast_dimensions=tuple(dims))
    return x


def index_arrays(plan: Plan, wrap: bool) -> Any:
    """The integer arrays of a plan stacked along a new last axis."""
    axes = sorted(plan.arrays)
    dtype = index_dtype(*(plan.shape[a] for a in axes))
    columns = [
        broadcast_to(normalized(plan.arrays[a], plan.shape[a], wrap, dtype), plan.advanced_shape)
        for a in axes
    ]
    return stacked(columns, plan.advanced_shape)


def _signed(i: Any) -> Any:
    """Places without a sign as such with one, which integers of other dtypes join; what is beyond
    these is beyond the axis."""
    own = typeof(i).dtype
    if not is_unsigned(own):
        return i
    signed = np.dtype(f"int{8 * own.itemsize}")
    least, most = np.asarray(0, own), np.asarray(np.iinfo(signed).max, own)
    return convert(do.clamp(exactly(least), i, exactly(most)), signed)


def normalized(i: Any, size: int, wrap: bool, dtype: Any) -> Any:
    """Negative indices count from the end; `wrap` takes them modulo the size."""
    if type(i) is int:
        far = np.iinfo(np.int64).max
        i = np.asarray(min(max(i, -far), far), np.int64)
    if is_concrete(i) and not (isinstance(i, ArrayImpl) and spans(i._extra)):
        n = np.asarray(to_numpy(i)).astype(np.int64 if is_signed(typeof(i).dtype) else np.uint64)
        if isinstance(size, Dim) and (wrap or (n.dtype == np.int64 and (n < 0).any())):
            return normalized_at(n.astype(dtype), size, wrap)
        if wrap and size:
            n = n % size
        elif n.dtype == np.int64 and (n < 0).any():
            n = np.where(n < 0, n + size, n)
        return exactly(np.clip(n, iinfo(dtype).min, iinfo(dtype).max).astype(dtype))
    own = typeof(i).dtype
    whole = own.itemsize <= dtype.itemsize - is_unsigned(own)  # `dtype` holds every number of `own`
    if not wrap and is_signed(own) and whole and type(size) is int and size <= iinfo(own).max:
        return convert(normalized_at(i, size, wrap), dtype)  # no place is beyond its own type
    wide = dtype if whole or not is_integer(own) else own
    i = convert(i, wide)
    if not wrap and not is_signed(own):
        return i
    return normalized_at(i, size, wrap)


def normalized_at(i: Any, size: Any, wrap: bool) -> Any:
    """`normalized` while running."""
    if wrap:
        return _modulo(i, size)
    wide = typeof(i).dtype
    zero, n = as_number(0, wide), as_number(size, wide)
    return do.select_n(do.lt(i, zero), i, do.add(i, n))


def _modulo(i: Any, size: int) -> Any:
    dtype = typeof(i).dtype
    n, zero = as_number(size if size > 0 else 1, dtype), as_number(0, dtype)
    r = do.rem(i, n)
    return do.select_n(do.lt(r, zero), r, do.add(r, n))


def presliced(x: Any, plan: Plan) -> Any:
    """The operand with its sliced axes cut and its advanced axes whole."""
    whole = {a: plan.slices.get(a, (0, n, 1)) for a, n in enumerate(plan.shape)}
    if all(surely_same(whole[a], (0, n, 1)) for a, n in enumerate(plan.shape)):
        return x
    return basic(x, Plan(plan.shape, {}, whole, [("slice", a) for a in whole], 0, ()))


def gather(x: Any, plan: Plan, mode: Any, fill_value: Any, unique: bool, ordered: bool) -> Any:
    x = presliced(x, plan)
    axes = tuple(sorted(plan.arrays))
    indices = index_arrays(plan, wrap=mode == "wrap")
    rank = len(plan.advanced_shape)
    nothing = IndexError(
        "x[i]: there is no element at any index, an axis that is indexed has size 0"
    )
    if mode is not GatherScatterMode.FILL_OR_DROP:
        found.refuse_empty([plan.shape[a] for a in axes], nothing, unless=plan.advanced_shape)
    if any(x.shape[a] == 0 for a in axes):
        kept = [n for a, n in enumerate(plan.shape) if a not in plan.arrays]
        if 0 not in plan.advanced_shape and not (rank and 0 in kept):
            axis = next(a for a in axes if x.shape[a] == 0)
            raise (TypeError if rank else IndexError)(
                f"an index is out of bounds for axis {axis} with size 0"
            )
        return with_new_axes(nothing_of(x, plan), plan, rank)
    out = lax_indexing.gather(
        x,
        indices,
        GatherDimensionNumbers(
            offset_dims=offsets(plan, rank), collapsed_slice_dims=axes, start_index_map=axes
        ),
        tuple(1 if a in axes else x.shape[a] for a in range(len(plan.shape))),
        unique_indices=unique,
        indices_are_sorted=ordered,
        mode=reading_mode(plan, mode),
        fill_value=fill_value,
    )
    return with_new_axes(out, plan, rank)


def along_axis(
    x: Any, axis: int, indices: Any, shape: tuple[Any, ...], mode: Any, fill_value: Any
) -> Any:
    """The elements of `x` at places along an axis, one for each place of the others, where `x` has
    one element or as many as the result."""
    mode, size = mode_of(mode), x.shape[axis]
    if config.check_static_indices and mode is GatherScatterMode.PROMISE_IN_BOUNDS:
        check_static(x.shape, [indices if a == axis else slice(None) for a in range(x.ndim)])
    wrap = mode == "wrap"
    at = broadcast_to(normalized(indices, size, wrap, index_dtype(size)), shape)
    lanes = tuple(a for a, n in enumerate(x.shape) if a != axis and not surely_equal(n, 1))
    return lax_indexing.gather(
        x,
        stacked([at], shape),
        GatherDimensionNumbers(
            offset_dims=(),
            collapsed_slice_dims=tuple(a for a in range(x.ndim) if a not in lanes),
            start_index_map=(axis,),
            operand_batching_dims=lanes,
            start_indices_batching_dims=lanes,
        ),
        (1,) * x.ndim,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS if wrap else mode,
        fill_value=fill_value,
    )


def reading_mode(plan: Plan, mode: Any) -> Any:
    """What a gather makes of places outside, if nothing is asked for: the nearest element is read,
    and has no slope from there. One block of neighbours is moved inside instead, slope and all, as
    `dynamic_slice` does."""
    if mode not in (None, "wrap", GatherScatterMode.PROMISE_IN_BOUNDS):
        return mode
    one_block = not plan.advanced_shape and all(abs(s) == 1 for _, _, s in plan.slices.values())
    return GatherScatterMode.CLIP if one_block else GatherScatterMode.PROMISE_IN_BOUNDS


def nothing_of(x: Any, plan: Plan) -> Any:
    """An empty array indexed so that nothing is read: a gather has no place to begin there."""
    kept = [n for a, n in enumerate(x.shape) if a not in plan.arrays]
    before = sum(1 for r in plan.result[: plan.advanced_at] if r != "new")
    shape = (*kept[:before], *plan.advanced_shape, *kept[before:])
    return do.reshape(x, new_sizes=shape)


def offsets(plan: Plan, rank: int) -> tuple[int, ...]:
    """Where the sliced axes stand in the gathered result: the advanced ones are inserted as a
    block."""
    before = sum(1 for r in plan.result[: plan.advanced_at] if r != "new")
    return tuple(k if k < before else k + rank for k in range(len(plan.shape) - len(plan.arrays)))


def with_new_axes(x: Any, plan: Plan, rank: int) -> Any:
    if "new" not in plan.result:
        return x
    layout: list[Any] = list(plan.result)
    layout[plan.advanced_at : plan.advanced_at] = ["advanced"] * rank
    sizes, dims, shape = iter(x.shape), [], []
    for i, r in enumerate(layout):
        shape.append(1 if r == "new" else next(sizes))
        if r != "new":
            dims.append(i)
    return do.broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=tuple(dims))


# ---------------------------------------------------------------- writing

Scatter = Callable[..., Any]


def update(
    x: Any, index: Any, values: Any, scatter: Scatter, mode: Any, unique: bool, ordered: bool
) -> Any:
    """x with the places of `index` combined with `values`; places outside are left alone unless
    `mode` says otherwise."""
    own, (x, index) = x.shape, scalar_masks.opened(x, index)
    if not surely_same(x.shape, own):
        out = update(x, index, values, scatter, mode, unique, ordered)
        return do.reshape(out, new_sizes=own)
    if needs_opening(index, x.shape):
        index = windows_as_places(index, x.shape)
    plan = parse(index, x.shape)
    if config.debug_index and mode is None:
        check_bounds(plan.shape, plan.arrays, expand(index, plan.shape))
    shape = result_shape(plan)
    values = cast_update(values, x)
    if any(type(n) is int and n == 0 for n in shape):
        return x  # no element is written, whatever the shape of the values is
    broadcast_shapes_into("x.at[...] update", typeof(values).shape, shape)
    mode = mode_of(mode)
    if mode not in (GatherScatterMode.CLIP, "wrap") and outside(plan, index):
        plan = parse(with_places_outside(plan, index), x.shape)
    plan, values = ints_as_slices(plan, broadcast_to(values, shape), index, mode == "wrap")
    return scatter_plan(x, plan, values, scatter, mode, unique, ordered)


def ints_as_slices(plan: Plan, values: Any, index: Any, wrap: bool) -> tuple[Plan, Any]:
    """Axes at a static int become slices of one element, and the values get an axis for each."""
    fixed = [a for a, (_, length, _) in plan.slices.items() if length == -1]
    if not fixed:
        return plan, values
    parts = [p for p in expand(index, plan.shape) if p is not None]
    slices = dict(plan.slices)
    for a in fixed:
        slices[a] = (parts[a] % plan.shape[a] if wrap else slices[a][0], 1, 1)
    result, sizes = list(plan.result), list(typeof(values).shape)
    for a in fixed:
        at = next((k for k, r in enumerate(result) if r != "new" and r[1] > a), len(result))
        result.insert(at, ("slice", a))
        sizes.insert(at, 1)
    values = do.reshape(values, new_sizes=tuple(sizes))
    return (
        Plan(plan.shape, plan.arrays, slices, result, plan.advanced_at, plan.advanced_shape),
        values,
    )


def outside(plan: Plan, index: Any) -> bool:
    """Whether a static int lies outside of its axis."""
    parts = [p for p in expand(index, plan.shape) if p is not None]
    return any(isinstance(p, int) and not -n <= p < n for p, n in zip(parts, plan.shape))


def with_places_outside(plan: Plan, index: Any) -> tuple[Any, ...]:
    """The index whose static ints outside of their axes are arrays: the equation that reads or
    writes there says where, so that `checkify` sees it."""
    sizes = iter(plan.shape)

    def part(p: Any) -> Any:
        if p is None:
            return p
        n = next(sizes)
        is_outside = isinstance(p, int) and not -n <= p < n
        return np.asarray(_place(p), np.int32) if is_outside else p

    return tuple([part(p) for p in expand(index, plan.shape)])


def result_shape(plan: Plan) -> tuple[int, ...]:
    sizes: list[int] = [1 if r == "new" else plan.slices[r[1]][1] for r in plan.result]
    sizes[plan.advanced_at : plan.advanced_at] = plan.advanced_shape
    return tuple(sizes)


def broadcast_shapes_into(name: str, own: tuple[int, ...], target: tuple[int, ...]) -> None:
    ok = len(own) <= len(target) and all(a in (1, b) for a, b in zip(own[::-1], target[::-1]))
    if not ok:
        raise ValueError(
            f"Incompatible shapes for broadcasting: {name} has shape {own}, the indexed part"
            f" {target}"
        )


def cast_update(values: Any, x: Any) -> Any:
    """The values in the dtype of the array."""
    needed_by(values, x)
    return convert(values, typeof(x).dtype)


def needed_by(values: Any, x: Any) -> Any:
    """The dtype that holds what an update makes of both, with a warning where it is not that of
    the array."""
    dtype = typeof(x).dtype
    if type(values) is bool and is_integer(dtype):
        return dtype  # 0 or 1, also where promotion is strict
    own = (
        (canonicalize(type(values)), type(values) is not bool)
        if type(values) in PYTHON_SCALARS
        else (typeof(values).dtype, typeof(values).weak_type)
    )
    if is_extended(dtype):
        return dtype
    needed = promote(((dtype, False), own))[0]
    if needed != dtype:
        warnings.warn(
            "scatter inputs have incompatible types: x.at[...] keeps the dtype of the array,"
            f" {dtype.name}, and the update has {own[0].name}. Convert the update with astype;"
            " in a future release this is an error.",
            FutureWarning,
            stacklevel=2,
        )
    return needed


def scatter_plan(
    x: Any, plan: Plan, values: Any, scatter: Scatter, mode: Any, unique: bool, ordered: bool
) -> Any:
    """One scatter. Its window covers the sliced axes, from constant starts; axes with larger steps
    become index arrays."""
    if 0 in plan.shape:  # every place is outside
        return x
    layout: list[Any] = list(plan.result)
    layout[plan.advanced_at : plan.advanced_at] = [
        ("advanced", i) for i in range(len(plan.advanced_shape))
    ]
    if "new" in layout:
        kept = tuple(n for n, r in zip(typeof(values).shape, layout) if r != "new")
        values = do.reshape(values, new_sizes=kept)
        layout = [r for r in layout if r != "new"]
    flips = tuple(k for k, r in enumerate(layout) if r[0] == "slice" and plan.slices[r[1]][2] < 0)
    if flips:
        values = do.rev(values, dimensions=flips)
    slices = {a: forward(extent) for a, extent in plan.slices.items()}
    spread = [a for a, (_, length, step) in slices.items() if step != 1 and length > 1]
    starts = {
        a: start
        for a, (start, length, _) in slices.items()
        if a not in spread and length != plan.shape[a]
    }
    if not plan.arrays and not spread and scatter is lax_scatter.scatter:
        dtype = index_dtype(*plan.shape)
        corner = [as_number(starts.get(a, 0), dtype) for a in range(len(plan.shape))]
        return do.dynamic_update_slice(x, split_as(values, x), *corner)
    batch = [r for r in layout if r[0] == "advanced" or r[1] in spread]
    batch_shape = tuple(n for n, r in zip(typeof(values).shape, layout) if r in batch)
    columns = index_columns(plan, slices, spread, starts, batch, batch_shape, mode == "wrap")
    order = tuple(sorted(columns))
    dnums = ScatterDimensionNumbers(
        update_window_dims=tuple(k for k, r in enumerate(layout) if r not in batch),
        inserted_window_dims=tuple(a for a in order if a not in starts),
        scatter_dims_to_operand_dims=order,
    )
    indices = stacked([columns[a] for a in order], batch_shape)
    scatter_mode = {
        None: GatherScatterMode.FILL_OR_DROP,
        "wrap": GatherScatterMode.PROMISE_IN_BOUNDS,
    }.get(mode, mode)
    return scatter(
        x,
        indices,
        values,
        dnums,
        indices_are_sorted=ordered or not batch_shape,
        unique_indices=unique or not plan.advanced_shape,  # slices name no place twice
        mode=scatter_mode,
    )


def forward(extent: tuple[int, int, int]) -> tuple[int, int, int]:
    """A slice with its elements in ascending order."""
    start, length, step = extent
    return (start, length, step) if step > 0 else (start + max(length - 1, 0) * step, length, -step)


def index_columns(
    plan: Plan,
    slices: dict[int, tuple[int, int, int]],
    spread: Sequence[int],
    starts: dict[int, int],
    batch: Sequence[Any],
    batch_shape: tuple[int, ...],
    wrap: bool,
) -> dict[int, Any]:
    """For each axis that the scatter moves along, where: index arrays, progressions, constant
    starts."""
    columns: dict[int, Any] = {}
    dims = tuple(k for k, r in enumerate(batch) if r[0] == "advanced")
    for a, i in plan.arrays.items():
        i = normalized(
            i,
            plan.shape[a],
            wrap,
            index_dtype(plan.shape[a]),
        )
        i = broadcast_to(i, plan.advanced_shape)
        columns[a] = do.broadcast_in_dim(i, shape=batch_shape, broadcast_dimensions=dims)
    for a in spread:
        start, length, step = slices[a]
        i = _progression(start, length, step, index_dtype(plan.shape[a]))
        at = (batch.index(("slice", a)),)
        columns[a] = do.broadcast_in_dim(i, shape=batch_shape, broadcast_dimensions=at)
    for a, start in starts.items():
        columns[a] = do.broadcast_in_dim(
            as_number(start, index_dtype(plan.shape[a])),
            shape=batch_shape,
            broadcast_dimensions=(),
        )
    return columns


def _progression(start: Any, length: Any, step: int, dtype: Any) -> Any:
    """`length` places from `start` on, `step` apart."""
    if type(start) is int and type(length) is int:
        return exactly((start + step * np.arange(length)).astype(dtype))
    turn = do.mul(places(length, dtype), broadcast_to(as_number(step, dtype), (length,)))
    return do.add(broadcast_to(as_number(start, dtype), (length,)), turn)


def stacked(columns: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if not columns:
        return np.zeros((*shape, 0), np.int32)
    if len({typeof(c).dtype for c in columns}) > 1:
        columns = [_signed(c) for c in columns]
    wide = promote_dtypes(*columns)
    every = tuple(range(len(shape)))
    lifted = [do.broadcast_in_dim(c, shape=(*shape, 1), broadcast_dimensions=every) for c in wide]
    return lifted[0] if len(lifted) == 1 else do.concatenate(*lifted, dimension=len(shape))
