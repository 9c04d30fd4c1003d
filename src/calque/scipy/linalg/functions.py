"""Functions of matrices: exponential, square root, any function of the eigenvalues; the polar
decomposition."""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import real_part
from calque.core.types import ArrayLike
from calque.lax import linalg as lax_linalg
from calque.lax.polar import qdwh
from calque.numpy.linalg.factors import adjoint, matrices
from calque.scipy.linalg.factors import rsf2csf, schur
from calque.scipy.linalg.systems import complexes, square, sylvester
from calque.transforms.functions.autodiff import jvp
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = ["expm", "expm_frechet", "funm", "polar", "sqrtm"]

# ---------------------------------------------------------------- exponential

# Pade approximants of exp: the degree for each precision, and up to which norm it is exact to
# rounding (Higham 2005)
_DEGREES: Final = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _pade(degree: int) -> list[float]:
    """The coefficients of the numerator, the constant first, scaled to whole numbers."""
    f = math.factorial
    return [float(f(2 * degree - k) // (f(k) * f(degree - k))) for k in range(degree + 1)]


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices.

    Args:
        A: matrices in the last two axes.
        upper_triangular: a promise that they are upper triangular, which is quicker.
        max_squarings: how many squarings are allowed; where more are needed the result is nan.
    Returns:
        Matrices.

    >>> scipy.linalg.expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    A = jnp.asarray(A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={A.shape}.")
    A = square("expm", A)
    real = real_part(A.dtype)
    if real.itemsize not in _DEGREES:
        raise TypeError(f"A.dtype={A.dtype} is not supported.")
    if A.shape[-1] == 0:
        return A
    degree, limit = _DEGREES[real.itemsize]
    norm = jnp.max(jnp.sum(jnp.abs(lax.stop_gradient(A)), axis=-2), axis=-1)
    turns = jnp.maximum(0, jnp.ceil(jnp.log2(jnp.where(norm > 0, norm, 1) / limit)))
    known = jnp.isfinite(turns) & (turns <= max_squarings)
    turns = jnp.where(known, turns, 0)
    scaled = A * (jnp.exp2(-turns)[..., None, None]).astype(A.dtype)
    out = _squared(_approximant(scaled, degree, upper_triangular), turns.astype(np.int32))
    return jnp.where(known[..., None, None], out, jnp.nan)


def _approximant(A: Any, degree: int, upper_triangular: bool) -> Any:
    """(v - u)^-1 (v + u), where u holds the odd powers and v the even ones."""
    c = _pade(degree)
    eye = jnp.eye(A.shape[-1], dtype=A.dtype)
    square_ = jnp.matmul(A, A)
    powers = [eye, square_]
    while len(powers) <= (degree // 2 if degree < 13 else 3):
        powers.append(jnp.matmul(powers[-1], square_))
    sums = [_combined(c[first::2], powers) for first in (1, 0)]
    u, v = jnp.matmul(A, sums[0]), sums[1]
    if upper_triangular:
        return lax_linalg.triangular_solve(v - u, v + u, left_side=True, lower=False)
    return jnp.linalg.solve(v - u, v + u)


def _combined(c: list[float], powers: list[Any]) -> Any:
    """sum of c[k] x^k, by powers of x up to x^3 and then by x^3 times the rest."""
    low = len(powers) if len(c) > len(powers) else len(c)
    total = sum(c[k] * powers[k] for k in range(low))
    if low == len(c):
        return total
    rest = sum(c[low + k] * powers[k + 1] for k in range(len(c) - low))
    return total + jnp.matmul(powers[-1], rest)


def _squared(x: Any, turns: Any) -> Any:
    """x to the power 2^turns."""

    def step(k: Any, y: Any) -> Any:
        return jnp.where((k < turns)[..., None, None], jnp.matmul(y, y), y)

    return lax.fori_loop(0, jnp.max(turns), step, x) if turns.size else x


def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """The exponential of a matrix and its derivative in a direction.

    Args:
        A: a square matrix.
        E: the direction, a matrix of the same shape.
        method: has no effect.
        compute_expm: whether the exponential is returned too.
    Returns:
        A pair: the exponential and the derivative; or the derivative.

    >>> scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(
            f"expm_frechet: method must be None, 'SPS' or 'blockEnlarge', got {method!r}"
        )
    A, E = jnp.asarray(A), jnp.asarray(E)
    for name, x in (("A", A), ("E", E)):
        if x.ndim < 2 or x.shape[-2] != x.shape[-1]:
            raise ValueError(
                f"expected {name} to be a (batched) square matrix, got {name}.shape={x.shape}"
            )
    if A.shape != E.shape:
        raise ValueError(
            f"expected A and E to be the same shape, got A.shape={A.shape} E.shape={E.shape}"
        )
    dtype = jnp.promote_types(jnp.promote_types(A.dtype, E.dtype), "float32")
    out, tangent = jvp(expm, (A.astype(dtype),), (E.astype(dtype),))
    return (out, tangent) if compute_expm else tangent


# ---------------------------------------------------------------- square root


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of a matrix.

    Args:
        A: a square matrix.
        blocksize: must be 1: it is not computed by blocks.
    Returns:
        A complex matrix; nan where there is no root.
    Differs from SciPy:
        The result is complex also where the root is real.

    >>> scipy.linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)"""
    if blocksize > 1:
        raise NotImplementedError("sqrtm: the blocked version is not implemented; use blocksize=1")
    A = jnp.asarray(A)
    A = square(
        "sqrtm",
        A if real_part(A.dtype).itemsize > 2 or A.dtype.kind in "biu" else A.astype("float32"),
    )
    return _sqrtm(complexes(A))


@custom_jvp
def _sqrtm(A: Any) -> Any:
    if A.shape[-1] == 0:
        return A
    t, z = lax_linalg.schur(A)
    return jnp.matmul(z, jnp.matmul(_sqrtm_triangular(t), adjoint(z)))


@_sqrtm.defjvp
def _sqrtm_jvp(primals: Any, tangents: Any) -> Any:
    """x dx + dx x = da"""
    x = _sqrtm(primals[0])
    return x, sylvester(x, x, tangents[0])


def _sqrtm_triangular(t: Any) -> Any:
    """By columns (Bjorck and Hammarling): those before column j, s, give (s + r[j, j]) r[:j, j] =
    t[:j, j]."""
    n = t.shape[-1]
    place = np.arange(n, dtype=np.int32)
    eye = np.eye(n, dtype=bool)
    roots = jnp.sqrt(jnp.diagonal(t, axis1=-2, axis2=-1))
    sums = roots[..., :, None] + roots[..., None, :]
    start = jnp.where(eye, roots[..., None, :], jnp.zeros((), t.dtype))

    def column(j: Any, r: Any) -> Any:
        before = place < j
        shift = lax.dynamic_slice_in_dim(roots, j, 1, axis=-1)[..., None]
        matrix = jnp.where(before[:, None] & before, r + shift * eye, eye.astype(t.dtype))
        matrix = jnp.where(eye & (matrix == 0), jnp.ones((), t.dtype), matrix)
        right = lax.dynamic_slice_in_dim(t, j, 1, axis=-1)
        right = jnp.where(before[:, None], right, jnp.zeros((), t.dtype))
        x = lax_linalg.triangular_solve(matrix, right, left_side=True, lower=False)
        return lax.dynamic_update_slice_in_dim(
            r, x + lax.dynamic_slice_in_dim(r, j, 1, axis=-1), j, axis=-1
        )

    r = lax.fori_loop(1, n, column, start)
    eps = float(np.finfo(real_part(t.dtype)).eps)
    missed = jnp.max(jnp.abs(jnp.matmul(r, r) - t), axis=(-2, -1)) > 1e3 * n * eps * jnp.max(
        jnp.abs(t), axis=(-2, -1)
    )
    rootless = missed & jnp.any(jnp.triu(sums == 0), axis=(-2, -1))
    return jnp.where(rootless[..., None, None], jnp.nan, r)


# ---------------------------------------------------------------- any function


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of a matrix.

    Args:
        A: a square matrix, whose eigenvalues differ.
        func: the function, of arrays of complex numbers.
        disp: whether only the result is returned.
    Returns:
        A complex matrix; without `disp` a pair of it and an estimate of the error.
    Differs from SciPy:
        There is no printed warning about the error.

    >>> scipy.linalg.funm(jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.square).real
    Array([[1., 0.],
           [0., 4.]], dtype=float32)"""
    A = jnp.asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError("expected square array_like input")
    t, z = rsf2csf(*schur(A))
    f, apart = _parlett(t, jnp.asarray(func(jnp.diagonal(t))).astype(t.dtype))
    out = jnp.matmul(z, jnp.matmul(f, adjoint(z)))
    if disp:
        return out
    tol = np.asarray(np.finfo(real_part(t.dtype)).eps, real_part(t.dtype))
    apart = jnp.where(apart == 0, tol, apart)
    strict = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), axis=0), initial=0)
    error = jnp.minimum(1, jnp.maximum(tol, tol / apart * strict))
    return out, jnp.where(jnp.all(~jnp.isfinite(out)), jnp.inf, error)


def _parlett(t: Any, diagonal: Any) -> tuple[Any, Any]:
    """f of an upper triangular matrix from f of its diagonal: f t = t f gives one diagonal of f
    after the other. Also the least difference of two eigenvalues."""
    n = t.shape[-1]
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    w = jnp.diagonal(t)
    differences = w[None, :] - w[:, None]
    safe = jnp.where(differences == 0, 1, differences)
    strict = jnp.triu(t, 1)

    def step(p: Any, f: Any) -> Any:
        inner = jnp.triu(f, 1)
        # of the diagonals found so far
        sums = (
            t * (diagonal[None, :] - diagonal[:, None])
            + jnp.matmul(strict, inner)
            - jnp.matmul(inner, strict)
        )
        return jnp.where(j - i == p, sums / safe, f)

    f = lax.fori_loop(1, n, step, jnp.diag(diagonal)) if n > 1 else jnp.diag(diagonal)
    return f, jnp.min(jnp.where(j > i, jnp.abs(differences), jnp.inf), initial=jnp.inf)


# ---------------------------------------------------------------- polar


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """A matrix as the product of a unitary and a positive semidefinite one.

    Args:
        a: a matrix.
        side: "right" is `u p`, "left" is `p u`.
        method: "qdwh", an iteration, for wide matrices on the left and others on the right; or
            "svd".
        eps: at which change the iteration stops; None is the precision of the dtype.
        max_iterations: how many turns it may take; None is enough.
    Returns:
        A pair u, p.
    Differs from SciPy:
        `method`, `eps` and `max_iterations` are not in SciPy.

    >>> u, p = scipy.linalg.polar(jnp.array([[2.0, 0.0], [0.0, 3.0]]), method="svd")
    >>> p.round(3) + 0.0
    Array([[2., 0.],
           [0., 3.]], dtype=float32)"""
    a = jnp.asarray(a)
    if a.ndim < 2:
        raise ValueError("The input `a` must be at least a 2-D array.")
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    a = matrices("polar", a)
    wide = a.shape[-2] < a.shape[-1]
    if method == "qdwh" and wide != (side == "left"):
        raise NotImplementedError(
            "method='qdwh' only supports mxn matrices where m < n where side='right' and m >= n"
            f" side='left', got {a.shape} with side={side!r}"
        )
    u, p = _polar_of(method, eps, max_iterations)(adjoint(a) if wide else a)
    if wide != (side == "left"):
        p = jnp.matmul(u, jnp.matmul(p, adjoint(u)))
    return (adjoint(u) if wide else u), p


def _polar_of(method: str, eps: float | None, max_iterations: int | None) -> Any:
    """The right polar decomposition of matrices with at least as many rows as columns."""

    @custom_jvp
    def decompose(a: Any) -> tuple[Any, Any]:
        if a.size == 0:
            return a, jnp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-1]), a.dtype)
        if method == "qdwh":

            def one(m: Any) -> Any:
                return qdwh(m, eps=eps, max_iterations=max_iterations)[:2]

            return jnp.vectorize(one, signature="(m,n)->(m,n),(n,n)")(a)
        u, s, vh = lax_linalg.svd(a, full_matrices=False)
        return jnp.matmul(u, vh), jnp.matmul(adjoint(vh) * s[..., None, :].astype(a.dtype), vh)

    @decompose.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        """With w = u^H du inside the span of u: w p + p w = u^H da - da^H u; outside of it, du = da
        p^-1."""
        (a,), (t,) = primals, tangents
        u, p = decompose(a)
        inner = jnp.matmul(adjoint(u), t)
        w = sylvester(p, p, inner - adjoint(inner))
        du = jnp.matmul(u, w)
        if a.shape[-2] > a.shape[-1]:
            outside = t - jnp.matmul(u, inner)
            du = du + adjoint(jnp.linalg.solve(p, adjoint(outside)))
        dp = inner - jnp.matmul(w, p)
        return (u, p), (du, (dp + adjoint(dp)) / 2)

    return decompose
