"""Triangular systems, Cholesky and LU factors, symmetric products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_complex, is_float, is_integer
from calque.core.extents import smaller
from calque.core.lazy import LazyModule
from calque.core.primitives import NotApplicable, Primitive, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops import common
from calque.ops.common import add_tangents, scalar_of, zero_like
from calque.ops.common import operand as as_operand
from calque.ops.layout import constant_jvp
from calque.ops.linalg import common as la

blas, lapack = LazyModule("scipy.linalg.blas"), LazyModule("scipy.linalg.lapack")

# ---------------------------------------------------------------- triangular_solve


def _triangular_shape(
    a: ShapedArray,
    b: ShapedArray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> ShapedArray:
    la.check_dtype("triangular_solve", a, b)
    _, n, _ = la.check_matrix("triangular_solve", a, square=True)
    _, rows, columns = la.check_matrix("triangular_solve", b)
    la.check_batches("triangular_solve", (a, 2), (b, 2))
    if n != (rows if left_side else columns):
        raise ValueError(
            f"triangular_solve: a {a.str_short()} and b {b.str_short()} do not fit with"
            f" left_side={left_side}"
        )
    return ShapedArray(b.shape, b.dtype)


def _triangular_meaning(
    a: np.ndarray,
    b: np.ndarray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> np.ndarray:
    if b.size == 0:
        return np.zeros(b.shape, b.dtype)
    (trsm,) = blas.get_blas_funcs(("trsm",), (a,))
    a = np.conj(a) if conjugate_a else a

    def one(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        return [
            trsm(
                1.0,
                a,
                b,
                side=not left_side,
                lower=lower,
                trans_a=int(transpose_a),
                diag=unit_diagonal,
            )
        ]

    return la.for_each(one, [(a, 2), (b, 2)], [(b.shape[-2:], b.dtype)])[0]


def _triangular_jvp(primals: Sequence[Any], tangents: Sequence[Any], **p: Any) -> tuple[Any, Any]:
    (a, b), (da, db) = primals, tangents
    x = do.triangular_solve(a, b, **p)
    if type(da) is Zero and type(db) is Zero:
        return x, zero_like(x)
    right = db
    if type(da) is not Zero:
        k = 1 if p["unit_diagonal"] else 0
        da = la.tril(da, -k) if p["lower"] else la.triu(da, k)
        da = la.transposed(da) if p["transpose_a"] else da
        da = la.conjugated(da) if p["conjugate_a"] else da
        right = add_tangents(db, do.neg(la.matmul(da, x) if p["left_side"] else la.matmul(x, da)))
    return x, do.triangular_solve(a, right, **p)


def _triangular_transpose(ct: Any, a: Any, b: Any, **p: Any) -> list[Any]:
    if type(ct) is Zero:
        return [None, Zero(b.aval)]
    return [None, do.triangular_solve(a, ct, **{**p, "transpose_a": not p["transpose_a"]})]


triangular_solve_p = Primitive(
    "triangular_solve",
    meaning=_triangular_meaning,
    shape=_triangular_shape,
    jvp=_triangular_jvp,
    transpose=_triangular_transpose,
    batch=la.batched("triangular_solve"),
)


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solves a system with a triangular matrix: op(a) x = b, or x op(a) = b.

    Args:
        a: The matrix, or a batch of them. Only one triangle of it is read.
        b: The right side: matrices, or vectors.
        left_side: Whether `a` stands on the left of x.
        lower: Whether the lower triangle is read.
        transpose_a: Whether `a` is transposed.
        conjugate_a: Whether `a` is conjugated.
        unit_diagonal: Whether the diagonal counts as ones, and is not read.

    Returns:
        x, of the shape of `b`.

    >>> a, b = jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([[2.0], [5.0]])
    >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([[1.],
           [1.]], dtype=float32)"""
    a, b = common.same_dtypes("triangular_solve", [as_operand(a), as_operand(b)])
    ndim, dtype = typeof(a).ndim, typeof(a).dtype
    if is_float(dtype) and dtype.itemsize < 4:  # LAPACK has no such numbers
        a, b = (do.convert_element_type(x, new_dtype=np.dtype("float32")) for x in (a, b))
    vector = ndim - 1 == typeof(b).ndim and ndim >= 2
    if vector:
        b = la.columns(b, 1) if left_side else la.rows(b, 1)
    p = {"left_side": bool(left_side), "lower": bool(lower), "transpose_a": bool(transpose_a)}
    p |= {
        "conjugate_a": conjugate_a and is_complex(typeof(a).dtype),
        "unit_diagonal": unit_diagonal,
    }
    out = do.triangular_solve(a, b, **p)
    if typeof(out).dtype != dtype:
        out = do.convert_element_type(out, new_dtype=dtype)
    return do.squeeze(out, dimensions=(ndim - 1 if left_side else ndim - 2,)) if vector else out


