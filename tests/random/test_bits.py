"""Numbers that are JAX's to the last bit, eagerly and compiled: the operations are XLA's, one by
one."""

import functools
from typing import Any

import numpy as np
import pytest

import calque
from calque import random
from calque.core.dtypes import bfloat16
from tests.peers import glibc, jax, processor_flags

MANY = 50_000
SPREAD = (np.random.default_rng(0).random(MANY) + 0.3).astype(np.float32)
BRIEF = SPREAD.astype(bfloat16)

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("uniform", {"minval": -1.2, "maxval": 2.3}),
    "uniform between arrays": ("uniform", {"minval": -SPREAD, "maxval": SPREAD}),
    "normal": ("normal", {}),
    "normal complex64": ("normal", {"dtype": "complex64"}),
    "exponential": ("exponential", {}),
    "gumbel": ("gumbel", {}),
    "gumbel high": ("gumbel", {"mode": "high"}),
    "gumbel highest": ("gumbel", {"mode": "highest"}),
    "laplace": ("laplace", {}),
    "logistic": ("logistic", {}),
    "cauchy": ("cauchy", {}),
    "truncated_normal": ("truncated_normal", {"lower": -1.2, "upper": 2.3}),
    "truncated_normal between arrays": ("truncated_normal", {"lower": -SPREAD, "upper": SPREAD}),
    "truncated_normal far": ("truncated_normal", {"lower": 0.3, "upper": 50.0}),
    "lognormal": ("lognormal", {"sigma": 0.7}),
    "lognormal of arrays": ("lognormal", {"sigma": SPREAD}),
    "pareto": ("pareto", {"b": 1.7}),
    "pareto of arrays": ("pareto", {"b": SPREAD}),
    "rayleigh": ("rayleigh", {"scale": 2.3}),
    "rayleigh of arrays": ("rayleigh", {"scale": SPREAD}),
    "weibull_min": ("weibull_min", {"scale": 1.3, "concentration": 1.7}),
    "weibull_min of arrays": ("weibull_min", {"scale": 1.3, "concentration": SPREAD}),
    "wald": ("wald", {"mean": 1.3}),
    "wald of arrays": ("wald", {"mean": SPREAD}),
    "triangular": ("triangular", {"left": 0.0, "mode": 0.3, "right": 1.0}),
    "maxwell": ("maxwell", {}),
    "double_sided_maxwell": ("double_sided_maxwell", {"loc": 1.1, "scale": 2.3}),
    "chisquare": ("chisquare", {"df": 3.0}),
    "f": ("f", {"dfnum": 3.0, "dfden": 4.0}),
    "loggamma": ("loggamma", {"a": 0.3}),
    "gamma": ("gamma", {"a": 1.5}),
    "gamma of less than 1": ("gamma", {"a": 0.3}),
    "generalized_normal": ("generalized_normal", {"p": 2.0}),
    "beta": ("beta", {"a": 1.5, "b": 0.4}),
    "geometric": ("geometric", {"p": 0.2}),
    "poisson": ("poisson", {"lam": 30.0}),
    "categorical": ("categorical", {"logits": np.log(np.arange(1, 6, dtype=np.float32))}),
    **{
        " ".join([name, *map(str, given.values()), dtype]): (name, {**given, "dtype": dtype})
        for dtype in ("bfloat16", "float16")
        for name, given in (
            ("normal", {}),
            ("exponential", {}),
            ("gumbel", {}),
            ("gumbel", {"mode": "high"}),
            ("laplace", {}),
            ("logistic", {}),
            ("cauchy", {}),
            ("lognormal", {"sigma": 1}),
            ("lognormal", {"sigma": 0.7}),
            ("rayleigh", {"scale": 2}),
            ("pareto", {"b": 2}),
            ("pareto", {"b": 1.7}),
            ("maxwell", {}),
            ("double_sided_maxwell", {"loc": 1.1, "scale": 2.3}),
            ("weibull_min", {"scale": 1.3, "concentration": 1.7}),
            ("wald", {"mean": 1.3}),
            ("f", {"dfnum": 3.0, "dfden": 4.0}),
            ("truncated_normal", {"lower": -1, "upper": 2}),
        )
    },
    "weibull_min of wider arrays": (
        "weibull_min",
        {"scale": 1.3, "concentration": SPREAD, "dtype": "bfloat16"},
    ),
    "truncated_normal bfloat16 between arrays": (
        "truncated_normal",
        {"lower": -BRIEF, "upper": BRIEF, "dtype": "bfloat16"},
    ),
}
# compiled, its product and its sum are rounded once
EAGERLY = {"double_sided_maxwell"}
# where the processor has float16 XLA rounds each step of it
STEPWISE = {"truncated_normal -1 2 float16", "wald 1.3 float16", "f 3.0 4.0 float16"}
# XLA works out what it knows with roundings of its own, in JAX too: here its programs are given
# the numbers, as JAX gives them to those of its functions that are called outside of jit
GIVEN = {"f", "truncated_normal"}
ON_XLA = (
    "normal complex64",
    "truncated_normal",
    "wald",
    "chisquare",
    "f",
    "loggamma",
    "gamma",
    "beta",
    "poisson",
    "rayleigh",
    "triangular",
)


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="XLA has other bits without FMA")
@pytest.mark.parametrize("case", CASES)
def test_they_are_those_of_jax(case: str) -> None:
    if case in STEPWISE and "avx512_fp16" in processor_flags():
        pytest.skip("JAX has other bits where the processor has float16")
    name, given = CASES[case]
    if name == "cauchy" and not () < glibc() < (2, 41):
        pytest.skip("the C library has another tangent")
    given = {"shape": (MANY,), **given}
    want = np.asarray(getattr(jax().random, name)(jax().random.key(3), **given))
    draw = getattr(random, name)
    eager = np.asarray(draw(random.key(3), **given))
    on_xla = (calque.config.jax_platforms or "").startswith("xla")
    compiled = _compiled(case, "xla_cpu" if on_xla else None)
    assert eager.dtype == want.dtype
    assert eager.tobytes() == want.tobytes()
    assert name in EAGERLY or compiled.tobytes() == want.tobytes()


