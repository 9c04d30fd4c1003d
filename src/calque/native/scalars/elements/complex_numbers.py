"""Complex elements: pairs of real expressions, with C's branch cuts and signs of zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.native.scalars.elements.values import Cx, op2
from calque.native.scalars.expr import Expr, both, const, either, ex, select

INF: Final = float("inf")
HALF_PI: Final = 1.5707963267948966
# ln 2 as the nearest number and what is left of it
LN2: Final = {
    "f32": (0.6931471824645996, -1.904654299957768e-09),
    "f64": (0.6931471805599453, 2.3190468138462996e-17),
}
SCALE: Final = {"f32": (2.0**124, 2.0**-100), "f64": (2.0**1020, 2.0**-960)}


def real(v: float, like: Expr) -> Expr:
    return const(v, like.dtype)


def product(a: Expr, b: Expr) -> Expr:
    """a * b, zero where a is zero though b be infinite or no number."""
    return select(op2("eq", a, 0.0), ex("mul", a, ex("copysign", real(1.0, b), b)), ex("mul", a, b))


def infinite(x: Expr) -> Expr:
    return op2("eq", ex("abs", x), INF)


def undefined(x: Expr) -> Expr:
    return ex("ne", x, x)


def endless(x: Cx) -> Expr:
    """Has either part no end?"""
    return either(infinite(x.re), infinite(x.im))


def add(x: Cx, y: Cx) -> Cx:
    return Cx(ex("add", x.re, y.re), ex("add", x.im, y.im))


def sub(x: Cx, y: Cx) -> Cx:
    return Cx(ex("sub", x.re, y.re), ex("sub", x.im, y.im))


def mul(x: Cx, y: Cx) -> Cx:
    return Cx(
        ex("sub", ex("mul", x.re, y.re), ex("mul", x.im, y.im)),
        ex("add", ex("mul", x.re, y.im), ex("mul", x.im, y.re)),
    )


def div(x: Cx, y: Cx) -> Cx:
    """Smith's division: by the larger part of the divisor first."""
    wide = ex("ge", ex("abs", y.re), ex("abs", y.im))
    p, q = select(wide, y.re, y.im), select(wide, y.im, y.re)
    r = select(op2("eq", p, 0.0), q, ex("div", q, p))
    d = ex("add", p, ex("mul", q, r))
    a, b = select(wide, x.re, x.im), select(wide, x.im, x.re)
    re = ex("div", ex("add", a, ex("mul", b, r)), d)
    im = ex("div", ex("sub", b, ex("mul", a, r)), d)
    return Cx(re, select(wide, im, ex("neg", im)))


def neg(x: Cx) -> Cx:
    return Cx(ex("neg", x.re), ex("neg", x.im))


def times_i(x: Cx) -> Cx:
    return Cx(ex("neg", x.im), x.re)


def over_i(x: Cx) -> Cx:
    return Cx(x.im, ex("neg", x.re))


def scaled(x: Cx, by: Expr) -> Cx:
    return Cx(ex("mul", x.re, by), ex("mul", x.im, by))


def choose(cond: Expr, x: Cx, y: Cx) -> Cx:
    return Cx(select(cond, x.re, y.re), select(cond, x.im, y.im))


def one(like: Cx) -> Cx:
    return Cx(real(1.0, like.re), real(0.0, like.re))


def absolute(x: Cx) -> Expr:
    return ex("hypot", x.re, x.im)


def sign(x: Cx) -> Cx:
    a = absolute(x)
    zero = op2("eq", a, 0.0)
    return Cx(select(zero, x.re, ex("div", x.re, a)), select(zero, x.im, ex("div", x.im, a)))


def square(x: Cx) -> Cx:
    p = ex("mul", x.re, x.im)
    return Cx(ex("sub", ex("mul", x.re, x.re), ex("mul", x.im, x.im)), ex("add", p, p))


def exp(x: Cx) -> Cx:
    """exp(x) (cos y + i sin y), a zero or an infinity also where y has no angle."""
    return turned(x, ex("exp", x.re), ex("sin", x.im), ex("cos", x.im))


