"""erf, erfc and the inverse of erf."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, const
from calque.native.scalars.vmath import exponential, logarithm, wide
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    at_most,
    copysign,
    div,
    equal,
    fma,
    greater,
    ldexp,
    less,
    mul,
    nearest_integer,
    neg,
    pick,
    poly,
    power_of_two,
    sqrt,
    sub,
    two_sum,
    where,
)

# erf(r) / r - 1 in powers of r^2, |r| <= 0.9
ERF_SMALL_F32: Final = (
    0.12837910652160645, -0.37612223625183105, 0.11279123276472092, -0.02667299099266529,
    0.0048606726340949535,
    -0.0005335722817108035,
)  # fmt: skip
ERF_SMALL_F64: Final = (
    0.12837916709551256, -0.37612638903183726, 0.11283791670953704, -0.026866170644806623,
    0.005223977621603114,
    -0.0008548326754914099, 0.00012055321042008633, -1.4925299735446145e-05, 1.6455213875258359e-06,
    -1.627547562558254e-07, 1.4046044950386089e-08, -8.481845170086698e-10,
)  # fmt: skip
# log2(erfc(a)), 0.89 <= a <= 4, and 2^r, |r| <= 1/2
ERF_LARGE_F32: Final = (
    -0.00022054316650610417, -1.6271498203277588, -0.9188213348388672, -0.1503298580646515,
    0.03225545957684517,
    -0.004438184667378664, 0.0002875830396078527,
)  # fmt: skip
ERF_EXP2: Final = (
    1.0000001192092896, 0.6931474208831787, 0.24021920561790466, 0.05549757182598114,
    0.00968471635133028,
    0.0013632879126816988,
)  # fmt: skip
# log(erfc(a)), 0.89 <= a <= 6
ERF_LARGE_F64: Final = (
    5.169840051085812e-09, -1.1283792586998316, -0.6366190662137857, -0.10277585549675695,
    0.019138649391442043,
    0.000185796670585655, -0.0016552529297919978, 0.0005338858978291137, 3.579761274741745e-05,
    -0.0001190517945504978, 6.875963941379697e-05, -2.583980349744641e-05, 7.272685481218236e-06,
    -1.5915427650294502e-06, 2.7197706979542004e-07, -3.577045901986277e-08, 3.5047254234313346e-09,
    -2.4112807347252464e-10, 1.039474216537608e-11, -2.1118434552523791e-13,
)  # fmt: skip
# exp(a^2) erfc(a) (1 + 2 a) in powers of (a - k) / (a + k), k = 2 or 4
ERFC_F32: Final = (
    1.2769783735275269, -0.09276390820741653, -0.1660299152135849, 0.16405291855335236,
    -0.054224397987127304,
    -0.008042960427701473, 0.008734779432415962, 0.0012869653292000294, -0.0014637982239946723,
    -0.0004477206093724817, 0.00019635255739558488, 0.00010610807657940313,
)  # fmt: skip
ERFC_F64: Final = (
    1.2329951186255526, -0.13962111684056305, 0.015379652102599556, 0.06809705425477088,
    -0.101039066034809,
    0.0937328349952112, -0.066330365856049, 0.03716751559124408, -0.016197733387514887,
    0.005031969532124929,
    -0.0007577793856345795, -0.00019925514432156318, 0.0001506570196414348, -2.439676896203e-05,
    -1.1357015874826852e-05, 5.664101370149362e-06, 6.35508380427622e-07, -6.285168112259945e-07,
    -4.849739386717517e-07, -3.4442742447107176e-07, 5.311770776651173e-07, 5.94032909507455e-07,
    -2.5095264504862003e-07, -4.442206712961749e-07, -1.6001814899346553e-08,
    1.3867279237659643e-07,
    4.443669879020542e-08,
)  # fmt: skip
# erfinv(x) / x with w = -log(1 - x^2): in powers of w - 2.5 or 3.125, and of sqrt(w) - 3 or 4 for
# larger w
ERFINV_MIDDLE_F32: Final = (
    1.5014094114303589, 0.24664025008678436, -0.004177787806838751, -0.00125268311239779,
    0.00021883663430344313,
    -4.987453849025769e-06, -3.673921582958428e-06, 4.6937572051319876e-07, 6.021788578891574e-08,
    -8.890620684098849e-09, -2.267115828402666e-09,
)  # fmt: skip
ERFINV_MIDDLE_F64: Final = (
    1.6536545626831027, 0.24015818242558828, -0.006033670871427554, -0.0007407025341541192,
    0.0001867342080232694,
    -1.3882523395360574e-05, -1.365469182530006e-06, 4.234788185563273e-07, -2.907038467320048e-08,
    -4.112661627610035e-09, 1.0512195141584792e-09, -5.4142533647330113e-11,
    -1.2977373851348347e-11,
    2.6303924240438594e-12, -8.106822972655494e-14, -3.9996313138893005e-14, 6.57805042406508e-15,
    -4.213028006774283e-17, -1.2824193987559112e-16, 1.5707836663258083e-17, 1.021423868664199e-18,
    -3.554589731606342e-19, 3.8250727718810524e-21, 3.339162414290478e-21, -8.311613023556797e-23,
)  # fmt: skip
ERFINV_TAIL_F32: Final = (
    2.832976818084717, 1.001674771308899, 0.009444293566048145, -0.007634193170815706,
    0.0056952196173369884,
    -0.0036116500850766897, 0.0014641920570284128, -3.029036997759249e-05, -0.0002933467039838433,
    9.803345892578363e-05,
)  # fmt: skip
ERFINV_TAIL_F64: Final = (
    3.839783797411554, 1.009493253245425, 0.0012598472670912666, -0.0008689918052149161,
    0.0003209550441224455,
    -0.00011786478985957706, 5.567494986382752e-05, -3.25491903884361e-05, 1.8672089164237314e-05,
    -8.879595619637781e-06, 3.014845512077233e-06, -4.1583808059581454e-07, -2.748303743390367e-07,
    2.391485478414717e-07, -9.361542012413091e-08, 1.4919249908270037e-08, 5.5014208110916095e-09,
    -4.649450221740708e-09, 1.5080803793976798e-09, -1.6214708286318986e-10, -8.694128366611257e-11,
    5.6912767787748016e-11, -1.6840441589981773e-11, 1.2335316060724815e-12, 1.1393944044695573e-12,
    -4.54364455366931e-13, 5.649925273295765e-14, 2.5813382109211633e-15, -8.606350744936455e-16,
)  # fmt: skip


def erf(x: Expr) -> Expr:
    """An odd polynomial for |x| < 0.9, 1 - exp(polynomial) beyond."""
    a = at_most(absolute(x), {"f32": 4.0, "f64": 6.0}[x.dtype])
    z = mul(x, x)
    small = fma(poly(z, pick(x, ERF_SMALL_F32, ERF_SMALL_F64)), x, x)
    if x.dtype == "f32":
        t = poly(a, ERF_LARGE_F32)
        n, i = nearest_integer(t, 1.0)
        large = fma(neg(poly(sub(t, n), ERF_EXP2)), power_of_two(i, "f32"), 1.0)
    else:
        large = sub(1.0, exponential.exp(poly(a, ERF_LARGE_F64)))
    return where(less(a, 0.9), small, copysign(large, x))


def erfc(x: Expr) -> Expr:
    """exp(-a^2) times a polynomial in (a - k) / (a + k), over 1 + 2 a, with twice the digits; 2
    minus that for negative x. 1 - x - (erf(x) - x) near 0."""
    k, end = {"f32": (2.0, 11.0), "f64": (4.0, 28.0)}[x.dtype]
    a = at_most(absolute(x), end)
    square = mul(a, a)
    p, n = exponential.grown_parts(neg(square))
    power = wide.plus(wide.of_single(const(1.0, x.dtype)), wide.of(p))
    power = wide.times(power, wide.sum_of(neg(fma(a, a, neg(square))), 1.0))
    t = div(sub(a, k), add(a, k))
    first, *others = pick(x, ERFC_F32, ERFC_F64)
    shape = wide.sum_of(mul(t, poly(t, tuple(others))), first)
    below = wide.sum_of(add(a, a), 1.0)
    out = wide.times(power, wide.quotient(shape, below, wide.inverse(below)))
    far = ldexp(wide.rounded(out, x.dtype), n)
    far = where(less(x, 0.0), sub(2.0, far), far)
    high, low = two_sum(const(1.0, x.dtype), neg(x))
    rest = mul(x, poly(mul(x, x), pick(x, ERF_SMALL_F32, ERF_SMALL_F64)))
    border = {"f32": 0.5, "f64": 0.65}[x.dtype]
    return where(less(a, border), add(high, sub(low, rest)), far)


def closing_poly(t: Expr, coefficients: tuple[float, ...]) -> Expr:
    """A polynomial whose last step is in f64, so that it rounds nothing."""
    return fma(cast(t, "f64"), cast(poly(t, coefficients[1:]), "f64"), coefficients[0])


def erf_inv(x: Expr) -> Expr:
    """x times a polynomial in w = -log(1 - x^2), or in sqrt(w) where w is large. Within 2 units in
    the last place."""
    middle, tail, border = {"f32": (2.5, 3.0, 5.0), "f64": (3.125, 4.0, 6.25)}[x.dtype]
    w = neg(logarithm.log(fma(neg(x), x, 1.0)))
    near = closing_poly(sub(w, middle), pick(x, ERFINV_MIDDLE_F32, ERFINV_MIDDLE_F64))
    far = closing_poly(sub(sqrt(w), tail), pick(x, ERFINV_TAIL_F32, ERFINV_TAIL_F64))
    y = cast(mul(cast(x, "f64"), where(less(w, border), near, far)), x.dtype)
    y = where(equal(absolute(x), 1.0), copysign(INF, x), y)
    return where(greater(absolute(x), 1.0), NAN, y)
