"""Gather and scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calque.core.dtypes import iinfo, is_complex
from calque.core.jaxprs import ClosedJaxpr
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.indexing import fill_of
from calque.xla.lower.layout import LARGEST
from calque.xla.lower.programs import lower_program
from calque.xla.lower.rules import RULES, Builder, Rule, array_i64, boolean, rule
from calque.xla.lower.sizes import is_free, shape_operand
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

CLIP, FILL = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP


def _numbers(fields: Mapping[str, Sequence[int]], vector: int) -> str:
    """offset_dims = [1], ...: fields that are empty are left out."""
    parts = [f"{k} = [{', '.join(map(str, v))}]" for k, v in fields.items() if v]
    return ", ".join([*parts, *([f"index_vector_dim = {vector}"] if vector else [])])


def wide_indices(b: Builder, indices: Value, shape: Sequence[int]) -> Value:
    """Indices as int32 where their own type cannot hold the sizes: they would wrap around when they
    are compared with them."""
    limit = iinfo(indices.dtype).max
    if max((LARGEST if is_free((n,)) else n for n in shape), default=0) <= limit:
        return indices
    return b.convert(indices, np.dtype("int32"))


def last_starts(
    b: Builder, indices: Value, shape: Sequence[int], sizes: Sequence[int], index_map: Sequence[int]
) -> Value:
    """For each entry of an index vector, where its window may start at most."""
    limits = [shape[d] - sizes[d] for d in index_map]
    if is_free(limits):
        row = b.convert(shape_operand(b, limits), indices.dtype)
        return b.broadcast(row, indices.tensor, [indices.ndim - 1])
    most = min(int(iinfo(indices.dtype).max), 2**63 - 1)
    row = b.constant(np.array([min(n, most) for n in limits]).astype(indices.dtype))
    return b.broadcast(row, indices.tensor, [indices.ndim - 1])


def clamped(b: Builder, indices: Value, last: Value) -> Value:
    zero = b.filled(0, indices.tensor)
    return b.same("stablehlo.clamp", indices.tensor, zero, indices, last)


def inside(b: Builder, indices: Value, last: Value) -> Value:
    """For each index vector, whether its window is inside."""
    zero = b.filled(0, indices.tensor)
    fits = b.binary("and", b.compare("GE", indices, zero), b.compare("LE", indices, last))
    return RULES["reduce_and"](b, fits.tensor, fits, axes=(indices.ndim - 1,))  # type: ignore[no-any-return]


@rule("gather")
def gather(
    b: Builder,
    out: Tensor,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    unique_indices: bool,
    indices_are_sorted: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> Value:
    n = dimension_numbers
    free = is_free(x.shape, slice_sizes)
    if not free and not all(x.shape[d] >= s for d, s in enumerate(slice_sizes)):
        return b.filled(0, out)
    if 0 in out.shape:
        return b.filled(0, out)
    keeps = None
    if mode in (CLIP, FILL) and n.start_index_map:
        indices = wide_indices(b, indices, x.shape)  # windows are clipped by the operation itself
    if mode is FILL and n.start_index_map:
        last = last_starts(b, indices, x.shape, slice_sizes, n.start_index_map)
        keeps = inside(b, indices, last)
    fields = {
        "offset_dims": n.offset_dims,
        "collapsed_slice_dims": n.collapsed_slice_dims,
        "operand_batching_dims": n.operand_batching_dims,
        "start_indices_batching_dims": n.start_indices_batching_dims,
        "start_index_map": n.start_index_map,
    }
    attributes = {
        "dimension_numbers": f"#stablehlo.gather<{_numbers(fields, indices.ndim - 1)}>",
        "indices_are_sorted": boolean(indices_are_sorted),
    }
    if is_free(slice_sizes):
        operands = [x, indices, shape_operand(b, slice_sizes)]
        found = b.generic("stablehlo.dynamic_gather", [out], operands, attributes)[0]
    else:
        attributes["slice_sizes"] = array_i64(slice_sizes)
        found = b.generic("stablehlo.gather", [out], [x, indices], attributes)[0]
    if keeps is None:
        return found
    dims = [d for d in range(out.ndim) if d not in n.offset_dims]
    whole = b.broadcast(keeps, out.with_dtype(bool), dims)
    return b.select(whole, found, b.filled(fill_of(x.dtype, fill_value), out))


def scatter_rule(name: str, op: str | None) -> Rule:
    def lower(
        b: Builder,
        out: Tensor,
        x: Value,
        indices: Value,
        updates: Value,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
        update_jaxpr: Any,
        update_consts: Sequence[Any],
    ) -> Value:
        if 0 in updates.shape:
            return x
        n = dimension_numbers
        if mode is CLIP and n.scatter_dims_to_operand_dims:
            indices = wide_indices(b, indices, x.shape)
            sizes = window_sizes(x, updates, n)
            index_map = n.scatter_dims_to_operand_dims
            indices = clamped(b, indices, last_starts(b, indices, x.shape, sizes, index_map))
        elif n.scatter_dims_to_operand_dims:
            indices = wide_indices(b, indices, x.shape)
        fields = {
            "update_window_dims": n.update_window_dims,
            "inserted_window_dims": n.inserted_window_dims,
            "input_batching_dims": n.operand_batching_dims,
            "scatter_indices_batching_dims": n.scatter_indices_batching_dims,
            "scatter_dims_to_operand_dims": n.scatter_dims_to_operand_dims,
        }
        attributes = {
            "indices_are_sorted": boolean(indices_are_sorted),
            "scatter_dimension_numbers": (
                f"#stablehlo.scatter<{_numbers(fields, indices.ndim - 1)}>"
            ),
            "unique_indices": boolean(unique_indices),
        }
        scalar = x.tensor.with_shape(())
        inner, args = b.inside([scalar, scalar])
        if op is not None and not (is_complex(x.dtype) and op in ("maximum", "minimum")):
            inner.returns(inner.binary(op, *args))
        elif op is None and update_jaxpr is None:
            inner.returns(args[1])
        else:
            inner.returns(*lower_program(inner, ClosedJaxpr(update_jaxpr, update_consts), args))
        return b.generic(
            "stablehlo.scatter", [out], [x, indices, updates], attributes, inner.region
        )[0]

    return lower


def window_sizes(x: Value, updates: Value, n: ScatterDimensionNumbers) -> list[int]:
    """The sizes of the windows along each dimension of the operand."""
    dropped = (*n.inserted_window_dims, *n.operand_batching_dims)
    window = iter([updates.shape[d] for d in n.update_window_dims])
    return [1 if d in dropped else next(window) for d in range(x.ndim)]


RULES.update(
    {
        "scatter": scatter_rule("scatter", None),
        "scatter-add": scatter_rule("scatter-add", "add"),
        "scatter-sub": scatter_rule("scatter-sub", "subtract"),
        "scatter-mul": scatter_rule("scatter-mul", "multiply"),
        "scatter-min": scatter_rule("scatter-min", "minimum"),
        "scatter-max": scatter_rule("scatter-max", "maximum"),
    }
)


@rule("places")
def places(b: Builder, out: Tensor, mask: Value, *, size: int, dtype: Any) -> Value:
    """Where a mask is true: each index is written to its rank; those of false elements are beyond
    the end, and dropped."""
    (n,) = mask.shape
    if size == 0 or n == 0:
        return b.filled(0, out)
    ones = b.convert(mask, dtype)
    rank = RULES["cumsum"](b, ones.tensor, ones, axis=0, reverse=False)
    rank = b.binary("subtract", rank, b.scalar(1, dtype))
    row = b.select(mask, rank, b.scalar(n, dtype))
    rows = ScatterDimensionNumbers((), (0,), (0,))
    found: Value = RULES["scatter"](
        b,
        out,
        b.filled(0, out),
        b.reshape(row, (n, 1)),
        b.iota(dtype, (n,), 0),
        dimension_numbers=rows,
        indices_are_sorted=False,
        unique_indices=False,
        mode=FILL,
        update_jaxpr=None,
        update_consts=(),
    )
    return found
