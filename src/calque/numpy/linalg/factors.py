"""Decompositions of matrices: Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from calque.core.arrays import Array
from calque.core.dtypes import is_complex
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.numpy import reductions, ufuncs
from calque.numpy.conversions import asarray
from calque.numpy.creation import zeros
from calque.numpy.promotion import array_of, broadcast_to, convert, promote_inexact
from calque.numpy.shaping import matrix_transpose, where
from calque.numpy.sorting import argsort, take_along_axis
from calque.ops.complexes import squared_magnitude
from calque.ops.linalg import factors as lax_linalg
from calque.ops.linalg import orthogonal as linalg_orthogonal
from calque.ops.linalg import spectral as linalg_spectral

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    Q: Array
    R: Array


class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array


_RANKED = frozenset(
    [
        "cholesky",
        "cho_factor",
        "eig",
        "eigh",
        "eigvals",
        "eigvalsh",
        "hessenberg",
        "lu",
        "lu_factor",
        "qr",
        "schur",
        "sqrtm",
        "svd",
        "svdvals",
    ]
)  # what refuses arrays of a lower rank by a TypeError, as JAX's primitives do


def matrices(name: str, a: Any, square: bool = False) -> Array:
    """A batch of matrices of floats (half precision is widened by nobody: LAPACK has none)."""
    (a,) = promote_inexact(array_of(name, a))
    a = asarray(a)
    a = convert(a, a.dtype)
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        wanted = (
            "a square matrix or a batch of them, (..., n, n)"
            if square
            else "a matrix or a batch of them, (..., m, n)"
        )
        kind = TypeError if a.ndim < 2 and name in _RANKED else ValueError
        raise kind(
            f"Argument to {name}() must have shape [..., {'n, n' if square else 'm, n'}], got shape"
            f" {a.shape}: it takes {wanted}."
        )
    return a


def adjoint(x: Any) -> Array:
    """The conjugate transpose."""
    return ufuncs.conjugate(matrix_transpose(x))


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factor of Hermitian, positive-definite matrices: the triangular `L` with `L @
    L^H == a`.

    Args:
        a: matrices in the last two axes.
        upper: whether the upper factor, the adjoint of `L`, is returned.
        symmetrize_input: whether `(a + a^H) / 2` is factored, which gives derivatives their
            symmetry; else only the lower triangle is read.
    Returns:
        Triangular matrices.
    Differs from NumPy:
        A matrix that is not positive-definite gives nan, no error.

    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)"""
    lower = lax_linalg.cholesky(
        matrices("cholesky", a, square=True), symmetrize_input=symmetrize_input
    )
    return adjoint(lower) if upper else lower


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...


