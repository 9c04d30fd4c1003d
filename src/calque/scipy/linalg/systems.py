"""Linear systems: general, triangular, from factors, and Sylvester's equation."""

import warnings
from typing import Any, Final

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import complex_of, is_complex
from calque.core.types import ArrayLike
from calque.lax import linalg as lax_linalg
from calque.numpy.linalg.factors import adjoint, matrices
from calque.numpy.promotion import promote_inexact

__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "lu_factor",
    "lu_solve",
    "solve",
    "solve_sylvester",
    "solve_triangular",
]

_TRANSPOSITIONS: Final = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def square(name: str, a: ArrayLike) -> Array:
    """A batch of square matrices of floats, from anything that becomes an array."""
    return matrices(name, jnp.asarray(a), square=True)


def _fitted(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Square matrices and right sides with equal batches, and whether the right sides were
    vectors."""
    a, b = (jnp.asarray(v) for v in promote_inexact(jnp.asarray(a), jnp.asarray(b)))
    a = square(name, a)
    n = a.shape[-1]
    vector = b.ndim == 1
    if not vector and a.ndim == b.ndim + 1 and b.shape[-1] == n:
        warnings.warn(
            f"{name}: batched 1D solves with b.ndim > 1 are deprecated, and in the future will be"
            f" treated as a batched 2D solve. Use {name}(a, b[..., None]).squeeze(-1) to avoid this"
            " warning.",
            FutureWarning,
            stacklevel=3,
        )
        vector = True
    b = b[..., None] if vector else b
    if b.ndim < 2 or b.shape[-2] != n:
        raise ValueError(
            f"{name}: matrices of shape {a.shape} and right sides of shape {b.shape} do not fit:"
            f" need {n} rows"
        )
    lead = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jnp.broadcast_to(a, (*lead, n, n)), jnp.broadcast_to(b, (*lead, *b.shape[-2:])), vector


def _triangular(a: Any, b: Any, lower: bool, trans: int = 0, unit: bool = False) -> Any:
    return lax_linalg.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans > 0,
        conjugate_a=trans == 2,
        unit_diagonal=unit,
    )


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The solution `x` of linear equations with a triangular matrix.

    Args:
        a: square matrices in the last two axes, of which one triangle is read.
        b: a vector, or matrices of right sides as columns.
        trans: 0 or "N" is `a x = b`, 1 or "T" takes the transpose of `a`, 2 or "C" the adjoint.
        lower: whether the lower triangle is read rather than the upper.
        unit_diagonal: whether the diagonal counts as ones.
        overwrite_b: has no effect: nothing is overwritten.
        debug: has no effect.
        check_finite: has no effect: nan passes through.
    Returns:
        `x`, in the shape of `b`.

    >>> scipy.linalg.solve_triangular(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
    Array([1., 2.], dtype=float32)"""
    if trans not in _TRANSPOSITIONS:
        raise ValueError(
            f"Invalid 'trans' value {trans}: solve_triangular takes 0, 1, 2, 'N', 'T' or 'C'"
        )
    a, b, vector = _fitted("jax.scipy.linalg.solve_triangular", a, b)
    x = _triangular(a, b, lower, _TRANSPOSITIONS[trans], unit_diagonal)
    return x[..., 0] if vector else x


# ---------------------------------------------------------------- Cholesky


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The Cholesky factor of positive-definite matrices.

    Args:
        a: matrices in the last two axes, of which one triangle is read.
        lower: whether L of `L L^H` is returned, rather than U of `U^H U`.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        Triangular matrices.
    Differs from SciPy:
        A matrix that is not positive-definite gives nan, no error.

    >>> scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)"""
    a = square("cholesky", a)
    factor = lax_linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor of a positive-definite matrix, for `cho_solve`.

    Args:
        a: matrices in the last two axes, of which one triangle is read.
        lower: whether that is the lower one.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        A pair: the factor, and `lower`.

    >>> factor = scipy.linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
    >>> scipy.linalg.cho_solve(factor, jnp.array([4.0, 9.0]))
    Array([1., 1.], dtype=float32)"""
    return cholesky(a, lower=lower), lower


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution `x` of `a x = b`, from the factor of `a`.

    Args:
        c_and_lower: what `cho_factor` returned.
        b: a vector, or matrices of right sides as columns.
        overwrite_b: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        `x`, in the shape of `b`.

    >>> factor = scipy.linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
    >>> scipy.linalg.cho_solve(factor, jnp.array([4.0, 9.0]))
    Array([1., 1.], dtype=float32)"""
    c, lower = c_and_lower
    c, b, vector = _fitted("jax.scipy.linalg.cho_solve", c, b)
    x = _cho_solve(c, lower, b)
    return x[..., 0] if vector else x


def _cho_solve(c: Any, lower: bool, b: Any) -> Any:
    x = _triangular(c, b, lower, 0 if lower else 2)
    return _triangular(c, x, lower, 2 if lower else 0)


# ---------------------------------------------------------------- LU


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """The LU factors of square matrices, for `lu_solve`.

    Args:
        a: matrices in the last two axes.
        overwrite_a: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        A pair: both factors in one matrix, and with which row each row was exchanged.
    Differs from SciPy:
        A singular matrix makes no warning.

    >>> factors = scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> scipy.linalg.lu_solve(factors, jnp.array([3.0, 4.0]))
    Array([2., 3.], dtype=float32)"""
    factors, pivots, _ = lax_linalg.lu(matrices("lu_factor", jnp.asarray(a)))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution `x` of linear equations, from the factors of the matrix.

    Args:
        lu_and_piv: what `lu_factor` returned for `a`.
        b: a vector, or matrices of right sides as columns.
        trans: 0 is `a x = b`, 1 takes the transpose of `a`, 2 the adjoint.
        overwrite_b: has no effect: nothing is overwritten.
        check_finite: has no effect: nan passes through.
    Returns:
        `x`, in the shape of `b`.

    >>> factors = scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> scipy.linalg.lu_solve(factors, jnp.array([3.0, 4.0]), trans=1)
    Array([4. , 1.5], dtype=float32)"""
    if isinstance(trans, str) or trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    factors, pivots = lu_and_piv
    factors, b, vector = _fitted("jax.scipy.linalg.lu_solve", factors, b)
    n = factors.shape[-1]
    order = lax_linalg.lu_pivots_to_permutation(
        jnp.broadcast_to(pivots, (*factors.shape[:-2], n)), n
    )
    if trans == 0:
        x = _triangular(factors, jnp.take_along_axis(b, order[..., None], -2), True, unit=True)
        x = _triangular(factors, x, False)
    else:
        x = _triangular(factors, b, False, trans)
        x = _triangular(factors, x, True, trans, unit=True)
        x = jnp.take_along_axis(x, jnp.argsort(order, axis=-1)[..., None], -2)
    return x[..., 0] if vector else x


