"""lgamma and digamma. f32 is computed in f64 and rounded: the terms cancel."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, const, make
from calque.native.scalars.vmath import logarithm, pairs, power, trigonometric
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    all_of,
    div,
    equal,
    fast_two_sum,
    fma,
    greater,
    less,
    less_equal,
    mul,
    nearest,
    neg,
    poly,
    rare,
    sub,
    two_product,
    where,
)

# lgamma(y) / ((y - 1) (y - 2)) in powers of y - 2, 1 <= y <= 3: for f64 and f32
LGAMMA_MIDDLE: Final = (
    0.42278433509846713, -0.10031730167435396, 0.03296500062115763, -0.012384192193366879,
    0.004998641164586734,
    -0.0021081308341047234, 0.0009153769249369867, -0.0004057073952196358, 0.00018255260502259105,
    -8.309514537289749e-05, 3.8169147850427613e-05, -1.7661583257740786e-05, 8.220920545256271e-06,
    -3.8475917600033254e-06, 1.8123164316216553e-06, -8.525673735420007e-07, 3.94027346611619e-07,
    -1.9160224807187752e-07, 1.0678589939956326e-07, -4.4915575709162443e-08,
    3.5020732636437067e-09,
    -7.096819443705388e-09, 1.764272944074303e-08, -5.322990362385328e-09, -4.819388145010911e-09,
    1.2481073706437157e-09, 1.6530938102858045e-09, -6.364445016421897e-10,
)  # fmt: skip
LGAMMA_MIDDLE_SHORT: Final = (
    0.42278433565999335, -0.10031730379455704, 0.0329649466930907, -0.012384114706862208,
    0.004999482595168454,
    -0.0021089450962433758, 0.000910497495314703, -0.00040197020536393856, 0.00019581641714219237,
    -9.175543643260356e-05, 2.02343311111546e-05, -7.264929430285791e-06, 1.9313765995015297e-05,
    -9.682983835668546e-06,
)  # fmt: skip
# x (lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) in powers of 1/x^2, x >= 3
STIRLING: Final = (
    0.08333333333333331, -0.0027777777777322904, 0.0007936507759557739, -0.0005952354082886566,
    0.0008415392055374216,
    -0.001907585910820653, 0.006107691058407327, -0.023215769191889966, 0.08279193944618705,
    -0.21324423324115688,
    0.2728216319999721,
)  # fmt: skip
STIRLING_SHORT: Final = (
    0.08333333330588374, -0.002777764758067407, 0.0007926549272796114, -0.0005678049670783073,
    0.0005073222298363009,
)  # fmt: skip
# x^2 (log x - 1/(2 x) - digamma(x)) in powers of 1/x^2, x >= 8
DIGAMMA: Final = (
    0.08333333333333333, -0.008333333333303626, 0.003968253937048494, -0.004166654311949012,
    0.007573403196748056,
    -0.020857183435336418, 0.07096736509838181, -0.13333497618083034,
)  # fmt: skip
# digamma(x) / (x - its zero) in powers of x - 2, 1 <= x <= 3
DIGAMMA_MIDDLE: Final = (
    0.7853075386041053, -0.2607389546830014, 0.10899991701762841, -0.04955103291766767,
    0.023447309597562315,
    -0.011338432553553088, 0.005552254176163854, -0.002739572878878444, 0.001358142115660262,
    -0.0006753134172771423, 0.00033643307392409804, -0.00016781485745549608, 8.377541533754836e-05,
    -4.1847758637407615e-05, 2.090944279433702e-05, -1.043615113408139e-05, 5.216485445131201e-06,
    -2.6450069563210817e-06, 1.322327646207658e-06, -5.878282013270488e-07, 2.938946209899294e-07,
    -2.5162239592946485e-07, 1.258090299216334e-07, 4.46741085718643e-08, -2.2337287908168016e-08,
    -6.628736705562654e-08, 3.314365249205256e-08, 2.0501183895194647e-08, -1.0250592958849892e-08,
    -5.4669888399440215e-09, 2.7334936115473567e-09,
)  # fmt: skip
# (digamma(5.5 + t) - digamma(5.5)) / t, |t| <= 2.5
DIGAMMA_UPPER: Final = (
    0.19934238698962767, -0.01980447376065102, 0.0026150987793135145, -0.00038727525172562973,
    6.099150616550166e-05, -9.976411124466133e-06, 1.6737079113270519e-06, -2.858554697357873e-07,
    4.9465382356156624e-08, -8.644542308105083e-09, 1.5222144688267495e-09, -2.6964667777883626e-10,
    4.800360154693551e-11, -8.575861475094332e-12, 1.5308354332418509e-12, -2.749867714067858e-13,
    5.139065246106521e-14, -9.26821403698263e-15, 1.2578593151006833e-15, -2.2705024914123726e-16,
    1.026695476829322e-16, -1.8618677790317902e-17, -2.5138039574634444e-18, 4.571787366291487e-19,
    2.447400157761838e-19, -4.443954068979169e-20,
)  # fmt: skip
DIGAMMA_5_5: Final = (1.6110931485817512, -1.0946120961740176e-16)  # in two parts
DIGAMMA_ZERO: Final = (1.4616321449683622, 9.549995429965697e-17)  # above 0, in two parts
HALF_LOG_2_PI: Final = 0.9189385332046727
LOG_PI: Final = 1.1447298858494002
PI: Final = 3.141592653589793


def lgamma(x: Expr) -> Expr:
    """log |gamma(x)|. In f64 the error near its zeros below -5 is some 1e-15 absolute rather than
    relative."""
    wide = cast(x, "f64")
    a = absolute(wide)
    y = lgamma_positive(a, x.dtype == "f32")
    negative = less(wide, 0.0)
    # two numbers of which little is left near zeros: also f32 takes all digits of them
    exact = y if x.dtype != "f32" else lgamma_positive(a, False)
    reflected = sub(sub(LOG_PI, logarithm.log(mul(a, absolute(sin_pi(a))))), exact)
    reflected = where(less(a, 5.0), lgamma_by_steps(wide), reflected)
    y = rare(negative, y, where(negative, reflected, y))
    y = where(
        equal(a, INF), INF, where(all_of(less_equal(wide, 0.0), equal(nearest(wide), wide)), INF, y)
    )
    return cast(y, x.dtype)


def lgamma_positive(x: Expr, short: bool) -> Expr:
    """A polynomial for x < 3, one step up below 1; Stirling's series beyond."""
    log_x = logarithm.log(x)
    low = less(x, 1.0)
    t = sub(x, where(low, 1.0, const(2.0, "f64")))
    p = poly(t, LGAMMA_MIDDLE_SHORT if short else LGAMMA_MIDDLE)
    middle = fma(mul(where(low, x, sub(x, 1.0)), t), p, 0.0)  # the sum makes no -0
    r = div(1.0, x)
    tail = fma(r, poly(mul(r, r), STIRLING_SHORT if short else STIRLING), HALF_LOG_2_PI)
    if short:
        far = add(fma(sub(x, 0.5), sub(log_x, 1.0), -0.5), tail)
    else:
        far = stirling(x, sub(tail, 0.5))
    return where(less(x, 3.0), where(low, sub(middle, log_x), middle), far)


