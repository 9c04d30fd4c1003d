"""Elementary functions: exponentials, logarithms, roots, circular and hyperbolic functions, their
inverses."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calque.core.arrays import Array
from calque.core.dtypes import is_complex
from calque.core.primitives import Primitive, do
from calque.core.types import ArrayLike
from calque.ops.common import FLOAT, INEXACT, const
from calque.ops.kinds import apply_nary, apply_unary, nary, unary, widened

Fn = Callable[..., Any]


def _float_or_complex(real: Fn, complex_: Fn) -> Fn:
    """A meaning that differs between real and complex numbers."""
    return widened(lambda x: complex_(x) if is_complex(x.dtype) else real(x))


def _logistic(x: np.ndarray) -> np.ndarray:
    if is_complex(x.dtype):
        return 1 / (1 + np.exp(-x))
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _log1p_complex(x: np.ndarray) -> np.ndarray:
    """log(1 + x) with a real part that keeps its digits near 0: log|1+x|^2 = log1p(r(2+r) +
    i^2)."""
    r, i = x.real, x.imag
    near = 0.5 * np.log1p(r * (2 + r) + i * i)
    far = np.log(np.hypot(1 + r, i))
    return _pair(np.where(np.abs(x) < 0.5, near, far), np.arctan2(i, 1 + r))


def _expm1_complex(x: np.ndarray) -> np.ndarray:
    """exp(x) - 1 without cancellation: expm1(r) cos(i) - 2 sin(i/2)^2."""
    r, i = x.real, x.imag
    return _pair(np.expm1(r) * np.cos(i) - 2 * np.sin(i / 2) ** 2, np.exp(r) * np.sin(i))


def _pair(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    out = np.empty(np.shape(re), np.complex128)
    out.real, out.imag = re, im
    return out


def _rsqrt_tangent(t: Any, x: Any, out: Any) -> Any:
    return do.mul(t, do.mul(const(x, -0.5), do.div(out, x)))


def _one_minus_square(x: Any) -> Any:
    """(1 - x)(1 + x), which keeps its digits near 1."""
    return do.mul(do.sub(const(x, 1), x), do.add(const(x, 1), x))


def _one_plus_square(x: Any) -> Any:
    return do.add(const(x, 1), do.square(x))


def _scaled(factor: float) -> Fn:
    return lambda t, x, out: do.mul(t, do.mul(const(x, factor), out))


exp_p = unary("exp", INEXACT, widened(np.exp), lambda t, x, out: do.mul(t, out))
exp2_p = unary("exp2", INEXACT, widened(np.exp2), _scaled(float(np.log(2.0))))
expm1_p = unary(
    "expm1",
    INEXACT,
    _float_or_complex(np.expm1, _expm1_complex),
    lambda t, x, out: do.mul(t, do.exp(x)),  # out + 1 has no digits where x << 0
)
log_p = unary("log", INEXACT, widened(np.log), lambda t, x, out: do.div(t, x))
log1p_p = unary(
    "log1p",
    INEXACT,
    _float_or_complex(np.log1p, _log1p_complex),
    lambda t, x, out: do.div(t, do.add(x, const(x, 1))),
)
sqrt_p = unary(
    "sqrt", INEXACT, widened(np.sqrt), lambda t, x, out: do.div(do.mul(t, const(x, 0.5)), out)
)
rsqrt_p = unary("rsqrt", INEXACT, widened(lambda x: 1 / np.sqrt(x)), _rsqrt_tangent)
cbrt_p = unary(
    "cbrt",
    FLOAT,
    widened(np.cbrt),
    lambda t, x, out: do.div(t, do.mul(const(x, 3), do.square(out))),
)
logistic_p = unary(
    "logistic",
    INEXACT,
    widened(_logistic),
    lambda t, x, out: do.mul(t, do.mul(out, do.sub(const(x, 1), out))),
)
sin_p = unary("sin", INEXACT, widened(np.sin), lambda t, x, out: do.mul(t, do.cos(x)))
cos_p = unary("cos", INEXACT, widened(np.cos), lambda t, x, out: do.mul(t, do.neg(do.sin(x))))
tan_p = unary("tan", INEXACT, widened(np.tan), lambda t, x, out: do.mul(t, _one_plus_square(out)))
asin_p = unary(
    "asin", INEXACT, widened(np.arcsin), lambda t, x, out: do.mul(t, do.rsqrt(_one_minus_square(x)))
)
acos_p = unary(
    "acos",
    INEXACT,
    widened(np.arccos),
    lambda t, x, out: do.neg(do.mul(t, do.rsqrt(_one_minus_square(x)))),
)
atan_p = unary(
    "atan", INEXACT, widened(np.arctan), lambda t, x, out: do.div(t, _one_plus_square(x))
)
sinh_p = unary("sinh", INEXACT, widened(np.sinh), lambda t, x, out: do.mul(t, do.cosh(x)))
cosh_p = unary("cosh", INEXACT, widened(np.cosh), lambda t, x, out: do.mul(t, do.sinh(x)))
tanh_p = unary(
    "tanh", INEXACT, widened(np.tanh), lambda t, x, out: do.mul(t, _one_minus_square(out))
)
asinh_p = unary(
    "asinh",
    INEXACT,
    widened(np.arcsinh),
    lambda t, x, out: do.mul(t, do.rsqrt(_one_plus_square(x))),
)
acosh_p = unary(
    "acosh",
    INEXACT,
    widened(np.arccosh),
    lambda t, x, out: do.mul(
        t, do.mul(do.rsqrt(do.sub(x, const(x, 1))), do.rsqrt(do.add(x, const(x, 1))))
    ),
)
atanh_p = unary(
    "atanh", INEXACT, widened(np.arctanh), lambda t, x, out: do.div(t, _one_minus_square(x))
)


def _atan2_meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The angle of (y, x); for complex numbers -i log((y + i x) / sqrt(x^2 + y^2))."""
    if is_complex(x.dtype):
        return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))
    return np.arctan2(x, y)


