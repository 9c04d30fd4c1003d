"""calque.scipy.sparse.linalg: linear systems by Krylov iterations, for trees of arrays and
operators given as functions."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.dtypes import is_complex, real_part
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.flatten_util import ravel_pytree
from calque.lax import linalg as lax_linalg
from calque.numpy.promotion import promote_inexact
from calque.ops.linalg.spectral import middle_sizes
from calque.tree_util import tree_leaves, tree_map, tree_structure

__all__ = ["bicgstab", "cg", "gmres"]

Operator = Callable[[Any], Any]

# ---------------------------------------------------------------- trees as vectors


def _as_operator(A: Any) -> Operator:
    """A function, a square matrix, or an object with `@` and a shape, as a function."""
    if callable(A):
        return A
    if not hasattr(A, "__matmul__"):
        raise TypeError(f"linear operator must be either a function or ndarray: {A}")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {A.shape}")
    matrix = jnp.asarray(A) if isinstance(A, np.ndarray) else A
    return lambda x: operator.matmul(matrix, x)


def _dot(x: Any, y: Any) -> Any:
    """The real part of x^H y; for the norms and for operators that are positive definite it is
    all."""
    return sum(map(_vdot_real, tree_leaves(x), tree_leaves(y)))


def _vdot_real(x: Any, y: Any) -> Any:
    product = jnp.sum(x.real * y.real)
    return product + jnp.sum(x.imag * y.imag) if is_complex(x.dtype) else product


def _vdot(x: Any, y: Any) -> Any:
    """x^H y"""
    return sum(map(jnp.vdot, tree_leaves(x), tree_leaves(y)))


def _plus(x: Any, factor: Any, y: Any) -> Any:
    """x + factor y, leaf by leaf in its own dtype."""
    return tree_map(lambda a, b: a + (factor * b).astype(a.dtype), x, y)


def _minus(x: Any, y: Any) -> Any:
    return tree_map(lambda a, b: a - b, x, y)


def _identity(x: Any) -> Any:
    return x


# ---------------------------------------------------------------- what the solvers share


def _solve(
    iterate: Callable[..., Any],
    A: Any,
    b: Any,
    x0: Any,
    M: Any,
    maxiter: int | None,
    symmetric: bool,
    atol: Any,
    **options: Any,
) -> tuple[Any, None]:
    b = tree_map(lambda v: jnp.asarray(promote_inexact(jnp.asarray(v))[0]), b)
    weak = tree_map(lambda v: v.weak_type, b)
    b = tree_map(lambda v: v.astype(v.dtype), b)  # no weak types in loops
    begun = x0
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else tree_map(jnp.asarray, x0)
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(
            f"x0 and b must have matching tree structure: {tree_structure(x0)} vs"
            f" {tree_structure(b)}"
        )
    shapes = [[v.shape for v in tree_leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}"
        )
    x0 = tree_map(lambda x, v: x.astype(v.dtype), x0, b)
    size = sum(v.size for v in tree_leaves(b))
    limit = 10 * size if maxiter is None else maxiter
    product = _as_operator(A)

    def matvec(x: Any) -> Any:
        return tree_map(lambda y, v: y.astype(v.dtype), product(x), b)

    precondition = _identity if M is None else _as_operator(M)

    def solve(f: Any, y: Any) -> Any:
        scale, empty = _scale(y)
        first = x0 if begun is None else tree_map(lambda v: jnp.where(empty, 0, v * scale), x0)
        middle = {
            "x0": tree_map(lambda x, v: x.astype(v.dtype), first, x0),
            "atol": jnp.asarray(atol) * scale,
        }
        y = tree_map(lambda v: (v * scale).astype(v.dtype), y)
        x = iterate(f, y, M=precondition, maxiter=limit, **middle, **options)
        return tree_map(lambda v: (v / scale).astype(v.dtype), x)

    real = not any(is_complex(v.dtype) for v in tree_leaves(b))
    x = lax.custom_linear_solve(matvec, b, solve, solve, symmetric=symmetric and real)
    return (x if symmetric else tree_map(_weakened, x, weak)), None


def _scale(b: Any) -> tuple[Any, Any]:
    """A power of two that brings a right side to a size whose squares are numbers of its dtype, 1
    for usual ones; and whether it is 0. Then the search begins at 0, too: no residual but 0 is
    small enough, which it only comes to from elsewhere by dividing 0 by 0."""
    dtype = real_part(jnp.result_type(*tree_leaves(b)))
    parts = [p for v in tree_leaves(b) for p in ((v.real, v.imag) if is_complex(v.dtype) else (v,))]
    sizes = [jnp.max(abs(p), initial=0).astype(dtype) for p in parts]
    largest = functools.reduce(jnp.maximum, sizes)
    exponent = jnp.frexp(largest)[1]
    least, most = (int(np.frexp(size)[1]) for size in middle_sizes(dtype))
    return jnp.ldexp(jnp.ones((), dtype), jnp.clip(exponent, least, most) - exponent), largest == 0


def _weakened(x: Any, weak: bool) -> Any:
    """A solution for a plain number is weakly typed, as that is."""
    return do.convert_element_type(x, new_dtype=x.dtype, weak_type=True) if weak else x


def _threshold(b: Any, tol: Any, atol: Any) -> Any:
    """The square of the norm that a residual must not exceed."""
    size = _dot(b, b)
    return jnp.maximum(
        jnp.square(tol).astype(size.dtype) * size, jnp.square(atol).astype(size.dtype)
    )


# ---------------------------------------------------------------- conjugate gradients


def _cg(A: Operator, b: Any, *, x0: Any, M: Operator, maxiter: int, tol: Any, atol: Any) -> Any:
    threshold = _threshold(b, tol, atol)

    def unfinished(state: Any) -> Any:
        _, r, _, _, k = state
        return (_dot(r, r) > threshold) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, p, gamma, k = state
        image = A(p)
        alpha = gamma / _dot(p, image)
        x, r = _plus(x, alpha, p), _plus(r, -alpha, image)
        z = M(r)
        following = _dot(r, z)
        return x, r, _plus(z, following / gamma, p), following, k + 1

    r = _minus(b, A(x0))
    z = M(r)
    return lax.while_loop(unfinished, step, (x0, r, z, _dot(r, z), jnp.zeros((), np.int32)))[0]


def cg(
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The solution of `A x = b` for a Hermitian, positive-definite `A`, by conjugate gradients.

    Args:
        A: a matrix, or a linear function of trees.
        b: the right side, a tree of arrays.
        x0: where to begin, a tree like `b`; None is 0.
        tol: the search ends with a residual of at most this part of the size of `b`,
        atol: or of at most this,
        maxiter: or after so many steps; None is ten times the number of elements.
        M: an approximate inverse of `A`, a matrix or a function; None is the identity.
    Returns:
        A pair: the solution, and None. Derivatives are those of the solution, by another such
        search.
    Differs from SciPy:
        The second result says nothing about convergence.

    >>> scipy.sparse.linalg.cg(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))[0]
    Array([1., 2.], dtype=float32)"""
    return _solve(_cg, A, b, x0, M, maxiter, True, tol=tol, atol=atol)


