"""Complex elements: pairs of real expressions, with C's branch cuts and signs of zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.native.scalars.elements.values import Cx, op2
from calque.native.scalars.expr import Expr, both, const, either, ex, select
from calque.native.scalars.vmath import COMPLEX

INF: Final = float("inf")
SCALE: Final = {"f32": (2.0**124, 2.0**-100), "f64": (2.0**1020, 2.0**-960)}


def real(v: float, like: Expr) -> Expr:
    return const(v, like.dtype)


def product(a: Expr, b: Expr) -> Expr:
    """a * b, zero where a is zero though b be infinite or no number."""
    return select(op2("eq", a, 0.0), ex("mul", a, ex("copysign", real(1.0, b), b)), ex("mul", a, b))


def infinite(x: Expr) -> Expr:
    return op2("eq", ex("abs", x), INF)


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


def by_parts(name: str) -> Callable[[Cx], Cx]:
    """A function of `vmath` that has a real and an imaginary part."""
    return lambda x: Cx(ex(f"{name}_re", *x), ex(f"{name}_im", *x))


def log(x: Cx) -> Cx:
    return Cx(ex("log_hypot", x.re, x.im), ex("atan2", x.im, x.re))


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


def sin(x: Cx) -> Cx:
    return over_i(by_parts("sinh")(times_i(x)))


def cos(x: Cx) -> Cx:
    return by_parts("cosh")(times_i(x))


def tan(x: Cx) -> Cx:
    return over_i(by_parts("tanh")(times_i(x)))


def acosh(x: Cx) -> Cx:
    z = by_parts("acos")(x)
    return Cx(ex("abs", z.im), ex("copysign", z.re, x.im))


def asinh(x: Cx) -> Cx:
    return over_i(by_parts("asin")(times_i(x)))


def atan(x: Cx) -> Cx:
    return over_i(by_parts("atanh")(times_i(x)))


def before(x: Cx, y: Cx, name: str) -> Expr:
    """x lt, gt, le, ge y: by the real parts, then the imaginary ones."""
    strict = name[0] + "t"
    return either(ex(strict, x.re, y.re), both(ex("eq", x.re, y.re), ex(name, x.im, y.im)))


UNARY: Final[dict[str, Callable[[Cx], Cx]]] = {
    "neg": neg, "sign": sign, "square": square, "log": log, "sqrt": sqrt,
    "sin": sin, "cos": cos, "tan": tan, "atan": atan, "asinh": asinh, "acosh": acosh,
    **{name: by_parts(name) for name in COMPLEX},
}  # fmt: skip
BINARY: Final[dict[str, Callable[[Cx, Cx], Cx]]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "pow": power,
}
