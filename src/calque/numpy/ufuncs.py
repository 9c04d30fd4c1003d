"""Elementwise functions: NumPy's universal functions, one line each in a table of families."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.dtypes import (
    canonicalize,
    inexact_of,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_unsigned,
)
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.numpy.calls.marks import python_only
from calque.numpy.promotion import (
    as_operand,
    check_arraylike,
    convert,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    promote_shapes,
)
from calque.ops.common import const, filled_like

Promotion = Callable[..., list[Any]]


def operands(name: str, promotion: Promotion, *args: Any) -> list[Any]:
    """Operands of one dtype and shape."""
    check_arraylike(name, *args)
    return promote_shapes(name, *promotion(*map(as_operand, args)))


def named(f: Callable[..., Any], name: str, doc: str) -> Any:
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    f.__module__ = "calque.numpy"
    return f


def _parameters(f: Any, *names: str) -> Any:
    """The signature of a function made by a factory, with the parameter names of its family."""
    f.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names]
    )
    return f


def unary(
    name: str, apply: Callable[[Any], Any], promotion: Promotion, doc: str, parameter: str = "x"
) -> Any:
    def ufunc(x: Any, /) -> Any:
        check_arraylike(name, x)
        return to_array(apply(promotion(as_operand(x))[0]))

    return _parameters(named(ufunc, name, doc), parameter)


def binary(
    name: str,
    apply: Callable[[Any, Any], Any],
    promotion: Promotion,
    doc: str,
    parameters: tuple[str, str] = ("x1", "x2"),
) -> Any:
    def ufunc(x: Any, y: Any, /) -> Any:
        a, b = getattr(x, "aval", None), getattr(y, "aval", None)
        if a is b and a is not None and promotion is promote_dtypes:
            return apply(x, y)
        x, y = operands(name, promotion, x, y)
        return apply(x, y)

    return _parameters(named(ufunc, name, doc), *parameters)


_EXACT, _INEXACT, _NUMERIC = promote_dtypes, promote_inexact, promote_numeric


def _bools(*args: Any) -> list[Any]:
    """Truth values: anything but zero is true."""
    return [a if typeof(a).dtype == np.dtype(bool) else do.ne(a, _zero_of(typeof(a))) for a in args]


def _zero_of(aval: ShapedArray) -> Any:
    return convert(0, aval.dtype, aval.weak_type)


def _integers(*args: Any) -> list[Any]:
    out = promote_dtypes(*args)
    dtype = typeof(out[0]).dtype
    if not is_integer(dtype) and dtype != np.dtype(bool):
        raise TypeError(f"bitwise functions take integers and bools, got {dtype.name}")
    return out


def _shifted(*args: Any) -> list[Any]:
    return promote_numeric(*_integers(*args))


# ---------------------------------------------------------------- arithmetic


def _subtract(x: Any, y: Any) -> Any:
    if typeof(x).dtype == np.dtype(bool):
        raise TypeError(
            "calque.numpy.subtract does not take bools; use logical_xor or convert with"
            " .astype(int)"
        )
    return do.sub(x, y)


def _add(x: Any, y: Any) -> Any:
    return do.add(x, y) if typeof(x).dtype != np.dtype(bool) else getattr(do, "or")(x, y)


def _multiply(x: Any, y: Any) -> Any:
    return do.mul(x, y) if typeof(x).dtype != np.dtype(bool) else getattr(do, "and")(x, y)


def _remainder(x: Any, y: Any) -> Any:
    """The sign of the divisor, as Python's %."""
    dtype = typeof(y).dtype
    zero = const(y, 0)
    r = do.rem(x, y)
    if is_unsigned(dtype) or dtype == np.dtype(bool):
        return r
    off = getattr(do, "and")(do.ne(do.lt(r, zero), do.lt(y, zero)), do.ne(r, zero))
    return do.select_n(*promote_full(off, r, do.add(r, y)))


