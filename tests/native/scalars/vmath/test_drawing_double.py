"""The functions of float64 with which random numbers are drawn: near the exact ones, and nearly
always XLA's bits."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import calque
from calque.ops.special import drawn_exp, drawn_log, drawn_log1p, drawn_pow, normal_erf_inv
from tests.peers import jax, processor_flags

ENDS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -3.0]


def arguments(low: float, high: float) -> np.ndarray:
    """Of all sizes below 1 and of both signs, evenly between the ends, and the ends of all."""
    r = np.random.default_rng(0)
    sizes = 10.0 ** r.uniform(-30, 0, 20_000) * r.choice([-1, 1], 20_000)
    tails = (1 - 10.0 ** r.uniform(-15, 0, 20_000)) * r.choice([-1, 1], 20_000)
    return np.concatenate([r.uniform(low, high, 60_000), sizes, tails, ENDS])


FUNCTIONS = {
    "log": (drawn_log, np.log, arguments(0, 1000)),
    "log1p": (drawn_log1p, np.log1p, arguments(-1, 100)),
    "exp": (drawn_exp, np.exp, arguments(-708, 720)),
    "erf_inv": (normal_erf_inv, scipy.special.erfinv, arguments(-1, 1)),
}
# what XLA loses: of its quotient, and of 1 - x^2 where x is near 1
LOST = {"log": 4e-16, "exp": 1e-15, "log1p": 3e-14, "erf_inv": 2e-10}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_near_the_exact_ones(name: str) -> None:
    f, exact, x = FUNCTIONS[name]
    with calque.enable_x64(True), np.errstate(all="ignore"):
        got, want = np.asarray(f(x)), exact(x)
    assert got.dtype == np.float64
    assert np.allclose(got, want, rtol=LOST[name], atol=0, equal_nan=True)


def test_powers_are_near_the_exact_ones() -> None:
    r = np.random.default_rng(0)
    x, y = 10.0 ** r.uniform(-300, 300, 50_000), r.normal(size=50_000)
    with calque.enable_x64(True), np.errstate(all="ignore"):
        want = np.power(x, y)
        assert np.allclose(drawn_pow(x, y), want, rtol=2.3e-16, atol=0)


def same(got: np.ndarray, want: Any) -> Any:
    """How many of them are of the same bits, of 1."""
    want = np.asarray(want)
    return np.mean((got.view(np.int64) == want.view(np.int64)) | (np.isnan(got) & np.isnan(want)))


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="XLA has other bits without FMA")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_bits_of_xla(name: str) -> None:
    """But for one in a thousand logarithms, which are the C library's."""
    f, _, x = FUNCTIONS[name]
    with calque.enable_x64(True), jax().enable_x64(True):
        of = jax().lax.erf_inv if name == "erf_inv" else getattr(jax().numpy, name)
        share = same(np.asarray(f(x)), jax().jit(of)(x))
    assert share == 1 if name == "exp" else share > 0.997