def _over_norm(x: Any, y: Any, top: Any) -> Any:
    return do.div(top, do.add(do.square(x), do.square(y)))


atan2_p = nary(
    "atan2",
    INEXACT,
    widened(_atan2_meaning),
    lambda t, out, x, y: do.mul(t, _over_norm(x, y, y)),
    lambda t, out, x, y: do.mul(t, _over_norm(x, y, do.neg(x))),
)

# ---------------------------------------------------------------- public functions


class AccuracyMode(enum.Enum):
    """How exact an elementary function must be. Results are within two units in the last place.

    Returns:
        An array of the shape and dtype of `x`."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """An error that is allowed: absolute, relative, in units in the last place.

    Args:
        atol: The absolute error.
        rtol: The error relative to the result.
        ulps: The error in units in the last place.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.Tolerance(rtol=1e-3)
    Tolerance(atol=0.0, rtol=0.001, ulps=0)"""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


def _apply(prim: Primitive, x: Any, accuracy: Any) -> Any:
    if accuracy is not None and not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(
            f"{prim.name}: accuracy must be None, an AccuracyMode or a Tolerance, got {accuracy!r}"
        )
    return apply_unary(prim, x)


def exp(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The exponential of each element: e to the power `x`.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.exp(jnp.array([0.0, 1.0]))
    Array([1.       , 2.71828...], dtype=float32)"""
    return _apply(exp_p, x, accuracy)


