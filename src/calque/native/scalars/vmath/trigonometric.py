"""sin, cos and tan."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, ex
from calque.native.scalars.vmath import reduction
from calque.native.scalars.vmath.base import (
    WIDTH,
    absolute,
    add,
    at_most,
    copysign,
    div,
    equal,
    flip_sign,
    fma,
    greater,
    greater_equal,
    iop,
    mul,
    nearest,
    nearest_integer,
    neg,
    no_less,
    pick,
    poly,
    rare,
    sub,
    where,
)

# (sin(r) - r) / r^3 in powers of r^2, |r| <= pi/2
SIN_F32: Final = (
    -0.1666666716337204,
    0.008333350531756878,
    -0.00019843093468807638,
    2.7627065719570965e-06,
    -2.5503551270844582e-08,
)
SIN_F64: Final = (
    -0.16666666666666666, 0.00833333333333319, -0.0001984126984119224, 2.7557319203422436e-06,
    -2.505210529372602e-08,
    1.605876241085625e-10, -7.631351336133964e-13, 2.275265576756578e-15, 9.238171270472642e-17,
    -8.000890734967029e-18,
)  # fmt: skip
# (tan(r) - r) / r^3 in powers of r^2, |r| <= pi/4
TAN_F32: Final = (
    0.3333314061164856, 0.13339227437973022, 0.05337533354759216, 0.024559982120990753,
    0.0029094810597598553, 0.009511069394648075,
)  # fmt: skip
TAN_F64: Final = (
    0.33333333333332665, 0.1333333333343004, 0.05396825391932564, 0.021869489784314817,
    0.0088632167047835, 0.0035923111746258896,
    0.001454624289323432, 0.0005956250073149949, 0.00022073345998724293, 0.0001399070733412041,
    -3.114037351974218e-05,
    9.381134707291602e-05, -4.722438373634646e-05, 2.1426652260805356e-05,
)  # fmt: skip


def odd_sign(n: Expr) -> Expr:
    """The sign bit where the integer is odd."""
    return iop("shl", n, WIDTH["f32" if n.dtype == "i32" else "f64"] - 1)


def sine(r: Expr) -> Expr:
    """sin(r) for |r| <= pi/2, never beyond 1."""
    z = mul(r, r)
    return at_most(no_less(fma(r, mul(z, poly(z, pick(r, SIN_F32, SIN_F64))), r), -1.0), 1.0)


def is_huge(x: Expr) -> Expr:
    return greater_equal(absolute(x), reduction.HUGE[x.dtype])


def sin(x: Expr) -> Expr:
    """(-1)^n sin(x - n pi)."""
    q, n = nearest_integer(x, reduction.ONE_OVER_PI)
    near = flip_sign(reduction.common(x, q, 1.0), odd_sign(n))
    return where(equal(x, 0.0), x, sine(rare(is_huge(x), near, huge_sin(x))))


def huge_sin(x: Expr) -> Expr:
    """An angle r in [-pi/2, pi/2] with sin(r) = sin(x), for huge x."""
    t, rest = reduction.half_turns(x)
    q = nearest(t)
    r = reduction.turns_to_angle(sub(t, q), rest, 1.0)
    return finite_only(x, where(equal(q, 0.0), r, neg(r)))


def cos(x: Expr) -> Expr:
    """-(-1)^n sin(x - (n + 1/2) pi)."""
    q, n = nearest_integer(fma(x, reduction.ONE_OVER_PI, -0.5), 1.0)
    near = flip_sign(reduction.common(x, add(q, 0.5), 1.0), odd_sign(iop("add", n, 1)))
    return sine(rare(is_huge(x), near, huge_cos(x)))


def huge_cos(x: Expr) -> Expr:
    """An angle r in [-pi/2, pi/2] with sin(r) = cos(x), for huge x: t in [-1, 1] is -1/2 or 1/2
    away from f."""
    t, rest = reduction.half_turns(x)
    side = copysign(0.5, t)
    r = reduction.turns_to_angle(sub(t, side), rest, 1.0)
    return finite_only(x, where(greater(side, 0.0), neg(r), r))


def finite_only(x: Expr, r: Expr) -> Expr:
    """`r` in the dtype of `x`; nan where x is infinite or nan."""
    return where(equal(sub(x, x), 0.0), cast(r, x.dtype), sub(x, x))


# From here on the multiple of pi / 2 next to a number is missed by so much that angles beyond
# pi / 4 are left, whose tangents lose a digit when they are inverted.
TAN_FAR: Final = {**reduction.HUGE, "f32": 2.0**16}


def tangent(r: Expr, rest: Expr, odd: Expr) -> Expr:
    """tan(r + rest), or where `odd` -1 / tan(r + rest)."""
    z = mul(r, r)
    slope = fma(z, 2 / 3, 1.0)
    moved = fma(mul(rest, z), slope, rest)  # the slope of tan is 1 + z + 2/3 z^2 ...: 2 at pi / 4
    t = add(r, fma(mul(r, z), poly(z, pick(r, TAN_F32, TAN_F64)), moved))
    return div(where(odd, -1.0, t), where(odd, t, 1.0))


def tan(x: Expr) -> Expr:
    q, n = nearest_integer(x, 2 * reduction.ONE_OVER_PI)
    odd = ex("ne", iop("and", n, 1), iop("and", n, 0))
    near = tangent(*reduction.common_pair(x, q, 0.5), odd)
    far = greater_equal(absolute(x), TAN_FAR[x.dtype])
    return where(equal(x, 0.0), x, rare(far, near, huge_tan(x)))


def huge_tan(x: Expr) -> Expr:
    t, rest = reduction.half_turns(x)
    t, rest = add(t, t), add(rest, rest)
    q = nearest(t)
    f = sub(t, q)
    wide = reduction.turns_to_angle(f, rest, 0.5)
    r = cast(wide, x.dtype)
    if x.dtype == "f32":
        low = cast(sub(wide, cast(r, "f64")), "f32")
    else:
        high, middle, _ = (p * 0.5 for p in reduction.PI["f64"])
        low = add(fma(f, high, neg(r)), fma(f, middle, mul(rest, high)))
    y = tangent(r, low, equal(absolute(q), 1.0))
    return where(equal(sub(x, x), 0.0), y, sub(x, x))
