"""Elementwise functions: NumPy's universal functions, one line each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array, is_concrete, to_array, to_numpy
from calque.core.dtypes import (
    canonicalize,
    is_complex,
    is_extended,
    is_float,
    is_inexact,
    is_integer,
    is_unsigned,
)
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.trace import VALUES, typeof
from calque.core.types import ArrayLike
from calque.numpy.calls.marks import python_only
from calque.numpy.promotion import (
    as_operand,
    check_arraylike,
    common_type,
    convert,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    promote_shapes,
    python_scalar,
    refuse_out,
)
from calque.numpy.signatures import AnyFunction, Binary, Unary, UnaryWithOut
from calque.ops.common import const, filled_like, number_like, scalar_of

Promotion = Callable[..., list[Array]]
loops = LazyModule("calque.transforms.functions.loops")
_BOOL: Final = np.dtype(bool)
_FLOAT32: Final = np.dtype("float32")
_SMALL: Final = 1 << 24  # ints that float32 holds


def operands(name: str, promotion: Promotion, *args: Any) -> list[Array]:
    """Operands of one dtype and shape."""
    check_arraylike(name, *args)
    try:
        promoted = promotion(*map(as_operand, args))
    except (TypeError, ValueError):
        avals = [typeof(a) for a in args]
        if any(is_extended(a.dtype) for a in avals):
            raise TypeError(
                f"{name} does not accept dtypes {', '.join(a.dtype.name for a in avals)}: keys are"
                " no numbers; calque.random.bits and fold_in take them"
            ) from None
        if promotion in (_integers, _shifted):
            names = ", ".join(a.dtype.name for a in avals)
            raise TypeError(
                f"{name} does not accept dtypes {names}: bitwise functions take integers and bools;"
                " convert with .astype(int)"
            ) from None
        raise
    return promote_shapes(name, *promoted)


def named(f: AnyFunction, name: str, doc: str = "", module: str = "calque.numpy") -> AnyFunction:
    """A function that a factory made, as if it were written out in its module."""
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    f.__module__ = module
    return f


def unary(name: str, apply: Callable[[Any], Any], promotion: Promotion) -> Unary:
    def ufunc(x: ArrayLike, /) -> Array:
        return to_array(apply(operands(name, promotion, x)[0]))

    return named(ufunc, name)


def binary(
    name: str,
    apply: Callable[[Any, Any], Any],
    promotion: Promotion,
) -> Binary:
    def ufunc(x: ArrayLike, y: ArrayLike, /) -> Array:
        a, b = getattr(x, "aval", None), getattr(y, "aval", None)
        if (
            a is b
            and a is not None
            and promotion is promote_dtypes
            and isinstance(x, VALUES)
            and isinstance(y, VALUES)
        ):
            return apply(x, y)
        found = _of_float32(name, x, y, a, b) if keeps_floats else None
        x, y = operands(name, promotion, x, y) if found is None else found
        return apply(x, y)

    keeps_floats = promotion in (_EXACT, _INEXACT, _NUMERIC)
    return named(ufunc, name)


def _of_float32(name: str, x: Any, y: Any, a: Any, b: Any) -> list[Any] | None:
    """What `operands` says of what programs are full of, two values of float32 or one and a number
    of Python, of which it has nothing to find out; None for all others."""
    if b is None:
        return [x, python_scalar(y, _FLOAT32)] if _is_short(y) and _is_float32(x, a) else None
    if a is None:
        return [python_scalar(x, _FLOAT32), y] if _is_short(x) and _is_float32(y, b) else None
    return promote_shapes(name, x, y) if _is_float32(x, a) and _is_float32(y, b) else None


def _is_short(x: Any) -> bool:
    """Whether this is a number of Python that any float takes."""
    return type(x) is float or (type(x) is int and -_SMALL <= x <= _SMALL)


def _is_float32(x: Any, aval: Any) -> bool:
    return isinstance(x, VALUES) and aval.dtype is _FLOAT32 and not aval.weak_type


def _with_out(name: str, apply: Callable[[Any], Any]) -> UnaryWithOut:
    """`isposinf(x, out=None)`: the predicates that JAX gives an `out`, which must stay None."""
    f = unary(name, apply, _EXACT)

    def ufunc(x: ArrayLike, /, out: None = None) -> Array:
        refuse_out(name, out)
        return f(x)

    return named(ufunc, name)


_EXACT, _INEXACT, _NUMERIC = promote_dtypes, promote_inexact, promote_numeric
_AND, _OR, _NOT = (do[name] for name in ("and", "or", "not"))


def _bools(*args: Any) -> list[Array]:
    """Truth values: anything but zero is true."""
    weak = common_type(*args)[1]
    truths = [a if typeof(a).dtype == _BOOL else do.ne(a, const(a, 0)) for a in args]
    return [convert(a, _BOOL, weak and not typeof(a).ndim) for a in truths]


def _integers(*args: Any) -> list[Array]:
    out = promote_dtypes(*args)
    dtype = typeof(out[0]).dtype
    if not is_integer(dtype) and dtype != _BOOL:
        raise TypeError(f"bitwise functions take integers and bools, got {dtype.name}")
    return out


def _shifted(*args: Any) -> list[Array]:
    return promote_numeric(*_integers(*args))


# ---------------------------------------------------------------- arithmetic


def _subtract(x: Any, y: Any) -> Any:
    if typeof(x).dtype == _BOOL:
        raise TypeError(
            "calque.numpy.subtract does not take bools; use logical_xor or convert with"
            " .astype(int)"
        )
    return do.sub(x, y)


def _add(x: Any, y: Any) -> Any:
    return do.add(x, y) if typeof(x).dtype != _BOOL else do.or_(x, y)


def _multiply(x: Any, y: Any) -> Any:
    return do.mul(x, y) if typeof(x).dtype != _BOOL else do.and_(x, y)


def _remainder(x: Any, y: Any) -> Any:
    """The sign of the divisor, as Python's %."""
    dtype = typeof(y).dtype
    zero = number_like(y, 0)
    if is_integer(dtype):
        return _integer_remainder(x, y)
    r = do.rem(x, y)
    if dtype == _BOOL:
        return r
    off = do.and_(do.ne(do.lt(r, zero), do.lt(y, zero)), do.ne(r, zero))
    return do.select_n(*promote_full(off, r, do.add(r, y)))


