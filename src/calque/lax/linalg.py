"""calque.lax.linalg: factorisations and solvers of matrices, as primitives and as functions."""

from calque.core import guards as _guards
from calque.lax.polar import qdwh
from calque.ops.linalg.factors import (
    cholesky,
    cholesky_p,
    cholesky_update,
    cholesky_update_p,
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
    symmetric_product,
    symmetric_product_p,
    triangular_solve,
    triangular_solve_p,
)
from calque.ops.linalg.orthogonal import (
    hessenberg,
    hessenberg_p,
    householder_product,
    householder_product_p,
    ormqr,
    ormqr_p,
    qr,
    qr_p,
    schur,
    schur_p,
    tridiagonal,
    tridiagonal_p,
    tridiagonal_solve,
    tridiagonal_solve_p,
)
from calque.ops.linalg.spectral import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    eig,
    eig_p,
    eigh,
    eigh_p,
    svd,
    svd_p,
)

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "cholesky_update_p", "eig",
    "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "householder_product",
    "householder_product_p", "lu", "lu_p",
    "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr",
    "qr_p", "schur", "schur_p", "svd", "svd_p",
    "symmetric_product", "symmetric_product_p", "triangular_solve", "triangular_solve_p",
    "tridiagonal", "tridiagonal_p",
    "tridiagonal_solve", "tridiagonal_solve_p",
]  # fmt: skip

_guards.guard_public(globals())