# ---------------------------------------------------------------- cholesky


def _square_shape(name: str) -> Any:
    def shape(x: ShapedArray, **params: Any) -> ShapedArray:
        la.check_matrix(name, x, square=True)
        return ShapedArray(x.shape, x.dtype)

    return shape


def _cholesky_meaning(x: np.ndarray) -> np.ndarray:
    if x.size == 0:
        return np.zeros(x.shape, x.dtype)
    (potrf,) = lapack.get_lapack_funcs(("potrf",), (x,))

    def one(a: np.ndarray) -> list[np.ndarray]:
        factor, info = potrf(a, lower=True, clean=True)
        return [
            np.tril(np.full_like(a, np.nan)) if info or not np.isfinite(factor).all() else factor
        ]

    return la.for_each(one, [(x, 2)], [(x.shape[-2:], x.dtype)])[0]


def hermitian_tangent(dx: Any, lower: bool) -> Any:
    """The tangent of the Hermitian matrix of which one triangle is read."""
    strict = la.tril(dx, -1) if lower else la.triu(dx, 1)
    aval = typeof(dx)
    diagonal = do.mul(la.as_dtype(la.real(dx), aval.dtype), la.eye(aval))
    return do.add(do.add(strict, la.adjoint(strict)), diagonal)


def _cholesky_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """dL = L phi(L^-1 dA L^-H), where phi takes the lower triangle and half of the diagonal."""
    factor = do.cholesky(primals[0])
    if type(tangents[0]) is Zero:
        return factor, zero_like(factor)
    da = hermitian_tangent(tangents[0], lower=True)
    inner = la.solve_triangular(
        factor, da, left=False, transpose=True, conjugate=is_complex(typeof(da).dtype)
    )
    inner = la.solve_triangular(factor, inner)
    half = la.scaled(do.mul(inner, la.eye(typeof(inner))), 0.5)
    return factor, la.matmul(factor, do.sub(la.tril(inner), half))


cholesky_p = Primitive(
    "cholesky",
    meaning=_cholesky_meaning,
    shape=_square_shape("cholesky"),
    jvp=_cholesky_jvp,
    transpose=NotApplicable("cholesky is not linear"),
    batch=la.batched("cholesky"),
)


