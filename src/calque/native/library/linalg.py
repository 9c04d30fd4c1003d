"""`cholesky`, `lu`, `triangular_solve`, `tridiagonal_solve`, `qr`, `eigh`, `svd` and their kin as
calls of the machine's routines: what goes into their words.

The same words serve a compiled program, whose operands are buffers and whose sizes may be free, and
eager execution, so that both give the same bits. The functions of LAPACK and BLAS are SciPy's; it
is imported when a matrix may be too large for our own loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import hint_of
from calque.core.dtypes import is_complex
from calque.native import routines as outside
from calque.native.library.names import FACTORS
from calque.native.library.sorting import extent
from calque.native.lower.graph import Node
from calque.native.lower.rules import View
from calque.native.plan.blocks import CodeBlock, Planner, host_step
from calque.native.plan.steps import Routine, Step
from calque.native.scalars.expr import Buffer

_SMALL: Final = frozenset(
    ("cholesky", "lu", "triangular_solve")
)  # for which there are loops of our own
_EXCHANGES: Final = "lu_pivots_to_permutation"
_TRIDIAGONAL: Final = "tridiagonal_solve"  # of real numbers, by ourselves alone
_KINDS: Final = {np.dtype(d): k for k, d in enumerate(("f4", "f8", "c8", "c16"))}
_FUNCTIONS: Final = {
    "cholesky": ("potrf",), "lu": ("getrf",), "triangular_solve": ("trsm",), "qr": ("geqrf",
    "orgqr"), "eigh": ("syevd",), "svd": ("gesdd",),
}  # fmt: skip
_COMPLEX: Final = {"orgqr": "ungqr", "syevd": "heevd"}  # names that differ
_PARAMETERS: Final = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
_PER_NS: Final = 4  # products, by a guess
_LONG_NS: Final = 20_000


# ---------------------------------------------------------------- functions of LAPACK


def library_function(name: str, dtype: np.dtype[Any]) -> int:
    """A function of SciPy's LAPACK or BLAS for a dtype; 0 when there is none."""
    name = _COMPLEX.get(name, name) if is_complex(dtype) else name
    return outside.library_function("sdcz"[_KINDS[dtype]] + name)


def needs_library(name: str, params: dict[str, Any], avals: Sequence[ShapedArray]) -> bool:
    """Whether a matrix may be more than our own loops take."""
    if name not in _SMALL or is_complex(avals[0].dtype):
        return True
    sizes = list(avals[0].shape[-2:])
    if any(type(d) is not int or d > outside.factors.SMALL for d in sizes):
        return True
    if name != "triangular_solve":
        return False
    count = avals[1].shape[-1 if params["left_side"] else -2]
    return type(count) is not int or count > outside.factors.FEW


def functions_of(
    name: str, params: dict[str, Any], avals: Sequence[ShapedArray]
) -> list[int] | None:
    """The functions of the library that a routine may need, 0 when it needs none; None when they
    cannot be had."""
    if name == _EXCHANGES:
        return [] if avals[0].dtype == np.int32 else None
    if name == _TRIDIAGONAL:
        return None if is_complex(avals[0].dtype) else []
    names = ("geqp3", "orgqr") if name == "qr" and params["pivoting"] else _FUNCTIONS[name]
    if not needs_library(name, params, avals):
        return [0] * len(names)
    found = [library_function(f, avals[0].dtype) for f in names]
    return found if all(found) else None


# ---------------------------------------------------------------- words


