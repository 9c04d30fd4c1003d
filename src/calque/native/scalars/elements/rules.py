"""The element-wise primitives: for each, how one element of the result is made of one element of
each operand.

Elements are expressions, complex ones pairs of them (`Cx`). Dtypes are the names of the loop
language, with c64, c128 and the narrow formats of ml_dtypes, which are stored as bytes: floats of 8
bits and less are computed in f32, integers of 4 and 2 bits in 8, and the result is rounded or
wrapped. Halves are rounded after each primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.native.scalars.elements import complex_numbers as cx
from calque.native.scalars.elements import floats as fl
from calque.native.scalars.elements import integers as it
from calque.native.scalars.elements.conversions import convert, scalar_of
from calque.native.scalars.elements.formats import (
    SMALL_FLOATS,
    SMALL_INTS,
    decode,
    encode,
    pack_small,
    wrap_small,
)
from calque.native.scalars.elements.values import REAL_OF, Cx, Value
from calque.native.scalars.expr import (
    FLOAT_BITS,
    INT_BITS,
    TRUE,
    Expr,
    both,
    cast,
    const,
    either,
    ex,
    invert,
    select,
)

__all__ = ["ELEMENT", "Application", "Cx", "Value", "lower", "supports"]


class Application(NamedTuple):
    """One primitive applied to elements."""

    op: str
    args: Sequence[Any]  # Value
    dtypes: Sequence[str]
    out: str
    params: dict[str, Any]


NARROW: Final = SMALL_FLOATS | frozenset(SMALL_INTS)
Rule = Callable[[Application], Value]


def supports(op: str, dtypes: Sequence[str] = ()) -> bool:
    """Is the primitive element-wise, with a lowering for operands of these dtypes?"""
    if op in PARTIAL and dtypes:
        return not PARTIAL[op](dtypes[0])
    return op in ELEMENT


def lower(
    op: str, args: Sequence[Value], dtypes: Sequence[str], out: str, params: dict[str, Any]
) -> Value:
    """The element of the result of dtype `out`, for operands of `dtypes`."""
    rule = ELEMENT.get(op)
    if rule is None:
        raise NotImplementedError(f"no element lowering for {op}")
    if op not in AS_STORED and (not NARROW.isdisjoint(dtypes) or out in NARROW):
        return lower_narrow(rule, Application(op, args, dtypes, out, params))
    return rule(Application(op, args, dtypes, out, params))


# Element-wise primitives that some dtypes have no lowering of.
PARTIAL: Final[dict[str, Callable[[str], bool]]] = {
    "atan2": lambda dtype: dtype in REAL_OF,
    "nextafter": lambda dtype: dtype in NARROW,
}


def lower_narrow(rule: Rule, c: Application) -> Value:
    """Through the dtype that narrow elements are computed in."""
    if c.op == "nextafter":
        raise NotImplementedError(f"nextafter of {c.out}")
    args = [unpacked(a, d) for a, d in zip(c.args, c.dtypes, strict=True)]
    out = rule(
        Application(
            c.op,
            args,
            [scalar_of(d) for d in c.dtypes],
            scalar_of(c.out),
            {**c.params, "stored": c.dtypes[0]},
        )
    )
    assert isinstance(out, Expr)
    if c.out in SMALL_FLOATS:
        return encode(out, c.out)
    return pack_small(out, c.out) if c.out in SMALL_INTS else out


def unpacked(x: Any, dtype: str) -> Any:
    """A narrow element as it is computed with."""
    return (
        decode(x, dtype)
        if dtype in SMALL_FLOATS
        else wrap_small(x, dtype)
        if dtype in SMALL_INTS
        else x
    )


def kind(dtype: str) -> str:
    """f, c, b (bool), or i."""
    return (
        "f" if dtype in FLOAT_BITS else "c" if dtype in REAL_OF else "b" if dtype == "i1" else "i"
    )


def width_of(c: Application) -> int:
    """The bits of an integer operand that count."""
    return SMALL_INTS.get(c.params.get("stored", ""), 0) or INT_BITS[c.dtypes[0]]


def number(v: float, dtype: str) -> Expr:
    return const(v, dtype)


# --- rules by kind --------------------------------------------------------------------------------


def by_kind(**rules: Callable[..., Value]) -> Rule:
    """A rule that calls `f`, `c`, `i` or `b` with the operands, by the kind of the first."""

    def rule(c: Application) -> Value:
        found = rules.get(kind(c.dtypes[0]))
        if found is None:
            raise TypeError(f"{c.op} does not take {c.dtypes[0]}")
        return found(*c.args)

    return rule


def one_op(name: str) -> Callable[..., Expr]:
    return lambda *args: ex(name, *args)


def math_rule(name: str) -> Rule:
    """A function of `vmath`, and of complex numbers where there is one."""
    rules: dict[str, Callable[..., Value]] = {"f": lambda *args: fl.math(name, *args)}
    if name in cx.UNARY:
        rules["c"] = cx.UNARY[name]
    return by_kind(**rules)


def compare_rule(name: str) -> Rule:
    def of_complex(x: Cx, y: Cx) -> Expr:
        if name == "eq":
            return both(ex("eq", x.re, y.re), ex("eq", x.im, y.im))
        if name == "ne":
            return either(ex("ne", x.re, y.re), ex("ne", x.im, y.im))
        return cx.before(x, y, name)

    plain = one_op(name)
    return by_kind(f=plain, i=plain, b=plain, c=of_complex)


def total_order_rule(name: str) -> Rule:
    """eq, le, lt in the total order in which -0 < 0, -nan is first and nan last."""

    def of_floats(x: Expr, y: Expr) -> Expr:
        return ex(name, fl.order_key(x), fl.order_key(y))

    def of_complex(x: Cx, y: Cx) -> Expr:
        a, b = (Cx(fl.order_key(z.re), fl.order_key(z.im)) for z in (x, y))
        same = ex("eq", a.re, b.re)
        if name == "eq":
            return both(same, ex("eq", a.im, b.im))
        return either(ex("lt", a.re, b.re), both(same, ex(name, a.im, b.im)))

    plain = one_op(name)
    return by_kind(f=of_floats, i=plain, b=plain, c=of_complex)


def extreme_rule(name: str) -> Rule:
    def of_complex(x: Cx, y: Cx) -> Cx:
        return cx.choose(cx.before(x, y, "gt" if name == "max" else "lt"), x, y)

    plain = one_op(name)
    return by_kind(f=plain, i=plain, b=either if name == "max" else both, c=of_complex)


def identity(c: Application) -> Value:
    return c.args[0]  # type: ignore[no-any-return]


# --- rules with parameters ------------------------------------------------------------------------


def power(c: Application) -> Value:
    if "exponent" in c.params:  # see `passes.algebra`
        return fl.fixed_power(c.args[0], c.params["exponent"])
    x, y = c.args
    if kind(c.out) == "c":
        x, y = (convert(a, d, c.out) for a, d in zip((x, y), c.dtypes, strict=True))
        assert isinstance(x, Cx) and isinstance(y, Cx)
        return cx.power(x, y)
    return fl.power(x, y, c.dtypes[1])


def integer_power(c: Application) -> Value:
    x, y = c.args[0], int(c.params["y"])
    if isinstance(x, Cx):
        out = cx.one(x)
        for bit in bin(abs(y))[2:]:
            out = cx.square(out)
            out = cx.mul(out, x) if bit == "1" else out
        return cx.div(cx.one(x), out) if y < 0 else out
    if c.dtypes[0] in FLOAT_BITS:
        return fl.integer_power(x, y)
    if y < 0:
        raise ValueError(f"integers to the power {y} have no integer result")
    return it.integer_power(x, y)


def rounding(c: Application) -> Value:
    """Method 0: halves away from zero; 1: to even."""
    return ex("round", c.args[0]) if int(c.params["rounding_method"]) else fl.round_away(c.args[0])


def select_n(c: Application) -> Value:
    """The case that the predicate names; an integer out of range names the nearest."""
    which, *cases = c.args
    out = cases[-1]
    if c.dtypes[0] == "i1":
        return choose(which, out, cases[0])
    for k in range(len(cases) - 2, -1, -1):
        out = choose(ex("lt", which, const(k + 1, which.dtype)), cases[k], out)
    return out  # type: ignore[no-any-return]


def choose(cond: Expr, x: Value, y: Value) -> Value:
    if isinstance(x, Cx):
        assert isinstance(y, Cx)
        return cx.choose(cond, x, y)
    assert isinstance(y, Expr)
    return select(cond, x, y)


def clamp(c: Application) -> Value:
    """min(max(x, low), high)."""
    low, x, high = c.args
    d = c.dtypes[1]
    up = ELEMENT["max"](Application("max", (x, low), (d, d), d, {}))
    return ELEMENT["min"](Application("min", (up, high), (d, d), d, {}))


def convert_element_type(c: Application) -> Value:
    return convert(c.args[0], c.dtypes[0], c.out)


def bitcast(c: Application) -> Value:
    """Between dtypes of one size; narrow floats are bytes already."""
    x, source, target = c.args[0], c.dtypes[0], c.out
    if "i1" in (source, target) or kind(source) == "c" or kind(target) == "c":
        if source == target:
            return x  # type: ignore[no-any-return]
        raise NotImplementedError(f"bitcast from {source} to {target}")
    bytes_of = [d if d in FLOAT_BITS or d in INT_BITS else "u8" for d in (source, target)]
    if source in SMALL_INTS or target in SMALL_INTS:
        return (
            pack_small(cast(x, scalar_of(target)), target)
            if target in SMALL_INTS
            else cast(x, "u8")
        )
    return cast(cast(x, bytes_of[0]), bytes_of[1], "bitcast")


def reduce_precision(c: Application) -> Value:
    e, m = int(c.params["exponent_bits"]), int(c.params["mantissa_bits"])
    x = c.args[0]
    if isinstance(x, Cx):
        return Cx(fl.reduce_precision(x.re, e, m), fl.reduce_precision(x.im, e, m))
    return fl.reduce_precision(x, e, m)


def conjugate(c: Application) -> Value:
    x = c.args[0]
    if isinstance(x, Cx):
        return Cx(x.re, ex("neg", x.im))
    return Cx(x, number(0.0, REAL_OF[c.out])) if c.out in REAL_OF else x


def shift_rule(shift: Callable[[Expr, Expr, int], Expr]) -> Rule:
    return lambda c: shift(c.args[0], c.args[1], width_of(c))


def count_rule(count: Callable[[Expr, int], Expr]) -> Rule:
    return lambda c: count(c.args[0], width_of(c))


def is_finite(c: Application) -> Value:
    x = c.args[0]
    if isinstance(x, Cx):
        return both(fl.is_finite(x.re), fl.is_finite(x.im))
    return fl.is_finite(x) if c.dtypes[0] in FLOAT_BITS else TRUE


def high_half(c: Application) -> Value:
    """The upper half of the whole product; that of narrow elements fits the dtype they are computed
    in."""
    x, y = c.args
    n = width_of(c)
    if n == INT_BITS[c.dtypes[0]]:
        return ex("mulhi", x, y)
    return ex("lshr" if c.dtypes[0][0] == "u" else "ashr", ex("mul", x, y), const(n, c.dtypes[0]))


def negative(x: Expr) -> Expr:
    return ex("neg", x)


MATH: Final = (
    "exp", "exp2", "expm1", "log", "log1p", "logistic", "tanh", "sinh", "cosh", "asinh", "acosh",
    "atanh", "sin", "cos", "tan", "asin",
    "acos", "atan", "atan2", "cbrt", "rsqrt", "erf", "erfc", "erf_inv", "lgamma", "digamma",
    "bessel_i0e", "bessel_i1e",
    "normal_erf_inv", "drawn_erf", "drawn_exp", "drawn_log", "drawn_log1p", "drawn_pow",
    "drawn_tan",
)  # fmt: skip
# What moves or reinterprets elements without computing works on narrow ones as they are stored.
AS_STORED: Final = frozenset(
    {"convert_element_type", "bitcast_convert_type", "select_n", "copy", "copy_p"}
)

ELEMENT: Final[dict[str, Rule]] = {
    "add": by_kind(f=one_op("add"), i=one_op("add"), c=cx.add, b=either),
    "sub": by_kind(f=one_op("sub"), i=one_op("sub"), c=cx.sub),
    "mul": by_kind(f=one_op("mul"), i=one_op("mul"), c=cx.mul, b=both),
    "div": by_kind(f=one_op("div"), i=it.div, c=cx.div),
    "rem": by_kind(f=lambda x, y: fl.math("rem", x, y), i=it.rem),
    "neg": by_kind(f=negative, i=negative, c=cx.neg),
    "sign": by_kind(f=fl.sign, i=it.sign, c=cx.sign),
    "abs": by_kind(f=one_op("abs"), i=one_op("abs"), c=cx.absolute),
    "square": by_kind(f=lambda x: ex("mul", x, x), i=lambda x: ex("mul", x, x), c=cx.square),
    "sqrt": by_kind(f=one_op("sqrt"), c=cx.sqrt),
    "floor": by_kind(f=one_op("floor")),
    "ceil": by_kind(f=one_op("ceil")),
    "round": rounding,
    "is_finite": is_finite,
    "nextafter": by_kind(f=fl.nextafter),
    "pow": power,
    "integer_pow": integer_power,
    "max": extreme_rule("max"),
    "min": extreme_rule("min"),
    "clamp": clamp,
    "multiply_add": by_kind(f=one_op("fma")),
    "mulhi": high_half,
    "and": by_kind(i=one_op("and"), b=both),
    "or": by_kind(i=one_op("or"), b=either),
    "xor": by_kind(i=one_op("xor"), b=lambda x, y: ex("ne", x, y)),
    "not": by_kind(i=invert, b=invert),
    "shift_left": shift_rule(it.shift_left),
    "shift_right_logical": shift_rule(it.shift_right_logical),
    "shift_right_arithmetic": shift_rule(it.shift_right_arithmetic),
    "population_count": count_rule(it.population_count),
    "clz": count_rule(it.clz),
    "select_n": select_n,
    "convert_element_type": convert_element_type,
    "bitcast_convert_type": bitcast,
    "reduce_precision": reduce_precision,
    "real": lambda c: c.args[0].re,
    "imag": lambda c: c.args[0].im,
    "complex": lambda c: Cx(*c.args),
    "conj": conjugate,
    "copy": identity,
    "copy_p": identity,
    **{name: compare_rule(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name + "_to": total_order_rule(name) for name in ("eq", "lt", "le")},
    **{name: math_rule(name) for name in MATH},
}