def exp2(x: Cx) -> Cx:
    """2**x (cos y ln 2 + i sin y ln 2): of what y ln 2 loses when it is rounded, sine and cosine
    take their first terms."""
    ln2, rest = LN2[x.re.dtype]
    angle = op2("mul", x.im, ln2)
    lost = ex("fma", x.im, real(ln2, angle), ex("neg", angle))
    lost = ex("add", lost, op2("mul", x.im, rest))
    s, c = ex("sin", angle), ex("cos", angle)
    sine, cosine = ex("fma", lost, c, s), ex("fma", ex("neg", lost), s, c)
    return turned(x, ex("exp2", x.re), sine, cosine)


def turned(x: Cx, e: Expr, sine: Expr, cosine: Expr) -> Cx:
    """The power `e` of the real part, turned by the angle of the imaginary one."""
    gone = op2("eq", x.re, -INF)
    re = select(both(op2("eq", x.re, INF), undefined(sine)), e, ex("mul", e, cosine))
    im = select(op2("eq", x.im, 0.0), x.im, product(sine, e))
    return Cx(
        select(gone, ex("copysign", e, cosine), re), select(gone, ex("copysign", e, sine), im)
    )


def expm1(x: Cx) -> Cx:
    """expm1(x) cos y - 2 sin(y/2)^2, exp(x) sin y."""
    h, sine = ex("sin", op2("mul", x.im, 0.5)), ex("sin", x.im)
    m, e = ex("expm1", x.re), ex("exp", x.re)
    re = ex("sub", ex("mul", m, ex("cos", x.im)), op2("mul", ex("mul", h, h), 2.0))
    re = select(both(infinite(x.re), undefined(sine)), m, op2("add", re, 0.0))
    return Cx(re, select(op2("eq", x.re, -INF), ex("copysign", e, sine), product(sine, e)))


def log(x: Cx) -> Cx:
    return Cx(ex("log_hypot", x.re, x.im), ex("atan2", x.im, x.re))


def log1p(x: Cx) -> Cx:
    u = op2("add", x.re, 1.0)
    near = both(op2("lt", ex("abs", x.re), 0.5), op2("lt", ex("abs", x.im), 0.5))
    grown = ex("add", ex("mul", x.re, op2("add", x.re, 2.0)), ex("mul", x.im, x.im))
    re = select(near, op2("mul", ex("log1p", grown), 0.5), ex("log_hypot", u, x.im))
    return Cx(re, ex("atan2", x.im, u))


def sqrt(x: Cx) -> Cx:
    """From sqrt((|x| + |re|) / 2), scaled where that would overflow or lose denormal bits."""
    size = ex("max", ex("abs", x.re), ex("abs", x.im))
    big, tiny = SCALE[x.re.dtype]
    is_big, is_tiny = op2("gt", size, big), op2("lt", size, tiny)
    by = select(is_big, real(2.0**-4, size), select(is_tiny, real(2.0**64, size), real(1.0, size)))
    back = select(is_big, real(4.0, size), select(is_tiny, real(2.0**-32, size), real(1.0, size)))
    re, im = ex("mul", x.re, by), ex("mul", x.im, by)
    t = ex("sqrt", op2("mul", ex("add", ex("abs", re), ex("hypot", re, im)), 0.5))
    u = select(op2("eq", t, 0.0), im, ex("div", im, op2("mul", t, 2.0)))
    t, u = ex("mul", t, back), ex("mul", u, back)
    left = op2("lt", x.re, 0.0)
    out = Cx(select(left, ex("abs", u), t), select(left, ex("copysign", t, x.im), u))
    far = infinite(x.im)
    return Cx(select(far, real(INF, size), out.re), select(far, x.im, out.im))


def rsqrt(x: Cx) -> Cx:
    return div(one(x), sqrt(x))


