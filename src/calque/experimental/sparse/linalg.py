"""Eigenvalues of large symmetric matrices, and sparse linear systems."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import is_complex
from calque.core.lazy import LazyModule
from calque.core.types import ArrayLike
from calque.experimental.sparse.base import is_sparse
from calque.experimental.sparse.bcsr import BCSR
from calque.experimental.sparse.products import bcoo_dot_general
from calque.numpy.promotion import array_of, promote_inexact
from calque.transforms.functions.callbacks import pure_callback
from calque.transforms.functions.shapes import ShapeDtypeStruct
from calque.transforms.functions.solves import custom_linear_solve

scipy_sparse, scipy_linalg = LazyModule("scipy.sparse"), LazyModule("scipy.sparse.linalg")

__all__ = ["lobpcg_standard", "spsolve"]

# ---------------------------------------------------------------- eigenvalues


def lobpcg_standard(
    A: Any, X: ArrayLike, m: int = 100, tol: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a symmetric matrix, or of a function that multiplies by it, with
    eigenvectors and the number of steps.

    X (n, k) has k independent directions to begin with, 5 k < n. An eigenvector is good when its
    residual is below `tol * 10 * n * (|eigenvalue| + |A x|)`; `tol` is the precision of the dtype
    by default.

    >>> from calque.experimental.sparse import linalg
    >>> theta, U, steps = linalg.lobpcg_standard(jnp.diag(jnp.arange(10.0)), jnp.ones((10, 1)))
    >>> round(float(theta[0]), 3)
    9.0"""
    X = array_of("lobpcg_standard", X)
    times = _action(A)
    n, k = _checked(times, X)
    tol = float(jnp.finfo(X.dtype).eps) if tol is None else tol
    X = _orthonormal(X)
    P = jnp.zeros_like(X)
    AX = times(X)
    theta = jnp.sum(X * AX, axis=0)

    def body(state: Any) -> Any:
        steps, X, P, R, _, _ = state
        S = jnp.concatenate([X, P, _outside(jnp.concatenate([X, P], axis=1), R)], axis=1)
        values, vectors = jnp.linalg.eigh(_without_zeros(S, _product(S.T, times(S))))
        B, theta = vectors[:, ::-1][:, :k], values[::-1][:k]
        older = B.at[:k].set(0)  # what comes from beyond the last X
        X = _unit(_product(S, B))
        P = _unit(_product(S, _outside(_unit(B), older)))
        AX = times(X)
        R = AX - theta * X
        allowed = tol * 10 * n * (jnp.linalg.norm(AX, axis=0) + jnp.abs(theta))
        return steps + 1, X, P, R, jnp.sum(jnp.linalg.norm(R, axis=0) < allowed), theta

    start = (jnp.asarray(0), X, P, AX - theta * X, jnp.asarray(0), theta)
    steps, X, _, _, _, theta = lax.while_loop(lambda s: (s[0] < m) & (s[4] < k), body, start)
    return theta, X, steps


def _action(A: Any) -> Callable[[Any], Any]:
    if is_sparse(A):
        return lambda x: A @ x
    if callable(A):
        return A
    A = array_of("lobpcg_standard", A)
    return lambda x: _product(A, x)


def _checked(times: Callable[[Any], Any], X: Any) -> tuple[int, int]:
    if X.ndim != 2:
        raise ValueError(f"lobpcg_standard: X must be a matrix, got shape {X.shape}")
    n, k = X.shape
    if k == 0:
        raise ValueError(f"lobpcg_standard: must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(
            f"lobpcg_standard: expected search dim * 5 < matrix dim (got {k * 5}, {n})"
        )
    if is_complex(X.dtype):
        raise TypeError(
            f"lobpcg_standard: complex matrices are not supported, got X of dtype {X.dtype.name}"
        )
    out = times(jnp.zeros((n, 1), X.dtype))
    if out.dtype != X.dtype:
        raise ValueError(
            f"lobpcg_standard: A, X must have same dtypes (were {out.dtype.name}, {X.dtype.name})"
        )
    if out.shape != (n, 1):
        raise ValueError(f"lobpcg_standard: A must be ({n}, {n}) matrix A, got output {out.shape}")
    return n, k


