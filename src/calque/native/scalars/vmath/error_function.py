"""erf, erfc and the inverse of erf."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, const
from calque.native.scalars.vmath import exponential, logarithm, pairs
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    at_most,
    copysign,
    div,
    equal,
    fast_two_sum,
    fma,
    greater,
    ldexp,
    less,
    mul,
    neg,
    pick,
    poly,
    sqrt,
    sub,
    where,
)
from calque.native.scalars.vmath.pairs import Pair

# erf(r) / r - 1 in powers of r^2, |r| <= 1.1875 in f32, 0.9 in f64
ERF_SMALL_F32: Final = (
    0.12837915122509003, -0.37612536549568176, 0.11282690614461899, -0.026820754632353783,
    0.005132628604769707,
    -0.0007574039627797902, 6.562803173437715e-05,
)  # fmt: skip
ERF_SMALL_F64: Final = (
    0.12837916709551256, -0.37612638903183726, 0.11283791670953704, -0.026866170644806623,
    0.005223977621603114,
    -0.0008548326754914099, 0.00012055321042008633, -1.4925299735446145e-05, 1.6455213875258359e-06,
    -1.627547562558254e-07, 1.4046044950386089e-08, -8.481845170086698e-10,
)  # fmt: skip
# erfc(a)^(1/8), 1.1875 <= a <= 4
ERF_LARGE_F32: Final = (
    1.0012688636779785, -0.1466429978609085, -0.059066057205200195, -0.013216054067015648,
    0.013719115406274796,
    -0.002648191759362817, 0.00016622955445200205,
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
# as ERF_SMALL_F32, |r| <= 0.5, as near as 1 - erf(r) asks for
ERFC_SMALL_F32: Final = (
    0.12837916612625122, -0.3761260211467743, 0.11282671242952347, -0.026747362688183784,
    0.004698562435805798,
)  # fmt: skip
# exp(a^2) erfc(a) (a + k) in powers of (a - k) / (a + k); for these k the first coefficient is a
# float almost exactly
ERFC_CENTRE: Final = {"f32": 2.3125, "f64": 3.828125}
ERFC_F32: Final = (
    1.0437662601470947, -0.7661568522453308, 0.3930414915084839, -0.11843474209308624,
    0.003205015556886792,
    0.01166614145040512, -0.0019307832699269056, -0.0012923222966492176, 0.0002724816440604627,
)  # fmt: skip
ERFC_F64: Final = (
    1.0932725406451944, -0.9646134483004574, 0.7483804543519543, -0.5067260507959734,
    0.2954516086736579, -0.14490421519168475, 0.057186273764490286, -0.0163851112812111,
    0.0022582528244088347, 0.0006141437861634287, -0.0004224831783706915, 5.9262381065878704e-05,
    3.204620548089512e-05, -1.4099205422097001e-05, -1.347673478903406e-06, 2.053964302906354e-06,
    -8.337657981998089e-08, -2.713335427961725e-07, 3.5449195455834163e-08, 2.7868011161608895e-08,
    -6.0006387230490644e-09,
)  # fmt: skip
# by how much an error of 1 / (a + k) changes the result, in powers of the same
ERFC_SLOPE: Final = {"f32": (1.7481, -0.9097), "f64": (1.8854, -1.5551, 0.8165)}
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
    """An odd polynomial for small x; beyond, 1 less the eighth power of a polynomial in f32 (which
    is shorter than an exponential, and enough where erf is near 1), exp(polynomial) in f64."""
    border, end = {"f32": (1.1875, 4.0), "f64": (0.9, 6.0)}[x.dtype]
    a = at_most(absolute(x), end)
    z = mul(x, x)
    small = fma(poly(z, pick(x, ERF_SMALL_F32, ERF_SMALL_F64)), x, x)
    if x.dtype == "f32":
        root = poly(a, ERF_LARGE_F32)
        quarter = mul(root, root)
        half = mul(quarter, quarter)
        large = fma(neg(half), half, 1.0)
    else:
        large = sub(1.0, exponential.exp(poly(a, ERF_LARGE_F64)))
    return where(less(a, border), small, copysign(large, x))


def erfc(x: Expr) -> Expr:
    """exp(-a^2) times `erfc_scaled`; 2 minus that for negative x. 1 - x - (erf(x) - x) near 0."""
    a = at_most(absolute(x), {"f32": 11.0, "f64": 28.0}[x.dtype])
    scaled = erfc_scaled(a)
    power, n = falling_power(a)
    product = fma(power.low, scaled.high, mul(power.high, scaled.low))
    far = ldexp(fma(power.high, scaled.high, product), n)
    far = where(less(x, 0.0), sub(2.0, far), far)
    border = {"f32": 0.5, "f64": 0.65}[x.dtype]
    return where(less(a, border), erfc_near(x), far)


def erfc_scaled(a: Expr) -> Pair:
    """exp(a^2) erfc(a), as a polynomial in t = (a - k) / (a + k), over a + k. What its one division
    and t have lost is put right in the end."""
    k = ERFC_CENTRE[a.dtype]
    below, below_low = fast_two_sum(const(k, a.dtype), a)  # exact, as k has few digits
    inverse = div(1.0, below)
    lost = fma(inverse, below_low, fma(inverse, below, -1.0))
    t = fma(inverse, -2.0 * k, 1.0)
    t_low = fma(inverse, -2.0 * k, sub(1.0, t))
    first, *others = pick(a, ERFC_F32, ERFC_F64)
    slope = poly(t, tuple(others))
    shape = fma(t, slope, first)
    shape_low = fma(t_low, slope, fma(t, slope, sub(first, shape)))
    high = mul(shape, inverse)
    low = fma(shape_low, inverse, fma(shape, inverse, neg(high)))
    return Pair(high, fma(neg(mul(lost, poly(t, ERFC_SLOPE[a.dtype]))), high, low))


def erfc_near(x: Expr) -> Expr:
    """1 - x - (erf(x) - x)."""
    high, low = fast_two_sum(const(1.0, x.dtype), neg(x))
    rest = mul(x, poly(mul(x, x), pick(x, ERFC_SMALL_F32, ERF_SMALL_F64)))
    return add(high, sub(low, rest))


def falling_power(a: Expr) -> tuple[Pair, Expr]:
    """p and n with exp(-a^2) = 2^n p."""
    square = mul(a, a)
    grown, n = exponential.grown_parts(neg(square))
    p = pairs.near(const(1.0, a.dtype), grown.high)
    low = add(p.low, grown.low)
    lost = fma(a, a, neg(square))
    return Pair(p.high, fma(neg(lost), add(p.high, low), low)), n


def closing_poly(t: Expr, coefficients: tuple[float, ...]) -> Expr:
    """A polynomial whose last two steps are in f64, so that they round nothing: what these add is
    as large as the result."""
    constant, linear, *others = coefficients
    wide = cast(t, "f64")
    slope = fma(wide, cast(poly(t, tuple(others)), "f64"), linear)
    return fma(wide, slope, constant)


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