def power(x: Cx, y: Cx) -> Cx:
    """|x|^re(y) exp(-im(y) arg x) at the angle re(y) arg x + im(y) log|x|."""
    size, angle = absolute(x), ex("atan2", x.im, x.re)
    length = ex("log_hypot", x.re, x.im)
    r = ex("mul", ex("pow", size, y.re), ex("exp", ex("neg", ex("mul", y.im, angle))))
    turn = ex(
        "add", ex("mul", y.re, angle), select(op2("eq", y.im, 0.0), y.im, ex("mul", y.im, length))
    )
    out = Cx(ex("mul", r, ex("cos", turn)), product(ex("sin", turn), r))
    zero = Cx(real(0.0, r), real(0.0, r))
    out = choose(both(op2("eq", size, 0.0), op2("gt", y.re, 0.0)), zero, out)
    return choose(both(op2("eq", y.re, 0.0), op2("eq", y.im, 0.0)), one(x), out)


def sinh(x: Cx) -> Cx:
    s, sine = ex("sinh", x.re), ex("sin", x.im)
    re = select(both(infinite(x.re), undefined(sine)), s, product(s, ex("cos", x.im)))
    return Cx(re, product(sine, ex("cosh", x.re)))


def cosh(x: Cx) -> Cx:
    c, s, sine = ex("cosh", x.re), ex("sinh", x.re), ex("sin", x.im)
    re = select(both(infinite(x.re), undefined(sine)), c, ex("mul", c, ex("cos", x.im)))
    return Cx(re, select(op2("eq", s, 0.0), product(s, sine), product(sine, s)))


def sin(x: Cx) -> Cx:
    return over_i(sinh(times_i(x)))


def cos(x: Cx) -> Cx:
    return cosh(times_i(x))


def tanh(x: Cx) -> Cx:
    """Kahan's: with t = tan y, b = 1 + t^2, s = sinh x, r = sqrt(1 + s^2): (b r s + i t) / (1 + b
    s^2); far out, +-1."""
    a = ex("abs", x.re)
    far = op2("gt", a, {"f32": 12.0, "f64": 22.0}[a.dtype])
    near_x = select(far, real(1.0, a), x.re)
    t, s = ex("tan", x.im), ex("sinh", near_x)
    b, s2 = op2("add", ex("mul", t, t), 1.0), ex("mul", s, s)
    r = ex("sqrt", op2("add", s2, 1.0))
    d = op2("add", ex("mul", b, s2), 1.0)
    pole = op2("eq", ex("abs", t), INF)
    re = ex("div", ex("mul", ex("mul", b, r), s), d)
    re = select(pole, ex("div", r, s), re)
    im = select(pole, ex("div", real(1.0, t), t), ex("div", t, d))
    sine, e = ex("sin", op2("mul", x.im, 2.0)), ex("exp", op2("mul", a, -2.0))
    far_im = select(op2("eq", e, 0.0), ex("copysign", e, sine), op2("mul", ex("mul", sine, e), 2.0))
    lost = both(undefined(sine), op2("lt", a, INF))  # finite, and no angle
    re = select(far, ex("copysign", select(lost, sine, real(1.0, a)), x.re), re)
    im = select(far, select(lost, sine, far_im), im)
    return Cx(select(op2("eq", x.re, 0.0), x.re, re), select(op2("eq", x.im, 0.0), x.im, im))


def tan(x: Cx) -> Cx:
    return over_i(tanh(times_i(x)))


def logistic(x: Cx) -> Cx:
    left = op2("lt", x.re, 0.0)
    w = exp(choose(left, x, neg(x)))
    return div(choose(left, w, one(x)), add(w, one(x)))