@overload
def qr(a: ArrayLike, mode: str) -> Any: ...


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Matrices as products of `Q` with orthonormal columns and an upper triangular `R`.

    Args:
        a: matrices in the last two axes, m by n.
        mode: "reduced" gives Q m by k and R k by n, k being the smaller size; "complete" Q m by m
            and R m by n; "r" only R; "raw" the reflections and their factors.
    Returns:
        A named tuple `Q`, `R`; for "r" an array.

    >>> [x.shape for x in jnp.linalg.qr(jnp.ones((3, 2)))]
    [(3, 2), (2, 2)]"""
    a = matrices("qr", a)
    if mode == "raw":
        return QRResult(*_reflections(a))
    if mode not in ("reduced", "complete", "r", "full"):  # "full" is an old name of "reduced"
        raise ValueError(
            f"Unsupported QR decomposition mode '{mode}': it must be 'reduced', 'complete', 'r' or"
            " 'raw'"
        )
    q, r = linalg_orthogonal.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def _reflections(a: Any) -> tuple[Any, Any]:
    """LAPACK's form of QR: the reflections below the diagonal of the transposed matrix, and their
    factors."""
    m, n = a.shape[-2:]
    taus = []
    rows = np.arange(m)
    for k in range(min(m, n)):
        x = a[..., :, k]
        alpha = x[..., k]
        below = where(rows > k, x, np.zeros((), a.dtype))
        size = do.sqrt(squared_magnitude(alpha) + reductions.sum(squared_magnitude(below), axis=-1))
        beta = where(_real(alpha) >= 0, -size, size)
        nothing = reductions.all(below == 0, axis=-1) & (alpha == convert(_real(alpha), a.dtype))
        safe = where(nothing, np.ones((), beta.dtype), beta)
        tau = where(
            nothing,
            np.zeros((), a.dtype),
            (convert(safe, a.dtype) - alpha) / convert(safe, a.dtype),
        )
        scale = where(nothing, np.ones((), a.dtype), alpha - convert(safe, a.dtype))
        v = where(rows == k, np.ones((), a.dtype), below / scale[..., None])
        product = reductions.sum(ufuncs.conjugate(v)[..., :, None] * a, axis=-2)
        updated = (
            a - ufuncs.conjugate(tau)[..., None, None] * v[..., :, None] * product[..., None, :]
        )
        column = where(rows > k, v, updated[..., :, k])
        a = where(np.arange(n) >= k, updated, a).at[..., :, k].set(column)
        taus.append(tau[..., None])
    return matrix_transpose(a), concatenated(taus, a)


def concatenated(parts: list[Any], like: Any) -> Any:
    return (
        do.concatenate(*parts, dimension=like.ndim - 2)
        if len(parts) > 1
        else parts[0]
        if parts
        else zeros((*like.shape[:-2], 0), like.dtype)
    )


def _real(x: Any) -> Any:
    return do.real(x) if is_complex(x.dtype) else x


# ---------------------------------------------------------------- eigenvalues


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and eigenvectors of square matrices.

    Args:
        a: matrices in the last two axes.
    Returns:
        A named tuple: `eigenvalues`, in no order, and `eigenvectors`, as columns of length 1.
    Differs from NumPy:
        Both are complex also where all are real.

    >>> jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([2.+0.j, 1.+0.j], dtype=complex64)"""
    w, v = linalg_spectral.eig(matrices("eig", a, square=True), compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices.

    Args:
        a: matrices in the last two axes.
    Returns:
        Complex numbers, in no order.
    Differs from NumPy:
        They are complex also where all are real.

    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).imag
    Array([ 1., -1.], dtype=float32)"""
    return linalg_spectral.eig(
        matrices("eigvals", a, square=True),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
    )[0]


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: matrices in the last two axes.
        UPLO: "L" reads the lower triangle, "U" the upper; None is "L".
        symmetrize_input: whether `(a + a^H) / 2` is taken, which gives derivatives their symmetry.
    Returns:
        A named tuple: `eigenvalues`, real and ascending, and `eigenvectors`, as orthonormal
        columns.

    >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)"""
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    v, w = linalg_spectral.eigh(
        matrices("eigh", a, square=True), lower=UPLO != "U", symmetrize_input=symmetrize_input
    )
    return EighResult(w, v)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices.

    Args:
        a: matrices in the last two axes.
        UPLO: "L" reads the lower triangle, "U" the upper; None is "L".
        symmetrize_input: whether `(a + a^H) / 2` is taken, which gives derivatives their symmetry.
    Returns:
        Real numbers, ascending.

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)"""
    return eigh(a, UPLO, symmetrize_input).eigenvalues


# ---------------------------------------------------------------- singular values


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any: ...


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Matrices as products of an orthonormal `U`, a diagonal `S` and an orthonormal `Vh`.

    Args:
        a: matrices in the last two axes, m by n.
        full_matrices: whether U is m by m and Vh n by n, rather than as large as the smaller size.
        compute_uv: whether U and Vh are returned.
        hermitian: whether the matrices are Hermitian, which is quicker.
        subset_by_index: must be None: the results can be sliced.
    Returns:
        A named tuple `U`, `S`, `Vh`, S descending; only S without `compute_uv`.

    >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)"""
    a = matrices("svd", a)
    if hermitian:
        return _hermitian_svd(a, compute_uv, subset_by_index)
    out = linalg_spectral.svd(
        a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*out) if compute_uv else out


def _hermitian_svd(a: Any, compute_uv: bool, subset: tuple[int, int] | None) -> Any:
    """From eigenvalues: their sizes are the singular values, their signs go into Vh."""
    w, v = eigh(a)
    size = ufuncs.absolute(w)
    order = argsort(size, axis=-1, descending=True)
    if subset is not None:
        order = order[..., subset[0] : subset[1]]
    s = take_along_axis(size, order, -1)
    if not compute_uv:
        return s
    sign = where(take_along_axis(w, order, -1) < 0, -1, 1)
    u = take_along_axis(v, broadcast_to(order[..., None, :], (*v.shape[:-1], order.shape[-1])), -1)
    return SVDResult(u, s, adjoint(u * convert(sign, u.dtype)[..., None, :]))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices.

    Args:
        x: matrices in the last two axes.
    Returns:
        Real numbers, descending.

    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)"""
    return svd(x, compute_uv=False)
