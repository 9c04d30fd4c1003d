"""Special functions as programs, beside SciPy, in both precisions."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import calque as jax
from calque.core.config import config
from calque.ops import gamma_gradients, special
from calque.xla.lower import special_programs
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
N = 600
# the error for arguments of each kind, as a part of the value: exponentials of large numbers, and
# in float32 XLA's lgamma, take some digits
PART = {"float32": 3e-4, "float64": 5e-12}
WHOLE = {"float32": 3e-5, "float64": 2e-12}  # the error of what is 1 less something


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def drawn(low: float, high: float, seed: int) -> np.ndarray:
    """Numbers of all sizes from 10^low to 10^high."""
    return np.asarray(10 ** np.random.default_rng(seed).uniform(low, high, N))


def of_gamma(dtype: str) -> list[np.ndarray]:
    """Pairs of all sizes, around the mean, of large a, and far below it."""
    a, c, small = drawn(-3, 3, 0), drawn(2, 5, 1), drawn(-7, 1, 2)
    spread = np.random.default_rng(3).normal(size=N)
    pairs = [
        (a, a * drawn(-0.7, 0.7, 4)),
        (c, c + spread * np.sqrt(c)),
        (small, drawn(-8, 1.7, 5)),
        (drawn(0.9, 1.5, 6), drawn(-1, 0, 7)),
    ]
    return [np.concatenate(v).astype(dtype) for v in zip(*pairs, strict=True)]


def of_beta(dtype: str) -> list[np.ndarray]:
    r = np.random.default_rng(8)
    a, b = drawn(-2, 2, 9), drawn(-2, 2, 10)
    c, d = drawn(1, 5, 11), drawn(1, 5, 12)
    e, f = drawn(-3, 4, 13), drawn(-3, 4, 14)
    found = [(a, b, r.beta(a, b)), (c, d, r.beta(c, d)), (e, f, r.uniform(size=N))]
    a, b, x = [np.concatenate(v).astype(dtype) for v in zip(*found, strict=True)]
    return [a, b, np.clip(x, 1e-30, None)]  # XLA takes denormal numbers for zero


def compiled(program: Callable[..., Any], *args: Any) -> np.ndarray:
    return np.asarray(jax.jit(program, backend="xla_cpu")(*args))


def check(found: np.ndarray, wanted: np.ndarray, dtype: str) -> None:
    assert found.dtype == dtype
    wide = found.astype(np.float64)
    seen = np.abs(wanted) > 1e-30
    apart = np.abs(wide - wanted)[seen] / np.abs(wanted)[seen]
    assert apart.max() < PART[dtype], (apart.max(), np.flatnonzero(seen)[apart.argmax()])
    assert np.abs(wide[~seen]).max(initial=0.0) < 2e-30
    close = np.abs(wide - wanted) <= WHOLE[dtype] * np.maximum(np.abs(wanted), 1.0)
    assert np.median(apart) < WHOLE[dtype] and close[np.abs(wanted) <= 1].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "program, meaning",
    [
        (special_programs.igamma, sp.gammainc),
        (special_programs.igammac, sp.gammaincc),
        (special_programs.random_gamma_grad, gamma_gradients.sample_gradient),
    ],
)
def test_the_gamma_distribution(
    program: Callable[..., Any], meaning: Callable[..., Any], dtype: str
) -> None:
    a, x = of_gamma(dtype)
    check(compiled(program, a, x), meaning(a.astype(float), x.astype(float)), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_beta_distribution(dtype: str) -> None:
    args = of_beta(dtype)
    wanted = sp.betainc(*[x.astype(float) for x in args])
    check(compiled(special_programs.regularized_incomplete_beta, *args), wanted, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_derivative_by_the_shape_is_that_of_the_distribution(dtype: str) -> None:
    a, x = np.asarray([0.3, 0.9, 2.5, 9.0, 70.0]), np.asarray([0.2, 2.0, 2.5, 7.0, 75.0])
    a, x = a.astype(dtype), x.astype(dtype)
    found = compiled(special_programs.igamma_grad_a, a, x)
    h, wide = 1e-5, (a.astype(float), x.astype(float))
    slope = (sp.gammainc(wide[0] + h, wide[1]) - sp.gammainc(wide[0] - h, wide[1])) / (2 * h)
    np.testing.assert_allclose(found, slope, rtol=1e-5)
    wanted = gamma_gradients.distribution_gradient(*wide)
    np.testing.assert_allclose(found, wanted, rtol=PART[dtype] / 10)


EDGES = (0.0, 1e-300, 0.5, 1.0, 7.0, 1e30, np.inf, -1.0, np.nan)


@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a", "random_gamma_grad"])
def test_edges_of_the_gamma_distribution(name: str) -> None:
    a, x = (v.ravel() for v in np.meshgrid(EDGES, EDGES))
    known = (a != 1e30) | (x != 1e30)  # where SciPy's series ends too soon
    a, x = a[known], x[known]
    wanted = getattr(special, f"{name}_p").meaning(a, x)
    found = compiled(getattr(special_programs, name), a, x)
    ordinary = (a < 1e30) & (x < 1e30) if "grad" in name else np.full(a.shape, True)
    np.testing.assert_allclose(found[ordinary], wanted[ordinary], rtol=1e-5, atol=1e-12)


def test_edges_of_the_beta_distribution() -> None:
    points = (0.0, 0.5, 3.0, np.inf, -1.0, np.nan)
    a, b, x = (v.ravel() for v in np.meshgrid(points, points, (0.0, 0.3, 1.0, 1.5, -0.5, np.nan)))
    known = (np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)) | np.isnan(a + b + x)
    wanted = sp.betainc(a, b, x)
    found = compiled(special_programs.regularized_incomplete_beta, a, b, x)
    np.testing.assert_allclose(found[known], wanted[known], rtol=1e-12)
    assert found[(a == 0) & (b == 3) & (x == 0.3)] == 1  # all at 0
    assert found[(a == 3) & (b == 0) & (x == 0.3)] == 0  # all at 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bessel_function(dtype: str) -> None:
    some = np.random.default_rng(0).uniform(-60, 60, 2000)
    x = np.concatenate([some, drawn(-5, 5, 1), [0.0, np.inf, -np.inf, np.nan]]).astype(dtype)
    found = compiled(special_programs.bessel_i0e, x)
    tolerance = 1e-6 if dtype == "float32" else 4e-15
    np.testing.assert_allclose(found, sp.i0e(x.astype(float)), rtol=tolerance)


def test_short_types_are_computed_in_longer_ones() -> None:
    a, x = np.asarray([0.5, 2.0, 30.0], np.float16), np.asarray([0.7, 1.0, 33.0], np.float16)
    found = compiled(special_programs.igamma, a, x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, sp.gammainc(a.astype(float), x.astype(float)), rtol=1e-3)


def test_no_elements() -> None:
    none = np.zeros((0, 2), np.float32)
    assert compiled(special_programs.regularized_incomplete_beta, none, none, none).shape == (0, 2)
