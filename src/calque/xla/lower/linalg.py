"""Factors of matrices by the routines of LAPACK that come with jaxlib, on the CPU; on other
platforms XLA's own expansions where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.dtypes import is_complex
from calque.core.extents import smaller
from calque.core.jaxprs import Eqn
from calque.xla.lower.callbacks import custom_call, host_call, layouts
from calque.xla.lower.control import while_loop
from calque.xla.lower.reductions import fold
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.lower.sizes import is_free, shape_operand, size_of
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
INT: Final = np.dtype("int32")


def has_routine(b: Builder, x: Value) -> bool:
    """Whether a routine takes such matrices: there are elements, and this is the CPU."""
    return b.state.platform == "cpu" and x.dtype.name in LETTERS and 0 not in x.shape


def routine(
    b: Builder,
    name: str,
    xs: Sequence[Value],
    outs: Sequence[Tensor],
    options: dict[str, str],
    aliased: int | None = 0,
) -> list[Value]:
    """A call of a routine. Matrices stand column by column; the first result takes the memory of
    the operand `aliased`."""
    letter = LETTERS[xs[0].dtype.name]
    batch = xs[0].ndim - 2
    fields = ", ".join(f"{k} = {options[k]}" for k in sorted(options))
    place = "" if len(outs) == 1 else "0"
    shapes = [shape_operand(b, t.shape) for t in outs] if is_free(*(t.shape for t in outs)) else []
    attributes = {
        "backend_config": '""',
        "mhlo.backend_config": f"{{{fields}}}",
        "mhlo.frontend_attributes": f'{{num_batch_dims = "{batch}"}}',
        "operand_layouts": _layouts([*xs, *shapes], batch),
        "result_layouts": _layouts([Value(t) for t in outs], batch),
    }
    if aliased is not None:
        attributes["output_operand_aliases"] = (
            "[#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{place}], operand_index = {aliased}, operand_tuple_indices = []>]"
        )
    if shapes:  # what the sizes of the results are, until they are known
        places = ", ".join(str(len(xs) + k) for k in range(len(shapes)))
        attributes["indices_of_shape_operands"] = f"dense<[{places}]> : tensor<{len(shapes)}xi64>"
    return custom_call(b, f"lapack_{letter}{name}_ffi", outs, [*xs, *shapes], attributes)


def _layouts(xs: Sequence[Value], batch: int) -> str:
    parts = [layouts([x.type], columns_first=x.ndim - batch == 2)[1:-1] for x in xs]
    return f"[{', '.join(parts)}]"


def letter(c: str) -> str:
    """A letter as LAPACK's options have it."""
    return f"{ord(c)} : ui8"


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


@equation_rule("cholesky")
def cholesky(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_routine(b, x):
        return host_call(b, e, outs, args)
    found, info = routine(b, "potrf", [x], [x.tensor, info_of(x)], {"uplo": letter("L")})
    return [triangle(b, where_done(b, info, found))]


@equation_rule("triangular_solve")
def triangular_solve(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    a, right = args
    p = e.params
    if not has_routine(b, a) or not has_routine(b, right):
        return host_call(b, e, outs, args)
    conjugate = p["conjugate_a"]
    if conjugate and not p["transpose_a"]:
        a, conjugate = b.chlo("conj", a.tensor, a) if is_complex(a.dtype) else a, False
    turned = "C" if conjugate else "T"
    options = {
        "side": letter("L" if p["left_side"] else "R"),
        "uplo": letter("L" if p["lower"] else "U"),
        "trans_x": letter(turned if p["transpose_a"] else "N"),
        "diag": letter("U" if p["unit_diagonal"] else "N"),
    }
    return routine(b, "trsm", [a, right], [right.tensor], options, aliased=1)


@equation_rule("eigh")
def eigh(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    p: dict[str, Any] = e.params
    if not has_routine(b, x) or p["subset_by_index"] not in (None, (0, x.shape[-1])):
        return host_call(b, e, outs, args)
    name = "heevd" if is_complex(x.dtype) else "syevd"
    options = {"mode": letter("V"), "uplo": letter("L" if p["lower"] else "U")}
    *found, info = routine(b, name, [x], [*outs, info_of(x)], options)
    return [where_done(b, info, v) for v in found]


@equation_rule("svd")
def svd(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    p: dict[str, Any] = e.params
    m, n = x.shape[-2:]
    if not has_routine(b, x) or p["subset_by_index"] not in (None, (0, smaller(m, n))):
        return host_call(b, e, outs, args)
    full, k = p["full_matrices"], smaller(m, n)
    lead = x.shape[:-2]
    sides = [
        x.tensor.with_shape((*lead, m, m if full else k)),
        x.tensor.with_shape((*lead, n if full else k, n)),
    ]
    mode = ("A" if full else "S") if p["compute_uv"] else "N"
    types = [x.tensor, outs[0], *sides, info_of(x)]
    _, s, u, vt, info = routine(b, "gesdd", [x], types, {"mode": letter(mode)})
    found = [s, u, vt] if p["compute_uv"] else [s]
    return [where_done(b, info, v) for v in found]


@equation_rule("lu")
def lu(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_routine(b, x):
        return host_call(b, e, outs, args)
    factors, pivots, _ = routine(b, "getrf", [x], [x.tensor, outs[1], info_of(x)], {})
    pivots = b.binary("subtract", pivots, b.filled(1, pivots.tensor))
    return [factors, pivots, permutation(b, pivots, x.shape[-2])]


@equation_rule("lu_pivots_to_permutation")
def lu_pivots(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    if 0 in args[0].shape or not outs[0].shape[-1]:
        return host_call(b, e, outs, args)
    return [permutation(b, args[0], outs[0].shape[-1])]


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


@equation_rule("householder_product")
def householder(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    a, taus = args
    if not has_routine(b, a) or 0 in taus.shape:
        return host_call(b, e, outs, args)
    name = "ungqr" if is_complex(a.dtype) else "orgqr"
    return routine(b, name, [a, taus], [a.tensor], {})


@equation_rule("qr")
def qr(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    """The reflections, whose product is Q; R is the upper triangle."""
    (x,) = args
    if not has_routine(b, x) or e.params["pivoting"]:
        return host_call(b, e, outs, args)
    (m, n), lead = x.shape[-2:], x.shape[:-2]
    k = smaller(m, n)
    packed, taus = routine(b, "geqrf", [x], [x.tensor, x.tensor.with_shape((*lead, k))], {})
    rows, columns = outs[0].shape[-1], x.ndim - 1
    if rows > n:  # Q is square: its further columns begin as zeros
        more = b.filled(0, x.tensor.with_shape((*lead, m, rows - n)))
        square = b.concatenate([packed, more], columns)
    else:
        square = b.along(packed, columns, 0, rows)
    name = "ungqr" if is_complex(x.dtype) else "orgqr"
    (q,) = routine(b, name, [square, taus], [square.tensor], {})
    r = b.along(packed, x.ndim - 2, 0, outs[1].shape[-2])
    down, right = b.iota(INT, r.shape, r.ndim - 2), b.iota(INT, r.shape, r.ndim - 1)
    return [q, b.select(b.compare("LE", down, right), r, b.filled(0, r.tensor))]
