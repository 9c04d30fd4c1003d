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
    """The determinant. Nothing is overwritten, and nan passes through: the last two arguments are
    SciPy's.

    >>> import calque.scipy.linalg as sl
    >>> sl.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)"""
    return jnp.linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of a square matrix.

    >>> import calque.scipy.linalg as sl
    >>> sl.inv(jnp.array([[2.0]]))
    Array([[0.5]], dtype=float32)"""
    return jnp.linalg.inv(a)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, ...]:
    """(u, s, v^H) with s in descending order, or only s. LAPACK's divide and conquer serves for
    both values of `lapack_driver`.

    >>> import calque.scipy.linalg as sl
    >>> sl.svd(jnp.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.], dtype=float32)"""
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(f"svd: lapack_driver must be 'gesdd' or 'gesvd', got {lapack_driver!r}")
    a = matrices("svd", jnp.asarray(a))
    return lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


# ---------------------------------------------------------------- LU and QR


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """p, l and u with a = p l u; with `permute_l`, p l and u.

    >>> import calque.scipy.linalg as sl
    >>> p, l, u = sl.lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
    >>> p @ l @ u
    Array([[1., 2.],
           [2., 2.]], dtype=float32)"""
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
    """q and r with a = q r, and with pivoting the order of columns p for which a[:, p] = q r.
    Modes: "full", "economic", "r" (without q).

    >>> import calque.scipy.linalg as sl
    >>> [v.shape for v in sl.qr(jnp.ones((3, 2)))]
    [(3, 3), (3, 2)]"""
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
    """c q (mode "right") or q c (mode "left") and r, for a = q r with the reduced q, or its
    conjugate; with pivoting also the order of columns.

    >>> import calque.scipy.linalg as sl
    >>> [v.shape for v in sl.qr_multiply(jnp.ones((3, 2)), jnp.ones((5, 3)))]
    [(5, 2), (2, 2)]"""
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
    """The eigenvalues w, ascending, and eigenvectors v (columns) of a Hermitian matrix: a v = v w.
    With a positive-definite `b`: a v = b v w (type 1), a b v = v w (type 2) or b a v = v w (type
    3). `eigvals` = (first, last) selects by number.

    >>> import calque.scipy.linalg as sl
    >>> sl.eigh(jnp.diag(jnp.array([2.0, 8.0])), jnp.diag(jnp.array([2.0, 4.0])),
    ...     eigvals_only=True).round(4)
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
    """The eigenvalues, ascending, and eigenvectors of the Hermitian matrix with the diagonal `d`
    and `e` above it: all (select="a"), or those numbered select_range[0] to select_range[1]
    (select="i"). LAPACK finds them to rounding, within any `tol`, and needs no `key`.

    >>> import calque.scipy.linalg as sl
    >>> sl.eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)"""
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
    """h with zeros below its first subdiagonal, and with `calc_q` also the unitary q, for which a =
    q h q^H.

    >>> import calque.scipy.linalg as sl
    >>> [v.shape for v in sl.hessenberg(jnp.ones((3, 3)), calc_q=True)]
    [(3, 3), (3, 3)]"""
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
    """t and the unitary z with a = z t z^H, where t is upper triangular, but for blocks of two rows
    in the real form of a real matrix.

    >>> import calque.scipy.linalg as sl
    >>> sl.schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
    Array([[ 0.,  1.],
           [-1.,  0.]], dtype=float32)"""
    if output not in ("real", "complex"):
        raise ValueError(
            f"Expected 'output' to be either 'real' or 'complex', got output={output!r}."
        )
    a = square("schur", a)
    t, z = lax_linalg.schur(complexes(a) if output == "complex" else a)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form from the real one: t upper triangular with z t z^H = Z T Z^T.

    >>> import calque.scipy.linalg as sl
    >>> t, z = sl.rsf2csf(*sl.schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]])))
    >>> t.dtype, bool(abs(t[1, 0]) < 1e-6)
    (dtype('complex64'), True)"""
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
