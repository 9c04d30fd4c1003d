"""Determinants, inverses and linear systems."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.arrays import Array, to_array
from calque.core.dims import surely_at_most
from calque.core.dtypes import canonicalize, is_complex, real_part
from calque.core.extents import smaller
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes
from calque.numpy import reductions, ufuncs
from calque.numpy.contractions import matmul
from calque.numpy.conversions import asarray
from calque.numpy.joining import concatenate
from calque.numpy.linalg.factors import adjoint, matrices, svd
from calque.numpy.matrices import eye
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_shapes,
    broadcast_to,
    canonical_axes,
    convert,
    promote_inexact,
)
from calque.numpy.shaping import matrix_transpose, reshape, transpose, where
from calque.ops.complexes import squared_magnitude
from calque.ops.linalg import factors as lax_linalg
from calque.ops.sizes import places
from calque.transforms.functions.branches import cond
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.solves import custom_linear_solve

__all__ = ["det", "inv", "lstsq", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve"]


class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array


def _diagonal(x: Any) -> Any:
    k = places(smaller(*x.shape[-2:]))
    return x[..., k, k]


# ---------------------------------------------------------------- determinants


def _parity(pivots: Any, dtype: Any) -> Any:
    """1 for an even number of exchanged rows, -1 for an odd one."""
    n = pivots.shape[-1]
    moved = reductions.sum(pivots != places(n, pivots.dtype), axis=-1, dtype=np.int32)
    return convert(where(moved % 2 == 1, -1, 1), dtype)


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its size, which neither overflow nor
    underflow.

    Args:
        a: square matrices in the last two axes.
        method: "lu" or "qr": the factors it is computed from. None is "lu".
    Returns:
        A named tuple: `sign` (0 for a singular matrix; of size 1 for a complex one) and
        `logabsdet`.

    >>> jnp.linalg.slogdet(jnp.array([[2.0, 0.0], [0.0, -3.0]])).sign
    Array(-1., dtype=float32)"""
    a = matrices("slogdet", a, square=True)
    if method not in (None, "lu", "qr"):
        raise ValueError(
            f"Unrecognized slogdet method '{method}'. Supported methods are 'lu' (`None`), and"
            " 'qr'."
        )
    if a.dtype.itemsize <= 2 and surely_at_most(a.shape[-1], 2):  # these have no factors
        d = det(a)
        return SlogdetResult(do.sign(d), do.log(ufuncs.absolute(d)))
    return SlogdetResult(*_slogdet(a))


@custom_jvp
def _slogdet(a: Any) -> tuple[Any, Any]:
    lu, pivots, _ = lax_linalg.lu(a)
    return _sign_and_log(_diagonal(lu), pivots)


def _sign_and_log(d: Any, pivots: Any) -> tuple[Any, Any]:
    """Of the determinant, from the diagonal of its factors. The sign is that of NumPy where an
    element is infinite or nan, too."""
    size = ufuncs.absolute(d)
    singular = reductions.any(d == 0, axis=-1)
    if is_complex(d.dtype):
        units = where(
            size == 0,
            np.ones((), d.dtype),
            d / convert(where(size == 0, np.ones((), size.dtype), size), d.dtype),
        )
    else:
        units = where(d < 0, np.asarray(-1, d.dtype), np.asarray(1, d.dtype))
    sign = reductions.prod(units, axis=-1) * _parity(pivots, d.dtype)
    log = reductions.sum(do.log(where(size == 0, np.ones((), size.dtype), size)), axis=-1)
    return where(singular, np.zeros((), d.dtype), sign), where(
        singular, np.asarray(-np.inf, log.dtype), log
    )


@_slogdet.defjvp
def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (t,) = primals, tangents
    sign, log = _slogdet(a)
    rate = reductions.sum(_diagonal(solve(a, t)), axis=-1)
    if is_complex(typeof(a).dtype):
        turn = sign * do.complex(np.zeros(rate.shape, rate.real.dtype), do.imag(rate))
        return (sign, log), (turn, do.real(rate))
    return (sign, log), (sign * 0, rate)


def det(a: ArrayLike) -> Array:
    """The determinant.

    Args:
        a: square matrices in the last two axes.
    Returns:
        Numbers.

    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 5.0]])).round(4)
    Array(-1., dtype=float32)"""
    a = matrices("det", a, square=True)
    n = a.shape[-1]
    if n == 0:
        return to_array(broadcast_to(np.ones((), a.dtype), a.shape[:-2]))
    if n == 1:
        return a[..., 0, 0]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if n == 3:
        return reductions.sum(a[..., 0, :] * _cross(a[..., 1, :], a[..., 2, :]), axis=-1)
    return _det(a)