def symmetrized(x: Any) -> Any:
    """(x + x^H) / 2."""
    aval = typeof(x)
    return do.div(do.add(x, la.adjoint(x)), scalar_of(aval.dtype, 2))


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Gives the lower triangular factor L of a Hermitian positive-definite matrix L L^H.

    Args:
        x: The matrix, or a batch of them.
        symmetrize_input: Whether (x + x^H) / 2 is taken; otherwise the lower triangle of `x`
            counts.

    Returns:
        An array of the shape of `x`; NaN where the matrix is not positive-definite.

    >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)"""
    x = as_operand(x)
    la.check_matrix("cholesky", typeof(x), square=True)
    return la.tril(do.cholesky(symmetrized(x) if symmetrize_input else x))


def _update_meaning(r: np.ndarray, w: np.ndarray) -> np.ndarray:
    product = (
        np.swapaxes(r, -1, -2).astype(np.float64) @ r.astype(np.float64)
        + w[..., :, None].astype(np.float64) * w[..., None, :]
    )
    return np.swapaxes(_cholesky_meaning(product), -1, -2).astype(r.dtype)


def _update_shape(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    la.check_dtype("cholesky_update", r, w)
    batch, n, _ = la.check_matrix("cholesky_update", r, square=True)
    if w.shape != (*batch, n) or is_complex(r.dtype):
        raise ValueError(
            "cholesky_update needs a real square matrix and a vector of its size, got"
            f" {r.str_short()} and {w.str_short()}"
        )
    return ShapedArray(r.shape, r.dtype)


def update_program(r: Any, w: Any) -> Any:
    n = typeof(w).shape[-1]
    product = do.add(la.matmul(la.transposed(r), r), do.mul(la.rows(w, n), la.columns(w, n)))
    return la.transposed(do.cholesky(product))


cholesky_update_p = Primitive(
    "cholesky_update",
    meaning=_update_meaning,
    shape=_update_shape,
    jvp=la.jvp_by_program("cholesky_update", update_program),
    transpose=NotApplicable("cholesky_update is not linear"),
    batch=la.batched("cholesky_update"),
)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Gives the triangular factor of r^T r + w w^T.

    Args:
        r_matrix: The upper triangular matrix r.
        w_vector: The vector w.

    Returns:
        An upper triangular matrix.

    >>> lax.linalg.cholesky_update(3.0 * jnp.eye(1), jnp.array([4.0]))
    Array([[5.]], dtype=float32)"""
    return do.cholesky_update(
        *common.same_dtypes("cholesky_update", [as_operand(r_matrix), as_operand(w_vector)])
    )


# ---------------------------------------------------------------- lu


def _lu_shape(x: ShapedArray) -> list[ShapedArray]:
    batch, m, n = la.check_matrix("lu", x)
    pivots, permutation = (
        ShapedArray((*batch, smaller(m, n)), la.INT),
        ShapedArray((*batch, m), la.INT),
    )
    return [ShapedArray(x.shape, x.dtype), pivots, permutation]


def _lu_meaning(x: np.ndarray) -> list[np.ndarray]:
    *batch, m, n = x.shape
    k = smaller(m, n)
    if x.size == 0:
        return [
            np.zeros(x.shape, x.dtype),
            np.zeros((*batch, k), la.INT),
            np.broadcast_to(np.arange(m, dtype=la.INT), (*batch, m)),
        ]
    (getrf,) = lapack.get_lapack_funcs(("getrf",), (x,))

    def one(a: np.ndarray) -> list[np.ndarray]:
        factors, pivots, _ = getrf(a)
        return [factors, pivots, _permutation(pivots, m)]

    return la.for_each(one, [(x, 2)], [((m, n), x.dtype), ((k,), la.INT), ((m,), la.INT)])


def _permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    """The order of rows that exchanging row i with row pivots[i], for each i in turn, leads to.
    What is no row stays out of it."""
    order = np.arange(size, dtype=la.INT)
    for i, j in enumerate(pivots):
        if -size <= j < size:
            order[[i, j]] = order[[j, i]]
    return order


def _lu_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """With L^-1 P dA U^-1 cut into its strict lower triangle (L's part) and its upper one (U's)."""
    out = do.lu(primals[0])
    lu, pivots, permutation = out
    if type(tangents[0]) is Zero:
        return out, [zero_like(o) for o in out]
    *_, m, n = typeof(lu).shape
    k = smaller(m, n)
    lower = do.add(la.enlarged(la.tril(la.part(lu, m, k), -1), m, m), la.eye(typeof(lu), m))
    upper = la.enlarged(la.triu(la.part(lu, k, n)), n, n)
    if k < n:
        upper = do.add(upper, la.eye(typeof(lu), n, start=k))
    inner = la.solve_triangular(lower, la.take_rows(tangents[0], permutation), unit=True)
    inner = la.solve_triangular(upper, inner, left=False, lower=False)
    tangent = do.add(la.matmul(lower, la.tril(inner, -1)), la.matmul(la.triu(inner), upper))
    return out, [tangent, zero_like(pivots), zero_like(permutation)]