# ---------------------------------------------------------------- solve


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The solution `x` of the linear equations `a x = b`.

    Args:
        a: square matrices in the last two axes.
        b: a vector, or matrices of right sides as columns.
        lower: for "pos", whether the lower triangle is read rather than the upper.
        overwrite_a, overwrite_b: have no effect: nothing is overwritten.
        debug: has no effect.
        check_finite: has no effect: nan passes through.
        assume_a: "gen" solves by LU, "pos" by the Cholesky factor of a positive-definite matrix;
            "sym" and "her" are solved as "gen".
    Returns:
        `x`, in the shape of `b`.
    Differs from SciPy:
        A singular matrix gives infinities or nan, no error.

    >>> scipy.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
    Array([1., 2.], dtype=float32)"""
    kinds = ["gen", "sym", "her", "pos"]
    if assume_a not in kinds:
        raise ValueError(f"Expected assume_a to be one of {kinds}; got {assume_a!r}")
    a, b = jnp.asarray(a), jnp.asarray(b)
    return jnp.linalg.solve(a, b) if assume_a != "pos" else _solve_positive(a, b, lower)


def _solve_positive(a: Any, b: Any, lower: bool) -> Any:
    vector = b.ndim == 1 or b.ndim == a.ndim - 1
    if vector and (b.ndim != a.ndim - 1 or b.shape != a.shape[:-1]):
        raise ValueError(
            "The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m];"
            f" got a={a.shape} and b={b.shape}"
        )
    a, b, _ = _fitted("solve", a, b[..., None] if vector else b)
    factor = cholesky(lax.stop_gradient(a), lower=lower)

    # the transpose of a Hermitian matrix is its conjugate
    def back(_: Any, y: Any) -> Any:
        return jnp.conj(_cho_solve(factor, lower, jnp.conj(y)))

    x = lax.custom_linear_solve(
        lambda x: jnp.matmul(a, x), b, lambda _, y: _cho_solve(factor, lower, y), back
    )
    return x[..., 0] if vector else x


# ---------------------------------------------------------------- Sylvester


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """The solution `X` of Sylvester's equation, `A X + X B = C`.

    Args:
        A: a square matrix, m by m.
        B: a square matrix, n by n.
        C: a matrix, m by n.
        method: "schur" goes by the Schur forms of both, "eigen" by their eigenvectors.
        tol: where an eigenvalue of A comes so near to one of -B, the result is nan.
    Returns:
        A matrix, m by n.

    >>> scipy.linalg.solve_sylvester(2 * jnp.eye(2), jnp.eye(2), 3 * jnp.eye(2)).real.round(3)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    if method not in ("schur", "eigen"):
        raise ValueError(
            f'Unrecognized method {method}. The two valid methods are either "schur" or "eigen".'
        )
    A, B, C = (jnp.asarray(v) for v in promote_inexact(*map(jnp.asarray, (A, B, C))))
    fit = (
        min(A.ndim, B.ndim, C.ndim) >= 2
        and A.shape[-2:] == C.shape[-2:-1] * 2
        and B.shape[-2:] == C.shape[-1:] * 2
    )
    if not fit:
        raise ValueError(
            f"Incompatible shapes for Sylvester equation:\nA: {A.shape}\nB: {B.shape}\nC: {C.shape}"
        )
    lead = jnp.broadcast_shapes(A.shape[:-2], B.shape[:-2], C.shape[:-2])
    A, B, C = (jnp.broadcast_to(v, (*lead, *v.shape[-2:])) for v in (A, B, C))
    x, smallest = _sylvester(A, B, C, method)
    return jnp.where((smallest < tol)[..., None, None], jnp.nan, x)


