"""The polar decomposition of matrices by the QDWH iteration (Nakatsukasa, Bai and Gygi, 2010)."""

from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dtypes import finfo, is_complex, is_inexact, real_part
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.arithmetic import abs, add, div, min, mul, sub
from calque.ops.common import operand, scalar_of
from calque.ops.compare import lt, select
from calque.ops.complexes import conj
from calque.ops.creation import broadcasted_iota, full
from calque.ops.linalg.orthogonal import qr
from calque.ops.math import sqrt
from calque.ops.products.dot import dot
from calque.transforms.functions.loops import while_loop

_ROUNDS = 10  # six are enough for any float64 matrix of full rank


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Gives the polar decomposition of a matrix: x = u h.

    Args:
        x: The matrix, with no more columns than rows.
        is_hermitian: Whether `x` is Hermitian.
        max_iterations: The most rounds; None means 10.
        eps: The change at which to stop; None means that of the dtype.
        dynamic_shape: The shape of the matrix in the upper left corner of `x`; None means all of
            it.

    Returns:
        (u, h, rounds, whether it converged): h is positive semidefinite, and the columns of u are
        orthonormal where x has full rank.

    >>> u, h, _, converged = lax.linalg.qdwh(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> bool(converged), abs(h).round(4).tolist()
    (True, [[3.0, 0.0], [0.0, 2.0]])"""
    x = operand(x)
    aval = typeof(x)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(
            f"qdwh takes a matrix with at least as many rows as columns, got shape {aval.shape}"
        )
    if not is_inexact(aval.dtype):
        raise TypeError(f"qdwh takes floating or complex matrices, got {aval.dtype}")
    if not isinstance(is_hermitian, bool):
        raise TypeError(f"qdwh: is_hermitian must be a bool, got {is_hermitian!r}")
    rounds = _ROUNDS if max_iterations is None else int(max_iterations)
    tolerance = float(finfo(real_part(aval.dtype)).eps) if eps is None else float(eps)
    if aval.shape[1] == 0:
        return (
            x,
            full((0, 0), 0, aval.dtype),
            full((), 0),
            full((), True, np.bool_),
        )
    whole = x if dynamic_shape is None else _filled(x, *dynamic_shape)
    u, n, change = _iterated(whole, rounds, tolerance)
    if dynamic_shape is not None:
        u, x = _masked(u, *dynamic_shape), _masked(x, *dynamic_shape)
    h = dot(_adjoint(u), x)
    half = scalar_of(aval.dtype, 0.5)
    return u, mul(half, add(h, _adjoint(h))), n, do.le(change, _limit(u, tolerance))


def _adjoint(x: Any) -> Any:
    t = do.transpose(x, permutation=(1, 0))
    return conj(t) if is_complex(typeof(x).dtype) else t


def _places(x: Any, rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Is an element of the corner (rows, columns), and its row and column counted from the end of
    the corner."""
    shape = typeof(x).shape
    i = sub(broadcasted_iota(np.int32, shape, 0), rows)
    j = sub(broadcasted_iota(np.int32, shape, 1), columns)
    return do.and_(lt(i, 0), lt(j, 0)), i, j


def _masked(x: Any, rows: int, columns: int) -> Any:
    inside, _, _ = _places(x, rows, columns)
    return select(inside, x, full(typeof(x).shape, 0, typeof(x).dtype))


def _filled(x: Any, rows: int, columns: int) -> Any:
    """The corner, and an identity below and beside it, so that the rank is full."""
    inside, i, j = _places(x, rows, columns)
    same = do.and_(do.eq(i, j), do.ge(i, scalar_of(np.dtype("int32"), 0)))
    return select(
        inside,
        x,
        do.convert_element_type(same, new_dtype=typeof(x).dtype),
    )


def _norm(x: Any) -> Any:
    size = abs(x)
    return sqrt(do.reduce_sum(mul(size, size), axes=(0, 1)))


def _limit(u: Any, tolerance: float) -> Any:
    """The convergence is cubic: a step of this size is followed by one below the precision."""
    return mul(_norm(u), scalar_of(real_part(typeof(u).dtype), (4 * tolerance) ** (1 / 3)))


def _iterated(x: Any, rounds: int, tolerance: float) -> tuple[Any, Any, Any]:
    """The unitary factor, the number of rounds, and the norm of the last change."""
    real = real_part(typeof(x).dtype)
    n = typeof(x).shape[1]
    # the largest singular value is at most the geometric mean of these two norms
    size = abs(x)

    def largest(axis: int) -> Any:
        return do.reduce_max(do.reduce_sum(size, axes=(axis,)), axes=(0,))

    bound = mul(sqrt(largest(0)), sqrt(largest(1)))
    one, floor = scalar_of(real, 1.0), scalar_of(real, float(finfo(real).eps))
    start = div(x, _like(select(do.gt(bound, scalar_of(real, 0.0)), bound, one), x))
    # the smallest one of R, from its inverse, is that of x; a singular matrix has no inverse, and
    # what it maps to nothing stays so
    smallest = _smallest(start, n)
    first = min(select(do.gt(smallest, floor), smallest, floor), one)

    def going(state: Any) -> Any:
        u, low, change, k = state
        # a round may change little before the small singular values have come up
        more = do.or_(do.gt(change, _limit(u, tolerance)), lt(low, near))
        return do.and_(more, lt(k, rounds))

    def step(state: Any) -> Any:
        u, low, _, k = state
        new, low = _step(u, low)
        return new, low, _norm(sub(new, u)), add(k, 1)

    near = scalar_of(real, 1.0 - 10 * tolerance)
    infinite = scalar_of(real, np.inf)
    u, _, change, k = while_loop(going, step, (start, first, infinite, 0))
    return u, k, change


def _like(scalar: Any, x: Any) -> Any:
    return do.convert_element_type(scalar, new_dtype=typeof(x).dtype)


def _smallest(x: Any, n: int) -> Any:
    """A lower bound of the smallest singular value: 1 / (sqrt(n) |R^-1|_F)."""
    _, r = qr(x, full_matrices=False)
    eye = _identity(n, typeof(x).dtype)
    inverse = do.triangular_solve(
        r,
        eye,
        left_side=True,
        lower=False,
        transpose_a=False,
        conjugate_a=False,
        unit_diagonal=False,
    )
    return div(scalar_of(real_part(typeof(x).dtype), 1.0), _norm(inverse))


def _identity(n: int, dtype: Any) -> Any:
    same = do.eq(broadcasted_iota(np.int32, (n, n), 0), broadcasted_iota(np.int32, (n, n), 1))
    return do.convert_element_type(same, new_dtype=dtype)


def _step(u: Any, low: Any) -> tuple[Any, Any]:
    """One round: u (a + b u'u) (1 + c u'u)^-1, by a QR factorisation of [sqrt(c) u; 1]; and the new
    lower bound."""
    aval = typeof(u)

    def one(v: Any) -> Any:
        return scalar_of(typeof(low).dtype, v)

    square = mul(low, low)
    d = do.cbrt(div(mul(one(4.0), sub(one(1.0), square)), mul(square, square)))
    root = sqrt(add(one(1.0), d))
    inner = add(
        sub(one(8.0), mul(one(4.0), d)),
        div(mul(one(8.0), sub(one(2.0), square)), mul(square, root)),
    )
    a = add(root, mul(one(0.5), sqrt(inner)))
    b = div(mul(sub(a, one(1.0)), sub(a, one(1.0))), one(4.0))
    c = sub(add(a, b), one(1.0))
    m, n = aval.shape
    stacked = do.concatenate(mul(_like(sqrt(c), u), u), _identity(n, aval.dtype), dimension=0)
    q, _ = qr(stacked, full_matrices=False)
    upper = do.slice(q, start_indices=(0, 0), limit_indices=(m, n))
    lower = do.slice(q, start_indices=(m, 0), limit_indices=(m + n, n))
    ratio = div(b, c)
    new = add(
        mul(_like(ratio, u), u),
        mul(_like(div(sub(a, ratio), sqrt(c)), u), dot(upper, _adjoint(lower))),
    )
    bound = div(mul(low, add(a, mul(b, square))), add(one(1.0), mul(c, square)))
    return new, min(bound, one(1.0))
