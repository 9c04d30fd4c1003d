"""Recipes: random numbers."""

from typing import Any

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Made
from tests.fuzz.recipes.table import Drawn, recipe


def _key(d: Draw) -> Made:
    return Made("random.key", (d.whole(0, 99),))


def _sampler(parameters: str, fill: str = "positive", count_first: bool = False) -> Any:
    """A recipe of a sampler with so many array parameters, of one shape."""

    def draw(d: Draw) -> Drawn:
        shape = d.shape(0, 2)
        args = [d.new("single", shape, fill) for _ in parameters.split()]
        return [_key(d), *args], {}

    return draw


for _name, _parameters, _fill in (
    ("beta", "a b", "positive"),
    ("chisquare", "df", "positive"),
    ("t", "df", "positive"),
    ("gamma", "a", "positive"),
    ("loggamma", "a", "positive"),
    ("f", "n d", "positive"),
    ("geometric", "p", "unit"),
    ("pareto", "b", "positive"),
    ("poisson", "lam", "positive"),
    ("rayleigh", "scale", "positive"),
    ("wald", "mean", "positive"),
    ("weibull_min", "scale c", "positive"),
    ("double_sided_maxwell", "loc scale", "positive"),
    ("bernoulli", "p", "unit"),
):
    recipe(f"random.{_name}")(_sampler(_parameters, _fill))


@recipe(
    "random.bits", "random.cauchy", "random.exponential", "random.gumbel", "random.laplace",
    "random.logistic", "random.maxwell", "random.normal", "random.rademacher", "random.uniform",
)  # fmt: skip
def plain_sampler(d: Draw) -> Drawn:
    return [_key(d), d.shape(0, 2)], {}


@recipe("random.split", "random.clone", "random.key_data", "random.key_impl")
def of_key(d: Draw) -> Drawn:
    return [_key(d)], {}


@recipe("random.fold_in")
def fold_in(d: Draw) -> Drawn:
    return [_key(d), d.new(shape=(), dtype="int32", fill="whole")], {}


@recipe("random.wrap_key_data")
def wrap_key_data(d: Draw) -> Drawn:
    return [d.new(shape=(2,), dtype="uint32")], {}


@recipe("random.PRNGKey", "random.key")
def seeds(d: Draw) -> Drawn:
    return [d.whole(0, 2**31 - 1)], {}


@recipe("random.randint")
def randint(d: Draw) -> Drawn:
    return [_key(d), d.shape(0, 2), d.whole(-5, 3), d.whole(0, 90)], {"dtype": d.dtype("int")}


@recipe("random.truncated_normal")
def truncated_normal(d: Draw) -> Drawn:
    return [_key(d), -1.0, d.number(-0.5, 2), d.shape(0, 2)], {}


@recipe("random.triangular")
def triangular(d: Draw) -> Drawn:
    return [_key(d), 0.0, d.number(0.1, 0.9), 1.0, d.shape(0, 2)], {}


@recipe("random.ball")
def ball(d: Draw) -> Drawn:
    return [_key(d), d.whole(1, 4)], {"shape": d.shape(0, 1)}


@recipe("random.orthogonal")
def orthogonal(d: Draw) -> Drawn:
    return [_key(d), d.whole(1, 5)], {}


@recipe("random.binomial")
def binomial(d: Draw) -> Drawn:
    shape = d.shape(0, 1)
    return [_key(d), d.new("single", shape, "few"), d.new("single", shape, "unit")], {}


@recipe("random.multinomial")
def multinomial(d: Draw) -> Drawn:
    n = d.new(shape=(), dtype="float32", fill="few")
    return [_key(d), n, d.new("single", (4,), "simplex")], {}


@recipe("random.categorical")
def categorical(d: Draw) -> Drawn:
    return [_key(d), d.new("single", d.shape(1, 2))], {}


@recipe("random.dirichlet")
def dirichlet(d: Draw) -> Drawn:
    return [_key(d), d.new("single", (d.whole(1, 5),), "positive")], {}


@recipe("random.multivariate_normal")
def multivariate_normal(d: Draw) -> Drawn:
    n = d.whole(1, 4)
    return [_key(d), d.new("single", (n,)), d.new("single", (n, n), "positive_definite")], {}


@recipe("random.permutation")
def permutation(d: Draw) -> Drawn:
    if d.chance(0.5):
        return [_key(d), d.whole(0, 9)], {}
    return [_key(d), d.array("any", 1, 3)], {"independent": d.chance(0.3)}


@recipe("random.choice")
def choice(d: Draw) -> Drawn:
    replace = d.chance(0.5)
    return [_key(d), d.new("single", (5,))], {"shape": (d.whole(0, 5),), "replace": replace}


@recipe("lax.rng_bit_generator")
def rng_bit_generator(d: Draw) -> Drawn:
    return [d.new(shape=(4,), dtype="uint32"), d.shape(0, 2)], {}


@recipe("random.generalized_normal")
def generalized_normal(d: Draw) -> Drawn:
    return [_key(d), d.number(0.5, 3)], {"shape": d.shape(0, 2)}


@recipe("random.lognormal")
def lognormal(d: Draw) -> Drawn:
    return [_key(d), d.number(0.2, 2)], {"shape": d.shape(0, 2)}
