"""Polynomials as arrays of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import surely_at_most, whole
from calque.core.dtypes import finfo, is_inexact
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.numpy import reductions, ufuncs
from calque.numpy.calculus import convolve
from calque.numpy.conversions import asarray
from calque.numpy.creation import ones, zeros
from calque.numpy.editing import trim_zeros
from calque.numpy.joining import concatenate
from calque.numpy.linalg.factors import eigvals
from calque.numpy.linalg.solving import inv, lstsq
from calque.numpy.matrices import eye
from calque.numpy.moving import roll
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_shapes,
    broadcast_to,
    convert,
    promote_dtypes,
    promote_inexact,
)
from calque.numpy.shaping import atleast_1d, where
from calque.numpy.sorting import argsort
from calque.transforms.functions.loops import scan

__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
    "vander",
]


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The values of a polynomial, by Horner's rule.

    Args:
        p: the coefficients, the highest power first.
        x: where to evaluate it.
        unroll: up to how many coefficients the rule is written out rather than run as a loop.
    Returns:
        An array of the shape of `x`.

    >>> jnp.polyval(jnp.array([1, 0, 2]), 3)
    Array(11, dtype=int32)"""
    p, x = arrays("polyval", p, x)
    p, x = promote_dtypes(p, x)
    p, x = asarray(p), asarray(x)
    shape = broadcast_shapes("polyval", p.shape[1:], x.shape)
    y = asarray(broadcast_to(np.zeros((), p.dtype), shape))
    n = p.shape[0]
    if surely_at_most(n, unroll):
        for i in range(n):
            y = y * x + p[i]
        return y
    return scan(lambda y, c: (y * x + c, None), y, p, unroll=unroll)[0]


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
        a1, a2: their coefficients, the highest power first.
    Returns:
        The coefficients of the sum.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([5, 0, 1]))
    Array([5, 1, 3], dtype=int32)"""
    a, b = _aligned("polyadd", a1, a2)
    return a + b


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
        a1, a2: their coefficients, the highest power first.
    Returns:
        The coefficients of the difference.

    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([5, 0, 1]))
    Array([-5,  1,  1], dtype=int32)"""
    a, b = _aligned("polysub", a1, a2)
    return a - b


