"""Arithmetic: negation to powers, maximum and minimum, and the sum of cotangents."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dims import whole
from calque.core.dtypes import canonicalize, iinfo, is_complex, is_integer, is_signed, real_part
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.ops.common import (
    FLOAT,
    INEXACT,
    INT,
    NUMBER,
    PLAIN,
    REAL,
    SIGNED_NUMBER,
    Accepts,
    batch_elementwise,
    const,
    filled_like,
    gathered,
    operand,
    operands,
    refuse_dtype,
    same_shapes,
    spread,
)
from calque.ops.conversions import wide
from calque.ops.kinds import (
    apply_nary,
    apply_unary,
    common_aval,
    linear_nary,
    linear_unary,
    nary,
    nary_jvp,
    not_linear,
    refusing,
    same_dtype,
    unary,
    widened,
)

# ---------------------------------------------------------------- one operand


def _sign_meaning(x: np.ndarray) -> np.ndarray:
    if is_integer(x.dtype):
        return ((x > 0).astype(np.int8) - (x < 0).astype(np.int8)).astype(x.dtype)
    if is_complex(x.dtype):
        w = wide(x)
        size = np.abs(w)
        return np.where(size == 0, 0, w / np.where(size == 0, 1, size)).astype(x.dtype)
    w = wide(x)
    return np.where((w == 0) | np.isnan(w), w, np.copysign(1.0, w)).astype(x.dtype)


def _abs_tangent(t: Any, x: Any, out: Any) -> Any:
    if not is_complex(typeof(x).dtype):
        return do.select_n(do.ge(x, const(x, 0)), do.neg(t), t)
    safe = do.select_n(do.eq(out, const(out, 0)), out, filled_like(out, 1))
    unit = do.complex(do.div(do.real(x), safe), do.div(do.neg(do.imag(x)), safe))
    return do.real(do.mul(t, unit))


def lexicographic(
    choose_x: Callable[[Any, Any], Any], reals: Callable[..., Any]
) -> Callable[..., np.ndarray]:
    """max or min: NaN wins among reals; complex numbers by real, then imaginary part, the second
    where neither comes first."""

    def meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not is_complex(x.dtype):
            return np.asarray(reals(x, y)).astype(x.dtype)
        first = choose_x(x.real, y.real) | ((x.real == y.real) & choose_x(x.imag, y.imag))
        return np.where(first, x, y)

    return meaning


def _abs_meaning(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(wide(x))).astype(real_part(x.dtype))


neg_p = unary(
    "neg",
    NUMBER,
    same_dtype(np.negative),
    lambda t, x, out: do.neg(t),
    transpose=linear_unary(lambda ct, aval: do.neg(ct)),
)
sign_p = unary("sign", NUMBER, _sign_meaning, None)
abs_p = unary("abs", SIGNED_NUMBER, _abs_meaning, _abs_tangent, result=real_part)
square_p = unary(
    "square",
    NUMBER,
    same_dtype(lambda x: x * x),
    lambda t, x, out: do.mul(t, do.mul(const(x, 2), x)),
)

# ---------------------------------------------------------------- two operands


def int_div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integer division that truncates; x/0 is -1 (all bits set), and the smallest number over -1 is
    itself."""
    a, b, none = _safe_operands(x, y)
    q = a // b
    q = q + ((a - q * b != 0) & ((a < 0) != (b < 0)))
    return np.where(none, np.asarray(-1).astype(a.dtype), q).astype(x.dtype)