def _cross(x: Any, y: Any) -> Any:
    def turn(v: Any, k: int) -> Any:
        return v[..., np.array([k, k + 1, k + 2], np.int32) % 3]

    return turn(x, 1) * turn(y, 2) - turn(x, 2) * turn(y, 1)


@custom_jvp
def _det(a: Any) -> Any:
    """The product of the diagonal; through logarithms where a part of it leaves the range of the
    dtype, as large and small elements make it that are not next to each other."""
    lu, pivots, _ = lax_linalg.lu(a)
    d = _diagonal(lu)
    direct = reductions.prod(d, axis=-1) * _parity(pivots, d.dtype)
    sign, log = _sign_and_log(d, pivots)
    return where(
        ufuncs.isfinite(direct) & (direct != 0), direct, sign * convert(do.exp(log), d.dtype)
    )


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    """det(a) tr(a^-1 t), through the cofactors where a matrix is singular."""
    (a,), (t,) = primals, tangents
    out = _det(a)
    singular = (out == 0).any()

    def regular(a: Any, t: Any) -> Any:
        return out * reductions.sum(_diagonal(solve(a, t)), axis=-1)

    def general(a: Any, t: Any) -> Any:
        return reductions.sum(ufuncs.conjugate(_cofactors(a)) * t, axis=(-2, -1))

    return out, cond(singular, general, regular, a, t)


