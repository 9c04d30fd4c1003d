"""Elementwise functions made of several operations: floats taken apart, safe roots and logarithms,
integer gcd."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dtypes import canonicalize, finfo, is_complex, is_float, is_inexact, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy import ufuncs
from calque.numpy.calls.marks import python_only
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_shapes,
    broadcast_to,
    check_arraylike,
    common_type,
    convert,
    promote_dtypes,
    promote_inexact,
    promote_inexact_as_first,
    promote_inexact_strong,
    refuse_out,
)
from calque.numpy.shaping import where
from calque.numpy.ufuncs import binary, named, operands, unary
from calque.ops.common import const, number_like, scalar_of
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.loops import while_loop

__all__ = [
    "angle", "copysign", "divmod", "float_power", "fmax", "fmin", "frexp", "gcd", "heaviside",
    "hypot", "i0", "iscomplex", "isreal", "lcm", "ldexp",
    "modf", "nan_to_num", "sinc", "spacing",
]  # fmt: skip

_abs, _isnan = ufuncs.absolute, ufuncs.isnan
_signbit, _negative = ufuncs.signbit, ufuncs.negative


def _refuse_complex(name: str, *xs: Any) -> None:
    for x in xs:
        if is_complex(typeof(x).dtype):
            raise TypeError(
                f"jnp.{name} does not support complex inputs, got dtype {typeof(x).dtype.name}"
            )


# ---------------------------------------------------------------- signs and sizes


def _copysign(x: Any, y: Any) -> Any:
    _refuse_complex("copysign", x)
    return where(ufuncs.not_equal(_signbit(x), _signbit(y)), _negative(x), x)


def _heaviside(x: Any, y: Any) -> Any:
    _refuse_complex("heaviside", x)
    out = where(
        ufuncs.equal(x, const(x, 0)),
        y,
        where(ufuncs.greater(x, const(x, 0)), const(x, 1), const(x, 0)),
    )
    return where(_isnan(x), x, out)


def _hypot(x: Any, y: Any) -> Any:
    """big * sqrt(1 + (small / big)^2), with an infinity winning over nan, and derivative 0 at the
    origin."""
    if is_complex(typeof(x).dtype):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs.")
    x, y = _abs(x), _abs(y)
    infinite = ufuncs.logical_or(ufuncs.isposinf(x), ufuncs.isposinf(y))
    big, small = ufuncs.maximum(x, y), ufuncs.minimum(x, y)
    none = ufuncs.equal(big, const(big, 0))
    ratio = ufuncs.true_divide(small, where(none, const(big, 1), big))
    length = ufuncs.multiply(big, do.sqrt(ufuncs.add(do.square(ratio), const(big, 1))))
    return where(infinite, const(big, np.inf), where(none, const(big, 0), length))


def _fmax(x: Any, y: Any) -> Any:
    return where(ufuncs.logical_or(ufuncs.greater(x, y), _isnan(y)), x, y)


def _fmin(x: Any, y: Any) -> Any:
    return where(ufuncs.logical_or(ufuncs.less(x, y), _isnan(y)), x, y)


copysign = binary("copysign", _copysign, promote_inexact)
heaviside = binary(
    "heaviside",
    _heaviside,
    promote_inexact_as_first,
)
hypot = binary(
    "hypot",
    _hypot,
    promote_inexact_strong,
)
fmax = binary("fmax", _fmax, promote_dtypes)
fmin = binary("fmin", _fmin, promote_dtypes)
float_power = python_only(
    binary(
        "float_power",
        lambda x, y: do.pow(x, y),
        promote_inexact,
    )
)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Quotient rounded down and remainder at once, `x1 // x2` and `x1 % x2`.

    Args:
        x1, x2: real numbers or arrays that broadcast.
    Returns:
        A pair of arrays: see `floor_divide` and `remainder`.

    >>> jnp.divmod(jnp.array([7, -7]), 2)
    (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))"""
    check_arraylike("divmod", x1, x2)
    return ufuncs.floor_divide(x1, x2), ufuncs.remainder(x1, x2)


# ---------------------------------------------------------------- floats taken apart