def _aligned(name: str, a1: Any, a2: Any) -> tuple[Any, Any]:
    a, b = (asarray(v) for v in promote_dtypes(*arrays(name, a1, a2)))
    n = max(a.shape[0], b.shape[0])

    def lift(v: Any) -> Any:
        return (
            concatenate([zeros((n - v.shape[0], *v.shape[1:]), v.dtype), v])
            if v.shape[0] < n
            else v
        )

    return lift(a), lift(b)


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
        a1, a2: their coefficients, the highest power first.
        trim_leading_zeros: whether zeros before the highest power are left out first; the size of
            the result then depends on values.
    Returns:
        The coefficients of the product.
    Differs from NumPy:
        Leading zeros stay unless it is said.

    >>> jnp.polymul(jnp.array([1.0, 1.0]), jnp.array([1.0, -1.0]))
    Array([ 1.,  0., -1.], dtype=float32)"""
    a, b = (asarray(v) for v in promote_inexact(*arrays("polymul", a1, a2)))
    if trim_leading_zeros and (a.size > 1 or b.size > 1):
        a, b = (trim_zeros(v, "f") for v in (a, b))
    a, b = (v if v.shape[0] else zeros((1,), v.dtype) for v in (a, b))
    return convolve(a, b)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    Args:
        u: the coefficients of the dividend, the highest power first.
        v: those of the divisor; the first is not 0.
        trim_leading_zeros: whether zeros before the highest power of the remainder are left out;
            its size then depends on values.
    Returns:
        A pair: the coefficients of the quotient and of the remainder.
    Differs from NumPy:
        The remainder keeps its leading zeros unless it is said.

    >>> jnp.polydiv(jnp.array([1.0, 0.0, -1.0]), jnp.array([1.0, 1.0]))
    (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))"""
    u, v = (asarray(x) for x in promote_inexact(*arrays("polydiv", u, v)))
    m, n = u.shape[0] - 1, v.shape[0] - 1
    scale = 1 / v[0]
    q = zeros((max(m - n + 1, 1),), u.dtype)
    for k in range(m - n + 1):
        d = scale * u[k]
        q = q.at[k].set(d)
        u = u.at[k : k + n + 1].add(-d * v)
    if trim_leading_zeros:
        u = trim_zeros(u, "f")
        u = u if u.shape[0] else zeros((1,), u.dtype)
    return q, u


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of a polynomial.

    Args:
        p: its coefficients, the highest power first.
        m: how many times to differentiate.
    Returns:
        The coefficients of the derivative.
    Differs from NumPy:
        Integers give floats.

    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)"""
    m = whole(m, "m")
    (p,) = promote_inexact(array_of("polyder", p))
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    p = asarray(p)
    if m == 0:
        return p
    n = p.shape[0]
    powers = np.arange(n - 1, m - 1, -1)[:, None] - np.arange(m)
    return p[: max(n - m, 0)] * np.prod(powers, axis=1).astype(p.real.dtype)


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The integral of a polynomial.

    Args:
        p: its coefficients, the highest power first.
        m: how many times to integrate.
        k: the constants of integration, one for each time, or one number; None is 0.
    Returns:
        The coefficients of the integral.

    >>> jnp.polyint(jnp.array([2.0, 2.0]), k=5)
    Array([1., 2., 5.], dtype=float32)"""
    m = whole(m, "m")
    k = 0 if k is None else k
    p, k = (asarray(v) for v in promote_inexact(*arrays("polyint", p, k)))
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = atleast_1d(k)
    if k.shape == (1,):
        k = broadcast_to(k, (m,))
    if k.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if m == 0:
        return p
    n = p.shape[0]
    full = concatenate([p, k])
    grid = np.arange(n + m)[None, :] - np.arange(m)[:, None]
    powers = np.where(grid[:, ::-1] >= 0, np.maximum(grid[:, ::-1], 1), 1).prod(axis=0)
    return full / powers.astype(p.real.dtype)


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial that has given roots, or the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: the roots, or a square matrix, whose eigenvalues they are.
    Returns:
        Its coefficients, the highest power first; the first is 1.
    Differs from NumPy:
        For a matrix they are complex, also where NumPy finds them real.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)"""
    (z,) = promote_inexact(array_of("poly", seq_of_zeros))
    z = atleast_1d(asarray(z))
    if z.ndim == 2 and z.shape[0] == z.shape[1] and z.shape[0] != 0:
        z = eigvals(z)
    if z.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if z.shape[0] == 0:
        return ones((), z.dtype)
    out = ones((1,), z.dtype)
    for i in range(z.shape[0]):
        out = convolve(out, concatenate([ones((1,), z.dtype), -z[i : i + 1]]))
    return out


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, as eigenvalues of its companion matrix.

    Args:
        p: its coefficients, the highest power first.
        strip_zeros: whether zeros at both ends are taken off first, which needs known values.
            Without it they make roots of nan or 0.
    Returns:
        Complex numbers.
    Differs from NumPy:
        The roots are complex also where all are real. Under jit `strip_zeros=False` is needed.

    >>> jnp.roots(jnp.array([1.0, -3.0, 2.0]))
    Array([2.+0.j, 1.+0.j], dtype=complex64)"""
    p = atleast_1d(array_of("roots", p))
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    (p,) = promote_inexact(p)
    p = asarray(p)
    if p.size < 2:
        return (
            asarray([], dtype=np.result_type(p.dtype, np.complex64))
            if p.dtype.kind != "c"
            else asarray([], dtype=p.dtype)
        )
    complex_ = (
        np.dtype("complex128")
        if p.dtype in (np.dtype("float64"), np.dtype("complex128"))
        else np.dtype("complex64")
    )
    if not strip_zeros:
        count = reductions.argmax(p != 0)
        return _roots_of_padded(p, count, complex_)
    stripped = trim_zeros(p, "f")
    core = trim_zeros(stripped, "b")
    at_zero = stripped.shape[0] - core.shape[0]
    found = _companion_roots(core, complex_) if core.shape[0] > 1 else zeros((0,), complex_)
    return concatenate([found, zeros((at_zero,), complex_)])


