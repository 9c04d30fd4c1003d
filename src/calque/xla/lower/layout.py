"""Arrays made, moved and put together: broadcast, reshape, transpose, slices, padding, joining."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np

from calque.xla.lower.rules import Builder, listed, rule
from calque.xla.lower.sizes import is_free, shape_operand
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor, signature

Shape = tuple[int, ...]
LARGEST: Final = 2**31 - 1  # that a free size can be


@rule("broadcast_in_dim")
def broadcast_in_dim(
    b: Builder, out: Tensor, x: Value, *, shape: Shape, broadcast_dimensions: Shape, sharding: Any
) -> Value:
    return b.broadcast(x, out, broadcast_dimensions)


@rule("reshape")
def reshape(
    b: Builder, out: Tensor, x: Value, *, new_sizes: Shape, dimensions: Shape | None, sharding: Any
) -> Value:
    if dimensions is not None:
        x = b.transpose(x, dimensions)
    return b.reshape(x, out.shape)


@rule("squeeze")
def squeeze(b: Builder, out: Tensor, x: Value, *, dimensions: Shape) -> Value:
    return b.reshape(x, out.shape)


@rule("transpose")
def transpose(b: Builder, out: Tensor, x: Value, *, permutation: Shape) -> Value:
    return b.transpose(x, permutation)


@rule("rev")
def rev(b: Builder, out: Tensor, x: Value, *, dimensions: Shape) -> Value:
    dims = ", ".join(map(str, dimensions))
    return b.one(out, "stablehlo.reverse ", x, f", dims = [{dims}] : {out}")  # type: ignore[no-any-return]


@rule("concatenate")
def concatenate(b: Builder, out: Tensor, *xs: Value, dimension: int) -> Value:
    return b.concatenate(xs, dimension)


@rule("stack")
def stack(b: Builder, out: Tensor, *xs: Value, axis: int) -> Value:
    part = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    return b.concatenate([b.reshape(x, part) for x in xs], axis)


@rule("unstack")
def unstack(b: Builder, outs: list[Tensor], x: Value, *, axis: int) -> list[Value]:
    return [b.reshape(b.along(x, axis, i, i + 1), out.shape) for i, out in enumerate(outs)]


@rule("split")
def split(b: Builder, outs: list[Tensor], x: Value, *, sizes: Shape, axis: int) -> list[Value]:
    ends = list(accumulate(sizes))
    return [b.along(x, axis, end - n, end) for n, end in zip(sizes, ends)]


@rule("tile")
def tile(b: Builder, out: Tensor, x: Value, *, reps: Sequence[int]) -> Value:
    """Each dimension between a new one of its repetitions and nothing, put together."""
    lead = out.ndim - x.ndim
    sizes = (1,) * lead + x.shape
    counts = (1,) * (out.ndim - len(reps)) + tuple(reps)
    spread = [n for pair in zip(counts, sizes) for n in pair]
    dims = [2 * (d + lead) + 1 for d in range(x.ndim)]
    return b.reshape(b.broadcast(x, x.tensor.with_shape(spread), dims), out.shape)


@rule("slice")
def slice_(
    b: Builder,
    out: Tensor,
    x: Value,
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Shape | None,
) -> Value:
    return b.slice(x, start_indices, limit_indices, strides or ())


@rule("pad")
def pad(
    b: Builder, out: Tensor, x: Value, value: Value, *, padding_config: Sequence[Shape]
) -> Value:
    if is_free(x.shape, out.shape):
        rows = [shape_operand(b, [config[i] for config in padding_config]) for i in range(3)]
        return b.typed("stablehlo.dynamic_pad", out, x, value, *rows)
    low, high, interior = (", ".join(str(config[i]) for config in padding_config) for i in range(3))
    text = f", low = [{low}], high = [{high}], interior = [{interior}]"
    types = signature([x.type, value.type], [out])
    return b.one(out, "stablehlo.pad ", *listed([x, value]), f"{text} : {types}")  # type: ignore[no-any-return]


@rule("iota")
def iota(
    b: Builder, out: Tensor, *, dtype: Any, shape: Shape, dimension: int, sharding: Any
) -> Value:
    if dtype.kind in "iufc":
        return b.iota(dtype, out.shape, dimension)
    return b.convert(b.iota(np.dtype("int32"), out.shape, dimension), dtype)


@rule("empty")
def empty(b: Builder, out: Tensor, **_: Any) -> Value:
    return b.filled(0, out)


@rule("create_token")
def create_token(b: Builder, out: Tensor) -> Value:
    return b.constant(np.zeros(out.shape, out.dtype))


@rule("after_all")
def after_all(b: Builder, out: Tensor, *tokens: Value) -> Value:
    if len(tokens) == 1:
        return tokens[0]
    types = ", ".join(str(t.type) for t in tokens)
    ending = f" : {types}"
    return b.emit(
        [t.type for t in tokens], "stablehlo.optimization_barrier ", *listed(tokens), ending
    )[0]


@rule("dynamic_slice")
def dynamic_slice(b: Builder, out: Tensor, x: Value, *starts: Value, slice_sizes: Shape) -> Value:
    return b.dynamic_slice(x, wide_starts(b, x, starts), slice_sizes)


@rule("dynamic_update_slice")
def dynamic_update_slice(b: Builder, out: Tensor, x: Value, update: Value, *starts: Value) -> Value:
    return b.dynamic_update_slice(x, update, wide_starts(b, x, starts))


def wide_starts(b: Builder, x: Value, starts: Sequence[Value]) -> list[Value]:
    """Starts as int32 where their own type cannot hold the sizes: it would be clamped to a wrong
    place. The words of a key start at 0."""
    most = max((LARGEST if is_free((n,)) else n for n in x.shape), default=0)
    xs = list(starts)
    if xs and np.iinfo(xs[0].dtype).max < most:
        xs = [b.convert(s, np.dtype("int32" if most < 2**31 else "int64")) for s in xs]
    dtype = xs[0].dtype if xs else np.dtype("int32")
    return xs + [b.scalar(0, dtype) for _ in range(x.ndim - len(xs))]
