"""Functions of float64 as random numbers are drawn with: the operations of XLA on processors with
FMA, one by one, as those of float32 in `drawing`.

The inverse of erf is Giles' again; where x is near 1 it loses digits of 1 - x^2, less than the last
place of x changes. log1p and the exponential function are Cephes'. XLA takes the
logarithm from the C library, whose result is another than the exact one rounded once in a thousand;
here it is rounded from some 66 bits."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, ex
from calque.native.scalars.vmath import power
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    any_of,
    at_most,
    differ,
    div,
    equal,
    fma,
    greater,
    less,
    make_ldexp,
    mul,
    neg,
    no_less,
    not_,
    poly,
    rare,
    sqrt,
    sub,
    where,
)

# coefficients, the highest power first
_MIDDLE: Final = (
    -3.64441206401782e-21, -1.6850591381820166e-19, 1.28584807152564e-18, 1.1157877678025181e-17,
    -1.333171662854621e-16, 2.0972767875968562e-17, 6.637638134358324e-15, -4.054566272975207e-14,
    -8.151934197605472e-14, 2.6335093153082323e-12, -1.2975133253453532e-11,
    -5.415412054294628e-11, 1.0512122733215323e-09, -4.112633980346984e-09,
    -2.9070369957882005e-08, 4.2347877827932404e-07, -1.3654692000834679e-06,
    -1.3882523362786469e-05, 0.00018673420803405714, -0.000740702534166267, -0.006033670871430149,
    0.24015818242558962, 1.6536545626831027,
)  # fmt: skip
_TAIL: Final = (
    2.2137376921775787e-09, 9.075656193888539e-08, -2.7517406297064545e-07, 1.8239629214389228e-08,
    1.5027403968909828e-06, -4.013867526981546e-06, 2.9234449089955446e-06, 1.2475304481671779e-05,
    -4.7318229009055734e-05, 6.828485145957318e-05, 2.4031110387097894e-05, -0.0003550375203628475,
    0.0009532893797373805, -0.0016882755560235047, 0.002491442096107851, -0.003751208507569241,
    0.005370914553590064, 1.0052589676941592, 3.0838856104922208,
)  # fmt: skip
_FAR_TAIL: Final = (
    -2.7109920616438573e-11, -2.555641816996525e-10, 1.5076572693500548e-09,
    -3.789465440126737e-09, 7.61570120807834e-09, -1.496002662714924e-08, 2.914795345090108e-08,
    -6.771199775845234e-08, 2.2900482228026655e-07, -9.9298272942317e-07, 4.526062597223154e-06,
    -1.968177810553167e-05, 7.599527703001776e-05, -0.00021503011930044477,
    -0.00013871931833623122, 1.0103004648645344, 4.849906401408584,
)  # fmt: skip
_ABOVE: Final = (
    4.52700008624452e-05, 0.49854102823193375, 6.578732594206104, 29.911919328553072,
    60.94966798098779, 57.11296359058554, 20.039553499201283,
)  # fmt: skip
_BELOW: Final = (
    1.0, 15.062909083469192, 83.04756596796722, 221.76239823732857, 309.09872225312057,
    216.42788614495947, 60.11866049760384,
)  # fmt: skip
_SMALL: Final = 0.41421356237309503  # sqrt(2) - 1
_LOG2_E: Final = 1.4426950408889634
_LOG_2: Final = (0.693145751953125, 1.4286068203094173e-06)  # in two parts
_EXP_ENDS: Final = (-708.3964185322641, 709.782712893384)  # beyond them 0 and infinity
_EXP_ODD: Final = (0.00012617719307481058, 0.030299440770744195, 1.0)
_EXP_EVEN: Final = (3.0019850513866446e-06, 0.002524483403496841, 0.22726554820815503, 2.0)


def erf_inv(x: Expr) -> Expr:
    """The inverse of erf, x times a polynomial in w = -log(1 - x^2) or in sqrt(w)."""
    w = neg(log1p(mul(x, neg(x))))
    root = sqrt(w)
    tail = where(less(w, 16.0), horner(sub(root, 3.25), _TAIL), horner(sub(root, 5.0), _FAR_TAIL))
    tail = where(equal(absolute(x), 1.0), INF, tail)
    middle = horner(sub(w, 3.125), _MIDDLE)
    return mul(rare(not_(less(w, 6.25)), middle, tail), x)


def horner(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    return poly(x, coefficients[::-1])


def log(x: Expr) -> Expr:
    """The logarithm."""
    high, low = power.log_pair(x)
    y = where(less(x, INF), add(high, low), x)
    y = where(equal(x, 0.0), -INF, y)
    return where(any_of(less(x, 0.0), differ(x, x)), NAN, y)


def log1p(x: Expr) -> Expr:
    """log(1 + x): a quotient of polynomials near 0."""
    square = mul(x, x)
    quotient = div(horner(x, _ABOVE), horner(x, _BELOW))
    small = add(x, fma(square, -0.5, mul(mul(x, square), quotient)))
    return where(less(absolute(x), _SMALL), small, log(add(x, 1.0)))


def exp(x: Expr) -> Expr:
    """e^x = 2^n e^r, that of r by a quotient of polynomials."""
    first, last = _EXP_ENDS
    inside = no_less(at_most(x, last), first)
    n = ex("floor", fma(inside, _LOG2_E, 0.5))
    high, rest = _LOG_2
    r = fma(neg(n), rest, fma(neg(n), high, inside))
    square = mul(r, r)
    odd = mul(horner(square, _EXP_ODD), r)
    y = fma(div(odd, sub(horner(square, _EXP_EVEN), odd)), 2.0, 1.0)
    y = make_ldexp(y, cast(n, "i32"))
    return where(less(x, first), 0.0, where(greater(x, last), INF, y))
