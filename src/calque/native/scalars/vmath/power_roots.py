"""x^y for the exponents that programs write most: multiplications, divisions and square roots,
within 2 units in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.native.scalars.expr import Expr, both, const, select
from calque.native.scalars.powers import NAMES
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    any_of,
    div,
    equal,
    fma,
    greater,
    greater_equal,
    less,
    mul,
    neg,
    not_within,
    rare,
    sqrt,
    where,
)

SAFE: Final = {
    "f32": 40,
    "f64": 300,
}  # from 2^-SAFE to 2^SAFE no power here is near overflow or underflow
SHIFT: Final = {"f32": 32, "f64": 256}  # brings arguments of ordinary results there
CERTAIN: Final = {"f32": 160, "f64": 1100}  # a power of 2 with this exponent is out of range


def square(x: Expr) -> Expr:
    return mul(x, x)


def reciprocal(x: Expr) -> Expr:
    return div(1.0, x)


def root(x: Expr) -> Expr:
    return sqrt(without_sign(x))


def reciprocal_root(x: Expr) -> Expr:
    return div(1.0, sqrt(without_sign(x)))


def without_sign(x: Expr) -> Expr:
    """-0 and -infinity are to powers of no integer what 0 and infinity are; what else is negative
    stays so."""
    return where(equal(x, -INF), INF, add(x, 0.0))


def half_integer(twice: int) -> Callable[[Expr], Expr]:
    """x^(twice / 2) for `twice` one of 3, 5, -3, -4, -5."""

    def power(x: Expr) -> Expr:
        x = x if twice % 2 else absolute(x)
        return rare(not_within(x, -SAFE[x.dtype], SAFE[x.dtype]), near_one(x), outside(x))

    def near_one(x: Expr) -> Expr:
        """From the root and its error: all is rounded once, and the quotient."""
        if abs(twice) == 4:
            return reciprocal(mul(x, x))
        s = sqrt(x)
        p = mul(x, s)
        low = fma(mul(s, 0.5), fma(neg(s), s, x), fma(x, s, neg(p)))
        y = add(p, low) if abs(twice) == 3 else fma(p, x, mul(low, x))
        return y if twice > 0 else reciprocal(y)

    def outside(x: Expr) -> Expr:
        """Brought nearer to 1 by a power of 4; 0 or infinity where that is sure; nan where x is
        negative."""
        k, small, limit = SHIFT[x.dtype], less(x, 1.0), 2.0 ** (2 * CERTAIN[x.dtype] // abs(twice))
        back = 2.0 ** (twice * k // 2)

        def number(a: float, b: float) -> Expr:
            return select(small, const(a, x.dtype), const(b, x.dtype))

        y = mul(near_one(mul(x, number(2.0**k, 2.0**-k))), number(1 / back, back))
        at_zero, at_infinity = (0.0, INF) if twice > 0 else (INF, 0.0)
        large = any_of(greater(x, limit), equal(x, -INF))
        tiny = both(greater_equal(x, 0.0), less(x, 1 / limit))
        y = where(greater(x, 0.0), y, NAN)
        return where(large, at_infinity, where(tiny, at_zero, y))

    return power


_POWERS: Final[dict[float, Callable[[Expr], Expr]]] = {
    2.0: square,
    -1.0: reciprocal,
    -2.0: half_integer(-4),
    0.5: root,
    -0.5: reciprocal_root,
    1.5: half_integer(3),
    -1.5: half_integer(-3),
    2.5: half_integer(5),
    -2.5: half_integer(-5),
}
FUNCTIONS: Final[dict[str, Callable[[Expr], Expr]]] = {
    name: _POWERS[exponent] for exponent, name in NAMES.items()
}