def _integer_remainder(x: Any, y: Any) -> Any:
    r, zero = _fmod(x, y), number_like(y, 0)
    if is_unsigned(typeof(y).dtype):
        return r
    off = do.and_(do.ne(do.lt(r, zero), do.lt(y, zero)), do.ne(r, zero))
    return do.select_n(*promote_full(off, r, do.add(r, y)))


def _fmod(x: Any, y: Any) -> Any:
    """Of integers and 0 it is 0, as NumPy says."""
    r = do.rem(x, y)
    if not is_integer(typeof(y).dtype) or _is_known_divisor(y):
        return r
    zero = number_like(y, 0)
    return do.select_n(*promote_full(do.eq(y, zero), r, zero))


def _is_known_divisor(y: Any) -> bool:
    """Is it one number, known and not 0?"""
    return not isinstance(y, VALUES) and np.ndim(y) == 0 and y != 0


def _floor_divide(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        raise TypeError("floor_divide is not defined for complex numbers")
    if is_unsigned(dtype):
        return do.div(x, y)
    if is_integer(dtype):
        q, r = do.div(x, y), do.rem(x, y)
        off = do.and_(do.ne(do.sign(r), do.sign(y)), do.ne(r, const(r, 0)))
        return do.select_n(*promote_full(off, q, do.sub(q, number_like(q, 1))))
    return _float_floor_divide(x, y, dtype)


def _float_floor_divide(x: Any, y: Any, dtype: Any) -> Any:
    """(x - x % y) / y, rounded: exact where floor(x / y) would be one too large."""
    zero = number_like(y, 0)
    r = do.rem(x, y)
    nothing = do.eq(y, zero)
    q = do.select_n(*promote_full(nothing, do.div(do.sub(x, r), y), do.div(x, y)))
    off = do.and_(do.ne(do.sign(y), do.sign(r)), do.ne(r, zero))
    q = do.select_n(*promote_full(off, q, do.sub(q, number_like(q, 1))))
    return do.round(q, rounding_method=0)


def promote_full(*xs: Any) -> list[Array]:
    """All operands with the full common shape, scalars too."""
    shape = next((typeof(x).shape for x in xs if typeof(x).shape), ())
    return [
        (
            x
            if typeof(x).shape == shape
            else do.broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
        )
        for x in xs
    ]


def _power(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    if is_integer(dtype) or dtype == _BOOL:
        return _integer_power(x, y)
    return do.pow(x, y)


_FEW: Final = 6  # bits of an exponent of 32 or 64 that are looked at without asking


def _integer_power(x: Any, y: Any) -> Any:
    """Square and multiply over the bits of the exponent; negative exponents give 0, except for
    bases 1 and -1. Few exponents have more bits than the first: a loop looks at the others."""
    dtype = typeof(x).dtype
    if dtype == _BOOL:
        dtype = np.dtype("int32")
    x, y = (do.convert_element_type(v, new_dtype=dtype) for v in (x, y))  # no longer weak
    x, y = promote_full(x, y)
    one, zero = (promote_full(x, const(x, v))[1] for v in (1, 0))
    bits = dtype.itemsize * 8
    state = (one, x, y if is_unsigned(dtype) else do.max(y, zero))
    for _ in range(_FEW if bits >= 32 else bits):
        state = _squared(state)
    if bits >= 32:
        state = loops.while_loop(_has_bits, _squared, state)
    acc: Any = state[0]
    if is_unsigned(dtype):
        return acc
    negative = do.lt(y, const(y, 0))
    minus = do.neg(one)
    odd = do.ne(do.and_(y, const(y, 1)), const(y, 0))
    inverse = do.select_n(
        do.eq(x, one), do.select_n(do.eq(x, minus), zero, do.select_n(odd, one, minus)), one
    )
    return do.select_n(negative, acc, inverse)


def _squared(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """The lowest bit of the exponents that are left is taken into account."""
    acc, base, left = state
    odd = do.ne(do.and_(left, const(left, 1)), const(left, 0))
    acc = do.select_n(odd, acc, do.mul(acc, base))
    return acc, do.mul(base, base), do.shift_right_logical(left, const(left, 1))


def _has_bits(state: tuple[Any, Any, Any]) -> Any:
    left = state[2]
    return do.reduce_or(do.ne(left, const(left, 0)), axes=tuple(range(typeof(left).ndim)))


@python_only
def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1` to the power `x2`. An exponent that is a Python int becomes repeated multiplication.
    Integers to negative powers are 0, unless they are 1 or -1.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
    Returns:
        An array of the common shape: the dtype that the operands have together; that of `x1` if
        it is an integer and `x2` one integer whose value is known.
    Raises:
        TypeError: integers to one negative power whose value is known.
    Differs from NumPy:
        Integers to negative powers of an array are no error. There is no `out`, `where` or `dtype`.

    >>> jnp.power(jnp.array([2, 3]), jnp.array([3, 2]))
    Array([8, 9], dtype=int32)"""
    check_arraylike("power", x1, x2)
    x1, x2 = as_operand(x1), as_operand(x2)
    if typeof(x1).dtype == _BOOL and (type(x2) is int or _known_integer(x2) is not None):
        x1 = do.convert_element_type(x1, new_dtype=np.dtype("int32"))
    if type(x2) is int:
        return do.integer_pow(x1, y=x2)
    if is_integer(typeof(x1).dtype):
        exponent = _known_integer(x2)
        if exponent is not None:  # it is no operand, and widens no dtype
            return do.integer_pow(x1, y=exponent)
    out = binary_power(x1, x2)
    base, by = typeof(x1), typeof(x2)
    if base.weak_type and is_inexact(base.dtype) and is_integer(by.dtype) and not by.weak_type:
        return do.convert_element_type(out, new_dtype=typeof(out).dtype)  # no longer weak
    return out


def _known_integer(x: Any) -> int | None:
    """The value of an integer of rank 0, where it is known."""
    if not is_concrete(x) or typeof(x).ndim or not is_integer(typeof(x).dtype):
        return None
    return int(to_numpy(x))


binary_power = binary("power", _power, _EXACT)


def _abs(x: Any) -> Any:
    dtype = typeof(x).dtype
    return x if dtype == _BOOL or is_unsigned(dtype) else do.abs(x)


def _rounding(round_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return x if not is_inexact(typeof(x).dtype) else round_(x)

    return apply


def _positive(x: Any) -> Any:
    return x


def _negative(x: Any) -> Any:
    if typeof(x).dtype == _BOOL:
        raise TypeError(
            "The calque.numpy boolean negative, the `-` operator, is not supported; use the `~`"
            " operator or logical_not instead."
        )
    return do.neg(x)


def _reciprocal(x: Any) -> Any:
    return do.div(number_like(x, 1), x)


def _square(x: Any) -> Any:
    if typeof(x).dtype == _BOOL:
        x = do.convert_element_type(x, new_dtype=np.dtype("int32"))
    return do.square(x)


def _scale(factor: float) -> Callable[[Any], Any]:
    return lambda x: do.mul(x, const(x, factor))


def _log_base(base: float) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        log = do.log(x)
        if not is_complex(typeof(x).dtype):
            return _scaled(log)
        # By its parts: a complex quotient makes nan of an infinite part.
        return do.complex(_scaled(do.real(log)), _scaled(do.imag(log)))

    def _scaled(part: Any) -> Any:
        return do.div(part, scalar_of(typeof(part).dtype, math.log(base)))

    return apply


def _rint(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        return do.complex(_rint(do.real(x)), _rint(do.imag(x)))
    if not is_float(dtype):
        return do.convert_element_type(x, new_dtype=canonicalize(float))
    return do.round(x, rounding_method=1)


def _trunc(x: Any) -> Any:
    if is_complex(typeof(x).dtype):
        raise TypeError(
            "trunc is not defined for complex numbers: take the real and imaginary parts"
        )
    return do.mul(do.sign(x), do.floor(do.abs(x))) if is_float(typeof(x).dtype) else x


def _conjugate(x: Any) -> Any:
    dtype = typeof(x).dtype
    return do.conj(x, input_dtype=dtype) if is_complex(dtype) else x


def _real(x: Any) -> Any:
    return do.real(x) if is_complex(typeof(x).dtype) else x


def _imag(x: Any) -> Any:
    return do.imag(x) if is_complex(typeof(x).dtype) else filled_like(x, 0)


def _countable(x: Any) -> Any:
    return convert(x, np.dtype("uint8")) if typeof(x).dtype == _BOOL else x


def _bitwise_count(x: Any) -> Any:
    return convert(do.population_count(_countable(_abs(x))), np.dtype("uint8"))


def _right_shift(x: Any, y: Any) -> Any:
    if is_unsigned(typeof(x).dtype):
        return do.shift_right_logical(x, y)
    return do.shift_right_arithmetic(x, y)


def _fabs(x: Any) -> Any:
    if is_complex(typeof(x).dtype):
        raise TypeError("ufunc 'fabs' does not support complex dtypes: use absolute")
    return _abs(x)


# ---------------------------------------------------------------- predicates


def _isnan(x: Any) -> Any:
    return do.ne(x, x) if is_inexact(typeof(x).dtype) else _weak_as(x, _constant(x, False))


def _weak_as(x: Any, truth: Any) -> Any:
    return convert(truth, _BOOL, typeof(x).weak_type)


def _isfinite(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        return do.and_(do.is_finite(do.real(x)), do.is_finite(do.imag(x)))
    return do.is_finite(x) if is_float(dtype) else _constant(x, True)


def _isinf(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        return do.or_(_isinf(do.real(x)), _isinf(do.imag(x)))
    return do.eq(do.abs(x), scalar_of(dtype, np.inf)) if is_float(dtype) else _constant(x, False)


def _constant(x: Any, value: bool) -> Any:
    return do.broadcast_in_dim(np.asarray(value), shape=typeof(x).shape, broadcast_dimensions=())


def _sign_infinite(value: float) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        dtype = typeof(x).dtype
        if is_complex(dtype):
            raise ValueError(
                f"is{'pos' if value > 0 else 'neg'}inf is not defined for complex numbers"
            )
        return do.eq(x, scalar_of(dtype, value)) if is_float(dtype) else _constant(x, False)

    return apply


def _signbit(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        raise ValueError(f"signbit is not defined for complex numbers, got dtype {dtype.name}")
    if not is_float(dtype):
        return do.lt(x, scalar_of(dtype, 0)) if dtype != _BOOL else _constant(x, False)
    bits = np.dtype(f"int{dtype.itemsize * 8}")
    return do.lt(do.bitcast_convert_type(x, new_dtype=bits), scalar_of(bits, 0))


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Complex numbers are ordered by real part, then by imaginary part."""

    def apply(x: Any, y: Any) -> Any:
        if not is_complex(typeof(x).dtype):
            return compare(x, y)
        a, b = do.real(x), do.real(y)
        by_imaginary_part = compare(do.imag(x), do.imag(y))
        return do.select_n(*promote_full(do.eq(a, b), compare(a, b), by_imaginary_part))

    return apply


# ---------------------------------------------------------------- functions of one operand

negative = unary("negative", _negative, _EXACT)
positive = unary("positive", _positive, _EXACT)
absolute = abs = unary("absolute", _abs, _EXACT)
fabs = unary("fabs", _fabs, _INEXACT)
sign = unary("sign", do.sign, _EXACT)
floor = unary("floor", _rounding(do.floor), _EXACT)
ceil = unary("ceil", _rounding(do.ceil), _EXACT)
rint = unary("rint", _rint, _EXACT)
trunc = unary("trunc", _trunc, _EXACT)
exp = unary("exp", do.exp, _INEXACT)
exp2 = unary("exp2", do.exp2, _INEXACT)
expm1 = unary("expm1", do.expm1, _INEXACT)
log = unary("log", do.log, _INEXACT)
log1p = unary("log1p", do.log1p, _INEXACT)
log2 = unary("log2", _log_base(2), _INEXACT)
log10 = unary("log10", _log_base(10), _INEXACT)
sin = unary("sin", do.sin, _INEXACT)
cos = unary("cos", do.cos, _INEXACT)
tan = unary("tan", do.tan, _INEXACT)
sinh = unary("sinh", do.sinh, _INEXACT)
cosh = unary("cosh", do.cosh, _INEXACT)
tanh = unary("tanh", do.tanh, _INEXACT)
arcsin = asin = unary("arcsin", do.asin, _INEXACT)
arccos = acos = unary("arccos", do.acos, _INEXACT)
arctan = atan = unary("arctan", do.atan, _INEXACT)
arcsinh = asinh = unary("arcsinh", do.asinh, _INEXACT)
arccosh = acosh = unary("arccosh", do.acosh, _INEXACT)
arctanh = atanh = unary("arctanh", do.atanh, _INEXACT)
sqrt = unary("sqrt", do.sqrt, _INEXACT)
cbrt = unary("cbrt", do.cbrt, _INEXACT)
square = unary("square", _square, _EXACT)
reciprocal = unary("reciprocal", _reciprocal, _INEXACT)
deg2rad = radians = unary("deg2rad", _scale(np.pi / 180), _INEXACT)
rad2deg = degrees = unary("rad2deg", _scale(180 / np.pi), _INEXACT)
conjugate = conj = unary("conjugate", _conjugate, _EXACT)
real = unary("real", _real, _EXACT)
imag = unary("imag", _imag, _EXACT)
isnan = unary("isnan", _isnan, _EXACT)
isinf = unary("isinf", _isinf, _EXACT)
isfinite = unary("isfinite", _isfinite, _EXACT)
isposinf = _with_out("isposinf", _sign_infinite(np.inf))
isneginf = _with_out("isneginf", _sign_infinite(-np.inf))
signbit = unary("signbit", _signbit, _EXACT)
logical_not = unary("logical_not", _NOT, _bools)
bitwise_not = invert = bitwise_invert = unary("bitwise_not", _NOT, _integers)
bitwise_count = unary("bitwise_count", _bitwise_count, _integers)

# ---------------------------------------------------------------- functions of two operands

add = binary("add", _add, _EXACT)
subtract = binary("subtract", _subtract, _EXACT)
multiply = binary("multiply", _multiply, _EXACT)
true_divide = divide = binary("true_divide", do.div, _INEXACT)
floor_divide = binary("floor_divide", _floor_divide, _NUMERIC)
remainder = mod = binary("remainder", _remainder, _NUMERIC)
fmod = binary("fmod", _fmod, _NUMERIC)
pow = power
maximum = binary("maximum", do.max, _EXACT)
minimum = binary("minimum", do.min, _EXACT)
arctan2 = atan2 = binary("arctan2", do.atan2, _INEXACT)
nextafter = binary("nextafter", do.nextafter, _INEXACT)
bitwise_and = binary("bitwise_and", _AND, _integers)
bitwise_or = binary("bitwise_or", _OR, _integers)
bitwise_xor = binary("bitwise_xor", do.xor, _integers)
left_shift = binary("left_shift", do.shift_left, _shifted)
bitwise_left_shift = binary("bitwise_left_shift", do.shift_left, _shifted)
right_shift = bitwise_right_shift = binary("right_shift", _right_shift, _shifted)
logical_and = binary("logical_and", _AND, _bools)
logical_or = binary("logical_or", _OR, _bools)
logical_xor = binary("logical_xor", do.xor, _bools)
equal = binary("equal", do.eq, _EXACT)
not_equal = binary("not_equal", do.ne, _EXACT)
less = binary("less", _ordered(do.lt), _EXACT)
less_equal = binary("less_equal", _ordered(do.le), _EXACT)
greater = binary("greater", _ordered(do.gt), _EXACT)
greater_equal = binary("greater_equal", _ordered(do.ge), _EXACT)