# ---------------------------------------------------------------- stabilised biconjugate gradients


def _bicgstab(
    A: Operator, b: Any, *, x0: Any, M: Operator, maxiter: int, tol: Any, atol: Any
) -> Any:
    threshold = _threshold(b, tol, atol)

    def unfinished(state: Any) -> Any:
        _, r, *_, k = state
        return (_dot(r, r) > threshold) & (k < maxiter) & (k >= 0)

    def step(state: Any) -> Any:
        x, r, shadow, alpha, omega, rho, p, q, k = state
        new_rho = _vdot(shadow, r)
        beta = new_rho / rho * alpha / omega
        p = _plus(r, beta, _plus(p, -omega, q))
        phat = M(p)
        q = A(phat)
        alpha = new_rho / _vdot(shadow, q)
        s = _plus(r, -alpha, q)
        early = _dot(s, s) <= threshold
        shat = M(s)
        t = A(shat)
        omega = _vdot(t, s) / _vdot(t, t)
        half = _plus(x, alpha, phat)
        whole = _plus(half, omega, shat)

        def choose(u: Any, v: Any) -> Any:
            return tree_map(lambda a, c: jnp.where(early, a, c), u, v)

        x, r = choose(half, whole), choose(s, _plus(s, -omega, t))
        # nothing is left to go on with: stop
        broken = (new_rho == 0) | (~early & ((omega == 0) | (alpha == 0)))
        return x, r, shadow, alpha, omega, new_rho, p, q, jnp.where(broken, -1, k + 1)

    r = _minus(b, A(x0))
    one = jnp.ones((), jnp.result_type(*tree_leaves(b)))
    start = (
        x0,
        r,
        r,
        one,
        one,
        one,
        tree_map(jnp.zeros_like, r),
        tree_map(jnp.zeros_like, r),
        jnp.zeros((), np.int32),
    )
    return lax.while_loop(unfinished, step, start)[0]


