"""What the rules of factors of matrices share: calls of routines, results of matrices without a
factor, permutations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from calque.core.dtypes import is_complex
from calque.core.extents import smaller
from calque.transforms.primitives.sharding_rules import Dimensions, Factors
from calque.xla.lower.callbacks import custom_call, layouts
from calque.xla.lower.control import while_loop
from calque.xla.lower.placing import rule_attribute
from calque.xla.lower.reductions import fold
from calque.xla.lower.rules import Builder
from calque.xla.lower.sizes import is_free, shape_operand, size_of
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
INT: Final = np.dtype("int32")


def is_matrix(x: Value) -> bool:
    """Whether routines take such matrices: there are elements, of a dtype that they know."""
    return x.dtype.name in LETTERS and 0 not in x.shape


def call(
    b: Builder,
    target: str,
    xs: Sequence[Value],
    outs: Sequence[Tensor],
    options: dict[str, str],
    aliased: int | None = 0,
    columns: bool = True,
    batch: int | None = None,
) -> list[Value]:
    """A call of a routine. The first `batch` dimensions are of batches, if it is not said all but
    the last two of the first operand; matrices stand column by column if `columns`; the first
    result takes the memory of the operand `aliased`."""
    batch = xs[0].ndim - 2 if batch is None else batch
    fields = ", ".join(f"{k} = {options[k]}" for k in sorted(options))
    place = "" if len(outs) == 1 else "0"
    shapes = [shape_operand(b, t.shape) for t in outs] if is_free(*(t.shape for t in outs)) else []
    attributes = {
        "backend_config": '""',
        "mhlo.backend_config": f"{{{fields}}}",
        "mhlo.frontend_attributes": f'{{num_batch_dims = "{batch}"}}',
        "operand_layouts": _layouts([*xs, *shapes], batch, columns),
        "result_layouts": _layouts([Value(t) for t in outs], batch, columns),
    }
    if aliased is not None:
        attributes["output_operand_aliases"] = (
            "[#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{place}], operand_index = {aliased}, operand_tuple_indices = []>]"
        )
    if shapes:  # what the sizes of the results are, until they are known
        places = ", ".join(str(len(xs) + k) for k in range(len(shapes)))
        attributes["indices_of_shape_operands"] = f"dense<[{places}]> : tensor<{len(shapes)}xi64>"
    elif b.state.partitions_asked > 1 and batch and not is_free(*(x.shape for x in xs)):
        attributes["sdy.sharding_rule"] = sharding_rule([x.shape for x in xs], outs, batch)
    return custom_call(b, target, outs, [*xs, *shapes], attributes)


def sharding_rule(ins: Sequence[tuple[int, ...]], outs: Sequence[Tensor], batch: int) -> str:
    """What Shardy is told of a call for many matrices: the first `batch` dimensions are those of
    all operands and results, and the others are whole on every device."""
    sizes = list(ins[0][:batch])

    def numbered(shape: Sequence[int]) -> Dimensions:
        rest = range(len(sizes), len(sizes) + len(shape) - batch)
        sizes.extend(shape[batch:])
        return tuple([(k,) for k in (*range(batch), *rest)])

    operands = tuple(map(numbered, ins))
    results = tuple([numbered(t.shape) for t in outs])
    return rule_attribute(Factors(tuple(sizes), operands, results, {}))


def _layouts(xs: Sequence[Value], batch: int, columns: bool) -> str:
    parts = [layouts([x.type], columns_first=columns and x.ndim - batch == 2)[1:-1] for x in xs]
    return f"[{', '.join(parts)}]"


def where_done(b: Builder, info: Value, x: Value) -> Value:
    """The result of each matrix whose routine came to its end; NaN for the others."""
    done = b.compare("EQ", info, b.filled(0, info.tensor))
    whole = b.broadcast(done, x.tensor.with_dtype(bool), range(done.ndim))
    nan = complex(np.nan, np.nan) if is_complex(x.dtype) else np.nan
    return b.select(whole, x, b.filled(nan, x.tensor))


def info_of(x: Value) -> Tensor:
    return Tensor(x.shape[:-2], INT)


def triangle(b: Builder, x: Value) -> Value:
    """The lower triangle, zeros above."""
    n = x.ndim
    rows, columns = b.iota(INT, x.shape, n - 2), b.iota(INT, x.shape, n - 1)
    return b.select(b.compare("GE", rows, columns), x, b.filled(0, x.tensor))


def q_and_r(
    b: Builder,
    x: Value,
    outs: Sequence[Tensor],
    packed_of: Callable[[Value, Tensor], Sequence[Value]],
    product_of: Callable[[Value, Value], Value],
) -> list[Value]:
    """The factors of a matrix: `packed_of` gives R, with the reflections below it, and their
    factors, of this type; `product_of` both is Q."""
    (m, n), lead = x.shape[-2:], x.shape[:-2]
    packed, taus = packed_of(x, x.tensor.with_shape((*lead, smaller(m, n))))
    rows, columns = outs[0].shape[-1], x.ndim - 1
    if rows > n:  # Q is square: its further columns begin as zeros
        more = b.filled(0, x.tensor.with_shape((*lead, m, rows - n)))
        square = b.concatenate([packed, more], columns)
    else:
        square = b.along(packed, columns, 0, rows)
    q = product_of(square, taus)
    r = b.along(packed, x.ndim - 2, 0, outs[1].shape[-2])
    down, right = b.iota(INT, r.shape, r.ndim - 2), b.iota(INT, r.shape, r.ndim - 1)
    return [q, b.select(b.compare("LE", down, right), r, b.filled(0, r.tensor))]


def permutation(b: Builder, pivots: Value, size: int) -> Value:
    """The order of rows that exchanging row i with row pivots[i], for each i in turn, leads to."""
    lead, kind = pivots.shape[:-1], pivots.dtype
    axis = len(lead)
    start = [b.scalar(0, INT), b.iota(kind, (*lead, size), axis)]

    def condition(inner: Builder, carry: list[Value]) -> list[Value]:
        return [inner.compare("LT", carry[0], size_of(inner, pivots.shape[-1]))]

    def body(inner: Builder, carry: list[Value]) -> list[Value]:
        i, order = carry
        zero = inner.scalar(0, INT)
        row = inner.dynamic_slice(pivots, [*[zero] * axis, i], (*lead, 1))
        row = inner.broadcast(inner.reshape(row, lead), order.tensor, range(axis))
        places = inner.iota(kind, order.shape, axis)
        here = inner.compare("EQ", places, inner.convert(i, kind))
        there = inner.compare("EQ", places, row)
        first, second = [_picked(inner, mask, order, axis) for mask in (here, there)]
        moved = inner.select(here, second, inner.select(there, first, order))
        inside = _spread(inner, fold(inner, "or", there, (axis,)), order, axis)
        return [inner.binary("add", i, inner.scalar(1, INT)), inner.select(inside, moved, order)]

    return while_loop(b, start, condition, body)[1]


def _picked(b: Builder, mask: Value, x: Value, axis: int) -> Value:
    """The one element of each row that the mask is true at, as a whole row."""
    chosen = b.select(mask, x, b.filled(0, x.tensor))
    return _spread(b, fold(b, "sum", chosen, (axis,)), x, axis)


def _spread(b: Builder, x: Value, like: Value, axis: int) -> Value:
    return b.broadcast(x, Tensor(like.shape, x.dtype), range(axis))