def _cofactors(a: Any) -> Any:
    """The conjugated matrix of cofactors, det(a) a^-H, by singular values: products of all but one
    need no division."""
    u, s, vh = svd(a)
    n = s.shape[-1]
    ones = np.ones((*s.shape[:-1], 1), s.dtype)
    before = reductions.cumprod(concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = reductions.cumprod(concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    others = convert(before * after, a.dtype)

    def unit(m: Any) -> Any:
        return _det(m) if n > 3 else det(m)

    phase = unit(u) * unit(vh)
    return matmul(u * others[..., None, :], vh) * ufuncs.conjugate(phase)[..., None, None]


# ---------------------------------------------------------------- systems


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solution `x` of the linear equations `a @ x == b`.

    Args:
        a: square matrices in the last two axes.
        b: a vector, if it has one axis, or matrices of right sides as columns.
    Returns:
        `x`, in the shape of `b`.
    Differs from NumPy:
        A singular matrix gives infinities or nan, no error.

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
    Array([1., 2.], dtype=float32)"""
    a, b = (asarray(v) for v in promote_inexact(*arrays("solve", a, b)))
    a, b = (convert(v, v.dtype) for v in (a, b))
    if a.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={a.shape}")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"last two dimensions of a must be equal; got a.shape={a.shape}")
    if b.ndim == 0:
        raise ValueError("right hand array must be at least one dimensional; got a scalar b")
    vector = b.ndim == 1
    if vector:
        if a.shape[-1] != b.shape[0]:
            raise ValueError(
                f"solve: shapes {a.shape} and {b.shape} do not fit: a has {a.shape[-1]} columns, b"
                f" {b.shape[0]} entries"
            )
        b = b[:, None]
    elif a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"solve: shapes {a.shape} and {b.shape} do not fit: a has {a.shape[-1]} columns, b"
            f" {b.shape[-2]} rows"
        )
    lead = broadcast_shapes("solve", a.shape[:-2], b.shape[:-2])
    b = broadcast_to(b, (*lead, *b.shape[-2:]))
    out = _solve(broadcast_to(a, (*lead, *a.shape[-2:])), b)
    return out[..., 0] if vector else out


def _solve(a: Any, b: Any) -> Any:
    lu, _, permutation = lax_linalg.lu(a)
    return custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        lambda _, y: _substituted(lu, permutation, y),
        lambda _, y: _substituted_transposed(lu, permutation, y),
    )


def _substituted(lu: Any, permutation: Any, b: Any) -> Any:
    x = _rows(b, permutation)
    x = lax_linalg.triangular_solve(lu, x, left_side=True, lower=True, unit_diagonal=True)
    return lax_linalg.triangular_solve(lu, x, left_side=True, lower=False)


def _substituted_transposed(lu: Any, permutation: Any, b: Any) -> Any:
    x = lax_linalg.triangular_solve(lu, b, left_side=True, lower=False, transpose_a=True)
    x = lax_linalg.triangular_solve(
        lu, x, left_side=True, lower=True, transpose_a=True, unit_diagonal=True
    )
    return _rows(x, _inverse(permutation))


def _inverse(permutation: Any) -> Any:
    places = do.iota(
        dtype=permutation.dtype,
        shape=permutation.shape,
        dimension=permutation.ndim - 1,
    )
    return do.sort(permutation, places, dimension=permutation.ndim - 1, is_stable=True, num_keys=1)[
        1
    ]


def _rows(b: Any, order: Any) -> Any:
    """The rows of each matrix in the order of a batch of permutations."""
    lead = tuple(
        places(d).reshape(tuple(d if i == j else 1 for j in range(order.ndim)))
        for i, d in enumerate(order.shape[:-1])
    )
    return b[(*lead, order)]


def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices. `solve` is quicker and more precise where it is multiplied
    with.

    Args:
        a: matrices in the last two axes.
    Returns:
        Matrices.
    Differs from NumPy:
        A singular matrix gives infinities or nan, no error.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)"""
    a = matrices("inv", a, square=True)
    return solve(a, broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape))


# ---------------------------------------------------------------- least squares


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The pseudo-inverse of Moore and Penrose: the matrix that solves in the sense of least
    squares.

    Args:
        a: matrices in the last two axes.
        rtol: singular values below this part of the largest count as 0; None is the precision of
            the dtype, times 10, times the larger size.
        hermitian: whether the matrices are Hermitian, which is quicker.
        rcond: another name for `rtol`; only one of the two is given.
    Returns:
        Matrices, n by m for m by n.

    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)"""
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    a = matrices("pinv", a)
    if 0 in a.shape[-2:]:
        return matrix_transpose(a)
    real = real_part(a.dtype)
    limit: Any = 10.0 * max(a.shape[-2:]) * float(np.finfo(real).eps) if rtol is None else rtol
    return _pinv_of(bool(hermitian))(a, convert(array_of("pinv", limit), real))


def _pinv_value(a: Any, rtol: Any, hermitian: bool) -> Any:
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    small = s <= rtol[..., None] * s[..., :1]
    reciprocal = where(small, np.zeros((), s.dtype), 1 / where(small, np.ones((), s.dtype), s))
    return matmul(adjoint(vh), convert(reciprocal, a.dtype)[..., :, None] * adjoint(u))


def _make_pinv(hermitian: bool) -> Any:
    @custom_jvp
    def apply(a: Any, rtol: Any) -> Any:
        return _pinv_value(a, rtol, hermitian)

    @apply.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        """-p t p + p p^H t^H (1 - a p) + (1 - p a) t^H p^H p: valid where the rank is constant."""
        (a, rtol), (t, _) = primals, tangents
        p = apply(a, rtol)
        if hermitian:  # as `svd` reads them
            a, t = (a + adjoint(a)) / 2, (t + adjoint(t)) / 2
        return p, _pinv_tangent(a, p, t)

    return apply


def _pinv_tangent(a: Any, p: Any, t: Any) -> Any:
    """The products are taken in an order in which none is larger than the matrices themselves."""
    ph, th = adjoint(p), adjoint(t)
    if a.shape[-2] >= a.shape[-1]:
        inner, own = matmul(p, a), matmul(p, ph)
        right = th - matmul(matmul(th, a), p)
        left = th - matmul(inner, th)
        return matmul(own, right) + matmul(matmul(left, ph), p) - matmul(matmul(p, t), p)
    inner, own = matmul(a, p), matmul(ph, p)
    right = th - matmul(th, inner)
    left = th - matmul(p, matmul(a, th))
    return matmul(p, matmul(ph, right)) + matmul(left, own) - matmul(p, matmul(t, p))


_PINV: Final = {flag: _make_pinv(flag) for flag in (False, True)}


def _pinv_of(hermitian: bool) -> Any:
    return _PINV[hermitian]


@custom_jvp
def _least_squares(a: Any, b: Any, rtol: Any, factors: tuple[Any, ...]) -> Any:
    """The solution, from u, which of the singular values count, these, and v^H of `a`."""
    u, there, s, vh = factors
    weights = where(there, 1 / where(there, s, np.ones((), s.dtype)), np.zeros((), s.dtype))
    return matmul(adjoint(vh), convert(weights, a.dtype)[:, None] * matmul(adjoint(u), b))


@_least_squares.defjvp
def _least_squares_rule(primals: Any, tangents: Any) -> Any:
    """The derivative of pinv(a) @ b, in products that are no larger than `b` and `x`. That through
    the singular vectors would have none where singular values are equal, those of an orthogonal
    matrix."""
    (a, b, rtol, _), (ta, tb, _, _) = primals, tangents
    x = _least_squares(*primals)
    p = _pinv_of(False)(a, rtol)
    th = adjoint(ta)
    by_residual = matmul(adjoint(p), matmul(th, b - matmul(a, x)))
    outside = matmul(th, matmul(adjoint(p), x))
    moved = matmul(p, tb - matmul(ta, x) + by_residual - matmul(a, outside))
    return x, moved + outside


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The `x` for which `a @ x` comes nearest to `b`; the smallest one, if there are several.

    Args:
        a: a matrix, m by n.
        b: a vector of m elements, or a matrix of right sides as columns.
        rcond: singular values below this part of the largest count as 0; None is the precision of
            the dtype times the larger size.
        numpy_resid: whether residuals are left out where NumPy leaves them out, which needs known
            values.
    Returns:
        A tuple: `x`, the sum of squared residuals of each right side, the rank, the singular
        values.
    Differs from NumPy:
        Residuals are returned in any case, unless `numpy_resid` is true.

    >>> x, *_ = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> x.round(4)
    Array([2.], dtype=float32)"""
    a, b = (asarray(v) for v in promote_inexact(*arrays("lstsq", a, b)))
    if a.shape[:1] != b.shape[:1]:
        raise ValueError(
            f"Leading dimensions of input arrays must match: got shapes {a.shape} and {b.shape}"
        )
    vector = b.ndim == 1
    if vector:
        b = b[:, None]
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim != 2:
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    m, n = a.shape
    real = real_part(a.dtype)
    if 0 in (m, n):
        s = asarray(np.zeros((0,), real))
        rank: Any = asarray(np.asarray(0, canonicalize(int)))
        x = asarray(np.zeros((n, b.shape[1]), a.dtype))
    else:
        limit = (
            float(np.finfo(real).eps) * max(m, n)
            if rcond is None
            else float(np.finfo(real).eps)
            if rcond < 0
            else rcond
        )
        u, s, vh = svd(a, full_matrices=False)
        there = (s > 0) & (s >= convert(asarray(limit), real) * s[0])
        rank = reductions.sum(there, dtype=canonicalize(int))
        x = _least_squares(a, b, convert(asarray(limit), real), (u, there, s, vh))
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = asarray(np.zeros((0,), real))
    else:
        left = b - matmul(a, x)
        residuals = reductions.sum(squared_magnitude(left), axis=0)
    return (x[:, 0] if vector else x), residuals, rank, s