def asin(x: Cx) -> Cx:
    a, b = (
        sqrt(Cx(op2_from(1.0, "sub", x.re), ex("neg", x.im))),
        sqrt(Cx(op2("add", x.re, 1.0), x.im)),
    )
    re = ex("atan2", x.re, ex("sub", ex("mul", a.re, b.re), ex("mul", a.im, b.im)))
    im = ex("asinh", ex("sub", ex("mul", a.re, b.im), ex("mul", a.im, b.re)))
    angle = ex("copysign", ex("atan2", ex("abs", x.re), ex("abs", x.im)), x.re)
    out = choose(endless(x), Cx(angle, ex("copysign", real(INF, im), x.im)), Cx(re, im))
    return Cx(select(op2("eq", x.re, 0.0), x.re, out.re), out.im)


def op2_from(v: float, name: str, x: Expr) -> Expr:
    return ex(name, const(v, x.dtype), x)


def acos(x: Cx) -> Cx:
    a, b = (
        sqrt(Cx(op2_from(1.0, "sub", x.re), ex("neg", x.im))),
        sqrt(Cx(op2("add", x.re, 1.0), x.im)),
    )
    im = ex("asinh", ex("sub", ex("mul", b.re, a.im), ex("mul", b.im, a.re)))
    out = Cx(op2("mul", ex("atan2", a.re, b.re), 2.0), im)
    far = Cx(ex("atan2", ex("abs", x.im), x.re), ex("copysign", real(INF, im), ex("neg", x.im)))
    out = choose(endless(x), far, out)
    return Cx(
        select(both(op2("eq", x.re, 0.0), undefined(x.im)), real(HALF_PI, im), out.re), out.im
    )


def acosh(x: Cx) -> Cx:
    a, b = sqrt(Cx(op2("sub", x.re, 1.0), x.im)), sqrt(Cx(op2("add", x.re, 1.0), x.im))
    re = ex("asinh", ex("add", ex("mul", a.re, b.re), ex("mul", a.im, b.im)))
    out = Cx(re, op2("mul", ex("atan2", a.im, b.re), 2.0))
    out = choose(endless(x), Cx(real(INF, re), ex("atan2", x.im, x.re)), out)
    return Cx(
        out.re, select(both(op2("eq", x.re, 0.0), undefined(x.im)), real(HALF_PI, re), out.im)
    )


def asinh(x: Cx) -> Cx:
    return over_i(asin(times_i(x)))


def atanh(x: Cx) -> Cx:
    """log1p(4 x / ((1 - x)^2 + y^2)) / 4, and half the angle of (1 - x)(1 + x) - y^2 + 2 i y."""
    a = ex("abs", x.re)
    u, v = op2_from(1.0, "sub", a), op2("add", a, 1.0)
    y2 = ex("mul", x.im, x.im)
    re = op2(
        "mul", ex("log1p", ex("div", op2("mul", a, 4.0), ex("add", ex("mul", u, u), y2))), 0.25
    )
    im = op2("mul", ex("atan2", op2("mul", x.im, 2.0), ex("sub", ex("mul", u, v), y2)), 0.5)
    re = select(either(endless(x), op2("eq", a, 0.0)), real(0.0, a), re)
    return Cx(
        ex("copysign", re, x.re), select(infinite(x.im), ex("copysign", real(HALF_PI, a), x.im), im)
    )


def atan(x: Cx) -> Cx:
    return over_i(atanh(times_i(x)))


def before(x: Cx, y: Cx, name: str) -> Expr:
    """x lt, gt, le, ge y: by the real parts, then the imaginary ones."""
    strict = name[0] + "t"
    return either(ex(strict, x.re, y.re), both(ex("eq", x.re, y.re), ex(name, x.im, y.im)))


UNARY: Final[dict[str, Callable[[Cx], Cx]]] = {
    "neg": neg, "sign": sign, "square": square, "exp": exp, "exp2": exp2, "expm1": expm1,
    "log": log, "log1p": log1p, "sqrt": sqrt,
    "rsqrt": rsqrt, "sin": sin, "cos": cos, "tan": tan, "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "logistic": logistic, "asin": asin,
    "acos": acos, "atan": atan, "asinh": asinh, "acosh": acosh, "atanh": atanh,
}  # fmt: skip
BINARY: Final[dict[str, Callable[[Cx, Cx], Cx]]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "pow": power,
}
