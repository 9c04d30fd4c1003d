"""Operations of each element by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core.dtypes import finfo, iinfo, is_complex, is_float, is_integer, is_unsigned
from calque.xla.lower.rules import BYTES, RULES, Builder, Rule, as_bytes, has_two_bits, rule
from calque.xla.lower.sizes import size_of
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

UNARY: Final = {
    "abs": "abs",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "clz": "count_leading_zeros",
    "cos": "cosine",
    "drawn_exp": "exponential",
    "drawn_log": "log",
    "drawn_log1p": "log_plus_one",
    "drawn_tan": "tan",
    "exp": "exponential",
    "expm1": "exponential_minus_one",
    "floor": "floor",
    "imag": "imag",
    "is_finite": "is_finite",
    "log": "log",
    "log1p": "log_plus_one",
    "logistic": "logistic",
    "neg": "negate",
    "not": "not",
    "real": "real",
    "rsqrt": "rsqrt",
    "sin": "sine",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
BINARY: Final = {
    "add": "add",
    "add_any": "add",
    "and": "and",
    "atan2": "atan2",
    "div": "divide",
    "drawn_pow": "power",
    "mul": "multiply",
    "or": "or",
    "rem": "remainder",
    "shift_left": "shift_left",
    "sub": "subtract",
    "xor": "xor",
}
CHLO: Final = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "bessel_i1e": "bessel_i1e",
    "cosh": "cosh",
    "digamma": "digamma",
    "drawn_erf": "erf",
    "erf": "erf",
    "erf_inv": "erf_inv",
    "erfc": "erfc",
    "lgamma": "lgamma",
    "normal_erf_inv": "erf_inv",
    "polygamma": "polygamma",
    "sinh": "sinh",
    "zeta": "zeta",
}
_SINGLE: Final = np.dtype("float32")
# operations of CHLO that XLA has for floats of two bytes and more alone
_NOT_OF_BYTES: Final = frozenset(("bessel_i1e", "erfc", "polygamma", "zeta"))
COMPARISONS: Final = {"eq": "EQ", "ne": "NE", "ge": "GE", "gt": "GT", "le": "LE", "lt": "LT"}


def _operation(name: str) -> Rule:
    def lower(b: Builder, out: Tensor, *xs: Value, **_: Any) -> Value:
        return b.same(f"stablehlo.{name}", out, *[b.spread(x, out.shape) for x in xs])

    return lower


def _chlo(name: str) -> Rule:
    def lower(b: Builder, out: Tensor, *xs: Value, **_: Any) -> Value:
        xs = tuple(b.spread(x, out.shape) for x in xs)
        if name in _NOT_OF_BYTES and out.dtype.itemsize == 1:
            found = b.chlo(name, out.with_dtype(_SINGLE), *[in_single(b, x) for x in xs])
            return b.convert(found, out.dtype)
        return b.chlo(name, out, *xs)

    return lower


def in_single(b: Builder, x: Value) -> Value:
    """Floats of fewer bytes as float32, for operations whose steps these cannot hold."""
    return b.convert(x, _SINGLE) if is_float(x.dtype) and x.dtype.itemsize < 4 else x


def _comparison(direction: str) -> Rule:
    def lower(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
        return b.compare(direction, b.spread(x, out.shape), b.spread(y, out.shape))

    return lower


def _total(direction: str) -> Rule:
    """Comparison in the order that puts -0 before 0 and NaN behind all else."""

    def lower(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
        x, y = b.spread(x, out.shape), b.spread(y, out.shape)
        return b.compare(direction, x, y, "TOTALORDER" if is_float(x.dtype) else None)

    return lower


RULES.update({name: _operation(op) for name, op in (UNARY | BINARY).items()})
RULES.update({name: _chlo(op) for name, op in CHLO.items()})
RULES.update({name: _comparison(d) for name, d in COMPARISONS.items()})
RULES.update({f"{name}_to": _total(COMPARISONS[name]) for name in ("eq", "le", "lt")})


def _wave(name: str) -> Rule:
    """Sines and cosines, circular and hyperbolic: of complex numbers by those of their parts, since
    XLA's own lose small parts of their results."""
    of_real, hyperbolic = RULES[name], name.endswith("h")

    def lower(b: Builder, out: Tensor, x: Value, **options: Any) -> Value:
        x = b.spread(x, out.shape)
        if not is_complex(x.dtype):
            return of_real(b, out, x, **options)  # type: ignore[no-any-return]
        growth, turn = parts(b, x) if hyperbolic else parts(b, x)[::-1]
        s, c = (b.same(f"stablehlo.{op}", turn.tensor, turn) for op in ("sine", "cosine"))
        sh, ch = (b.chlo(op, turn.tensor, growth) for op in ("sinh", "cosh"))
        if name in ("cos", "cosh"):
            first = b.binary("multiply", c, ch)
            second = _vanishing(b, turn, s, sh)
            if name == "cos":
                second = b.same("stablehlo.negate", second.tensor, second)
            return complex_(b, out, first, second)
        first, second = b.binary("multiply", c, sh), _vanishing(b, turn, s, ch)
        return complex_(b, out, *((first, second) if hyperbolic else (second, first)))

    return lower


