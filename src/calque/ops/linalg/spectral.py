"""Eigenvalues and singular values: eigh, eig, svd."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import complex_of, is_complex
from calque.core.extents import smaller
from calque.core.lazy import LazyModule
from calque.core.primitives import NotApplicable, Primitive, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.common import filled, filled_like, scalar_of, zero_like
from calque.ops.common import operand as as_operand
from calque.ops.linalg import common as la
from calque.ops.linalg.factors import hermitian_tangent, symmetrized

scipy_linalg = LazyModule("scipy.linalg")


class EighImplementation(enum.Enum):
    """Algorithms for `eigh`; on this CPU LAPACK's is used."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """Libraries for `eig`; on this CPU LAPACK's is used."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class SvdAlgorithm(enum.Enum):
    """Algorithms for `svd`; on this CPU LAPACK's divide and conquer is used."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def attempt(
    function: Callable[..., Sequence[np.ndarray]], a: np.ndarray, outs: Sequence[tuple[Any, Any]]
) -> list[np.ndarray]:
    """A decomposition of each matrix of a batch, with NaN for those that it fails for, or that hold
    what is no number."""

    def one(x: np.ndarray) -> Sequence[np.ndarray]:
        try:
            if np.isfinite(x).all():
                return function(x)
        except np.linalg.LinAlgError:
            pass
        return [np.full(shape, np.nan, dtype) for shape, dtype in outs]

    return la.for_each(one, [(a, 2)], outs)


# ---------------------------------------------------------------- eigh


def _check_subset(name: str, subset: Any) -> None:
    if subset is not None:
        raise NotImplementedError(
            f"{name}: subset_by_index is not supported on this CPU; slice the results instead"
        )


def _eigh_shape(x: ShapedArray, *, subset_by_index: Any, **p: Any) -> list[ShapedArray]:
    batch, n, _ = la.check_matrix("eigh", x, square=True)
    _check_subset("eigh", subset_by_index)
    return [ShapedArray(x.shape, x.dtype), ShapedArray((*batch, n), la.real_dtype(x.dtype))]


def _eigh_meaning(x: np.ndarray, *, lower: bool, **p: Any) -> list[np.ndarray]:
    n = x.shape[-1]

    def decompose(a: np.ndarray) -> list[np.ndarray]:
        if n == 0:
            return [a, np.zeros(0)]
        w, v = scipy_linalg.eigh(a, lower=lower, driver="evd", check_finite=False)
        return [v, w]

    return attempt(decompose, x, [((n, n), x.dtype), ((n,), la.real_dtype(x.dtype))])


def _gaps(w: Any) -> Any:
    """1 / (w[j] - w[i]), and 0 on the diagonal."""
    n = typeof(w).shape[-1]
    apart = do.sub(la.rows(w, n), la.columns(w, n))
    eye = la.eye(typeof(apart))
    return do.sub(do.div(filled_like(apart, 1), do.add(apart, eye)), eye)


def _eigh_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **p: Any
) -> tuple[list[Any], list[Any]]:
    """dw = diag(V^H dA V), dV = V (F * V^H dA V) with F[i, j] = 1 / (w[j] - w[i])."""
    out = do.eigh(primals[0], **p)
    v, w = out
    if type(tangents[0]) is Zero:
        return out, [zero_like(o) for o in out]
    inner = la.matmul(la.adjoint(v), la.matmul(hermitian_tangent(tangents[0], p["lower"]), v))
    dw = la.real(la.diagonal(inner))
    dv = la.matmul(v, do.mul(inner, la.as_dtype(_gaps(w), typeof(v).dtype)))
    return out, [dv, dw]


eigh_p = Primitive(
    "eigh",
    meaning=_eigh_meaning,
    shape=_eigh_shape,
    jvp=_eigh_jvp,
    transpose=NotApplicable("eigh is not linear"),
    batch=la.batched("eigh"),
    multiple_results=True,
)


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Gives the eigenvectors and eigenvalues of a Hermitian matrix.

    Args:
        x: The matrix, or a batch of them.
        lower: Whether the lower triangle is read, where the input is not made symmetric.
        symmetrize_input: Whether (x + x^H) / 2 is taken.
        sort_eigenvalues: Whether eigenvalues come in ascending order; they always do.
        subset_by_index: (first, after last) of the eigenvalues to give; None gives all.
        implementation: An `EighImplementation`; LAPACK's is used with each.

    Returns:
        A pair: the eigenvectors as columns, and the eigenvalues.

    >>> lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
    Array([1., 2.], dtype=float32)"""
    x = as_operand(x)
    n = la.check_matrix("eigh", typeof(x), square=True)[1]
    subset = None if subset_by_index == (0, n) else subset_by_index
    p = {
        "sort_eigenvalues": sort_eigenvalues,
        "subset_by_index": subset,
        "algorithm": implementation,
    }
    v, w = do.eigh(symmetrized(x) if symmetrize_input else x, lower=lower, **p)
    return v, w


