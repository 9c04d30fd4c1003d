"""The remainder of floating-point division, exact as C's fmod."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, make
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    any_of,
    copysign,
    div,
    equal,
    fma,
    greater_equal,
    less,
    mul,
    neg,
    not_,
    rare,
    where,
)

STEP: Final = 50  # bits of quotient taken at once
STEPS_F32: Final = 6  # exponents of f32 differ by at most 277, those of f64 by 2098
STEPS_F64: Final = 42


def rem(x: Expr, y: Expr) -> Expr:
    """x - trunc(x / y) y, with the sign of x."""
    if x.dtype == "f32":
        wide = rem_f64(cast(x, "f64"), cast(y, "f64"), STEPS_F32)
        return cast(wide, "f32")
    return rem_f64(x, y, STEPS_F64)


def rem_f64(x: Expr, y: Expr, steps: int) -> Expr:
    a, b = absolute(x), absolute(y)
    far = greater_equal(a, mul(b, 2.0**STEP))
    r = rare(far, one_step(a, b), many_steps(a, b, steps))
    r = copysign(where(less(a, b), a, r), x)
    bad = any_of(equal(b, 0.0), not_(less(a, INF)), not_(equal(b, b)))
    return where(bad, NAN, r)


def one_step(r: Expr, s: Expr) -> Expr:
    """r modulo s when r / s < 2^51: the quotient may be one too large, which shows as a negative
    rest."""
    q = make("trunc", (div(r, s),), r.dtype)
    rest = fma(neg(q), s, r)
    return where(less(rest, 0.0), add(rest, s), rest)


def many_steps(a: Expr, b: Expr, steps: int) -> Expr:
    """The same for any quotient, from the highest bits down."""
    multiples = [b]
    for _ in range(steps - 1):
        multiples.append(mul(multiples[-1], 2.0**STEP))
    for s in reversed(multiples):
        a = where(greater_equal(a, s), one_step(a, s), a)
    return a