# of float64: how many of a thousand numbers may differ, by logarithms and powers of the C library
DOUBLES = {
    "normal": 0.1,
    "exponential": 0.5,
    "gumbel": 3,
    "gumbel high": 3,
    "laplace": 0.5,
    "logistic": 1,
    "lognormal": 0.1,
    "pareto": 0.5,
    "rayleigh": 1,
    "weibull_min": 5,
    "wald": 0.2,
    "triangular": 0,
    "maxwell": 0.2,
    "gamma": 0.2,
    "chisquare": 0.5,
    "f": 1,
    "beta": 0.5,
    "geometric": 0.1,
    "poisson": 0,
}


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="XLA has other bits without FMA")
@pytest.mark.parametrize("case", DOUBLES)
def test_nearly_all_of_float64_are_those_of_jax(case: str) -> None:
    name, given = CASES[case]
    given = {"shape": (MANY,), **given}
    with calque.enable_x64(True), jax().enable_x64(True):
        want = np.asarray(getattr(jax().random, name)(jax().random.key(3), **given))
        got = np.asarray(getattr(random, name)(random.key(3), **given))
    assert got.dtype == want.dtype and got.dtype.itemsize == 8
    assert 1000 * np.mean(got != want) <= DOUBLES[case]


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="XLA has other bits without FMA")
@pytest.mark.parametrize("case", ON_XLA)
def test_programs_of_xla_draw_them_too(case: str) -> None:
    """XLA merges the constants of a program; what JAX has in functions of its own stays apart."""
    name, given = CASES[case]
    want = getattr(jax().random, name)(jax().random.key(3), shape=(MANY,), **given)
    assert _compiled(case, "xla_cpu").tobytes() == np.asarray(want).tobytes()


def _compiled(case: str, backend: str | None) -> np.ndarray:
    name, given = CASES[case]
    draw = functools.partial(getattr(random, name), shape=(MANY,))
    numbers = given if backend and case in GIVEN else {}
    known = {} if numbers else given
    f = calque.jit(lambda key, numbers: draw(key, **known, **numbers), backend=backend)
    return np.asarray(f(random.key(3), numbers))
