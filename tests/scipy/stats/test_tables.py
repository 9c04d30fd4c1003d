"""Distributions: each function against SciPy's (and JAX's where SciPy has none), on and off the
support; derivatives."""

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.stats

import calque
from calque.scipy import stats
from tests.scipy.stats.shared import F, close

POINTS = F(-8, -3, -1, -0.5, 0.1, 0.3, 0.5, 0.9, 1.5, 3, 6, 10)
COUNTS = F(-1, 0, 1, 2, 3, 5, 8, 10, 11)
PROBABILITIES = F(1e-3, 0.01, 0.2, 0.5, 0.7, 0.99)
CONTINUOUS: dict[str, tuple[float, ...]] = {
    "norm": (), "cauchy": (), "expon": (), "laplace": (), "logistic": (), "uniform": (),
    "gumbel_l": (), "gumbel_r": (), "gamma": (2.5,),
    "chi2": (3.0,), "beta": (2.0, 0.5), "pareto": (2.5,), "t": (3.0,), "gennorm": (1.7,),
    "vonmises": (2.0,), "wrapcauchy": (0.4,),
    "truncnorm": (-1.0, 2.0),
}  # fmt: skip
DISCRETE: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.3,), "geom": (0.3,), "poisson": (2.5,), "binom": (10, 0.3), "nbinom": (4,
    0.3), "betabinom": (10, 2.0, 3.0)
}  # fmt: skip


def functions_of(distribution: str) -> list[str]:
    return [f for f in vars(getattr(stats, distribution)) if not f.startswith("__")]


FUNCTIONS = [(d, f) for d in {**CONTINUOUS, **DISCRETE} for f in functions_of(d) if f != "entropy"]


@pytest.mark.parametrize("name, function", FUNCTIONS)
def test_values(name: str, function: str) -> None:
    shapes = {**CONTINUOUS, **DISCRETE}[name]
    at = PROBABILITIES if function in ("ppf", "isf") else COUNTS if name in DISCRETE else POINTS
    if name == "vonmises":
        at = at[np.abs(at) < 3]
    ours, theirs = (
        getattr(getattr(stats, name), function),
        getattr(getattr(scipy.stats, name), function),
    )
    moved = (1,) if name in DISCRETE else (0.5, 2.0)
    with np.errstate(all="ignore"):
        close(ours(at, *shapes), theirs(at.astype(float), *shapes))
        if name not in ("vonmises", "wrapcauchy"):
            close(ours(at, *shapes, *moved), theirs(at.astype(float), *shapes, *moved))
    assert np.isnan(np.asarray(ours(F(np.nan), *shapes))).all()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_derivatives_are_finite(name: str) -> None:
    """Also off the support, where a formula that is not used must not spoil them."""
    for function in {"logpdf", "cdf", "pdf", "logsf"} & set(functions_of(name)):
        f = getattr(getattr(stats, name), function)
        slope = calque.vmap(calque.grad(lambda x, f=f: f(x, *CONTINUOUS[name])))(POINTS)
        assert np.isfinite(np.asarray(slope)).all(), function


def test_parameters_by_name() -> None:
    assert float(stats.norm.logpdf(x=1.0, loc=1.0, scale=2.0)) == pytest.approx(
        scipy.stats.norm.logpdf(1, 1, 2)
    )
    assert float(stats.gamma.pdf(1.0, a=2.0)) == pytest.approx(scipy.stats.gamma.pdf(1, 2))
    with pytest.raises(TypeError):
        stats.norm.pdf()
    with pytest.raises(TypeError):
        stats.norm.pdf([1.0])


@pytest.fixture
def x64() -> Any:
    calque.config.update("calque_enable_x64", True)
    yield
    calque.config.update("calque_enable_x64", False)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_derivatives_are_those_of_the_values(name: str, x64: Any) -> None:
    """By every argument, against central differences."""
    shapes = {**CONTINUOUS, **DISCRETE}[name]
    bent = (0.2, 1.3) if name in CONTINUOUS else ()
    for function in functions_of(name):
        if function == "entropy" or (name, function) == ("bernoulli", "ppf"):
            continue
        f = getattr(getattr(stats, name), function)
        start = (
            0.37
            if function in ("ppf", "isf")
            else 2.0
            if name in DISCRETE or name == "pareto"
            else 0.63
        )
        point = (1.0 if name == "bernoulli" else start, *map(float, shapes), *bent)
        counts = (
            {0, *((1,) if name in ("binom", "nbinom", "betabinom") else ())}
            if name in DISCRETE
            else set()
        )
        # the incomplete beta function has no derivatives by its parameters
        fixed = {1, 2} if name == "beta" and function not in ("pdf", "logpdf") else counts
        free = [i for i in range(len(point)) if i not in fixed]
        found = calque.grad(f, tuple(free))(*point)
        for i, slope in zip(free, found):
            low, high = ([v + s * 1e-5 * (k == i) for k, v in enumerate(point)] for s in (-1, 1))
            want = (float(f(*high)) - float(f(*low))) / 2e-5
            assert float(slope) == pytest.approx(want, rel=2e-4, abs=1e-6), (function, i)


def test_a_distribution_is_a_module_of_its_own():
    assert importlib.import_module("calque.scipy.stats.norm") is stats.norm


WEAK = {
    "norm.pdf": True, "norm.cdf": False, "norm.ppf": False, "truncnorm.logpdf": None,
    "uniform.cdf": False, "cauchy.cdf": True, "laplace.pdf": True,
}  # fmt: skip


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_of_python_numbers(name):
    distribution, function = name.split(".")
    f = getattr(getattr(stats, distribution), function)
    args = (0.5,) if WEAK[name] is not None else (0.5, 0.0, 1.0)
    assert f(*args).weak_type is bool(WEAK[name])
    assert f(np.array(True), *args[1:]).weak_type is bool(WEAK[name])  # of rank 0 as well
    assert not f(np.array([True]), *args[1:]).weak_type