# ---------------------------------------------------------------- eig


def _eig_shape(
    x: ShapedArray,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> list[ShapedArray]:
    batch, n, _ = la.check_matrix("eig", x, square=True)
    dtype = complex_of(x.dtype)
    vectors = ShapedArray(x.shape, dtype)
    return [ShapedArray((*batch, n), dtype)] + [vectors] * (
        compute_left_eigenvectors + compute_right_eigenvectors
    )


def _eig_meaning(
    x: np.ndarray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **p: Any
) -> list[np.ndarray]:
    n, dtype = x.shape[-1], complex_of(x.dtype)
    wanted = [True, compute_left_eigenvectors, compute_right_eigenvectors]
    outs = [o for o, w in zip([((n,), dtype), ((n, n), dtype), ((n, n), dtype)], wanted) if w]

    def one(a: np.ndarray) -> list[np.ndarray]:
        if n == 0:
            return [np.zeros(shape, dtype) for shape, _ in outs]
        if not np.isfinite(a).all():
            return [np.full(shape, np.nan * (1 + 1j), dtype) for shape, _ in outs]
        scale = _power_for(a)
        if scale != 1:
            a = a * scale
        w, left, right = scipy_linalg.eig(a, left=True, right=True, check_finite=False)
        if scale != 1:
            w = w * (1 / scale)
        return [v for v, keep in zip((w, left, right), wanted) if keep]

    return la.for_each(one, [(x, 2)], outs)


def middle_sizes(dtype: np.dtype) -> tuple[float, float]:
    """Between which sizes of the largest element a matrix is left as it is. LAPACK brings others to
    a size between by itself, but some builds of OpenBLAS forget to bring the eigenvalues back."""
    info = np.finfo(la.real_dtype(dtype))
    least = float(np.sqrt(float(info.smallest_normal))) / float(info.eps)
    return least, 1 / least


def _power_for(a: np.ndarray) -> Any:
    """A power of two that brings a matrix to a middle size; 1 where it has one."""
    real = la.real_dtype(a.dtype)
    size = float(max(np.abs(a.real).max(), np.abs(a.imag).max()))
    least, most = middle_sizes(a.dtype)
    if size == 0 or least <= size <= most:
        return real.type(1)
    largest = int(np.finfo(real).maxexp) - 2
    return real.type(2.0 ** max(-largest, min(-int(np.frexp(size)[1]), largest)))


def _eig_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **p: Any
) -> tuple[list[Any], list[Any]]:
    """dw = diag(V^-1 dA V). Right eigenvectors: dV = V (F * V^-1 dA V), less what changes their
    norm and their phase; left ones are the right ones of A^H, which has the conjugate
    eigenvalues."""
    out = do.eig(primals[0], **p)
    if type(tangents[0]) is Zero:
        return out, [zero_like(o) for o in out]
    left, right = p["compute_left_eigenvectors"], p["compute_right_eigenvectors"]
    if (left or right) and not p["enable_eigvec_derivs"]:
        raise NotImplementedError(
            "the derivatives of eigenvectors of non-symmetric matrices depend on how they are"
            " normalised: ask for eigenvalues only (jnp.linalg.eigvals), or for eigenvectors"
            " of norm 1 with enable_eigvec_derivs=True"
        )
    w, *vectors = out
    if not vectors:
        # whatever the norm of the eigenvectors, dw is the same: their derivatives may be any
        either = {**p, "compute_right_eigenvectors": True, "enable_eigvec_derivs": True}
        vectors = do.eig(primals[0], **either)[1:]
    da = la.as_dtype(tangents[0], typeof(w).dtype)
    moved = []
    dw = None
    for v, of_left in zip(vectors, (True, False) if left else (False,)):
        inner = la.solve(v, la.matmul(la.adjoint(da) if of_left else da, v))
        if dw is None:
            dw = la.conjugated(la.diagonal(inner)) if of_left else la.diagonal(inner)
        values = la.conjugated(w) if of_left else w
        moved.append(_normed_tangent(v, la.matmul(v, do.mul(inner, _gaps(values)))))
    return out, [dw, *(moved if left or right else [])]