def words(
    name: str,
    params: dict[str, Any],
    avals: Sequence[ShapedArray],
    operands: Sequence[Any],
    results: Sequence[Any],
    product: Callable[[Sequence[Any]], Any],
    functions: Sequence[int],
) -> list[Any]:
    """The arguments of a routine: operands and results as given (None for a result that nobody
    wants), sizes as `product` makes them."""
    if name == _EXCHANGES:
        *batch, count = avals[0].shape
        return [
            product(batch),
            product((count,)),
            product((params["permutation_size"],)),
            *operands,
            *results,
        ]
    if name == _TRIDIAGONAL:
        *batch, n, columns = avals[-1].shape
        sizes = [product(batch), _KINDS[avals[-1].dtype], product((n,)), product((columns,))]
        return [*sizes, *operands, *results, int(bool(params["perturb_singular"]))]
    *batch, m, n = avals[0].shape
    head = [product(batch), _KINDS[avals[0].dtype], *functions]
    outs = [
        *[r or 0 for r in results],
        *[0] * (3 - len(results)),
    ]  # fewer results than the routine has places for
    rows, columns = product((m,)), product((n,))

    def flag(p: str) -> int:
        return int(bool(params[p]))

    match name:
        case "cholesky":
            return [*head, columns, *operands, *results]
        case "lu":
            return [*head, rows, columns, *operands, *outs]
        case "qr":
            return [*head, rows, columns, flag("full_matrices"), flag("pivoting"), *operands, *outs]
        case "eigh":
            return [*head, columns, flag("lower"), *operands, *outs[:2]]
        case "svd":
            return [
                *head,
                rows,
                columns,
                flag("full_matrices"),
                flag("compute_uv"),
                *operands,
                *outs,
            ]
    shape = [product((d,)) for d in avals[1].shape[-2:]]
    return [*head, columns, *shape, *operands, *results, *map(flag, _PARAMETERS)]


def routine_of(name: str) -> outside.Begun:
    """The routine for a primitive."""
    room = "factors" if name in {*_SMALL, _EXCHANGES} else "spectral"
    room = "tridiagonal" if name == _TRIDIAGONAL else room
    return outside.begun(room, [f"calque_{name.removesuffix('_solve')}"])[0]


def called(
    name: str, params: dict[str, Any], avals: Sequence[ShapedArray]
) -> tuple[outside.Begun, Sequence[int] | None]:
    """The routine for an equation and the functions that it calls. The routine is begun first:
    threads that LAPACK's library starts when it is loaded take a processor for a while."""
    made = routine_of(name)
    return made, functions_of(name, params, avals)


def guess(name: str, avals: Sequence[ShapedArray]) -> int:
    """Nanoseconds that a routine takes."""
    if name == _EXCHANGES:
        return 2 * int(hint_of(avals[0].size))
    if name == _TRIDIAGONAL:
        return int(hint_of(avals[-1].size)) + 10 * int(hint_of(avals[0].size))
    sizes = [hint_of(a.size) for a in avals]
    n = hint_of(avals[0].shape[-1])
    more = 1 if name in _SMALL else 20
    return more * (int(sizes[-1]) * n // _PER_NS + 10 * int(sizes[0]))


def is_long(name: str, avals: Sequence[ShapedArray]) -> bool:
    """Whether other Python threads should run meanwhile."""
    return name in FACTORS and guess(name, avals) > _LONG_NS


# ---------------------------------------------------------------- in a compiled program


def emit_linalg(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """before: cholesky x        after: a call of the routine"""
    avals = [a.aval for a in n.args]
    address, functions = called(n.op, n.params, avals)
    if functions is None:
        return host_step(p, n, block)
    gets = {m.params["index"]: m for m in block.order if m.op == "get" and m.args[0] is n}
    wanted = [n] if n.aval is not None else [gets.get(k) for k in range(3)]
    results: list[Any] = [None] * len(wanted)
    for k, made in enumerate(wanted):
        if made is None:
            continue
        home = block.targets.get(made)
        if home is None or home.prefix:
            home = View(p.temporary(made))
        p.view[made] = home
        results[k] = home.buf
    operands = [p.in_memory(a, block) for a in n.args]
    given = words(
        n.op, n.params, avals, operands, results, lambda shape: extent(p, shape), functions
    )
    outs = [r for r in results if r is not None]
    return [Routine(n.op, address, given, operands, outs, guess(n.op, avals))]


# ---------------------------------------------------------------- eager


def routine(
    name: str,
    params: dict[str, Any],
    avals: Sequence[Any],
    ins: Sequence[Buffer],
    outs: Sequence[Buffer],
) -> Routine | None:
    """A call of the routine for one equation; None when LAPACK is needed and not there."""
    address, functions = called(name, params, avals)
    if functions is None:
        return None
    given = words(name, params, avals, ins, outs, math.prod, functions)
    return Routine(name, address, given, ins, outs)
