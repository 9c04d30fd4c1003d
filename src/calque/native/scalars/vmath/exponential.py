"""exp, exp2, expm1, logistic and the hyperbolic functions.

All rest on x = n ln 2 + r with |r| <= ln(2)/2, a polynomial in r, and a scaling by 2^n that rounds
once.
"""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, const
from calque.native.scalars.vmath.base import (
    EXPONENT_BIAS,
    absolute,
    add,
    at_most,
    copysign,
    div,
    fma,
    greater,
    iop,
    ldexp,
    less,
    mul,
    nearest_integer,
    neg,
    no_less,
    pick,
    poly,
    power_of_two,
    sub,
    where,
    whole,
)
from calque.native.scalars.vmath.pairs import Pair

LOG2_E: Final = 1.4426950408889634
LN2: Final = {
    "f32": (0.693147182464599609375, -1.904654299957767e-09),
    "f64": (0.6931471805599453, 2.3190468138462996e-17),
}

# exp(r) = 1 + r + r^2 P(r)
EXP_F32: Final = (
    0.5,
    0.16666488349437714,
    0.04166555032134056,
    0.008372290059924126,
    0.0014035733183845878,
)
EXP_F64: Final = (
    0.5000000000000011, 0.16666666666666435, 0.04166666666652578, 0.008333333333475794,
    0.0013888888944860861, 0.00019841269555192308,
    2.48014917616326e-05, 2.755753622213539e-06, 2.7630740792054803e-07, 2.5017846145599137e-08,
)  # fmt: skip
# expm1(r) = r + r^2 P(r)
EXPM1_F32: Final = (
    0.5, 0.16666635870933533, 0.041666511446237564, 0.008341510780155659, 0.0013930544955655932,
    0.00015045213513076305,
)  # fmt: skip
EXPM1_F64: Final = (
    0.5, 0.16666666666666677, 0.0416666666666667, 0.008333333333321704, 0.0013888888888870937,
    0.00019841269885049892,
    2.480158732349328e-05, 2.755724602290613e-06, 2.755730456928648e-07, 2.5108210859770006e-08,
    2.0895904672940513e-09,
)  # fmt: skip
# 2^r = 1 + r P(r), |r| <= 1/2
EXP2_F32: Final = (
    0.6931472420692444, 0.24022655189037323, 0.05550272762775421, 0.009617063216865063,
    0.0013417565496638417, 0.00015830023039598018,
)  # fmt: skip
EXP2_F64: Final = (
    0.6931471805599453, 0.2402265069591007, 0.05550410866482338, 0.009618129107630229,
    0.001333355814603283, 0.00015403530388905776,
    1.5252734168295731e-05, 1.3215491285059538e-06, 1.0177931203704775e-07, 7.052985954536087e-09,
    4.473572359438363e-10,
    2.8642944278485482e-11,
)  # fmt: skip
# sinh(r) = r + r^3 P(r^2), cosh(r) = 1 + r^2 Q(r^2), |r| <= ln(2)/2
SINH_F32: Final = (0.1666654348373413, 0.008366542868316174)
SINH_F64: Final = (
    0.16666666666666666, 0.008333333333334428, 0.0001984126983706669, 2.755732627023257e-06,
    2.5046737829300678e-08,
    1.7592918040160797e-10,
)  # fmt: skip
COSH_F32: Final = (0.5, 0.041666459292173386, 0.0013935453025624156)
COSH_F64: Final = (
    0.5, 0.041666666666666685, 0.0013888888888873264, 2.4801587349282815e-05,
    2.755725171555385e-07, 2.0921812495984606e-09,
)  # fmt: skip
# (expm1(2 r) - 2 r) / r^2, |r| <= ln(2)/4
TANH_F32: Final = (
    1.9999998807907104,
    1.3333234786987305,
    0.6666749715805054,
    0.26772934198379517,
    0.08885592967271805,
)
# tanh(r) = r + r^3 P(r^2), |r| <= 0.55
TANH_F64: Final = (
    -0.333333333333333, 0.13333333333326577, -0.05396825396373413, 0.021869488385067012,
    -0.008863232588061296, 0.003592091890946462,
    -0.0014555419206570223, 0.0005884405721016854, -0.00023337133663656705, 8.330140630542216e-05,
    -1.9485170368309362e-05,
)  # fmt: skip
EXP_RANGE: Final = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
EXPM1_RANGE: Final = {"f32": (-18.0, 89.0), "f64": (-38.0, 710.0)}


def reduce(x: Expr) -> tuple[Expr, Expr]:
    """x = n ln 2 + r: r, and n as an integer."""
    high, low = LN2[x.dtype]
    n, i = nearest_integer(x, LOG2_E)
    return fma(n, -low, fma(n, -high, x)), i


def clamp(x: Expr, limits: tuple[float, float]) -> Expr:
    return at_most(no_less(x, limits[0]), limits[1])


def grown_parts(x: Expr) -> tuple[Pair, Expr]:
    """p and n with exp(x) = 2^n (1 + p)."""
    high, low = LN2[x.dtype]
    q, n = nearest_integer(x, LOG2_E)
    first = fma(q, -high, x)
    r = fma(q, -low, first)
    lost = fma(q, -low, sub(first, r))
    return Pair(r, fma(mul(r, r), poly(r, pick(x, EXPM1_F32, EXPM1_F64)), lost)), n


