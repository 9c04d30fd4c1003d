"""The modified Bessel functions I0 and I1, times exp(-|x|). f32 is computed in f64 and rounded.

Each piece is a constant, in two parts, and a polynomial in the distance t from the middle of the
piece: around 1 and 5, and in 16 / |x| - 1 for what is left when 1 / sqrt(|x|) is taken out."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.scalars.expr import Expr, cast, const
from calque.native.scalars.vmath import pairs
from calque.native.scalars.vmath.base import (
    INF,
    absolute,
    add,
    copysign,
    div,
    equal,
    fma,
    less,
    mul,
    neg,
    poly,
    sqrt,
    sub,
    two_product,
    two_sum,
    where,
)
from calque.native.scalars.vmath.pairs import Pair


class Piece(NamedTuple):
    """f(t) = high + low + t P(t)."""

    high: float
    low: float
    rest: tuple[float, ...]


I0_LOW: Final = Piece(0.46575960759364043, 1.9933153617687904e-18, (
    -0.257849192243932, 0.1538939845690767, -0.07626738330347031, 0.031211735558922028,
    -0.010760498514470397, 0.0031903942655225424, -0.0008279390737087179, 0.00019080421952385532,
    -3.951738007846263e-05, 7.42831584989238e-06, -1.2778917528290013e-06, 2.0261398480474825e-07,
    -2.9786050110311045e-08, 4.073447885912582e-09, -5.219276874501197e-10, 6.686735684192391e-11,
    -7.773970684725938e-12,
))  # fmt: skip
I0_MIDDLE: Final = Piece(0.18354081260932836, -1.0096029890548686e-17, (
    -0.019568545664785997, 0.0031713189703317453, -0.0005802006097868016, 0.00011285381550059359,
    -2.2584093995198522e-05, 4.520818067191313e-06, -8.836833358560942e-07, 1.656702936082155e-07,
    -2.9447978321246112e-08, 4.931575960895608e-09, -7.760066276313529e-10, 1.1468864481835171e-10,
    -1.593542052328606e-11, 2.0851088366073634e-12, -2.5747390907595305e-13, 3.007558271841442e-14,
    -3.3294737651977167e-15, 3.495111382747223e-16, -3.501485872630194e-17, 3.4027221515620446e-18,
    -3.0970146164303427e-19, 2.3860713987961717e-20,
    -2.0339580168005005e-21, 2.6835830406615166e-22,
    -2.0287240185249462e-23,
))  # fmt: skip
I0_LARGE: Final = Piece(0.4021765094450081, -2.5469137991304108e-17, (
    0.0033605519836678206, 0.00013621607439241344, 1.1143033794456064e-05, 1.4838475404084577e-06,
    2.973597704686139e-07, 8.872270133851533e-08, 3.9326862858526504e-08, 2.1543330758154818e-08,
    7.548153479330171e-09, -6.718230444043223e-09, -1.3383237913124092e-08, -5.5126361080828236e-09,
    7.487626139992865e-09, 7.689332118564433e-09, -3.39795253818451e-09, -6.36652634717893e-09,
    1.4026608381311027e-09, 4.072009013429806e-09, -4.912370308171256e-10, -1.9078123604413567e-09,
    1.2138396115224616e-10, 5.679855089923096e-10, -1.4911939611723387e-11, -7.908109999375763e-11,
))  # fmt: skip
I1_LOW: Final = Piece(0.20791041534970844, 4.914331145324049e-18, (
    -0.1579716384554849, 0.08306347311414959, -0.034483914182062154, 0.01189315716868836,
    -0.0035112900879646766, 0.0009061108367571626, -0.0002076161682134992, 4.276397147889526e-05,
    -7.998144166402574e-06, 1.3696377713951636e-06, -2.1625766570250025e-07, 3.167328819206676e-08,
    -4.324742604780279e-09, 5.524640038062049e-10, -6.666413577752807e-11, 7.928360981887967e-12,
    -8.015013855767604e-13,
))  # fmt: skip
I1_MIDDLE: Final = Piece(0.16397226694454237, -9.469742070180446e-18, (
    -0.013225907724122476, 0.001430717140971337, -0.0001287853477850186, -6.665447543910016e-08,
    4.540814410159107e-06, -1.6649652836840563e-06, 4.4167900967680667e-07, -9.936151140171783e-08,
    1.9867783946288516e-08, -3.6044968823935247e-09, 6.002558317171032e-10, -9.247183964861826e-11,
    1.3256500644530406e-11, -1.7769967937857234e-12, 2.2365262720947753e-13, -2.652574579196286e-14,
    2.9734133397464713e-15, -3.1576422132641967e-16, 3.193441775462472e-17, -3.099996555755697e-18,
    2.823556573968094e-19, -2.3016253743813604e-20, 2.0380955223403676e-21, -2.3623981030731164e-22,
    1.6654129942155028e-23,
))  # fmt: skip
I1_LARGE: Final = Piece(0.38939845902587233, -4.422269466329674e-18, (
    -0.009749577193235694, -0.00021923576383439192,
    -1.5038547204191838e-05, -1.8349101063730852e-06,
    -3.483854860322347e-07, -1.0001340186404326e-07,
    -4.3130208554638236e-08, -2.336875892852179e-08,
    -8.421190616083338e-09, 6.7044665557247076e-09, 1.4008530561884347e-08, 6.0839496791307615e-09,
    -7.577596459133051e-09, -8.150253366365308e-09, 3.3187875116702705e-09, 6.6592650578527295e-09,
    -1.322179836961334e-09, -4.231301506968764e-09, 4.4995355440707425e-10, 1.9747541211989364e-09,
    -1.0903931404498182e-10, -5.863143488789227e-10, 1.32284308345488e-11, 8.145507706151885e-11,
))  # fmt: skip


def value(p: Piece, t: Expr) -> Pair:
    polynomial = poly(t, p.rest)
    product, lost = two_product(t, polynomial)
    high, low = two_sum(const(p.high, t.dtype), product)
    return Pair(high, add(low, add(lost, p.low)))


def near_zero(p: Piece, a: Expr) -> Pair:
    """With what 1 less a small a loses, where the slope is about -f."""
    t, lost = two_sum(a, const(-1.0, a.dtype))
    y = value(p, t)
    return Pair(y.high, fma(neg(lost), y.high, y.low))


def far(p: Piece, a: Expr) -> Expr:
    """Over sqrt(a), and what that has lost."""
    inverse, root = div(16.0, a), sqrt(a)
    y = value(p, sub(inverse, 1.0))
    q = div(y.high, root)
    rest = fma(fma(neg(root), root, a), mul(inverse, -1 / 32), mul(y.low, 1 / p.high))
    return where(equal(a, INF), 0.0, fma(q, rest, q))


def i0e(x: Expr) -> Expr:
    a = absolute(cast(x, "f64"))
    near = pairs.where(less(a, 2.0), near_zero(I0_LOW, a), value(I0_MIDDLE, sub(a, 5.0)))
    y = where(less(a, 8.0), pairs.rounded(near), far(I0_LARGE, a))
    return cast(y, x.dtype)


def i1e(x: Expr) -> Expr:
    a = absolute(cast(x, "f64"))
    low = near_zero(I1_LOW, a)
    product, lost = two_product(low.high, a)
    low = Pair(product, fma(low.low, a, lost))
    near = pairs.where(less(a, 2.0), low, value(I1_MIDDLE, sub(a, 5.0)))
    y = where(less(a, 8.0), pairs.rounded(near), far(I1_LARGE, a))
    return copysign(cast(y, x.dtype), x)