def _product(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _unit(x: Any) -> Any:
    """Columns of length 1; those that are 0 stay."""
    length = jnp.linalg.norm(x, axis=0, keepdims=True)
    return x / jnp.where(length == 0, 1, length)


def _without_zeros(basis: Any, inner: Any) -> Any:
    """A matrix in the directions of a basis, with a value below all others for directions that are
    0: its own, 0, would be above negative eigenvalues."""
    bound = jnp.max(jnp.sum(jnp.abs(inner), axis=0))
    least = jnp.where(bound == 0, -1, -2 * bound)
    return inner + jnp.diag(jnp.where(jnp.any(basis, axis=0), 0, least))


def _orthonormal(x: Any) -> Any:
    """An orthonormal basis of the columns, from the eigenvectors of their products; dependent ones
    become 0."""
    for _ in range(2):
        x = _unit(x)
        inner = _product(x.T, x)
        w, v = jnp.linalg.eigh(inner)
        w, v = w[::-1], v[:, ::-1]
        small = jnp.finfo(x.dtype).eps * w[0]
        kept = w > jnp.maximum(small, 0)
        x = _product(x, v / jnp.sqrt(jnp.where(kept, w, 1)))
        x = _unit(jnp.where(kept, x, 0))
    return x


def _outside(basis: Any, x: Any) -> Any:
    """An orthonormal basis of what of the columns lies outside of the span of `basis`; doubtful
    columns become 0."""
    for _ in range(2):
        x = _orthonormal(x - _product(basis, _product(basis.T, x)))
    for _ in range(2):
        x = x - _product(basis, _product(basis.T, x))
    return jnp.where(jnp.linalg.norm(x, axis=0, keepdims=True) >= 0.99, x, 0)


# ---------------------------------------------------------------- linear systems

_ORDERS = ("NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD")


def spsolve(
    data: ArrayLike,
    indices: ArrayLike,
    indptr: ArrayLike,
    b: ArrayLike,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Array:
    """The solution of a square system whose matrix is given by rows (CSR), by SciPy's direct
    solver. It may be differentiated.

    `reorder` (0 to 3) chooses how columns are ordered first; `tol` concerns solvers on a GPU.

    >>> from calque.experimental.sparse import linalg
    >>> linalg.spsolve(jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2]),
    ...     jnp.array([1.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)"""
    if not isinstance(tol, (int, float)):
        raise TypeError(f"spsolve: tol must be a number, got {tol!r}")
    if reorder not in range(4):
        raise ValueError(f"spsolve: reorder={reorder} not valid, must be between 0 and 3")
    data, b = (
        jnp.asarray(x) for x in promote_inexact(array_of("spsolve", data), array_of("spsolve", b))
    )
    indices, indptr = array_of("spsolve", indices), array_of("spsolve", indptr)
    if (
        data.ndim != 1
        or indices.shape != data.shape
        or indptr.shape != (b.shape[0] + 1,)
        or b.ndim != 1
    ):
        raise ValueError(
            f"spsolve: shapes do not fit: data {data.shape}, indices {indices.shape}, indptr"
            f" {indptr.shape}, b {b.shape}"
        )
    n = b.shape[0]

    def matvec(x: Any) -> Any:
        mat = BCSR((data, indices, indptr), shape=(n, n)).to_bcoo()
        return bcoo_dot_general(mat, x, dimension_numbers=(((1,), (0,)), ((), ())))

    def solve(transposed: bool, right: Any) -> Any:
        def run(d: Any, i: Any, e: Any, r: Any) -> Any:
            return _solved(d, i, e, r, transposed, _ORDERS[reorder])

        out = ShapeDtypeStruct(right.shape, right.dtype)
        return pure_callback(run, out, data, indices, indptr, right, vmap_method="sequential")

    return custom_linear_solve(
        matvec, b, lambda _, right: solve(False, right), lambda _, right: solve(True, right)
    )


def _solved(
    data: Any, indices: Any, indptr: Any, right: Any, transposed: bool, order: str
) -> np.ndarray:
    parts = tuple(np.asarray(x) for x in (data, indices, indptr))
    mat = scipy_sparse.csr_matrix(parts, shape=(right.shape[0],) * 2)
    mat = (mat.T if transposed else mat).tocsc()
    return np.asarray(scipy_linalg.spsolve(mat, np.asarray(right), permc_spec=order)).astype(
        right.dtype
    )