def bicgstab(
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The solution of `A x = b` for any regular `A`, by stabilised biconjugate gradients.

    Args:
        A: a matrix, or a linear function of trees.
        b: the right side, a tree of arrays.
        x0: where to begin, a tree like `b`; None is 0.
        tol: the search ends with a residual of at most this part of the size of `b`,
        atol: or of at most this,
        maxiter: or after so many steps; None is ten times the number of elements.
        M: an approximate inverse of `A`, a matrix or a function; None is the identity.
    Returns:
        A pair: the solution, and None. Derivatives are those of the solution, by another such
        search.
    Differs from SciPy:
        The second result says nothing about convergence.

    >>> a = jnp.array([[2.0, 1.0], [0.0, 4.0]])
    >>> scipy.sparse.linalg.bicgstab(a, jnp.array([4.0, 8.0]))[0].round(3)
    Array([1., 2.], dtype=float32)"""
    return _solve(_bicgstab, A, b, x0, M, maxiter, False, tol=tol, atol=atol)


# ---------------------------------------------------------------- generalised minimal residuals


def _gmres(
    A: Operator,
    b: Any,
    *,
    x0: Any,
    M: Operator,
    maxiter: int,
    tol: Any,
    atol: Any,
    restart: int,
    incremental: bool,
) -> Any:
    """On the tree as one vector; each cycle minimises the preconditioned residual over a space of
    `restart` dimensions."""
    flat, unravel = ravel_pytree(b)
    restart = min(restart, flat.size)

    def apply(v: Any) -> Any:
        return ravel_pytree(A(unravel(v)))[0].astype(flat.dtype)

    def precondition(v: Any) -> Any:
        return ravel_pytree(M(unravel(v)))[0].astype(flat.dtype)

    limit = jnp.sqrt(_threshold(b, tol, atol))
    size = jnp.linalg.norm(flat)
    inner_limit = jnp.linalg.norm(precondition(flat)) * jnp.minimum(
        1.0, limit / jnp.where(size == 0, 1.0, size)
    )

    def residual(x: Any) -> Any:
        return flat - apply(x)

    def unfinished(state: Any) -> Any:
        _, r, k = state
        return (jnp.linalg.norm(r) > limit) & (k < maxiter)

    def cycle(state: Any) -> Any:
        x, r, k = state
        x = x + _krylov_step(
            lambda v: precondition(apply(v)), precondition(r), restart, inner_limit, incremental
        )
        return x, residual(x), k + 1

    x = ravel_pytree(x0)[0].astype(flat.dtype)
    return unravel(lax.while_loop(unfinished, cycle, (x, residual(x), jnp.zeros((), np.int32)))[0])


def _krylov_step(apply: Operator, r: Any, restart: int, limit: Any, incremental: bool) -> Any:
    """The z in the span of r, A r, ... that makes r - A z least. Arnoldi's basis is kept in rows,
    and the product of the rotations that make its Hessenberg matrix triangular as one matrix
    `turns`."""
    dtype, real = r.dtype, real_part(r.dtype)
    size = jnp.linalg.norm(r)

    def normal(v: Any, length: Any, least: Any) -> Any:
        return jnp.where(
            length > least, v / jnp.where(length > least, length, 1.0).astype(dtype), 0.0
        )

    basis = jnp.zeros((restart + 1, r.size), dtype).at[0].set(normal(r, size, 0))
    small = float(np.finfo(real).eps)

    def unfinished(state: Any) -> Any:
        _, _, _, left, alive, k = state
        wanted = (k < restart) & alive
        return wanted & (left > limit) if incremental else wanted

    def step(state: Any) -> Any:
        basis, triangle, turns, _, _, k = state
        w = apply(basis[k])
        first = jnp.linalg.norm(w)
        column = jnp.zeros(restart + 1, dtype)
        for _ in range(2):  # once is not enough when little is left
            along = jnp.conj(basis) @ w
            w, column = w - along @ basis, column + along
        rest = jnp.linalg.norm(w)
        alive = rest > small * first
        column = column.at[k + 1].set(jnp.where(alive, rest, 0.0).astype(dtype))
        column = turns @ column
        a, c = column[k], column[k + 1]
        length = jnp.sqrt(jnp.abs(a) ** 2 + jnp.abs(c) ** 2)
        scale = jnp.where(length == 0, 1.0, length).astype(dtype)
        cosine, sine = jnp.where(length == 0, 1.0, a / scale), c / scale
        upper, lower = turns[k], turns[k + 1]
        turns = turns.at[k].set(jnp.conj(cosine) * upper + jnp.conj(sine) * lower)
        turns = turns.at[k + 1].set(-sine * upper + cosine * lower)
        column = column.at[k].set(jnp.where(length == 0, 1.0, length).astype(dtype))
        triangle = triangle.at[:, k].set(jnp.where(np.arange(restart) <= k, column[:restart], 0.0))
        basis = basis.at[k + 1].set(normal(w, rest, small * first))
        return basis, triangle, turns, size * jnp.abs(turns[k + 1, 0]), alive, k + 1

    start = (
        basis,
        jnp.eye(restart, dtype=dtype),
        jnp.eye(restart + 1, dtype=dtype),
        size,
        size > 0,
        jnp.zeros((), np.int32),
    )
    basis, triangle, turns, _, _, k = lax.while_loop(unfinished, step, start)
    right = jnp.where(np.arange(restart) < k, turns[:restart, 0] * size.astype(dtype), 0.0)
    y = lax_linalg.triangular_solve(triangle, right[:, None], left_side=True, lower=False)[:, 0]
    return y @ basis[:restart]


def gmres(
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """The solution of `A x = b` for any regular `A`, by generalised minimal residuals.

    Args:
        A: a matrix, or a linear function of trees.
        b: the right side, a tree of arrays.
        x0: where to begin, a tree like `b`; None is 0.
        tol: the search ends with a residual of at most this part of the size of `b`,
        atol: or of at most this,
        restart: how many directions are kept before the search begins anew,
        maxiter: how many times it may; None is ten times the number of elements.
        M: an approximate inverse of `A`, a matrix or a function; None is the identity.
        solve_method: "incremental" looks after each step whether it is done, "batched" after
            `restart` steps.
    Returns:
        A pair: the solution, and None. Derivatives are those of the solution, by another such
        search.
    Differs from SciPy:
        The second result says nothing about convergence.

    >>> a = jnp.array([[2.0, 1.0], [0.0, 4.0]])
    >>> scipy.sparse.linalg.gmres(a, jnp.array([4.0, 8.0]))[0].round(3)
    Array([1., 2.], dtype=float32)"""
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'"
        )
    options = {"restart": restart, "incremental": solve_method == "incremental"}
    return _solve(_gmres, A, b, x0, M, maxiter, False, tol=tol, atol=atol, **options)


_guards.guard_public(globals())
