"""Integer elements: division that never traps, shifts of any amount, counts of bits."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import INT_BITS, SIGNED, Expr, cast, const, ex, select

# The float in which quotients of such integers, truncated, are exact: vector division of integers
# does not exist.
EXACT_IN: Final = {8: "f32", 16: "f32", 32: "f64"}


def zero(x: Expr) -> Expr:
    return const(0, x.dtype)


def one(x: Expr) -> Expr:
    return const(1, x.dtype)


def quotient(x: Expr, y: Expr) -> Expr:
    """x / y truncated, for y neither 0 nor (with the smallest x) -1."""
    f = EXACT_IN.get(INT_BITS[x.dtype])
    if f is None or y.op == "const":
        return ex("sdiv" if x.dtype in SIGNED else "udiv", x, y)
    q = ex("div", cast(x, f), cast(y, f))
    wide = {"f32": "i32", "f64": "i64"}[f] if x.dtype not in SIGNED else "i32"
    return cast(cast(q, wide, "cast_fast"), x.dtype)


def safe_divisor(x: Expr, y: Expr) -> Expr:
    """y, or 1 where dividing by it would trap: MIN / -1 is MIN, as MIN / 1 is."""
    bad = ex("eq", y, zero(y))
    if x.dtype in SIGNED:
        smallest = const(-(1 << (INT_BITS[x.dtype] - 1)), x.dtype)
        bad = ex("or", bad, ex("and", ex("eq", y, const(-1, y.dtype)), ex("eq", x, smallest)))
    return select(bad, one(y), y)


def div(x: Expr, y: Expr) -> Expr:
    """Truncated; x / 0 has all bits set."""
    return select(ex("eq", y, zero(y)), const(-1, x.dtype), quotient(x, safe_divisor(x, y)))


def rem(x: Expr, y: Expr) -> Expr:
    """With the sign of x; x rem 0 is x."""
    d = safe_divisor(x, y)
    return select(ex("eq", y, zero(y)), x, ex("sub", x, ex("mul", quotient(x, d), d)))


def sign(x: Expr) -> Expr:
    if x.dtype not in SIGNED:
        return ex("min", x, one(x))
    return ex("max", ex("min", x, one(x)), const(-1, x.dtype))


def unsigned(x: Expr) -> Expr:
    return cast(x, "u" + x.dtype[1:])


def in_width(s: Expr, width: int) -> Expr:
    """Is the shift amount, read as unsigned, less than the width?"""
    u = unsigned(s)
    return ex("lt", u, const(width, u.dtype))


def shift_left(x: Expr, s: Expr, width: int) -> Expr:
    return select(in_width(s, width), ex("shl", x, safe_amount(s)), zero(x))


def shift_right_logical(x: Expr, s: Expr, width: int) -> Expr:
    """`x` holds `width` bits that count (fewer than its dtype for int4)."""
    u = unsigned(x)
    if width < INT_BITS[x.dtype]:
        u = ex("and", u, const((1 << width) - 1, u.dtype))
    return cast(
        select(in_width(s, width), ex("lshr", u, unsigned(safe_amount(s))), zero(u)), x.dtype
    )


def shift_right_arithmetic(x: Expr, s: Expr, width: int) -> Expr:
    if x.dtype not in SIGNED:  # the highest of its bits is taken for a sign all the same
        unused = const(INT_BITS[x.dtype] - width, x.dtype)
        y = cast(ex("shl", x, unused), "i" + x.dtype[1:])
        y = ex("ashr", y, cast(unused, y.dtype))
        return cast(shift_right_arithmetic(y, cast(s, y.dtype), width), x.dtype)
    most = const(width - 1, s.dtype)
    return ex("ashr", x, select(in_width(s, width), s, most))


def safe_amount(s: Expr) -> Expr:
    return ex("and", s, const(INT_BITS[s.dtype] - 1, s.dtype))


def clz(x: Expr, width: int) -> Expr:
    more = INT_BITS[x.dtype] - width
    if more:
        x = ex("and", x, const((1 << width) - 1, x.dtype))
    return ex("sub", ex("clz", x), const(more, x.dtype))


def population_count(x: Expr, width: int) -> Expr:
    if width < INT_BITS[x.dtype]:
        x = ex("and", x, const((1 << width) - 1, x.dtype))
    return ex("ctpop", x)


def integer_power(x: Expr, y: int) -> Expr:
    """x^y for y >= 0, by squaring."""
    out: Expr | None = None
    while y:
        if y & 1:
            out = x if out is None else ex("mul", out, x)
        y >>= 1
        if y:
            x = ex("mul", x, x)
    return one(x) if out is None else out