def int_rem(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The remainder with the sign of x; by 0 it is x."""
    a, b, none = _safe_operands(x, y)
    q = a // b
    q = q + ((a - q * b != 0) & ((a < 0) != (b < 0)))
    return np.where(none, a, a - q * b).astype(x.dtype)


def _safe_operands(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands that Python's `//` takes without overflow or division by zero, and where y is 0."""
    a, b = (v.astype(np.int32) if v.dtype.kind not in "iu" else v for v in (x, y))
    none = b == 0
    bad = none
    if is_signed(x.dtype):
        bad = bad | ((b == -1) & (x == iinfo(x.dtype).min))
    return a, np.where(bad, np.asarray(1).astype(b.dtype), b), none


def _div_meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return int_div(x, y) if is_integer(x.dtype) else widened(np.divide)(x, y)


def _rem_meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return int_rem(x, y) if is_integer(x.dtype) else widened(np.fmod)(x, y)


def _mulhi_meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = iinfo(x.dtype).bits
    product = np.asarray(x.astype(object) * y.astype(object), object)  # of numbers: an int
    return np.asarray(product // 2**bits, object).astype(x.dtype)


def _toward_zero(q: Any) -> Any:
    return do.mul(do.sign(q), do.floor(do.abs(q)))


def share_of(x: Any, out: Any, y: Any) -> Any:
    """How much of the derivative of max or min goes to x: all where it is chosen, half where x and
    y are equal."""
    shape = typeof(out).shape
    x, y, one = spread(x, shape), spread(y, shape), filled_like(out, 1)
    taken = do.select_n(do.eq(x, out), filled_like(out, 0), one)
    return do.mul(taken, do.select_n(do.eq(y, out), one, filled_like(out, 0.5)))


def _mul_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    both = type(x) is UndefinedPrimal and type(y) is UndefinedPrimal
    if both:
        raise NotImplementedError("mul is not linear in both of its operands together")
    other, linear = (y, x) if type(x) is UndefinedPrimal else (x, y)
    back = Zero(linear.aval) if type(ct) is Zero else gathered(do.mul(ct, other), linear.aval)
    return [back, None] if linear is x else [None, back]


def _div_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    if type(y) is UndefinedPrimal:
        raise NotImplementedError("div is not linear in its second operand")
    return [Zero(x.aval) if type(ct) is Zero else gathered(do.div(ct, y), x.aval), None]


_both = linear_nary(lambda ct, x, y: ct, lambda ct, x, y: ct)

add_p = nary(
    "add",
    NUMBER,
    same_dtype(np.add),
    lambda t, out, x, y: t,
    lambda t, out, x, y: t,
    transpose=_both,
)
add_any_p = nary(
    "add_any",
    PLAIN,
    same_dtype(np.add),
    lambda t, out, x, y: t,
    lambda t, out, x, y: t,
    transpose=_both,
)
sub_p = nary(
    "sub",
    NUMBER,
    same_dtype(np.subtract),
    lambda t, out, x, y: t,
    lambda t, out, x, y: do.neg(t),
    transpose=linear_nary(lambda ct, x, y: ct, lambda ct, x, y: do.neg(ct)),
)
mul_p = nary(
    "mul",
    NUMBER,
    same_dtype(np.multiply),
    lambda t, out, x, y: do.mul(t, y),
    lambda t, out, x, y: do.mul(x, t),
    transpose=_mul_transpose,
)
div_p = nary(
    "div",
    NUMBER,
    _div_meaning,
    lambda t, out, x, y: do.div(t, y),
    lambda t, out, x, y: do.neg(do.mul(t, do.div(out, y))),
    transpose=_div_transpose,
)
rem_p = nary(
    "rem",
    REAL,
    _rem_meaning,
    lambda t, out, x, y: t,
    lambda t, out, x, y: do.neg(do.mul(t, _toward_zero(do.div(x, y)))),
)
max_p = nary(
    "max",
    PLAIN,
    lexicographic(np.greater, np.maximum),
    lambda t, out, x, y: do.mul(t, share_of(x, out, y)),
    lambda t, out, x, y: do.mul(t, share_of(y, out, x)),
)
min_p = nary(
    "min",
    PLAIN,
    lexicographic(np.less, np.minimum),
    lambda t, out, x, y: do.mul(t, share_of(x, out, y)),
    lambda t, out, x, y: do.mul(t, share_of(y, out, x)),
)
mulhi_p = nary("mulhi", INT, _mulhi_meaning, None, None)

# ---------------------------------------------------------------- powers

_EXPONENT = Accepts("integer, or the dtype of the base", (*INT.dtypes,))


def _pow_meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not is_integer(y.dtype):
        return widened(np.power)(x, y)
    w, odd = wide(x), (y & 1).astype(bool)
    if is_complex(x.dtype):
        return np.power(w, y.astype(np.float64)).astype(x.dtype)
    size = np.power(np.abs(w), y.astype(np.float64))
    return np.where(odd, np.copysign(size, w), size).astype(x.dtype)


def _pow_shape(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    if x.dtype not in INEXACT:
        raise refuse_dtype("pow", x.dtype, INEXACT, 0)
    if y.dtype == x.dtype:
        return x if x is y else common_aval("pow", (x, y))
    if y.dtype not in INT:
        raise refuse_dtype("pow", y.dtype, _EXPONENT, 1)
    out = common_aval("pow", (x.update(weak_type=False), ShapedArray(y.shape, x.dtype)))
    return out.update(weak_type=x.weak_type and y.weak_type)


def pow_tangent_x(t: Any, out: Any, x: Any, y: Any) -> Any:
    """y x^(y-1), and 0 where both are 0, or where the exponent is the integer 0."""
    shape = typeof(out).shape
    x, y = spread(x, shape), spread(y, shape)
    none, instead = do.eq(y, const(y, 0)), 0  # x^0 is 1 even where x is no number
    if not is_integer(typeof(y).dtype):
        none, instead = do.and_(none, do.eq(x, const(x, 0))), 1
    lower = do.select_n(none, do.sub(y, const(y, 1)), filled_like(y, instead))
    factor = _as_dtype(y, typeof(out).dtype)
    return do.mul(t, do.mul(factor, do.pow(x, lower)))


def pow_tangent_y(t: Any, out: Any, x: Any, y: Any) -> Any:
    safe = do.select_n(do.eq(x, const(x, 0)), x, filled_like(x, 1))
    return do.mul(t, do.mul(do.log(safe), out))


def _as_dtype(x: Any, dtype: Any) -> Any:
    if typeof(x).dtype == dtype:
        return x
    return do.convert_element_type(x, new_dtype=dtype)


pow_p = Primitive(
    "pow",
    meaning=_pow_meaning,
    shape=_pow_shape,
    jvp=nary_jvp("pow", (pow_tangent_x, pow_tangent_y)),
    transpose=not_linear("pow"),
    batch=batch_elementwise("pow"),
)


def _integer_pow_meaning(x: np.ndarray, *, y: int) -> np.ndarray:
    base = wide(x)
    out, square, n = np.ones_like(base), base, builtins.abs(y)
    while n:
        if n & 1:
            out = out * square
        n >>= 1
        square = square * square if n else square
    return np.asarray(1 / out if y < 0 else out).astype(x.dtype)


def _integer_pow_shape(x: ShapedArray, *, y: int) -> ShapedArray:
    if x.dtype not in NUMBER:
        raise refuse_dtype("integer_pow", x.dtype, NUMBER)
    if y < 0 and is_integer(x.dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({x.str_short()}, {y}):"
            " convert to float first"
        )
    return x


def _integer_pow_tangent(t: Any, x: Any, out: Any, *, y: int) -> Any:
    if y == 0:
        return filled_like(out, 0)
    slope = x if y == 2 else do.integer_pow(x, y=y - 1)
    return t if y == 1 else do.mul(t, do.mul(const(x, y), slope))


integer_pow_p = unary(
    "integer_pow", NUMBER, _integer_pow_meaning, _integer_pow_tangent, shape=_integer_pow_shape
)


nextafter_p = nary(
    "nextafter",
    FLOAT,
    np.nextafter,
    refusing("nextafter has no derivative: its result moves in steps of one ulp"),
    refusing("nextafter has no derivative: its result moves in steps of one ulp"),
)

# ---------------------------------------------------------------- public functions


def neg(x: ArrayLike) -> Array:
    """The negative of each element.

    Args:
        x: Numbers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.neg(jnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)"""
    return apply_unary(neg_p, x)


def sign(x: ArrayLike) -> Array:
    """The sign of each element: -1, 0 or 1, NaN for NaN; of complex numbers x / abs(x).

    Args:
        x: Numbers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.sign(jnp.array([-3.0, 0.0, 2.0]))
    Array([-1.,  0.,  1.], dtype=float32)"""
    return apply_unary(sign_p, x)


def abs(x: ArrayLike) -> Array:
    """The absolute value of each element.

    Args:
        x: Numbers.

    Returns:
        An array of the shape of `x`; of complex numbers real ones.

    >>> lax.abs(jnp.array([-3.0, 2.0]))
    Array([3., 2.], dtype=float32)"""
    return apply_unary(abs_p, x)


def square(x: ArrayLike) -> Array:
    """Each element times itself.

    Args:
        x: Numbers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.square(jnp.array([3.0, -2.0]))
    Array([9., 4.], dtype=float32)"""
    return apply_unary(square_p, x)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum of two arrays, element by element.

    Args:
        x: Numbers.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.add(jnp.array([1.0, 2.0]), 10.0)
    Array([11., 12.], dtype=float32)"""
    return apply_nary(add_p, x, y)


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """The difference of two arrays, element by element.

    Args:
        x: Numbers.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.sub(jnp.array([1.0, 2.0]), 10.0)
    Array([-9., -8.], dtype=float32)"""
    return apply_nary(sub_p, x, y)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """The product of two arrays, element by element.

    Args:
        x: Numbers.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.
        out_dtype: What both are converted to first, whose dtypes may differ then; None leaves them.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.mul(jnp.array([3.0, 2.0]), 10.0)
    Array([30., 20.], dtype=float32)"""
    if out_dtype is not None:
        wanted = canonicalize(out_dtype)
        x, y = operands("mul", *(_as_dtype(v, wanted) for v in (x, y)))
    return apply_nary(mul_p, x, y)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high half of the product of integers, which has twice their width.

    Args:
        x: Integers.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.mulhi(jnp.int32(2**30), jnp.int32(8))
    Array(2, dtype=int32)"""
    return apply_nary(mulhi_p, x, y)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """The quotient of two arrays, element by element. Of integers it is truncated towards zero.

    Args:
        x: Numbers.
        y: The divisor, of the dtype and shape of `x`. An integer divided by 0 gives -1.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.div(jnp.array([1.0, 3.0]), 2.0), lax.div(-7, 2)
    (Array([0.5, 1.5], dtype=float32), Array(-3, dtype=int32, weak_type=True))"""
    return apply_nary(div_p, x, y)


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of the truncated quotient, with the sign of `x`.

    Args:
        x: Numbers.
        y: The divisor, of the dtype and shape of `x`. The remainder by the integer 0 is `x`.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.rem(-7, 2)
    Array(-1, dtype=int32, weak_type=True)"""
    return apply_nary(rem_p, x, y)


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of two elements, NaN if either is; complex numbers by real, then imaginary part.

    Args:
        x: Numbers.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.max(jnp.array([1.0, 4.0]), 2.0)
    Array([2., 4.], dtype=float32)"""
    return apply_nary(max_p, x, y)


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of two elements, NaN if either is; complex numbers by real, then imaginary.

    Args:
        x: Numbers.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.min(jnp.array([1.0, 4.0]), 2.0)
    Array([1., 2.], dtype=float32)"""
    return apply_nary(min_p, x, y)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Each element to a power.

    Args:
        x: The base.
        y: The exponent, of the dtype of `x` or integers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.pow(jnp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)"""
    x, y = operand(x), operand(y)
    if (isinstance(y, int) and not isinstance(y, bool)) or is_integer(typeof(y).dtype):
        x = float(x) if isinstance(x, int) else x
        return pow_p.bind(*same_shapes("pow", [x, y]))
    return apply_nary(pow_p, x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Each element to the power of an int.

    Args:
        x: Numbers.
        y: An int of Python, which may be negative for numbers that are no integers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.integer_pow(2.0, -1)
    Array(0.5, dtype=float32, weak_type=True)"""
    return apply_unary(integer_pow_p, x, y=whole(y, "integer_pow: y"))


def reciprocal(x: ArrayLike) -> Array:
    """1 over each element.

    Args:
        x: Numbers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.reciprocal(4.0)
    Array(0.25, dtype=float32, weak_type=True)"""
    return integer_pow(x, -1)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next floating-point number in the direction of another one.

    Args:
        x1: Where to start.
        x2: The direction, of the dtype and shape of `x1`.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.nextafter(1.0, 2.0) > 1.0
    Array(True, dtype=bool, weak_type=True)"""
    return apply_nary(nextafter_p, x1, x2)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one value."""
    return add_any_p.bind(x, y)