def _vanishing(b: Builder, turn: Value, sine: Value, growth: Value) -> Value:
    """The product of a sine and what may be infinite: 0 where the sine is that of 0."""
    none = b.compare("EQ", turn, b.filled(0, turn.tensor))
    return b.select(none, sine, b.binary("multiply", sine, growth))


RULES.update({name: _wave(name) for name in ("sin", "cos", "sinh", "cosh")})


def _extremal(op: str, direction: str) -> Rule:
    def lower(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
        x, y = b.spread(x, out.shape), b.spread(y, out.shape)
        if is_complex(x.dtype):
            return b.select(lexicographic(b, direction, x, y), x, y)
        return b.same(f"stablehlo.{op}", out, x, y)

    return lower


RULES.update(max=_extremal("maximum", "GT"), min=_extremal("minimum", "LT"))


def _quotient(name: str) -> Rule:
    """Quotients and remainders, with what they are of integers divided by 0 written down: XLA
    divides constants while it compiles, and divides by 0 then, which ends the process."""
    whole = _operation(BINARY[name])

    def lower(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
        if not is_integer(out.dtype):
            return whole(b, out, x, y)  # type: ignore[no-any-return]
        x, y = b.spread(x, out.shape), b.spread(y, out.shape)
        by_nothing = b.compare("EQ", y, b.filled(0, y.tensor))
        found = whole(b, out, x, b.select(by_nothing, b.filled(1, y.tensor), y))
        largest = iinfo(out.dtype).max if is_unsigned(out.dtype) else -1
        return b.select(by_nothing, b.filled(largest, out) if name == "div" else x, found)

    return lower


RULES.update({name: _quotient(name) for name in ("div", "rem")})


def parts(b: Builder, x: Value) -> tuple[Value, Value]:
    """The real and the imaginary parts of complex numbers."""
    part = x.tensor.with_dtype(np.zeros((), x.dtype).real.dtype)
    return b.same("stablehlo.real", part, x), b.same("stablehlo.imag", part, x)


def lexicographic(b: Builder, direction: str, x: Value, y: Value) -> Value:
    """Comparison of complex numbers: by real parts, by imaginary ones where these are equal."""
    (xr, xi), (yr, yi) = parts(b, x), parts(b, y)
    same = b.compare("EQ", xr, yr)
    return b.select(same, b.compare(direction, xi, yi), b.compare(direction, xr, yr))


@rule("complex")
def complex_(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
    x, y = b.spread(x, out.shape), b.spread(y, out.shape)
    return b.one(out, "stablehlo.complex ", x, ", ", y, f" : {out}")  # type: ignore[no-any-return]


@rule("conj")
def conj(b: Builder, out: Tensor, x: Value, **_: Any) -> Value:
    if not is_complex(x.dtype):
        return complex_(b, out, x, b.filled(0, x.tensor))
    return b.chlo("conj", out, x)


@rule("square")
def square(b: Builder, out: Tensor, x: Value) -> Value:
    if is_float(x.dtype) or is_complex(x.dtype):
        return b.chlo("square", out, x)
    return b.binary("multiply", x, x)


@rule("nextafter")
def nextafter(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
    """Of powers of two without a sign by their exponents: CHLO takes the first bit for a sign."""
    x, y = b.spread(x, out.shape), b.spread(y, out.shape)
    if out.dtype.name != "float8_e8m0fnu":
        return b.chlo("next_after", out, x, y)
    byte = out.with_dtype("uint8")
    at, end = b.bitcast(x, byte), b.bitcast(y, byte)
    one, nan = b.filled(1, byte), b.filled(255, byte)
    nearer = b.select(
        b.compare("LT", at, end), b.binary("add", at, one), b.binary("subtract", at, one)
    )
    found = b.select(b.compare("EQ", at, end), at, nearer)
    strange = b.compare("EQ", b.binary("maximum", at, end), nan)
    return b.bitcast(b.select(strange, nan, found), out)


@rule("pow")
def power(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
    x, y = b.spread(x, out.shape), b.spread(b.convert(y, x.dtype), out.shape)
    return b.same("stablehlo.power", out, x, y)


@rule("exp2")
def exp2(b: Builder, out: Tensor, x: Value) -> Value:
    x = in_single(b, x)  # a short logarithm of 2 would be some percent in large results
    log = np.log(2).astype(np.result_type(np.float64, x.dtype) if x.dtype.kind == "c" else "f8")
    product = b.binary("multiply", b.filled(log, x.tensor), x)
    return b.convert(b.same("stablehlo.exponential", x.tensor, product), out.dtype)


@rule("integer_pow")
def integer_pow(b: Builder, out: Tensor, x: Value, *, y: int) -> Value:
    """Products of squares; the reciprocal of that for a negative exponent, which may be a number
    where they are beyond a short type."""
    x = in_single(b, x) if y < 0 else x
    left, power_of_x, found = abs(y), x, None
    while left:
        if left & 1:
            found = power_of_x if found is None else b.binary("multiply", found, power_of_x)
        left >>= 1
        if left:
            power_of_x = b.binary("multiply", power_of_x, power_of_x)
    if found is None:
        return b.filled(1, out)
    if y > 0:
        return found
    return b.convert(b.binary("divide", b.filled(1, found.tensor), found), out.dtype)


@rule("sign")
def sign(b: Builder, out: Tensor, x: Value) -> Value:
    if is_unsigned(x.dtype):
        return b.select(b.compare("EQ", x, b.filled(0, out)), b.filled(0, out), b.filled(1, out))
    return b.same("stablehlo.sign", out, x)


@rule("round")
def round_(b: Builder, out: Tensor, x: Value, *, rounding_method: int) -> Value:
    return b.same(f"stablehlo.round_nearest_{'even' if rounding_method == 1 else 'afz'}", out, x)


@rule("mulhi")
def mulhi(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
    """The high half of a product, by four products of halves (of one twice as wide up to 32
    bits)."""
    x, y = b.spread(x, out.shape), b.spread(y, out.shape)
    bits = int(iinfo(out.dtype).bits)
    if bits < 64:
        wide = f"{'uint' if is_unsigned(out.dtype) else 'int'}{max(2 * bits, 8)}"
        product = b.binary("multiply", *[b.convert(v, np.dtype(wide)) for v in (x, y)])
        shifted = b.binary("shift_right_logical", product, b.filled(bits, product.tensor))
        return b.convert(shifted, out.dtype)
    high = _mulhi_unsigned(b, *[b.convert(v, np.dtype("uint64")) for v in (x, y)])
    high = b.convert(high, out.dtype)
    if is_unsigned(out.dtype):
        return high
    zero = b.filled(0, out)
    for a, other in ((x, y), (y, x)):  # a negative factor stands for itself plus 2**64
        high = b.binary("subtract", high, b.select(b.compare("LT", a, zero), other, zero))
    return high


def _mulhi_unsigned(b: Builder, x: Value, y: Value) -> Value:
    half, mask = b.filled(32, x.tensor), b.filled(0xFFFFFFFF, x.tensor)
    (x1, x0), (y1, y0) = [
        (b.binary("shift_right_logical", v, half), b.binary("and", v, mask)) for v in (x, y)
    ]
    low = b.binary("shift_right_logical", b.binary("multiply", x0, y0), half)
    first = b.binary("add", b.binary("multiply", x1, y0), low)
    second = b.binary("add", b.binary("multiply", x0, y1), b.binary("and", first, mask))
    high = b.binary("add", b.binary("multiply", x1, y1), _shifted(b, first, half))
    return b.binary("add", high, _shifted(b, second, half))


def _shifted(b: Builder, x: Value, by: Value) -> Value:
    return b.binary("shift_right_logical", x, by)


@rule("multiply_add")
def multiply_add(b: Builder, out: Tensor, x: Value, y: Value, z: Value) -> Value:
    """XLA makes one operation of both where the processor has it."""
    x, y, z = (b.spread(v, out.shape) for v in (x, y, z))
    return b.binary("add", b.binary("multiply", x, y), z)


def _unsigned(b: Builder, x: Value) -> Value:
    """The bits of an integer of less than a byte, as one without a sign."""
    if is_unsigned(x.dtype) or x.dtype.name not in BYTES:
        return x
    return b.bitcast(x, x.tensor.with_dtype(f"u{x.dtype.name}"))


@rule("shift_right_logical")
def shift_right_logical(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
    """Of less than a byte as bytes: XLA fills up with signs where it knows such a number."""
    x, y = (as_bytes(b, _unsigned(b, b.spread(v, out.shape))) for v in (x, y))
    return b.convert(b.binary("shift_right_logical", x, y), out.dtype)


@rule("shift_right_arithmetic")
def shift_right_arithmetic(b: Builder, out: Tensor, x: Value, y: Value) -> Value:
    """The first bit of a number fills it up, also of one without a sign."""
    x, y = (b.spread(v, out.shape) for v in (x, y))
    if not has_two_bits(out.dtype):
        return b.binary("shift_right_arithmetic", x, y)
    signed = out.with_dtype("int2")
    x, y = (as_bytes(b, v if v.type == signed else b.bitcast(v, signed)) for v in (x, y))
    found = b.convert(b.binary("shift_right_arithmetic", x, y), signed.dtype)
    return found if out == signed else b.bitcast(found, out)


@rule("population_count")
def population_count(b: Builder, out: Tensor, x: Value) -> Value:
    """XLA counts the bits of the byte that a smaller integer is kept in, where it has a sign."""
    plain = _unsigned(b, x)
    return b.convert(b.same("stablehlo.popcnt", plain.tensor, plain), out.dtype)


@rule("clamp")
def clamp(b: Builder, out: Tensor, low: Value, x: Value, high: Value) -> Value:
    low, high = b.spread(low, out.shape), b.spread(high, out.shape)
    return b.same("stablehlo.clamp", out, low, x, high)


@rule("select_n")
def select_n(b: Builder, out: Tensor, which: Value, *cases: Value) -> Value:
    """A tree of comparisons where there are more than two cases."""
    xs = [b.spread(x, out.shape) for x in cases]
    if which.shape and which.shape != out.shape:  # of keys: all words of one are chosen together
        which = b.broadcast(which, which.tensor.with_shape(out.shape), range(which.ndim))
    if len(xs) == 1:
        return xs[0]
    if which.dtype == np.dtype(bool):
        return b.select(which, xs[1], xs[0])

    def among(first: int, last: int) -> Value:
        if last - first == 1:
            return xs[first]
        middle = (first + last) // 2
        low, high = among(first, middle), among(middle, last)
        limit = b.filled(middle, which.tensor)
        return b.select(b.compare("LT", which, limit), low, high)

    return among(0, len(xs))


@rule("convert_element_type")
def convert(b: Builder, out: Tensor, x: Value, **_: Any) -> Value:
    if out.dtype == np.dtype(bool) and x.dtype != np.dtype(bool):
        return b.compare("NE", x, b.filled(0, x.tensor))
    if is_complex(x.dtype) and not is_complex(out.dtype):
        x = parts(b, x)[0]
    if is_integer(out.dtype) and _bits(x.dtype) < 8:
        x = b.convert(x, _SINGLE)  # XLA takes the largest of four bits for infinite
    return b.same("stablehlo.convert", out, x)


def _bits(dtype: Any) -> int:
    """Of a float how many bits it has."""
    return int(finfo(dtype).bits) if is_float(dtype) else 8


@rule("bitcast_convert_type")
def bitcast(b: Builder, out: Tensor, x: Value, **_: Any) -> Value:
    if x.dtype == out.dtype:
        return x
    for dtype in (x.dtype, out.dtype):
        if dtype.name.startswith("float6_"):  # six bits in MLIR, a byte here
            raise NotImplementedError(
                f"bitcast_convert_type on XLA: {dtype.name} has no whole byte"
            )
    return b.bitcast(x, out)


@rule("reduce_precision")
def reduce_precision(
    b: Builder, out: Tensor, x: Value, *, exponent_bits: int, mantissa_bits: int
) -> Value:
    text = f", format = e{exponent_bits}m{mantissa_bits} : {out}"
    return b.one(out, "stablehlo.reduce_precision ", x, text)  # type: ignore[no-any-return]


def _identity(b: Builder, out: Tensor, x: Value, **_: Any) -> Value:
    return x


RULES.update(
    dict.fromkeys(("consume", "copy", "name", "pvary", "stage", "stop_gradient"), _identity)
)

_Barrier = Callable[..., Any]


@rule("optimization_barrier")
def optimization_barrier(b: Builder, outs: list[Tensor], *xs: Value) -> list[Value]:
    return barrier(b, xs)


def barrier(b: Builder, xs: Any) -> list[Value]:
    """The same values, which the compiler takes for others."""
    if not xs:
        return []
    types = [x.type for x in xs]
    parts: list[Any] = ["stablehlo.optimization_barrier "]
    for i, x in enumerate(xs):
        parts += [", ", x] if i else [x]
    return b.emit(types, *parts, f" : {', '.join(map(str, types))}")


@rule("assert_consumed_value")
def assert_consumed(b: Builder, outs: list[Tensor], *xs: Value, **_: Any) -> list[Value]:
    """Said to the analysis of programs, not to the machine."""
    return []


@rule("dce_sink")
def dce_sink(b: Builder, outs: list[Tensor], x: Value, **_: Any) -> list[Value]:
    barrier(b, [x])
    return []


@rule("size_value")
def size_value(b: Builder, out: Tensor, *, dim: Any) -> Value:
    return b.convert(size_of(b, dim), out.dtype)


# ---------------------------------------------------------------- integers of two bits

# operations whose lowest bits are the same however many bits the operands have
_OF_ANY_WIDTH: Final = (
    "abs", "add", "add_any", "and", "clamp", "div", "eq", "ge", "gt", "integer_pow", "le", "lt",
    "max", "min", "mul", "ne", "neg", "not", "or", "pow", "rem", "shift_left",
    "sign", "square", "sub", "xor",
)  # fmt: skip


def _in_bytes(lower: Rule) -> Rule:
    """The rule, in bytes for integers of two bits: XLA's CPU takes a constant -1 of these for 3."""

    def wide(b: Builder, out: Tensor, *xs: Value, **options: Any) -> Value:
        if not any(has_two_bits(x.dtype) for x in xs):
            return lower(b, out, *xs, **options)  # type: ignore[no-any-return]
        whole = out.with_dtype(BYTES.get(out.dtype.name, out.dtype))
        found: Value = lower(b, whole, *[as_bytes(b, x) for x in xs], **options)
        return b.convert(found, out.dtype)

    return wide


RULES.update({name: _in_bytes(RULES[name]) for name in _OF_ANY_WIDTH})