lu_p = Primitive(
    "lu",
    meaning=_lu_meaning,
    shape=_lu_shape,
    jvp=_lu_jvp,
    transpose=NotApplicable("lu is not linear"),
    batch=la.batched("lu"),
    multiple_results=True,
)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Gives the LU factors of a matrix whose rows are permuted.

    Args:
        x: The matrix, or a batch of them.

    Returns:
        A triple: the factors in one matrix (the ones on the diagonal of L left out), the exchanges
        of rows, and the permutation that they make.

    >>> lax.linalg.lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[2]
    Array([1, 0], dtype=int32)"""
    factors, pivots, permutation = do.lu(as_operand(x))
    return factors, pivots, permutation


def _pivots_shape(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.ndim < 1 or not is_integer(pivots.dtype) or pivots.shape[-1] > permutation_size:
        raise ValueError(
            f"lu_pivots_to_permutation needs integer vectors of at most {permutation_size} pivots,"
            f" got {pivots.str_short()}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), pivots.dtype)


def _pivots_meaning(pivots: np.ndarray, *, permutation_size: int) -> np.ndarray:
    def one(p: np.ndarray) -> list[np.ndarray]:
        return [_permutation(p, permutation_size)]

    return la.for_each(one, [(pivots, 1)], [((permutation_size,), pivots.dtype)])[0]


lu_pivots_to_permutation_p = Primitive(
    "lu_pivots_to_permutation",
    meaning=_pivots_meaning,
    shape=_pivots_shape,
    jvp=constant_jvp("lu_pivots_to_permutation"),
    transpose=NotApplicable("permutations are integers"),
    batch=la.batched("lu_pivots_to_permutation"),
)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Gives the permutation of rows that a sequence of exchanges makes.

    Args:
        pivots: The exchanges: row i changes places with row `pivots[i]`.
        permutation_size: The number of rows.

    Returns:
        An array of int32.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1]), 3)
    Array([2, 1, 0], dtype=int32)"""
    return do.lu_pivots_to_permutation(as_operand(pivots), permutation_size=permutation_size)


# ---------------------------------------------------------------- symmetric_product


def _product_shape(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    la.check_dtype("symmetric_product", a, c)
    batch, n, _ = la.check_matrix("symmetric_product", a)
    if c.shape != (*batch, n, n):
        raise ValueError(
            f"symmetric_product: c must have shape {(*batch, n, n)}, got {a.str_short()} and"
            f" {c.str_short()}"
        )
    return ShapedArray(c.shape, c.dtype)


def product_program(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    return do.add(la.scaled(la.matmul(a, la.transposed(a)), alpha), la.scaled(c, beta))


symmetric_product_p = Primitive(
    "symmetric_product",
    meaning=lambda a, c, *, alpha, beta: np.asarray(
        alpha * (a @ np.swapaxes(a, -1, -2)) + beta * c
    ).astype(c.dtype),
    shape=_product_shape,
    jvp=la.jvp_by_program("symmetric_product", product_program),
    transpose=NotApplicable("symmetric_product is not linear in its first operand"),
    batch=la.batched("symmetric_product"),
)


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Gives alpha a a^T + beta c.

    Args:
        a_matrix: The matrix a, or a batch of them.
        c_matrix: The matrix c.
        alpha: The factor of the product.
        beta: The factor of `c_matrix`.
        symmetrize_output: Whether the lower triangle, which is what counts, is copied to the upper
            one.

    Returns:
        A square matrix.

    >>> lax.linalg.symmetric_product(jnp.ones((2, 3)), jnp.zeros((2, 2)))
    Array([[3., 3.],
           [3., 3.]], dtype=float32)"""
    a, c = common.same_dtypes("symmetric_product", [as_operand(a_matrix), as_operand(c_matrix)])
    out = do.symmetric_product(a, c, alpha=float(alpha), beta=float(beta))
    return do.add(la.tril(out), la.transposed(la.tril(out, -1))) if symmetrize_output else out