def _floor_divide(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        raise TypeError("floor_divide is not defined for complex numbers")
    if is_unsigned(dtype):
        return do.div(x, y)
    if is_integer(dtype):
        q, r = do.div(x, y), do.rem(x, y)
        off = getattr(do, "and")(do.ne(do.sign(r), do.sign(y)), do.ne(r, const(r, 0)))
        return do.select_n(*promote_full(off, q, do.sub(q, const(q, 1))))
    return _float_floor_divide(x, y, dtype)


def _float_floor_divide(x: Any, y: Any, dtype: Any) -> Any:
    """(x - x % y) / y, rounded: exact where floor(x / y) would be one too large."""
    zero = const(y, 0)
    r = do.rem(x, y)
    nothing = do.eq(y, zero)
    q = do.select_n(*promote_full(nothing, do.div(do.sub(x, r), y), do.div(x, y)))
    off = getattr(do, "and")(do.ne(do.sign(y), do.sign(r)), do.ne(r, zero))
    q = do.select_n(*promote_full(off, q, do.sub(q, const(q, 1))))
    return do.round(q, rounding_method=0)


def promote_full(*xs: Any) -> list[Any]:
    """All operands with the full common shape, scalars too."""
    shape = next((typeof(x).shape for x in xs if typeof(x).shape), ())
    return [
        (
            x
            if typeof(x).shape == shape
            else do.broadcast_in_dim(x, shape=shape, broadcast_dimensions=(), sharding=None)
        )
        for x in xs
    ]


def _power(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    if is_integer(dtype) or dtype == np.dtype(bool):
        return _integer_power(x, y)
    return do.pow(x, y)


def _integer_power(x: Any, y: Any) -> Any:
    """Square and multiply over the bits of the exponent; negative exponents give 0, except for
    bases 1 and -1."""
    if typeof(x).dtype == np.dtype(bool):
        x, y = (
            do.convert_element_type(v, new_dtype=canonicalize(int), weak_type=False, sharding=None)
            for v in (x, y)
        )
    dtype = typeof(x).dtype
    x, y = promote_full(x, y)
    one, zero = (promote_full(x, const(x, v))[1] for v in (1, 0))
    acc, base, left = one, x, y
    for _ in range(min(dtype.itemsize * 8, 64)):
        odd = do.ne(getattr(do, "and")(left, const(left, 1)), const(left, 0))
        acc = do.select_n(odd, acc, do.mul(acc, base))
        base = do.mul(base, base)
        left = do.shift_right_logical(left, const(left, 1))
    if is_unsigned(dtype):
        return acc
    negative = do.lt(y, const(y, 0))
    minus = do.neg(one)
    odd = do.ne(getattr(do, "and")(y, const(y, 1)), const(y, 0))
    inverse = do.select_n(
        do.eq(x, one), do.select_n(do.eq(x, minus), zero, do.select_n(odd, one, minus)), one
    )
    return do.select_n(negative, acc, inverse)


@python_only
def power(x1: Any, x2: Any, /) -> Any:
    """x1 raised to x2, elementwise. An exponent that is a Python int becomes repeated
    multiplication.

    >>> import calque.numpy as jnp
    >>> jnp.power(jnp.arange(3.0), 2)
    Array([0., 1., 4.], dtype=float32)"""
    check_arraylike("power", x1, x2)
    x1, x2 = as_operand(x1), as_operand(x2)
    if type(x2) is int and not (is_integer(typeof(x1).dtype) and x2 < 0):
        if typeof(x1).dtype == np.dtype(bool):
            x1 = do.convert_element_type(
                x1, new_dtype=canonicalize(int), weak_type=False, sharding=None
            )
        return do.integer_pow(x1, y=x2)
    return binary_power(x1, x2)


binary_power = binary("power", _power, _EXACT, "x1 raised to x2.")


def _abs(x: Any) -> Any:
    dtype = typeof(x).dtype
    return x if dtype == np.dtype(bool) or is_unsigned(dtype) else do.abs(x)


def _rounding(prim: str) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return x if not is_inexact(typeof(x).dtype) else getattr(do, prim)(x)

    return apply


def _positive(x: Any) -> Any:
    return x


def _negative(x: Any) -> Any:
    if typeof(x).dtype == np.dtype(bool):
        raise TypeError(
            "The calque.numpy boolean negative, the `-` operator, is not supported; use the `~`"
            " operator or logical_not instead."
        )
    return do.neg(x)


def _reciprocal(x: Any) -> Any:
    return do.div(const(x, 1), x)


def _square(x: Any) -> Any:
    if typeof(x).dtype == np.dtype(bool):
        x = do.convert_element_type(x, new_dtype=canonicalize(int), weak_type=False, sharding=None)
    return do.square(x)


def _scale(factor: float) -> Callable[[Any], Any]:
    return lambda x: do.mul(x, const(x, factor))


def _log_base(base: float) -> Callable[[Any], Any]:
    return lambda x: do.div(do.log(x), np.asarray(np.log(base)).astype(typeof(x).dtype))


def _rint(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        return do.complex(_rint(do.real(x)), _rint(do.imag(x)))
    if not is_float(dtype):
        return do.convert_element_type(
            x, new_dtype=inexact_of(dtype), weak_type=False, sharding=None
        )
    return do.round(x, rounding_method=1)


def _trunc(x: Any) -> Any:
    if is_complex(typeof(x).dtype):
        raise TypeError(
            "trunc is not defined for complex numbers: take the real and imaginary parts"
        )
    return do.mul(do.sign(x), do.floor(do.abs(x))) if is_float(typeof(x).dtype) else x


def _imag(x: Any) -> Any:
    return do.imag(x) if is_complex(typeof(x).dtype) else filled_like(x, 0)


def _countable(x: Any) -> Any:
    return convert(x, np.dtype("uint8")) if typeof(x).dtype == np.dtype(bool) else x


def _fabs(x: Any) -> Any:
    if is_complex(typeof(x).dtype):
        raise TypeError("ufunc 'fabs' does not support complex dtypes: use absolute")
    return _abs(x)


# ---------------------------------------------------------------- predicates


def _isnan(x: Any) -> Any:
    return do.ne(x, x) if is_inexact(typeof(x).dtype) else _constant(x, False)


def _isfinite(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        return getattr(do, "and")(do.is_finite(do.real(x)), do.is_finite(do.imag(x)))
    return do.is_finite(x) if is_float(dtype) else _constant(x, True)


def _isinf(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        return getattr(do, "or")(_isinf(do.real(x)), _isinf(do.imag(x)))
    return (
        do.eq(do.abs(x), np.asarray(np.inf).astype(dtype))
        if is_float(dtype)
        else _constant(x, False)
    )


def _constant(x: Any, value: bool) -> Any:
    return do.broadcast_in_dim(
        np.asarray(value), shape=typeof(x).shape, broadcast_dimensions=(), sharding=None
    )


def _sign_infinite(value: float) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        dtype = typeof(x).dtype
        if is_complex(dtype):
            raise ValueError(
                f"is{'pos' if value > 0 else 'neg'}inf is not defined for complex numbers"
            )
        return do.eq(x, np.asarray(value).astype(dtype)) if is_float(dtype) else _constant(x, False)

    return apply


def _signbit(x: Any) -> Any:
    dtype = typeof(x).dtype
    if is_complex(dtype):
        raise ValueError(f"signbit is not defined for complex numbers, got dtype {dtype.name}")
    if not is_float(dtype):
        return do.lt(x, np.zeros((), dtype)) if dtype != np.dtype(bool) else _constant(x, False)
    bits = np.dtype(f"int{dtype.itemsize * 8}")
    return do.lt(do.bitcast_convert_type(x, new_dtype=bits), np.zeros((), bits))


def _compare(prim: str) -> Callable[[Any, Any], Any]:
    def apply(x: Any, y: Any) -> Any:
        if is_complex(typeof(x).dtype) and prim in ("lt", "le", "gt", "ge"):
            return _lexicographic(prim, x, y)
        return getattr(do, prim)(x, y)

    return apply


def _lexicographic(prim: str, x: Any, y: Any) -> Any:
    """Complex numbers are ordered by real part, then by imaginary part."""
    a, b = do.real(x), do.real(y)
    return do.select_n(
        *promote_full(
            do.eq(a, b), getattr(do, prim)(a, b), getattr(do, prim)(do.imag(x), do.imag(y))
        )
    )


# ---------------------------------------------------------------- the tables

UNARY: dict[str, tuple[Callable[[Any], Any], Promotion, str]] = {
    "negative": (_negative, _EXACT, "-x."),
    "positive": (_positive, _EXACT, "+x."),
    "absolute": (_abs, _EXACT, "The absolute value; the modulus of complex numbers."),
    "sign": (lambda x: do.sign(x), _EXACT, "-1, 0 or 1; x / |x| for complex numbers."),
    "floor": (_rounding("floor"), _EXACT, "The largest integer not above x."),
    "ceil": (_rounding("ceil"), _EXACT, "The smallest integer not below x."),
    "rint": (_rint, _EXACT, "The nearest integer, halves to even."),
    "trunc": (_trunc, _EXACT, "x without its fraction."),
    **{
        name: (lambda x, p=prim: getattr(do, p)(x), _INEXACT, doc)
        for name, prim, doc in (
            ("exp", "exp", "e to the power x."),
            ("exp2", "exp2", "2 to the power x."),
            ("expm1", "expm1", "exp(x) - 1, precise near 0."),
            ("log", "log", "The natural logarithm."),
            ("log1p", "log1p", "log(1 + x), precise near 0."),
            ("sin", "sin", "The sine."),
            ("cos", "cos", "The cosine."),
            ("tan", "tan", "The tangent."),
            ("tanh", "tanh", "The hyperbolic tangent."),
            ("sqrt", "sqrt", "The square root; nan below 0."),
            ("cbrt", "cbrt", "The cube root."),
            ("sinh", "sinh", "The hyperbolic sine."),
            ("cosh", "cosh", "The hyperbolic cosine."),
            ("arcsin", "asin", "The inverse sine."),
            ("arccos", "acos", "The inverse cosine."),
            ("arctan", "atan", "The inverse tangent."),
            ("arcsinh", "asinh", "The inverse hyperbolic sine."),
            ("arccosh", "acosh", "The inverse hyperbolic cosine."),
            ("arctanh", "atanh", "The inverse hyperbolic tangent."),
        )
    },
    "square": (_square, _EXACT, "x * x."),
    "reciprocal": (_reciprocal, _INEXACT, "1 / x."),
    "isnan": (_isnan, _EXACT, "Is x not a number?"),
    "isinf": (_isinf, _EXACT, "Is x infinite?"),
    "isfinite": (_isfinite, _EXACT, "Is x neither infinite nor nan?"),
    "isposinf": (_sign_infinite(np.inf), _EXACT, "Is x positive infinity?"),
    "isneginf": (_sign_infinite(-np.inf), _EXACT, "Is x negative infinity?"),
    "signbit": (_signbit, _EXACT, "Is the sign bit of x set?"),
    "bitwise_not": (lambda x: getattr(do, "not")(x), _integers, "The bits of x inverted."),
    "bitwise_count": (
        lambda x: do.convert_element_type(
            do.population_count(_countable(_abs(x))),
            new_dtype=np.dtype("uint8"),
            weak_type=False,
            sharding=None,
        ),
        _integers,
        "The number of set bits of |x|.",
    ),
    "logical_not": (lambda x: getattr(do, "not")(x), _bools, "Is x zero?"),
    "deg2rad": (_scale(np.pi / 180), _INEXACT, "Degrees to radians."),
    "rad2deg": (_scale(180 / np.pi), _INEXACT, "Radians to degrees."),
    "log2": (_log_base(2), _INEXACT, "The logarithm to base 2."),
    "log10": (_log_base(10), _INEXACT, "The logarithm to base 10."),
    "conjugate": (
        lambda x: do.conj(x, input_dtype=typeof(x).dtype) if is_complex(typeof(x).dtype) else x,
        _EXACT,
        "The complex conjugate.",
    ),
    "real": (lambda x: do.real(x) if is_complex(typeof(x).dtype) else x, _EXACT, "The real part."),
    "imag": (_imag, _EXACT, "The imaginary part."),
}

BINARY: dict[str, tuple[Callable[[Any, Any], Any], Promotion, str]] = {
    "add": (_add, _EXACT, "x + y."),
    "subtract": (_subtract, _EXACT, "x - y."),
    "multiply": (_multiply, _EXACT, "x * y."),
    "true_divide": (lambda x, y: do.div(x, y), _INEXACT, "x / y."),
    "floor_divide": (_floor_divide, _NUMERIC, "x // y."),
    "remainder": (_remainder, _NUMERIC, "x % y, with the sign of y."),
    "fmod": (lambda x, y: do.rem(x, y), _NUMERIC, "The remainder with the sign of x."),
    "maximum": (lambda x, y: do.max(x, y), _EXACT, "The larger value; nan if either is."),
    "minimum": (lambda x, y: do.min(x, y), _EXACT, "The smaller value; nan if either is."),
    "arctan2": (lambda x, y: do.atan2(x, y), _INEXACT, "The angle of the point (y, x)."),
    "nextafter": (lambda x, y: do.nextafter(x, y), _INEXACT, "The next float after x towards y."),
    "bitwise_and": (lambda x, y: getattr(do, "and")(x, y), _integers, "x & y."),
    "bitwise_or": (lambda x, y: getattr(do, "or")(x, y), _integers, "x | y."),
    "bitwise_xor": (lambda x, y: do.xor(x, y), _integers, "x ^ y."),
    "left_shift": (lambda x, y: do.shift_left(x, y), _shifted, "x << y."),
    "right_shift": (
        lambda x, y: (
            do.shift_right_logical(x, y)
            if is_unsigned(typeof(x).dtype)
            else do.shift_right_arithmetic(x, y)
        ),
        _shifted,
        "x >> y.",
    ),
    "logical_and": (lambda x, y: getattr(do, "and")(x, y), _bools, "Are both true?"),
    "logical_or": (lambda x, y: getattr(do, "or")(x, y), _bools, "Is either true?"),
    "logical_xor": (lambda x, y: do.xor(x, y), _bools, "Is exactly one true?"),
    **{
        name: (_compare(prim), _EXACT, doc)
        for name, prim, doc in (
            ("equal", "eq", "x == y."),
            ("not_equal", "ne", "x != y."),
            ("less", "lt", "x < y."),
            ("less_equal", "le", "x <= y."),
            ("greater", "gt", "x > y."),
            ("greater_equal", "ge", "x >= y."),
        )
    },
}

_XY = frozenset(
    (
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "nextafter",
        "left_shift",
    )
)

UFUNCS: dict[str, Any] = {
    **{
        name: unary(name, *row, "val" if name in ("real", "imag") else "x")
        for name, row in UNARY.items()
    },
    **{
        name: binary(name, *row, ("x", "y") if name in _XY else ("x1", "x2"))
        for name, row in BINARY.items()
    },
    "power": power,
}
_ALIASES = {
    "abs": "absolute",
    "divide": "true_divide",
    "mod": "remainder",
    "invert": "bitwise_not",
    "bitwise_invert": "bitwise_not",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "pow": "power",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "degrees": "rad2deg",
    "radians": "deg2rad",
}
UFUNCS.update({alias: UFUNCS[name] for alias, name in _ALIASES.items()})


def _with_out(name: str) -> Any:
    """`isposinf(x, out=None)`: the predicates that JAX gives an `out`, which must stay None."""
    f = UFUNCS[name]

    def ufunc(x: Any, /, out: None = None) -> Any:
        if out is not None:
            raise NotImplementedError(
                f"The 'out' argument to jnp.{name} is not supported: arrays are immutable."
            )
        return f(x)

    return named(ufunc, name, f.__doc__)


UFUNCS.update({name: _with_out(name) for name in ("isposinf", "isneginf")})


def _variant(name: str, of: str, promotion: Promotion, *parameters: str) -> Any:
    """The same function of two operands under another name, with other parameter names."""
    return binary(name, BINARY[of][0], promotion, BINARY[of][2], parameters)  # type: ignore[arg-type]


UFUNCS["fabs"] = unary("fabs", _fabs, _INEXACT, "The absolute value, in floating point.")
UFUNCS["bitwise_left_shift"] = _variant("bitwise_left_shift", "left_shift", _shifted, "x", "y")
globals().update(UFUNCS)
