"""Determinants, inverses and decompositions: LU, QR, singular values, eigenvalues, Hessenberg and
Schur form."""

from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import is_inexact, real_part
from calque.core.types import ArrayLike
from calque.lax import linalg as lax_linalg
from calque.numpy.linalg.factors import adjoint, matrices
from calque.numpy.promotion import promote_inexact
from calque.scipy.linalg.systems import complexes, square

__all__ = [
    "det", "eigh", "eigh_tridiagonal", "hessenberg", "inv", "lu", "qr", "qr_multiply", "rsf2csf",
    "schur", "svd",
]  # fmt: skip


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant.

    Args:
        a: square matrices in the last two axes.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        Floats or complex numbers.

    >>> scipy.linalg.det(jnp.array([[1.0, 2.0], [3.0, 5.0]])).round(4)
    Array(-1., dtype=float32)"""
    return jnp.linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of square matrices.

    Args:
        a: matrices in the last two axes.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        Matrices.
    Differs from SciPy:
        A singular matrix gives infinities or nan, no error.

    >>> scipy.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)"""
    return jnp.linalg.inv(a)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, ...]:
    """Matrices as products of an orthonormal `u`, a diagonal `s` and an orthonormal `vh`.

    Args:
        a: matrices in the last two axes, m by n.
        full_matrices: whether u is m by m and vh n by n, rather than as large as the smaller size.
        compute_uv: whether u and vh are returned.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
        lapack_driver: "gesdd" or "gesvd": divide and conquer serves for both.
    Returns:
        A tuple u, s, vh, s descending; only s without `compute_uv`.

    >>> scipy.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)"""
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(f"svd: lapack_driver must be 'gesdd' or 'gesvd', got {lapack_driver!r}")
    a = matrices("svd", jnp.asarray(a))
    return lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


