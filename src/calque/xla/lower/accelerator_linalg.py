"""Factors of matrices elsewhere than on the CPU: on GPUs by routines of their maker, which come
with the plugins of jaxlib, on TPUs by those of XLA.

What neither has a routine for is a program of other primitives, if there is one. A rule gives None
where there is nothing for the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from calque.core.dtypes import is_complex
from calque.core.jaxprs import Eqn
from calque.xla.lower import linalg_programs
from calque.xla.lower.callbacks import custom_call
from calque.xla.lower.factor_parts import (
    INT,
    call,
    info_of,
    is_matrix,
    q_and_r,
    triangle,
    where_done,
)
from calque.xla.lower.programs import lower_function
from calque.xla.lower.rules import Builder, boolean
from calque.xla.lower.sizes import is_free
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

Found = list[Value] | None
AcceleratorRule = Callable[[Builder, Eqn, Sequence[Tensor], list[Value]], Found]
# how the targets of each maker begin: of solvers, of kernels of jaxlib, of sparse systems
MAKERS: Final = {
    "cuda": ("cusolver", "cu", "cusparse"),
    "rocm": ("hipsolver", "hip", "hipsparse"),
}
JACOBI_LIMIT: Final = 1024  # larger matrices are decomposed by QR steps
BATCHED_LIMIT: Final = 32  # up to here, Jacobi's routine is one of whole batches


def solver(
    b: Builder, name: str, xs: Sequence[Value], outs: Sequence[Tensor], **options: str
) -> list[Value]:
    """A call of a routine of the solver of the maker."""
    return call(b, f"{MAKERS[b.state.platform][0]}_{name}_ffi", xs, outs, options)


def by_xla(b: Builder, target: str, xs: Sequence[Value], outs: Sequence[Tensor]) -> list[Value]:
    """A call that XLA itself expands, on TPUs."""
    return custom_call(b, target, outs, xs, {"backend_config": '""'})


def is_gpu(b: Builder) -> bool:
    return b.state.platform in MAKERS


def cholesky(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    (x,) = args
    if not is_matrix(x):
        return None
    if is_gpu(b):
        found, info = solver(b, "potrf", [x], [x.tensor, info_of(x)], lower="true")
        return [triangle(b, where_done(b, info, found))]
    return [triangle(b, b.one(x.type, "stablehlo.cholesky ", x, f", lower = true : {x.type}"))]


def triangular_solve(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    a, right = args
    p = e.params
    if not is_matrix(a) or not is_matrix(right):
        return None
    conjugate = p["conjugate_a"] and is_complex(a.dtype)
    if conjugate and not p["transpose_a"]:
        a, conjugate = b.chlo("conj", a.tensor, a), False
    turned = "ADJOINT" if conjugate else "TRANSPOSE"
    attributes = {
        "left_side": boolean(p["left_side"]),
        "lower": boolean(p["lower"]),
        "transpose_a": f"#stablehlo<transpose {turned if p['transpose_a'] else 'NO_TRANSPOSE'}>",
        "unit_diagonal": boolean(p["unit_diagonal"]),
    }
    return b.generic("stablehlo.triangular_solve", [right.type], [a, right], attributes)


def eigh(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    (x,) = args
    p: dict[str, Any] = e.params
    if not is_matrix(x) or p["subset_by_index"] not in (None, (0, x.shape[-1])):
        return None
    if is_gpu(b):
        options = {"algorithm": "0 : ui8", "lower": boolean(p["lower"])}
        *found, info = solver(b, "syevd", [x], [*outs, info_of(x)], **options)
        return [where_done(b, info, v) for v in found]
    config = f'"{int(p["lower"])},1,100,1e-6"'  # sorted, of so many sweeps, to this precision
    return custom_call(b, "Eigh", outs, [x], {"backend_config": config})


def lu(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    (x,) = args
    if not is_matrix(x):
        return None
    if not is_gpu(b):
        attributes = {"api_version": "2 : i32", "backend_config": '""'}
        return custom_call(b, "LuDecomposition", outs, [x], attributes)
    factors, pivots, _ = solver(b, "getrf", [x], [x.tensor, outs[1], info_of(x)])
    pivots = b.binary("subtract", pivots, b.filled(1, pivots.tensor))
    return [factors, pivots, *permuted(b, pivots, outs[2])]


def permuted(b: Builder, pivots: Value, out: Tensor) -> list[Value]:
    """The order of rows that the pivots lead to."""
    target = f"{MAKERS[b.state.platform][1]}_lu_pivots_to_permutation"
    return call(b, target, [pivots], [out], {}, aliased=None, batch=pivots.ndim - 1)


def lu_pivots(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    (pivots,) = args
    if not is_gpu(b) or 0 in pivots.shape or pivots.dtype != INT:
        return None
    return permuted(b, pivots, outs[0])


def reflections(b: Builder, a: Value, taus: Value) -> Value:
    """The product of reflections, as a matrix."""
    if is_gpu(b):
        return solver(b, "orgqr", [a, taus], [a.tensor])[0]
    return by_xla(b, "ProductOfElementaryHouseholderReflectors", [a, taus], [a.tensor])[0]


def householder(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    a, taus = args
    return [reflections(b, a, taus)] if is_matrix(a) and 0 not in taus.shape else None


def packed_qr(b: Builder, x: Value, taus: Tensor) -> list[Value]:
    """R above the diagonal, the reflections below, and their factors."""
    if is_gpu(b):
        return solver(b, "geqrf", [x], [x.tensor, taus])
    return by_xla(b, "Qr", [x], [x.tensor, taus])


def qr(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    (x,) = args
    if not is_matrix(x) or e.params["pivoting"]:
        return None
    return q_and_r(b, x, outs, partial(packed_qr, b), partial(reflections, b))


def svd(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    """On GPUs by Jacobi's rotations, large ones by QR steps; on TPUs, for which XLA has no call, as
    a program."""
    (x,) = args
    p: dict[str, Any] = e.params
    if not is_matrix(x) or is_free(x.shape):
        return None
    m, n = x.shape[-2:]
    if p["subset_by_index"] not in (None, (0, min(m, n))):
        return None
    if not is_gpu(b):
        return lower_function(b, e, linalg_programs.svd, args)
    by = _by_rotations if max(m, n) <= JACOBI_LIMIT else _by_steps
    s, u, vt, info = by(b, x, outs[0], full=p["full_matrices"], vectors=p["compute_uv"])
    return [where_done(b, info, v) for v in ([s, u, vt] if p["compute_uv"] else [s])]


def _by_rotations(
    b: Builder, x: Value, s: Tensor, *, full: bool, vectors: bool
) -> tuple[Value, ...]:
    """Both sides are there in any case; V stands by itself, not turned round."""
    (m, n), lead, axis = x.shape[-2:], x.shape[:-2], x.ndim - 1
    k = min(m, n)
    economic = not full and min(m, n) > BATCHED_LIMIT
    sides = [x.tensor.with_shape((*lead, size, k if economic else size)) for size in (m, n)]
    options = {"compute_uv": boolean(vectors), "full_matrices": boolean(not economic)}
    _, s_, u, v, info = solver(b, "gesvdj", [x], [x.tensor, s, *sides, info_of(x)], **options)
    if not full:
        u, v = b.along(u, axis, 0, k), b.along(v, axis, 0, k)
    if is_complex(v.dtype):
        v = b.chlo("conj", v.tensor, v)
    return s_, u, b.transpose(v, (*range(axis - 1), axis, axis - 1)), info


def _by_steps(b: Builder, x: Value, s: Tensor, *, full: bool, vectors: bool) -> tuple[Value, ...]:
    """The routine takes tall matrices: of others it is given the rows as columns, and gives the
    sides in the other order."""
    (m, n), lead = x.shape[-2:], x.shape[:-2]
    k, wide = min(m, n), m < n
    u, vt = (lead, (m, m if full else k)), (lead, (n if full else k, n))
    sides = [
        x.tensor.with_shape((*batch, *matrix) if vectors else ())
        for batch, matrix in ((vt, u) if wide else (u, vt))
    ]
    options = {
        "compute_uv": boolean(vectors),
        "full_matrices": boolean(full),
        "transposed": boolean(wide),
    }
    target = f"{MAKERS[b.state.platform][0]}_gesvd_ffi"
    types = [x.tensor, s, *sides, info_of(x)]
    _, s_, first, second, info = call(b, target, [x], types, options, columns=not wide)
    return (s_, second, first, info) if wide else (s_, first, second, info)


def tridiagonal(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    (x,) = args
    if not is_gpu(b) or not is_matrix(x) or is_free(x.shape) or x.shape[-1] < 2:
        return None
    options = {"lower": boolean(e.params["lower"])}
    *found, info = solver(b, "sytrd", [x], [*outs, info_of(x)], **options)
    return [where_done(b, info, v) for v in found]


def tridiagonal_solve(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> Found:
    """The routine takes three rows and more, real ones, and says nothing of singular systems: a
    program takes the others."""
    right = args[3]
    if not is_matrix(right) or is_free(right.shape):
        return None
    real_rows = right.shape[-2] >= 3 and not is_complex(right.dtype)
    if not is_gpu(b) or not real_rows or e.params["perturb_singular"]:
        return lower_function(b, e, linalg_programs.tridiagonal_solve, args)
    target = f"{MAKERS[b.state.platform][2]}_gtsv2_ffi"
    return call(b, target, args, outs, {}, aliased=3, batch=right.ndim - 2)


ON_ACCELERATORS: Final[dict[str, AcceleratorRule]] = {
    "cholesky": cholesky,
    "eigh": eigh,
    "householder_product": householder,
    "lu": lu,
    "lu_pivots_to_permutation": lu_pivots,
    "qr": qr,
    "svd": svd,
    "triangular_solve": triangular_solve,
    "tridiagonal": tridiagonal,
    "tridiagonal_solve": tridiagonal_solve,
}