def _normed_tangent(v: Any, dv: Any) -> Any:
    """The tangent of eigenvectors as columns whose norm is 1 and whose largest element is real,
    from one that leaves both open."""
    shape, n = typeof(v).shape, typeof(v).shape[-1]
    rows = len(shape) - 2
    grown = do.reduce_sum(do.real(do.mul(la.conjugated(v), dv)), axes=(rows,))
    sizes = do.add(do.square(do.real(v)), do.square(do.imag(v)))
    largest = do.argmax(sizes, axes=(rows,), index_dtype=np.dtype("int32"))
    there = do.eq(la.position(shape, -2), la.rows(largest, n))
    here, dhere = (
        do.reduce_sum(do.select_n(there, la.zeros_like(x), x), axes=(rows,)) for x in (v, dv)
    )
    turned = do.imag(do.div(dhere, here))
    along = do.complex(grown, turned)
    return do.sub(dv, do.mul(v, la.rows(along, n)))


eig_p = Primitive(
    "eig",
    meaning=_eig_meaning,
    shape=_eig_shape,
    jvp=_eig_jvp,
    transpose=NotApplicable("eig is not linear"),
    batch=la.batched("eig"),
    multiple_results=True,
)


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Gives the eigenvalues and eigenvectors of a square matrix, as complex numbers.

    Args:
        x: The matrix, or a batch of them.
        compute_left_eigenvectors: Whether to give the left ones, as columns of norm 1.
        compute_right_eigenvectors: Whether to give the right ones, likewise.
        enable_eigvec_derivs: Whether eigenvectors may be differentiated.
        implementation: An `EigImplementation`; LAPACK's is used with each.
        use_magma: Speaks of a library for GPUs; it changes nothing here.

    Returns:
        A list: the eigenvalues, then the left and the right eigenvectors that were asked for.

    >>> lax.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 1.0]]), compute_left_eigenvectors=False)[0]
    Array([2.+0.j, 1.+0.j], dtype=complex64)"""
    return do.eig(
        as_operand(x),
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=compute_right_eigenvectors,
        enable_eigvec_derivs=enable_eigvec_derivs,
        implementation=implementation,
    )


# ---------------------------------------------------------------- svd


def _svd_shape(
    x: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any
) -> list[ShapedArray]:
    batch, m, n = la.check_matrix("svd", x)
    _check_subset("svd", subset_by_index)
    k = smaller(m, n)
    s = ShapedArray((*batch, k), la.real_dtype(x.dtype))
    if not compute_uv:
        return [s]
    left, right = (m, n) if full_matrices else (k, k)
    return [s, ShapedArray((*batch, m, left), x.dtype), ShapedArray((*batch, right, n), x.dtype)]


def _svd_meaning(
    x: np.ndarray, *, full_matrices: bool, compute_uv: bool, **p: Any
) -> list[np.ndarray]:
    avals = _svd_shape(
        ShapedArray(x.shape[-2:], x.dtype),
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=None,
        algorithm=None,
    )

    def decompose(a: np.ndarray) -> list[np.ndarray]:
        if a.size == 0:
            return [
                np.eye(aval.shape[0], aval.shape[1]) if aval.ndim > 1 else np.zeros(aval.shape)
                for aval in avals
            ]
        out = scipy_linalg.svd(
            a, full_matrices=full_matrices, compute_uv=compute_uv, check_finite=False
        )
        return [out[1], out[0], out[2]] if compute_uv else [out]

    return attempt(decompose, x, [(a.shape, a.dtype) for a in avals])


def _svd_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    full_matrices: bool,
    compute_uv: bool,
    **p: Any,
) -> Any:
    (x,), (dx,) = primals, tangents
    out = do.svd(x, full_matrices=full_matrices, compute_uv=compute_uv, **p)
    if type(dx) is Zero:
        return out, [zero_like(o) for o in out]
    m, n = typeof(x).shape[-2:]
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            "the singular vectors of full_matrices=True beyond the matrix's rank are arbitrary, and"
            " have no derivative: use full_matrices=False"
        )
    s, u, vt = out if compute_uv else do.svd(x, full_matrices=False, compute_uv=True, **p)
    inner = la.matmul(la.adjoint(u), la.matmul(dx, la.adjoint(vt)))
    ds = la.real(la.diagonal(inner))
    if not compute_uv:
        return out, [ds]
    du, dv = _vectors(s, inner)
    du = la.matmul(u, du)
    dv = la.matmul(la.adjoint(vt), dv)
    inverse = la.as_dtype(do.div(ones_like(s), s), typeof(x).dtype)
    if m > n:  # the part of dA V that U does not span
        rest = la.matmul(dx, la.adjoint(vt))
        rest = do.sub(rest, la.matmul(u, la.matmul(la.adjoint(u), rest)))
        du = do.add(du, do.mul(rest, la.rows(inverse, m)))
    if n > m:
        rest = la.matmul(la.adjoint(dx), u)
        rest = do.sub(rest, la.matmul(la.adjoint(vt), la.matmul(vt, rest)))
        dv = do.add(dv, do.mul(rest, la.rows(inverse, n)))
    return out, [ds, du, la.adjoint(dv)]


def ones_like(x: Any) -> Any:
    aval = typeof(x)
    return filled(aval.shape, scalar_of(aval.dtype, 1))


def _vectors(s: Any, inner: Any) -> tuple[Any, Any]:
    """U^H dU and V^H dV from E = U^H dA V, for the rotations inside the spans of U and V: their
    sum is (E + E^H)[i, j] / (s[j] - s[i]), their difference (E - E^H)[i, j] / (s[j] + s[i]). Of
    equal singular values the vectors turn together in no certain way, but U V^H has a
    derivative."""
    k = typeof(s).shape[-1]
    dtype = typeof(inner).dtype
    row, column = la.rows(s, k), la.columns(s, k)
    gap, sum_of_two = do.sub(row, column), do.add(row, column)
    # what is nearer than the digits of singular values is equal, the diagonal among it
    near = la.scaled(sum_of_two, 4 * float(np.finfo(typeof(s).dtype).eps))
    together = _divided(do.add(inner, la.adjoint(inner)), gap, do.le(do.abs(gap), near))
    apart = do.sub(inner, la.adjoint(inner))
    own = do.eq(la.position(typeof(apart).shape, -2), la.position(typeof(apart).shape, -1))
    none = do.eq(sum_of_two, la.zeros_like(sum_of_two))
    against = _divided(apart, sum_of_two, do.or_(none, own))
    du = la.scaled(do.add(together, against), 0.5)
    dv = la.scaled(do.sub(together, against), 0.5)
    if is_complex(dtype):  # the phases: all of them are given to U
        phase = do.mul(apart, la.as_dtype(la.eye(typeof(gap)), dtype))
        du = do.add(
            du,
            do.mul(la.scaled(phase, 0.5), la.as_dtype(la.rows(do.div(ones_like(s), s), k), dtype)),
        )
    return du, dv


def _divided(x: Any, by: Any, unless: Any) -> Any:
    """x / by, and 0 where `unless` is true."""
    safe = do.select_n(unless, by, ones_like(by))
    factor = do.select_n(unless, do.div(ones_like(by), safe), la.zeros_like(by))
    return do.mul(x, la.as_dtype(factor, typeof(x).dtype))


svd_p = Primitive(
    "svd",
    meaning=_svd_meaning,
    shape=_svd_shape,
    jvp=_svd_jvp,
    transpose=NotApplicable("svd is not linear"),
    batch=la.batched("svd"),
    multiple_results=True,
)


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Gives the singular value decomposition of a matrix.

    Args:
        x: The matrix, or a batch of them.
        full_matrices: Whether u and v are square.
        compute_uv: Whether to give u and v at all.
        subset_by_index: (first, after last) of the singular values to give; None gives all.
        algorithm: An `SvdAlgorithm`; LAPACK's divide and conquer is used with each.

    Returns:
        A triple (u, s, v^H), or only s: the singular values, in descending order.

    >>> lax.linalg.svd(jnp.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.], dtype=float32)"""
    x = as_operand(x)
    _, m, n = la.check_matrix("svd", typeof(x))
    subset = None if subset_by_index == (0, smaller(m, n)) else subset_by_index
    out = do.svd(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset,
        algorithm=algorithm,
    )
    if not compute_uv:
        return out[0]
    s, u, vt = out
    return u, s, vt