# ---------------------------------------------------------------- LU and QR


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """Matrices as products of a permutation `p`, a lower triangular `l` and an upper triangular
    `u`.

    Args:
        a: matrices in the last two axes.
        permute_l: whether p and l are returned as their product.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        A tuple p, l, u; with `permute_l` p l and u.

    >>> p, l, u = scipy.linalg.lu(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> u
    Array([[2., 0.],
           [0., 1.]], dtype=float32)"""
    a = matrices("lu", jnp.asarray(a))
    m, n = a.shape[-2:]
    k = min(m, n)
    factors, _, order = lax_linalg.lu(a)
    p = (np.arange(m, dtype=np.int32)[:, None] == order[..., None, :]).astype(real_part(a.dtype))
    lower = jnp.tril(factors[..., :, :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    upper = jnp.triu(factors[..., :k, :])
    return (jnp.matmul(p, lower), upper) if permute_l else (p, lower, upper)


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Matrices as products of `q` with orthonormal columns and an upper triangular `r`.

    Args:
        a: matrices in the last two axes, m by n.
        overwrite_a: has no effect: nothing is overwritten.
        lwork: has no effect: the work space is found.
        mode: "full" gives q m by m and r m by n, "economic" only as large as the smaller size, "r"
            only r.
        pivoting: whether columns are put in order first.
        check_finite: has no effect: nan passes through.
    Returns:
        A tuple q, r, without q for "r"; with `pivoting` also the order of the columns.

    >>> [x.shape for x in scipy.linalg.qr(jnp.ones((3, 2)), mode="economic")]
    [(3, 2), (2, 2)]"""
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    a = matrices("qr", jnp.asarray(a))
    out = lax_linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The product of a matrix with the orthonormal factor of another.

    Args:
        a: a matrix, factored as q r with the reduced q.
        c: the matrix to multiply; a vector is a row or a column.
        mode: "right" is `c @ q`, "left" is `q @ c`.
        pivoting: whether columns of `a` are put in order first.
        conjugate: whether q is conjugated.
        overwrite_a, overwrite_c: have no effect: nothing is overwritten.
    Returns:
        A pair: the product and r; with `pivoting` also the order of the columns.

    >>> product, r = scipy.linalg.qr_multiply(jnp.eye(2), jnp.ones((1, 2)))
    >>> jnp.abs(product)
    Array([[1., 1.]], dtype=float32)"""
    if mode not in ("right", "left"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    a, c = (jnp.asarray(v) for v in promote_inexact(jnp.asarray(a), jnp.asarray(c)))
    a = matrices("qr_multiply", a)
    m, n = a.shape[-2:]
    k = min(m, n)
    vector = c.ndim == 1
    if vector:
        c = c[:, None] if mode == "left" else c[None, :]
    if mode == "left" and c.shape[-2] != k:
        raise ValueError(
            f"Array shapes are not compatible for Q @ c operation: a has shape {a.shape} so Q has"
            f" {k} columns, but c has {c.shape[-2]} rows (expected {k})."
        )
    if mode == "right" and c.shape[-1] != m:
        raise ValueError(
            f"Array shapes are not compatible for c @ Q operation: a has shape {a.shape} so Q has"
            f" {m} rows, but c has {c.shape[-1]} columns (expected {m})."
        )
    lead = jnp.broadcast_shapes(a.shape[:-2], c.shape[:-2])
    q, *rest = lax_linalg.qr(
        jnp.broadcast_to(a, (*lead, m, n)), pivoting=pivoting, full_matrices=False
    )
    q = jnp.conj(q) if conjugate else q
    out = jnp.matmul(q, c) if mode == "left" else jnp.matmul(c, q)
    if vector:
        out = out[..., 0] if mode == "left" else out[..., 0, :]
    return (out, *rest)


# ---------------------------------------------------------------- eigenvalues


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, ...]:
    """The eigenvalues and eigenvectors of Hermitian matrices, or of pairs of them.

    Args:
        a: matrices in the last two axes.
        b: positive-definite matrices for a generalised problem; None is the identity.
        lower: whether the lower triangle is read rather than the upper.
        eigvals_only: whether eigenvectors are left out.
        overwrite_a, overwrite_b: have no effect: nothing is overwritten.
        turbo: has no effect.
        eigvals: a pair (first, last) of numbers: only these; None is all.
        type: with `b`, 1 is `a v = b v w`, 2 is `a b v = v w`, 3 is `b a v = v w`.
        check_finite: has no effect: nan passes through.
    Returns:
        A pair: eigenvalues, ascending, and eigenvectors as columns; or only the eigenvalues.

    >>> scipy.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)"""
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3, got {type!r}")
    if b is None:
        v, w = lax_linalg.eigh(square("eigh", a), lower=lower)
    else:
        a, b = promote_inexact(jnp.asarray(a), jnp.asarray(b))
        v, w = _generalised(a, b, lower, type)
    if eigvals is not None:
        first, last = eigvals
        if not 0 <= first <= last < w.shape[-1]:
            raise ValueError(
                f"eigh: eigvals must be (first, last) with 0 <= first <= last < {w.shape[-1]}, got"
                f" {eigvals}"
            )
        v, w = v[..., first : last + 1], w[..., first : last + 1]
    return w if eigvals_only else (w, v)


def _generalised(a: Any, b: Any, lower: bool, type: int) -> tuple[Any, Any]:
    """By b = l l^H: with y = l^H v, the first problem is that of l^-1 a l^-H; the others, that of
    l^H a l."""
    a, b = square("eigh", a), square("eigh", b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"eigh: a and b must be of one size, got shapes {a.shape} and {b.shape}")
    lead = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    l = lax_linalg.cholesky(b if lower else adjoint(b))

    def solve(x: Any, adjoint: bool, left: bool) -> Any:
        return lax_linalg.triangular_solve(
            l, x, left_side=left, lower=True, transpose_a=adjoint, conjugate_a=adjoint
        )

    if type == 1:
        inner = solve(solve(a, False, True), True, False)
    else:
        inner = jnp.matmul(adjoint(l), jnp.matmul(a, l))
    v, w = lax_linalg.eigh(inner, lower=lower)
    return (jnp.matmul(l, v) if type == 3 else solve(v, True, True)), w


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """The eigenvalues and eigenvectors of a Hermitian matrix with three diagonals.

    Args:
        d: its diagonal.
        e: the diagonal next to it.
        eigvals_only: whether eigenvectors are left out.
        select: "a" is all, "i" those numbered as `select_range` says.
        select_range: a pair (first, last), for "i".
        tol: has no effect: they are as precise as the dtype.
        key: has no effect: nothing is drawn.
    Returns:
        A pair: eigenvalues, ascending, and eigenvectors as columns; or only the eigenvalues.
    Differs from SciPy:
        `select="v"`, by value, is refused.

    >>> scipy.linalg.eigh_tridiagonal(jnp.array([2.0, 1.0]), jnp.array([0.0]), eigvals_only=True)
    Array([1., 2.], dtype=float32)"""
    d, e = jnp.asarray(d), jnp.asarray(e)
    if d.dtype != e.dtype:
        raise TypeError(
            f"diagonal and off-diagonal values must have same dtype, got {d.dtype} and {e.dtype}"
        )
    if not is_inexact(d.dtype) or real_part(d.dtype).itemsize < 4:
        raise TypeError(
            "Only float32 and float64 inputs are supported as inputs to"
            f" jax.scipy.linalg.eigh_tridiagonal, got {d.dtype} and {e.dtype}"
        )
    n = d.shape[-1] if d.ndim else 0
    if e.shape != (*d.shape[:-1], n - 1):
        raise TypeError(
            f"eigh_tridiagonal: e must have one element less than d, got shapes {d.shape} and"
            f" {e.shape}"
        )
    chosen = _selection(n, select, select_range)
    place = np.arange(n, dtype=np.int32)
    below = jnp.pad(jnp.conj(e), [(0, 0)] * (e.ndim - 1) + [(0, 1)])[..., None, :]
    dense = jnp.where(place[:, None] == place + 1, below, jnp.zeros((), d.dtype))
    dense = jnp.where(place[:, None] == place, d[..., None, :], dense)
    v, w = lax_linalg.eigh(dense, lower=True, symmetrize_input=False)
    return w[..., chosen] if eigvals_only else (w[..., chosen], v[..., chosen])


def _selection(n: int, select: str, select_range: tuple[float, float] | None) -> slice:
    if select == "a":
        return slice(None)
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal(..., select='v') is not implemented: how many there are depends on"
            " values"
        )
    if select != "i":
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select_range is None:
        raise ValueError("for select='i', select_range must be specified.")
    first, last = (int(k) for k in select_range)
    if first > last:
        raise ValueError("Got empty index range in select_range.")
    if first < 0 or last >= n:
        raise ValueError(
            f"eigh_tridiagonal: select_range {select_range} is not within the {n} eigenvalues"
        )
    return slice(first, last + 1)


# ---------------------------------------------------------------- Hessenberg and Schur form


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Matrices as products `q h q^H` with a unitary q, and an h with zeros below its first
    subdiagonal.

    Args:
        a: square matrices in the last two axes.
        calc_q: whether q is returned too.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        h, or a pair h, q.

    >>> scipy.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)"""
    a = square("hessenberg", a)
    n = a.shape[-1]
    h, taus = lax_linalg.hessenberg(a)
    out = jnp.triu(h, -1)
    if not calc_q:
        return out
    eye = jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
    if n < 2:
        return out, eye
    return out, eye.at[..., 1:, 1:].set(lax_linalg.householder_product(h[..., 1:, :-1], taus))


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """A matrix as the product `z t z^H` of a unitary z and an upper triangular t.

    Args:
        a: a square matrix.
        output: "real" keeps a real matrix real, with blocks of two rows on the diagonal of t for
            pairs of complex eigenvalues; "complex" makes t triangular.
    Returns:
        A pair t, z.

    >>> t, z = scipy.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    Array([[1., 2.],
           [0., 3.]], dtype=float32)"""
    if output not in ("real", "complex"):
        raise ValueError(
            f"Expected 'output' to be either 'real' or 'complex', got output={output!r}."
        )
    a = square("schur", a)
    t, z = lax_linalg.schur(complexes(a) if output == "complex" else a)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form from the real one.

    Args:
        T: the real form.
        Z: the orthogonal matrix that belongs to it.
        check_finite: has no effect: nan passes through.
    Returns:
        A pair t, z: t upper triangular, with `z t z^H = Z T Z^T`.

    >>> t, z = scipy.linalg.rsf2csf(jnp.array([[1.0, 2.0], [0.0, 3.0]]), jnp.eye(2))
    >>> t.dtype.name
    'complex64'"""
    T, Z = (jnp.asarray(x) for x in promote_inexact(jnp.asarray(T), jnp.asarray(Z)))
    for name, x in (("T", T), ("Z", Z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if T.shape[-1] != Z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {Z.shape} vs. T: {T.shape}")
    lead = jnp.broadcast_shapes(T.shape[:-2], Z.shape[:-2])
    T, Z = (jnp.broadcast_to(complexes(x), (*lead, *x.shape[-2:])) for x in (T, Z))
    n = T.shape[-1]
    if n < 2:
        return T, Z
    t, z = lax.fori_loop(0, n - 1, lambda i, tz: _split_block(n - 2 - i, *tz), (T, Z))
    return jnp.triu(t), z


def _split_block(k: Any, t: Any, z: Any) -> tuple[Any, Any]:
    """Make the block of rows and columns k and k + 1 upper triangular, by a rotation that puts an
    eigenvector first."""
    rows = lax.dynamic_slice_in_dim(t, k, 2, axis=-2)
    block = lax.dynamic_slice_in_dim(rows, k, 2, axis=-1)
    a, b, c, d = (block[..., i, j] for i in (0, 1) for j in (0, 1))
    half = (a - d) / 2
    shift = half + jnp.sqrt(half * half + b * c)  # an eigenvalue, less d
    size = jnp.sqrt(jnp.abs(shift) ** 2 + jnp.abs(c) ** 2)
    eps = np.finfo(real_part(t.dtype)).eps
    needed = jnp.abs(c) > eps * (jnp.abs(a) + jnp.abs(d))
    safe = jnp.where(needed, size, 1)
    cosine, sine = jnp.where(needed, shift / safe, 1), jnp.where(needed, c / safe, 0)
    turn = jnp.stack(
        [jnp.stack([jnp.conj(cosine), jnp.conj(sine)], -1), jnp.stack([-sine, cosine], -1)], -2
    )
    back = adjoint(turn)
    t = lax.dynamic_update_slice_in_dim(t, jnp.matmul(turn, rows), k, axis=-2)

    def turned(x: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(
            x, jnp.matmul(lax.dynamic_slice_in_dim(x, k, 2, axis=-1), back), k, axis=-1
        )

    return turned(t), turned(z)