def stirling(x: Expr, tail: Expr) -> Expr:
    """(x - 1/2) (log(x) - 1) + tail, the logarithm and the product in two parts."""
    log_x, log_rest = power.log_pair(x)
    less_1, rest = fast_two_sum(log_x, const(-1.0, "f64"))
    factor = sub(x, 0.5)
    product, lost = two_product(factor, less_1)
    out = add(product, add(tail, fma(factor, add(rest, log_rest), lost)))
    return where(less(x, 2.0**60), out, mul(x, less_1))


def lgamma_by_steps(x: Expr) -> Expr:
    """For -5 < x < 0: lgamma of the number between 1 and 2 that is so many steps up, less the
    logarithm of what lies between, which is near 0 where the result is."""
    up = add(sub(x, make("floor", (x,), "f64")), 1.0)
    product = pairs.single(x)
    for k in range(1, 6):
        factor = add(x, float(k))
        more = pairs.times(product, pairs.single(factor))
        product = pairs.where(less(factor, 1.0), more, product)
    size = add(logarithm.log(absolute(product.high)), div(product.low, product.high))
    return sub(lgamma_positive(up, False), size)


def sin_pi(x: Expr) -> Expr:
    """sin(pi x) up to its sign."""
    return trigonometric.sine(mul(sub(x, nearest(x)), PI))


def digamma(x: Expr) -> Expr:
    """The asymptotic series at x >= 8; smaller x take 8 steps up at once, negative ones are
    reflected. In f64 polynomials serve below 8; the error near zeros below 0 is some 1e-15
    absolute rather than relative."""
    wide = cast(x, "f64")
    negative = less(wide, 0.0)
    y = where(negative, sub(1.0, wide), wide)
    small = less(y, 8.0)
    near = where(small, y, 1.0)
    product, slope = near, const(1.0, "f64")  # of (y + 0) ... (y + 7), and its derivative
    for k in range(1, 8):
        factor = add(near, float(k))
        slope = fma(slope, factor, product)
        product = mul(product, factor)
    up = where(small, add(y, 8.0), y)
    r = div(1.0, up)
    z = mul(r, r)
    series = sub(logarithm.log(up), fma(r, 0.5, mul(z, poly(z, DIGAMMA))))
    out = where(small, sub(series, div(slope, product)), series)
    if x.dtype == "f64":
        high, low = DIGAMMA_5_5
        t = sub(y, 5.5)
        upper = add(fma(t, poly(t, DIGAMMA_UPPER), low), high)
        out = where(less(y, 3.0), digamma_middle(y), where(small, upper, series))
    f = sub(wide, nearest(wide))
    reflected = sub(out, div(PI, tan_pi(f)))
    out = rare(negative, out, where(negative, reflected, out))
    pole = all_of(less_equal(wide, 0.0), equal(nearest(wide), wide))
    out = where(pole, NAN, out)
    return cast(where(equal(wide, INF), INF, out), x.dtype)


def digamma_middle(x: Expr) -> Expr:
    """For 0 < x < 3: a polynomial times the distance from the zero, one step up below 1."""
    low = less(x, 1.0)
    zero, rest = DIGAMMA_ZERO
    distance = sub(sub(x, where(low, const(zero - 1, "f64"), zero)), rest)
    y = mul(distance, poly(sub(x, where(low, const(1.0, "f64"), 2.0)), DIGAMMA_MIDDLE))
    return where(low, sub(y, div(1.0, x)), y)


def tan_pi(f: Expr) -> Expr:
    """tan(pi f) for |f| <= 1/2."""
    steep = greater(absolute(f), 0.25)
    r = mul(where(steep, sub(absolute(f), 0.5), absolute(f)), PI)
    t = trigonometric.tangent(r, mul(r, 0.0), steep)
    return where(less(f, 0.0), neg(t), t)