# ---------------------------------------------------------------- tensors


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a linear map, `b -> tensordot(a, b, ind)`.

    Args:
        a: an array whose first `ind` sizes have the same product as the others.
        ind: how many axes are those of the result of the map.
    Returns:
        An array with the other axes of `a` first.

    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)"""
    a = array_of("tensorinv", a)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    head, tail = a.shape[:ind], a.shape[ind:]
    n = int(np.prod(head, dtype=np.int64))
    if n != int(np.prod(tail, dtype=np.int64)):
        raise ValueError(
            f"tensorinv: the product of the first {ind} dimensions must be that of the rest; got"
            f" shape {a.shape}"
        )
    return reshape(inv(reshape(a, (n, n))), (*tail, *head))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Axes | None = None) -> Array:
    """The solution `x` of `tensordot(a, x, x.ndim) == b`.

    Args:
        a: an array whose axes are those of `b` and then those of `x`, the same number of elements
            each.
        b: an array.
        axes: axes of `a` to move to its end first; None moves none.
    Returns:
        `x`.

    >>> jnp.linalg.tensorsolve(jnp.eye(4).reshape(4, 2, 2), jnp.arange(4.0))
    Array([[0., 1.],
           [2., 3.]], dtype=float32)"""
    a, b = arrays("tensorsolve", a, b)
    if axes is not None:
        moved = canonical_axes(tuple(axes), a.ndim)  # type: ignore[arg-type]
        a = transpose(a, (*[i for i in range(a.ndim) if i not in moved], *moved))
    out = a.shape[b.ndim :]
    n = int(np.prod(out, dtype=np.int64))
    if a.shape[: b.ndim] != b.shape or n != b.size:
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b, and the rest must"
            f" have its size. got a.shape={a.shape}, b.shape={b.shape}"
        )
    return reshape(solve(reshape(a, (b.size, n)), reshape(b, (b.size,))), out)