def _companion_roots(p: Any, complex_: Any) -> Any:
    n = p.shape[0] - 1
    a = eye(n, k=-1, dtype=p.dtype).at[0, :].set(-p[1:] / p[0])
    return convert(eigvals(a), complex_)


def _roots_of_padded(p: Any, leading: Any, complex_: Any) -> Any:
    """Leading zeros rolled to the end become roots at 0; so many of the smallest roots are then
    marked as nan."""
    n = p.shape[0]
    found = _companion_roots(roll(p, -leading), complex_)
    found = found[argsort(ufuncs.absolute(found), descending=True)]
    order = np.arange(n - 1)
    return where(order < n - 1 - leading, found, np.asarray(complex(np.nan, np.nan), complex_))


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of the powers of numbers, a row for each.

    Args:
        x: the numbers, an array of one axis.
        N: how many powers; None is as many as there are numbers.
        increasing: whether the power 0 comes first rather than last.
    Returns:
        An array of shape (numbers, powers).

    >>> jnp.vander(jnp.array([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)"""
    x = array_of("vander", x)
    if x.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array, got shape {x.shape}")
    n = x.shape[0] if N is None else whole(N, "vander: N")
    if n < 0:
        raise ValueError(f"N must be nonnegative, got {n}")
    exponents = np.arange(n) if increasing else np.arange(n)[::-1]
    base = broadcast_to(x[:, None], (x.shape[0], n))
    if is_inexact(x.dtype):
        return do.pow(base, broadcast_to(exponents.astype(np.int32), (x.shape[0], n)))
    factors = where(exponents == 0, np.ones((), x.dtype), base)
    return do.cumprod(factors, axis=1, reverse=not increasing)


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any: ...


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial that is nearest to points, by least squares.

    Args:
        x: where the points lie, an array of one axis.
        y: their values, an array of one axis, or of two, with a column for each polynomial.
        deg: the degree of the polynomial.
        rcond: singular values below this part of the largest count as 0; None is the number of
            points times the precision of the dtype.
        full: whether residuals, rank, singular values and `rcond` are returned as well.
        w: the weight of each point, which multiplies its error; None is 1.
        cov: whether the covariance matrix of the coefficients is returned as well; "unscaled"
            leaves it unscaled.
    Returns:
        The coefficients, the highest power first; a tuple of them and of what was asked for.

    >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
    Array([2., 1.], dtype=float32)"""
    x, y = arrays("polyfit", x, y)
    deg = whole(deg, "polyfit: deg")
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError(
            f"expected x and y to have same length, got {x.shape[0]} places and {y.shape[0]} values"
        )
    (x,) = promote_inexact(x)
    (y,) = promote_inexact(y) if is_inexact(y.dtype) else promote_inexact(x, y)[1:]
    x, y = asarray(x), asarray(y)
    rcond = x.shape[0] * float(finfo(x.dtype).eps) if rcond is None else rcond
    left = vander(x, deg + 1)
    right = y
    if w is not None:
        (w,) = promote_inexact(array_of("polyfit", w))
        if w.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        left, right = left * w[:, None], right * (w[:, None] if right.ndim == 2 else w)
    scale = do.sqrt(reductions.sum(left * left, axis=0))
    scale = where(scale == 0, np.ones((), scale.dtype), scale)
    c, residuals, rank, s = lstsq(left / scale, right, rcond)
    c = (c.T / scale).T
    if full:
        return c, residuals, rank, s, asarray(rcond)
    if not cov:
        return c
    base = inv(left.T @ left / scale / scale[:, None]) / scale / scale[:, None]
    if cov == "unscaled":
        factor: Any = 1
    else:
        if x.shape[0] <= deg + 1:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix"
            )
        factor = residuals / (x.shape[0] - deg - 1)
    return (c, base * factor) if y.ndim == 1 else (c, base[:, :, None] * factor)