def sylvester(A: ArrayLike, B: Array, C: Array) -> Array:
    """The solution of A x + x B = C for batches of one dtype, whatever its condition."""
    return _sylvester(A, B, C, "schur")[0]


def _sylvester(A: Any, B: Any, C: Any, method: str) -> tuple[Any, Any]:
    """The solution, and how close A and -B come to a common eigenvalue."""
    if 0 in C.shape[-2:]:
        return C, jnp.full(C.shape[:-2], jnp.inf)
    a, b = lax.stop_gradient(A), lax.stop_gradient(B)
    solve, smallest = _sylvester_solver(a, b, method)

    def solve_transposed(_: Any, y: Any) -> Any:
        """Of A^T x + x B^T = y."""
        return _sylvester_solver(jnp.matrix_transpose(a), jnp.matrix_transpose(b), method)[0](y)

    def product(x: Any) -> Any:
        return jnp.matmul(A, x) + jnp.matmul(x, B)

    return lax.custom_linear_solve(product, C, lambda _, y: solve(y), solve_transposed), smallest


def _sylvester_solver(A: Any, B: Any, method: str) -> tuple[Any, Any]:
    left, right, transform, inverse, solve_inner = _FACTORS[method](A, B)
    eigenvalues = [jnp.diagonal(m, axis1=-2, axis2=-1) for m in (left, right)]
    apart = jnp.abs(eigenvalues[0][..., :, None] + eigenvalues[1][..., None, :])

    def solve(y: Any) -> Any:
        out = inverse(solve_inner(left, right, transform(y.astype(left.dtype))))
        return out if is_complex(y.dtype) else out.real

    return solve, jnp.min(apart, axis=(-2, -1))


def _schur_factors(A: Any, B: Any) -> tuple[Any, ...]:
    """A = u r u^H and B = v s v^H."""
    (r, u), (s, v) = (lax_linalg.schur(complexes(m)) for m in (A, B))

    def transform(c: Any) -> Any:
        return jnp.matmul(adjoint(u), jnp.matmul(c, v))

    def inverse(y: Any) -> Any:
        return jnp.matmul(u, jnp.matmul(y, adjoint(v)))

    return r, s, transform, inverse, _sylvester_triangular


def _eigen_factors(A: Any, B: Any) -> tuple[Any, ...]:
    (a, u), (b, v) = jnp.linalg.eig(A), jnp.linalg.eig(B)
    diagonals = [w[..., :, None] * jnp.eye(w.shape[-1], dtype=w.dtype) for w in (a, b)]

    def transform(c: Any) -> Any:
        return jnp.linalg.solve(u, jnp.matmul(c, v))

    # y v^-1 = (v^-T y^T)^T
    def inverse(y: Any) -> Any:
        return jnp.matmul(
            u,
            jnp.matrix_transpose(
                jnp.linalg.solve(jnp.matrix_transpose(v), jnp.matrix_transpose(y))
            ),
        )

    return *diagonals, transform, inverse, lambda _, __, y: y / (a[..., :, None] + b[..., None, :])


def complexes(x: Array) -> Array:
    return x if is_complex(x.dtype) else x.astype(complex_of(x.dtype))


def _sylvester_triangular(r: Any, s: Any, f: Any) -> Any:
    """The solution of r x + x s = f for upper triangular r and s, column by column."""
    n = f.shape[-1]
    eye = jnp.eye(r.shape[-1], dtype=r.dtype)

    def column(k: Any, x: Any) -> Any:
        s_k = lax.dynamic_slice_in_dim(s, k, 1, axis=-1)
        right = lax.dynamic_slice_in_dim(f, k, 1, axis=-1) - jnp.matmul(x, s_k)
        shift = lax.dynamic_slice_in_dim(s_k, k, 1, axis=-2)
        return lax.dynamic_update_slice_in_dim(
            x, _triangular(r + shift * eye, right, False), k, axis=-1
        )

    return lax.fori_loop(0, n, column, jnp.zeros_like(f))


_FACTORS: Final = {"schur": _schur_factors, "eigen": _eigen_factors}
