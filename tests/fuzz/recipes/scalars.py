"""Recipes: scalars with limits."""

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Made
from tests.fuzz.recipes.table import Drawn, recipe


@recipe("lax.shift_left", "lax.shift_right_arithmetic", "lax.shift_right_logical")
def shifts(d: Draw) -> Drawn:
    x = d.array("int")
    return [x, d.like(x, fill="few")], {}


@recipe(
    "numpy.left_shift", "numpy.right_shift", "numpy.bitwise_left_shift",
    "numpy.bitwise_right_shift",
)  # fmt: skip
def numpy_shifts(d: Draw) -> Drawn:
    x = d.array("int")
    return [x, d.like(x, fill="few")], {}


@recipe("lax.integer_pow")
def integer_pow(d: Draw) -> Drawn:
    return [d.array("number"), d.whole(-2, 4)], {}


@recipe("lax.pow", "numpy.power", "numpy.pow", "numpy.float_power")
def power(d: Draw) -> Drawn:
    x = d.new("single", fill="positive")
    return [x, d.like(x)], {}


@recipe("lax.complex")
def complex_(d: Draw) -> Drawn:
    x = d.array("single")
    return [x, d.like(x)], {}


@recipe("lax.bitcast_convert_type")
def bitcast(d: Draw) -> Drawn:
    return [d.new(dtype="float32"), d.choose(("int32", "uint32", "uint16", "uint8"))], {}


@recipe("lax.reduce_precision")
def reduce_precision(d: Draw) -> Drawn:
    return [d.array("single"), d.whole(3, 8), d.whole(2, 20)], {}


@recipe("lax.convert_element_type")
def convert(d: Draw) -> Drawn:
    return [d.array(), d.dtype()], {}


@recipe("numpy.ldexp")
def ldexp(d: Draw) -> Drawn:
    x = d.array("single")
    return [x, d.new(shape=d.of(x).shape, dtype="int32", fill="few")], {}


@recipe("lax.betainc", "scipy.special.betainc")
def betainc(d: Draw) -> Drawn:
    a = d.new("single", fill="positive")
    return [a, d.like(a, fill="positive"), d.like(a, fill="unit")], {}


@recipe("lax.igamma", "lax.igammac", "lax.random_gamma_grad", "lax.igamma_grad_a")
def igamma(d: Draw) -> Drawn:
    a = d.new("single", fill="positive")
    return [a, d.like(a, fill="positive")], {}


@recipe("lax.polygamma", "lax.zeta", "scipy.special.zeta")
def polygamma(d: Draw) -> Drawn:
    q = d.new("single", fill="positive")
    m = d.new(shape=d.of(q).shape, dtype="float32", fill="few")
    return [Made("numpy.add", (m, 2.0)), q], {}


@recipe("scipy.special.expn")
def expn(d: Draw) -> Drawn:
    return [d.whole(1, 4), d.new("single", fill="positive")], {}


@recipe("scipy.special.multigammaln")
def multigammaln(d: Draw) -> Drawn:
    return [Made("numpy.add", (d.new("single", fill="positive"), 3.0)), d.whole(1, 4)], {}


@recipe("scipy.special.bernoulli")
def bernoulli_numbers(d: Draw) -> Drawn:
    return [d.whole(0, 9)], {}


@recipe("scipy.special.bessel_jn")
def bessel_jn(d: Draw) -> Drawn:
    return [d.new("single", d.shape(0, 1), "positive")], {"v": d.whole(0, 3)}


@recipe("scipy.special.sph_harm_y")
def sph_harm_y(d: Draw) -> Drawn:
    whole = [d.new(shape=(4,), dtype="int32", fill="indices") for _ in range(2)]
    return [*whole, d.new("single", (4,), "unit"), d.new("single", (4,), "unit")], {"n_max": 3}


@recipe("scipy.special.lpmn")
def lpmn(d: Draw) -> Drawn:
    order = d.whole(0, 3)
    return [order, order, d.new("single", d.shape(1, 1), "unit")], {}


@recipe("scipy.special.lpmn_values")
def lpmn_values(d: Draw) -> Drawn:
    return [*lpmn(d)[0], bool(d.whole(0, 1))], {}


@recipe("scipy.special.hyp1f1")
def hyp1f1(d: Draw) -> Drawn:
    return [d.new("single", (3,), "positive") for _ in range(3)], {}


@recipe("scipy.special.hyp2f1")
def hyp2f1(d: Draw) -> Drawn:
    return [
        *(d.new("single", (3,), "positive") for _ in range(3)),
        d.new("single", (3,), "unit"),
    ], {}


@recipe("scipy.special.factorial")
def factorial(d: Draw) -> Drawn:
    return [d.new("single", fill="few")], {}


@recipe("scipy.special.comb")
def comb(d: Draw) -> Drawn:
    n = d.new("single", fill="whole")
    return [n, d.like(n, fill="few")], {}


@recipe("scipy.special.polygamma")
def special_polygamma(d: Draw) -> Drawn:
    x = d.new("single", fill="positive")
    return [d.new(shape=d.of(x).shape, dtype="int32", fill="few"), x], {}


@recipe("lax.real", "lax.imag")
def complex_parts(d: Draw) -> Drawn:
    return [d.array("complex")], {}