def exp2(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """2 to the power of each element.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.exp2(jnp.array([3.0, -1.0]))
    Array([8. , 0.5], dtype=float32)"""
    return _apply(exp2_p, x, accuracy)


def expm1(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The exponential of each element less 1, exact also where `x` is small.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.expm1(1e-6)
    Array(1.00000...e-06, dtype=float32, weak_type=True)"""
    return _apply(expm1_p, x, accuracy)


def log(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The natural logarithm of each element; NaN for negative reals, -inf for 0.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.log(jnp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)"""
    return _apply(log_p, x, accuracy)


def log1p(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The natural logarithm of 1 plus each element, exact also where `x` is small.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.log1p(1e-6)
    Array(9.9999...e-07, dtype=float32, weak_type=True)"""
    return _apply(log1p_p, x, accuracy)


def sqrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The square root of each element; NaN for negative reals.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.sqrt(jnp.array([9.0, 2.0]))
    Array([3.       , 1.41421...], dtype=float32)"""
    return _apply(sqrt_p, x, accuracy)


def rsqrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """1 over the square root of each element.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.rsqrt(4.0)
    Array(0.5, dtype=float32, weak_type=True)"""
    return _apply(rsqrt_p, x, accuracy)


def cbrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The real cube root of each element.

    Args:
        x: Real numbers, of a floating-point dtype.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.cbrt(-8.0)
    Array(-2., dtype=float32, weak_type=True)"""
    return _apply(cbrt_p, x, accuracy)


def logistic(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The sigmoid of each element: 1 / (1 + exp(-x)).

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.logistic(0.0)
    Array(0.5, dtype=float32, weak_type=True)"""
    return _apply(logistic_p, x, accuracy)


def sin(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The sine of each element, an angle in radians.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.sin(jnp.array([0.0, np.pi / 2]))
    Array([0., 1.], dtype=float32)"""
    return _apply(sin_p, x, accuracy)


def cos(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The cosine of each element, an angle in radians.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.cos(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    return _apply(cos_p, x, accuracy)


def tan(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The tangent of each element, an angle in radians.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.tan(0.0)
    Array(0., dtype=float32, weak_type=True)"""
    return _apply(tan_p, x, accuracy)


def asin(x: ArrayLike) -> Array:
    """The angle, in radians, whose sine is each element; NaN for reals outside of [-1, 1].

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.asin(1.0)
    Array(1.57079..., dtype=float32, weak_type=True)"""
    return apply_unary(asin_p, x)


def acos(x: ArrayLike) -> Array:
    """The angle, in radians, whose cosine is each element; NaN for reals outside of [-1, 1].

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.acos(1.0)
    Array(0., dtype=float32, weak_type=True)"""
    return apply_unary(acos_p, x)


def atan(x: ArrayLike) -> Array:
    """The angle, in radians, whose tangent is each element.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.atan(1.0)
    Array(0.78539..., dtype=float32, weak_type=True)"""
    return apply_unary(atan_p, x)


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine of each element.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.sinh(1.0)
    Array(1.17520..., dtype=float32, weak_type=True)"""
    return apply_unary(sinh_p, x)


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine of each element.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.cosh(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    return apply_unary(cosh_p, x)


def tanh(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The hyperbolic tangent of each element.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.
        accuracy: None, an `AccuracyMode` or a `Tolerance`. Results are within two units in the last
            place in any case.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.tanh(1.0)
    Array(0.76159..., dtype=float32, weak_type=True)"""
    return _apply(tanh_p, x, accuracy)


def asinh(x: ArrayLike) -> Array:
    """The number whose hyperbolic sine is each element.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.asinh(1.0)
    Array(0.88137..., dtype=float32, weak_type=True)"""
    return apply_unary(asinh_p, x)


def acosh(x: ArrayLike) -> Array:
    """The number whose hyperbolic cosine is each element; NaN for reals below 1.

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.acosh(1.0)
    Array(0., dtype=float32, weak_type=True)"""
    return apply_unary(acosh_p, x)


def atanh(x: ArrayLike) -> Array:
    """The number whose hyperbolic tangent is each element; NaN for reals outside of [-1, 1].

    Args:
        x: Real or complex numbers; other dtypes than floats and complex numbers are an error for
            arrays.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.atanh(0.5)
    Array(0.549306..., dtype=float32, weak_type=True)"""
    return apply_unary(atanh_p, x)


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point with these coordinates, from -pi to pi, in radians.

    Args:
        x: The ordinate (the "y" of the point), of a floating-point or complex dtype.
        y: The abscissa, of the same dtype and shape; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of both.

    >>> lax.atan2(1.0, 0.0)
    Array(1.57079..., dtype=float32, weak_type=True)"""
    return apply_nary(atan2_p, x, y)