def _exponent_of_two(n: Any, dtype: Any) -> Any:
    """2^n for integers in the normal range, made from bits."""
    info = np.finfo(dtype)
    bits = np.dtype(f"int{dtype.itemsize * 8}")
    shifted = do.shift_left(
        convert(n, bits) + scalar_of(bits, info.maxexp - 1),
        broadcast_to(scalar_of(bits, info.nmant), n.shape),
    )
    return do.bitcast_convert_type(shifted, new_dtype=dtype)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 * 2**x2`, rounded once.

    Args:
        x1: real numbers.
        x2: exponents, integers that broadcast with `x1`.
    Returns:
        Floats of the common shape.

    >>> jnp.ldexp(jnp.array([0.5, 3.0]), jnp.array([4, 1]))
    Array([8., 6.], dtype=float32)"""
    check_arraylike("ldexp", x1, x2)
    if is_complex(typeof(x1).dtype) or not (
        is_integer(typeof(x2).dtype) or typeof(x2).dtype == np.dtype(bool)
    ):
        raise ValueError(
            f"ldexp not supported for input types {typeof(x1).dtype.name} and"
            f" {typeof(x2).dtype.name}: x2 must be an integer"
        )
    (x,) = promote_inexact(array_of("ldexp", x1))
    shape = broadcast_shapes("ldexp", x.shape, typeof(x2).shape)
    work = np.dtype("float32") if x.dtype.itemsize < 4 else x.dtype
    y = broadcast_to(convert(x, work), shape)
    n = broadcast_to(convert(array_of("ldexp", x2), canonicalize(int)), shape)
    out = _scaled(y, n, work)
    return convert(out, x.dtype)


def _scaled(y: Any, n: Any, dtype: Any) -> Any:
    """y * 2^n in up to three steps, such that only the last one rounds."""
    info = np.finfo(dtype)
    top, bottom = int(info.maxexp - 1), int(-info.minexp - info.nmant - 1)
    clip = ufuncs.maximum(ufuncs.minimum(n, np.int32(4 * top)), np.int32(-4 * top))
    one, up, down = (scalar_of(dtype, 2.0**n) for n in (0, top, -bottom))
    for _ in range(3):
        big, small = clip > top, clip < int(info.minexp)
        y = y * where(big, up, where(small, down, one))
        clip = clip - where(big, np.int32(top), where(small, np.int32(-bottom), np.int32(0)))
    clip = ufuncs.maximum(ufuncs.minimum(clip, np.int32(top)), np.int32(info.minexp))
    return y * _exponent_of_two(clip, dtype)


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Numbers taken apart: `x = mantissa * 2**exponent`.

    Args:
        x: real numbers.
    Returns:
        A pair: mantissas, of a size in [0.5, 1) or 0, and exponents as int32.

    >>> jnp.frexp(jnp.array([8.0, 3.0]))
    (Array([0.5 , 0.75], dtype=float32), Array([4, 2], dtype=int32))"""
    check_arraylike("frexp", x)
    (x,) = promote_inexact(array_of("frexp", x))
    if is_complex(x.dtype):
        raise TypeError("frexp does not support complex-valued inputs")
    work = np.dtype("float32") if x.dtype.itemsize < 4 else x.dtype
    info = np.finfo(work)
    bits = np.dtype(f"int{work.itemsize * 8}")
    y = convert(x, work)
    ordinary = ufuncs.logical_and(ufuncs.isfinite(y), ufuncs.not_equal(y, 0))
    tiny = _abs(y) < scalar_of(work, float(info.smallest_normal))
    lifted = where(tiny, y * scalar_of(work, 2.0**info.nmant), y)
    field = do.shift_right_logical(
        do.bitcast_convert_type(_abs(lifted), new_dtype=bits),
        broadcast_to(scalar_of(bits, info.nmant), x.shape),
    )
    exponent = (
        convert(field, np.dtype("int32"))
        - np.int32(info.maxexp - 2)
        - where(tiny, np.int32(info.nmant), np.int32(0))
    )
    exponent = where(ordinary, exponent, np.int32(0))
    mantissa = where(ordinary, _scaled(y, -exponent, work), y)
    return convert(mantissa, x.dtype), exponent


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fraction and the whole part of numbers, both with the sign of the number.

    Args:
        x: real numbers.
        out: must be None: arrays are immutable.
    Returns:
        A pair of arrays of floats.

    >>> jnp.modf(jnp.array([2.5, -2.5]))
    (Array([ 0.5, -0.5], dtype=float32), Array([ 2., -2.], dtype=float32))"""
    refuse_out("modf", out)
    (x,) = promote_inexact(array_of("modf", x))
    if is_complex(x.dtype):
        raise TypeError("modf does not support complex-valued inputs")
    whole = where(x >= 0, do.floor(x), do.ceil(x))
    return where(ufuncs.isinf(x), number_like(x, 0), x - whole), whole


def _spacing(x: Any) -> Any:
    _refuse_complex("spacing", x)
    up: Any = const(x, np.inf)
    if typeof(x).dtype != np.dtype(np.float16):  # NumPy looks up for every float16
        up = where(ufuncs.less(x, const(x, 0)), const(x, -np.inf), up)
    gap = ufuncs.subtract(do.nextafter(x, up), x)
    return convert(where(ufuncs.isfinite(x), gap, const(x, np.nan)), typeof(x).dtype)


spacing = unary(
    "spacing",
    _spacing,
    promote_inexact,
)


# ---------------------------------------------------------------- functions with a hole at 0


def _sinc(x: Any) -> Any:
    """sin(pi x) / (pi x); at 0 its Taylor polynomial, so that derivatives are right there too."""
    y = ufuncs.multiply(x, const(x, float(np.pi)))
    zero = ufuncs.equal(x, const(x, 0))
    safe = where(zero, const(x, 1), y)
    square = do.square(where(zero, y, const(x, 0)))
    series = const(x, 1)
    for k in (9, 7, 5, 3):
        series = ufuncs.subtract(
            const(x, 1),
            ufuncs.multiply(ufuncs.multiply(square, const(x, 1 / (k * (k - 1)))), series),
        )
    return where(zero, series, ufuncs.true_divide(do.sin(safe), safe))


sinc = unary("sinc", _sinc, promote_inexact)


@custom_jvp
def _i0(x: Any) -> Any:
    return do.mul(do.exp(do.abs(x)), do.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _i0(x), do.mul(do.mul(do.exp(do.abs(x)), do.bessel_i1e(x)), t)


def _i0_checked(x: Any) -> Any:
    if not is_float(typeof(x).dtype):
        raise ValueError(f"Unsupported input type to jnp.i0: {typeof(x).dtype.name}")
    return _i0(x)


i0 = unary(
    "i0",
    _i0_checked,
    promote_inexact,
)


def _log_sum(base: str, name: str) -> Any:
    """log(b^x + b^y) without overflow; infinities of one sign give themselves."""
    scale = 1.0 if base == "e" else float(np.log(2))

    def value(x: Any, y: Any) -> Any:
        d = do.sub(x, y)
        nan = do.ne(d, d)
        less = do.neg(do.abs(d))
        small = do.log1p(do.exp(do.mul(less, const(d, scale)) if scale != 1.0 else less))
        out = do.add(do.max(x, y), do.div(small, const(small, scale)) if scale != 1.0 else small)
        return do.select_n(nan, out, do.add(x, y))

    @custom_jvp
    def apply(x: Any, y: Any) -> Any:
        if is_complex(typeof(x).dtype):
            return _complex_log_sum(x, y, scale)
        return value(x, y)

    @apply.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (s, t) = primals, tangents
        out = apply(x, y)

        def share(z: Any) -> Any:
            return do.exp(do.mul(_difference(z, out), const(out, scale)))

        return out, do.add(do.mul(s, share(x)), do.mul(t, share(y)))

    return named(apply, name)


def _complex_log_sum(x: Any, y: Any, scale: float) -> Any:
    top = do.max(do.real(x), do.real(y))
    m = do.complex(top, filled(typeof(top), 0))
    total = do.add(
        do.exp(do.mul(do.sub(x, m), const(x, scale))), do.exp(do.mul(do.sub(y, m), const(y, scale)))
    )
    out = do.add(m, do.div(do.log(total), const(x, scale)))
    aval = typeof(x)
    weak = aval.weak_type and not aval.shape
    return do.convert_element_type(out, new_dtype=aval.dtype, weak_type=weak)


def filled(aval: Any, value: float) -> Any:
    """An array of this type with one value everywhere."""
    return do.broadcast_in_dim(
        scalar_of(aval.dtype, value), shape=aval.shape, broadcast_dimensions=()
    )


def _difference(z: Any, out: Any) -> Any:
    """z - out, with 0 where both are the same infinity."""
    if is_complex(typeof(z).dtype):
        return do.sub(z, out)
    d = do.sub(z, out)
    return do.select_n(do.eq(z, out), d, filled(typeof(d), 0))


def _full(f: Any, spread: Any) -> Any:
    """Operands of rank 0 are spread: rules of custom functions need arguments of one shape."""

    def apply(x: Any, y: Any) -> Any:
        shape = broadcast_shapes("logaddexp", typeof(x).shape, typeof(y).shape)
        return f(spread(x, shape), spread(y, shape))

    return apply


def _spread_strong(x: Any, shape: tuple[Any, ...]) -> Any:
    """An operand at a shape; its type is weak no more when it is not its own."""
    aval = typeof(x)
    if aval.shape == shape:
        return x
    return convert(broadcast_to(x, shape), aval.dtype, False)


logaddexp = binary(
    "logaddexp",
    _full(_log_sum("e", "logaddexp"), broadcast_to),
    promote_inexact,
)
logaddexp2 = binary(
    "logaddexp2",
    _full(_log_sum("2", "logaddexp2"), _spread_strong),
    promote_inexact,
)


# ---------------------------------------------------------------- complex numbers


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers in the plane; 0 or pi for real numbers.

    Args:
        z: an array or a number.
        deg: whether the angle is in degrees rather than in radians.
    Returns:
        Floats in (-pi, pi].

    >>> jnp.angle(jnp.array([1j, -1]), deg=True)
    Array([ 90., 180.], dtype=float32)"""
    z = array_of("angle", z)
    if not is_inexact(z.dtype):
        z = convert(z, canonicalize(float))
    parts = (do.imag(z), do.real(z)) if is_complex(z.dtype) else (const(z, 0), z)
    out = do.atan2(*parts)
    out = out if is_complex(z.dtype) else convert(out, typeof(out).dtype)
    return ufuncs.rad2deg(out) if deg else out


def _iscomplex(x: Any) -> Any:
    imaginary = ufuncs.imag(x)
    return ufuncs.not_equal(imaginary, const(imaginary, 0))


iscomplex = unary("iscomplex", _iscomplex, promote_dtypes)
isreal = unary(
    "isreal",
    lambda x: do.not_(_iscomplex(x)),
    promote_dtypes,
)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Numbers in place of nan and infinities.

    Args:
        x: an array or a number.
        copy: for NumPy's sake: the result is a new array in any case.
        nan: what stands for nan.
        posinf: what stands for positive infinity; None is the largest finite number.
        neginf: what stands for negative infinity; None is the lowest finite number.
    Returns:
        An array of the dtype of `x`; integers are themselves.
    Differs from NumPy:
        `copy=False` changes nothing in place.

    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan]))
    Array([1., 0.], dtype=float32)"""
    x = array_of("nan_to_num", x)
    if is_complex(x.dtype):
        return do.complex(
            nan_to_num(do.real(x), copy, nan, posinf, neginf),
            nan_to_num(do.imag(x), copy, nan, posinf, neginf),
        )
    if not is_inexact(x.dtype):
        return x
    info = finfo(x.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    x = convert(x, x.dtype)

    def number(v: Any) -> Any:
        return convert(v, x.dtype)

    out = where(_isnan(x), number(nan), x)
    out = where(ufuncs.isposinf(out), number(high), out)
    return where(ufuncs.isneginf(out), number(low), out)


# ---------------------------------------------------------------- integers


def _integers(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    check_arraylike(name, x, y)
    dtype, _ = common_type(x, y)
    if not is_integer(dtype):
        raise ValueError(f"Arguments to jnp.{name} must be integers, got {dtype.name}.")
    a, b = operands(name, promote_dtypes, x, y)
    shape = broadcast_shapes(name, typeof(a).shape, typeof(b).shape)
    return _spread_strong(a, shape), _spread_strong(b, shape)


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of the absolute values, by elements.

    Args:
        x1, x2: integers that broadcast.
    Returns:
        Integers of the common shape; the other number where one is 0.

    >>> jnp.gcd(jnp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)"""
    a, b = _integers("gcd", x1, x2)
    return _gcd(_abs(a), _abs(b))


def _gcd(a: Any, b: Any) -> Any:
    a, b = arrays("gcd", a, b)

    def running(ab: tuple[Any, Any]) -> Any:
        return (ab[1] != 0).any()

    def safe(v: Any) -> Any:
        return where(v == 0, const(v, 1), v)

    def step(ab: tuple[Any, Any]) -> tuple[Any, Any]:
        return (
            where(ab[1] != 0, ab[1], ab[0]),
            where(ab[1] != 0, do.rem(ab[0], safe(ab[1])), const(ab[1], 0)),
        )

    # a remainder has the sign of the least integer, whose size no integer holds
    return _abs(while_loop(running, step, (a, b))[0])


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of the absolute values, by elements.

    Args:
        x1, x2: integers that broadcast.
    Returns:
        Integers of the common shape; 0 where one is 0.

    >>> jnp.lcm(jnp.array([4, 6]), 10)
    Array([20, 30], dtype=int32)"""
    a, b = _integers("lcm", x1, x2)
    a, b = arrays("lcm", _abs(a), _abs(b))
    d = _gcd(a, b)
    return where(d == 0, const(d, 0), a * do.div(b, where(d == 0, const(d, 1), d)))
