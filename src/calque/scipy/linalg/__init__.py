"""calque.scipy.linalg: linear algebra with SciPy's names, on batches of matrices."""

from calque.core import guards as _guards
from calque.numpy.calls import cached as _cached
from calque.scipy.linalg.factors import (
    det,
    eigh,
    eigh_tridiagonal,
    hessenberg,
    inv,
    lu,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from calque.scipy.linalg.functions import expm, expm_frechet, funm, polar, sqrtm
from calque.scipy.linalg.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from calque.scipy.linalg.systems import (
    cho_factor,
    cho_solve,
    cholesky,
    lu_factor,
    lu_solve,
    solve,
    solve_sylvester,
    solve_triangular,
)

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "convolution_matrix", "det", "dft", "eigh", "eigh_tridiagonal",
    "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard", "hankel",
    "helmert", "hessenberg", "hilbert", "inv", "invhilbert",
    "invpascal", "leslie", "lu", "lu_factor", "lu_solve", "pascal", "polar", "qr", "qr_multiply",
    "rsf2csf", "schur", "solve",
    "solve_sylvester", "solve_triangular", "sqrtm", "svd", "toeplitz",
]  # fmt: skip

_guards.guard_public(globals(), _cached.with_call_path)
