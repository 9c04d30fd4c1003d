"""Factors of matrices: by the routines of LAPACK that come with jaxlib, on the CPU; by those of the
platform elsewhere, where it has any; and else on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from calque.core.dtypes import is_complex
from calque.core.extents import smaller
from calque.core.jaxprs import Eqn
from calque.xla.lower.accelerator_linalg import ON_ACCELERATORS
from calque.xla.lower.callbacks import host_call
from calque.xla.lower.factor_parts import (
    INT,
    LETTERS,
    call,
    info_of,
    is_matrix,
    permutation,
    q_and_r,
    triangle,
    where_done,
)
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.lower.sizes import is_free
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

FactorRule = Callable[[Builder, Eqn, Sequence[Tensor], list[Value]], list[Value]]


def factor_rule(name: str) -> Callable[[FactorRule], FactorRule]:
    """The function below is the rule of this primitive on the CPU, and where the platform has no
    routine for it."""

    def enter(function: FactorRule) -> FactorRule:
        def lower(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
            if b.state.platform != "cpu" and name in ON_ACCELERATORS:
                found = ON_ACCELERATORS[name](b, e, outs, args)
                if found is not None:
                    return found
            return function(b, e, outs, args)

        equation_rule(name)(lower)
        return function

    return enter


def has_routine(b: Builder, x: Value) -> bool:
    """Whether a routine of LAPACK takes such matrices."""
    return b.state.platform == "cpu" and is_matrix(x)


def routine(
    b: Builder,
    name: str,
    xs: Sequence[Value],
    outs: Sequence[Tensor],
    options: dict[str, str],
    aliased: int | None = 0,
) -> list[Value]:
    """A call of a routine of LAPACK."""
    target = f"lapack_{LETTERS[xs[0].dtype.name]}{name}_ffi"
    return call(b, target, xs, outs, options, aliased)


def letter(c: str) -> str:
    """A letter as LAPACK's options have it."""
    return f"{ord(c)} : ui8"


@factor_rule("cholesky")
def cholesky(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_routine(b, x):
        return host_call(b, e, outs, args)
    found, info = routine(b, "potrf", [x], [x.tensor, info_of(x)], {"uplo": letter("L")})
    return [triangle(b, where_done(b, info, found))]


@factor_rule("triangular_solve")
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


@factor_rule("eigh")
def eigh(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    p: dict[str, Any] = e.params
    if not has_routine(b, x) or p["subset_by_index"] not in (None, (0, x.shape[-1])):
        return host_call(b, e, outs, args)
    name = "heevd" if is_complex(x.dtype) else "syevd"
    options = {"mode": letter("V"), "uplo": letter("L" if p["lower"] else "U")}
    *found, info = routine(b, name, [x], [*outs, info_of(x)], options)
    return [where_done(b, info, v) for v in found]


@factor_rule("svd")
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


@factor_rule("lu")
def lu(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_routine(b, x):
        return host_call(b, e, outs, args)
    factors, pivots, _ = routine(b, "getrf", [x], [x.tensor, outs[1], info_of(x)], {})
    pivots = b.binary("subtract", pivots, b.filled(1, pivots.tensor))
    return [factors, pivots, permutation(b, pivots, x.shape[-2])]


@factor_rule("lu_pivots_to_permutation")
def lu_pivots(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    if 0 in args[0].shape or not outs[0].shape[-1]:
        return host_call(b, e, outs, args)
    return [permutation(b, args[0], outs[0].shape[-1])]


def reflections(b: Builder, a: Value, taus: Value) -> Value:
    """The product of reflections, as a matrix."""
    name = "ungqr" if is_complex(a.dtype) else "orgqr"
    return routine(b, name, [a, taus], [a.tensor], {})[0]


@factor_rule("householder_product")
def householder(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    a, taus = args
    if not has_routine(b, a) or 0 in taus.shape:
        return host_call(b, e, outs, args)
    return [reflections(b, a, taus)]


@factor_rule("qr")
def qr(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_routine(b, x) or (e.params["pivoting"] and is_free(x.shape)):
        return host_call(b, e, outs, args)
    if e.params["pivoting"]:
        return _pivoted(b, x, outs)

    def packed(x: Value, taus: Tensor) -> list[Value]:
        return routine(b, "geqrf", [x], [x.tensor, taus], {})

    return q_and_r(b, x, outs, packed, partial(reflections, b))


def _pivoted(b: Builder, x: Value, outs: Sequence[Tensor]) -> list[Value]:
    """Q, R, and the order of the columns, which the routine chooses where it is given zeros."""
    orders: list[Value] = []

    def packed(x: Value, taus: Tensor) -> list[Value]:
        free = b.filled(0, outs[2].with_dtype(INT))
        found, order, factors = routine(b, "geqp3", [x, free], [x.tensor, free.tensor, taus], {})
        orders.append(b.binary("subtract", order, b.filled(1, order.tensor)))
        return [found, factors]

    q, r = q_and_r(b, x, outs, packed, partial(reflections, b))
    return [q, r, b.convert(orders[0], outs[2].dtype)]