def exp(x: Expr) -> Expr:
    r, n = reduce(clamp(x, EXP_RANGE[x.dtype]))
    return ldexp(poly(r, (1.0, 1.0, *pick(x, EXP_F32, EXP_F64))), n)


def exp_corrected(x: Expr, low: Expr) -> Expr:
    """exp(x + low) for a tiny correction `low`."""
    x = clamp(x, EXP_RANGE[x.dtype])
    r, n = reduce(x)
    return ldexp(poly(add(r, low), (1.0, 1.0, *pick(x, EXP_F32, EXP_F64))), n)


def exp2(x: Expr) -> Expr:
    limits = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}[x.dtype]
    x = clamp(x, limits)
    n, i = nearest_integer(x, 1.0)
    return ldexp(poly(sub(x, n), (1.0, *pick(x, EXP2_F32, EXP2_F64))), i)


def expm1_parts(x: Expr) -> tuple[Expr, Expr]:
    """p and s with expm1(x) = 2 (p s + (s - 1/2)); s = 2^(n-1) stays finite up to the overflow
    threshold."""
    r, n = reduce(clamp(x, EXPM1_RANGE[x.dtype]))
    p = fma(mul(r, r), poly(r, pick(x, EXPM1_F32, EXPM1_F64)), r)
    return p, power_of_two(iop("sub", n, 1), x.dtype)


def expm1(x: Expr) -> Expr:
    p, s = expm1_parts(x)
    y = fma(p, s, sub(s, 0.5))
    tiny = {"f32": 2.0**-25, "f64": 2.0**-54}[x.dtype]
    return where(less(absolute(x), tiny), x, add(y, y))


def logistic(x: Expr) -> Expr:
    """With e = exp(-|x|) and q = e / (1 + e): 1 - q, and e - e q for negative x, where q's errors
    count little."""
    e = exp(neg(absolute(x)))
    w = where(less(x, 0.0), e, 1.0)
    return fma(neg(w), div(e, add(e, 1.0)), w)


def tanh(x: Expr) -> Expr:
    """With h = expm1(2 |x|) / 2: h - h (h / (h + 1)), where the quotient's errors count little; 1 -
    1 / (h + 1) for larger x."""
    if x.dtype == "f64":
        return tanh_f64(x)
    a = at_most(absolute(x), 10.0)
    n, i = nearest_integer(a, 2 * LOG2_E)
    r = fma(n, -LN2["f32"][0] / 2, a)
    p = fma(mul(r, r), poly(r, TANH_F32), add(r, r))  # expm1(2 r)
    s = power_of_two(iop("sub", i, 1), "f32")
    h = where(greater(a, 0.5), 1.0, fma(p, s, sub(s, 0.5)))
    return copysign(fma(neg(h), div(h, fma(p, s, add(s, 0.5))), h), x)


def tanh_f64(x: Expr) -> Expr:
    """1 - 2 / (exp(2|x|) + 1), and an odd polynomial where that would cancel."""
    a = absolute(x)
    z = mul(x, x)
    r, n = reduce(at_most(add(a, a), 40.0))
    p = poly(r, (1.0, 1.0, *EXP_F64))
    large = sub(1.0, div(2.0, fma(p, power_of_two(n, x.dtype), 1.0)))
    small = fma(mul(a, z), poly(z, TANH_F64), a)
    return copysign(where(less(a, 0.55), small, large), x)


def hyperbolic_parts(x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """With |x| = n ln 2 + r: cosh(r) - 1, sinh(r), and sinh(n ln 2) / 2, cosh(n ln 2) / 2."""
    a = at_most(absolute(x), {"f32": 89.5, "f64": 710.5}[x.dtype])
    r, n = reduce(a)
    z = mul(r, r)
    cosh_less_1 = mul(z, poly(z, pick(x, COSH_F32, COSH_F64)))
    sinh_r = fma(mul(r, z), poly(z, pick(x, SINH_F32, SINH_F64)), r)
    up = power_of_two(iop("sub", n, 2), x.dtype)
    smallest = 1 - EXPONENT_BIAS[x.dtype]
    down = power_of_two(iop("max", iop("sub", const(-2, n.dtype), whole(n)), smallest), x.dtype)
    return cosh_less_1, sinh_r, sub(up, down), add(up, down)


def sinh(x: Expr) -> Expr:
    """sinh(n ln 2) cosh(r) + cosh(n ln 2) sinh(r): no division, and no cancellation at small x,
    where n = 0."""
    c, s, sinh_n, cosh_n = hyperbolic_parts(x)
    y = add(sinh_n, fma(s, cosh_n, mul(c, sinh_n)))
    tiny = {"f32": 2.0**-13, "f64": 2.0**-28}[x.dtype]
    return where(less(absolute(x), tiny), x, copysign(add(y, y), x))


def cosh(x: Expr) -> Expr:
    """cosh(n ln 2) cosh(r) + sinh(n ln 2) sinh(r)."""
    c, s, sinh_n, cosh_n = hyperbolic_parts(x)
    y = add(cosh_n, fma(c, cosh_n, mul(s, sinh_n)))
    return add(y, y)
