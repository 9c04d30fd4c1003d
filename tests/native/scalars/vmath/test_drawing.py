"""The functions with which random numbers are drawn: near the exact ones, and XLA's bits."""

import numpy as np
import pytest
import scipy.special

from calque.ops.special import (
    drawn_erf,
    drawn_exp,
    drawn_log,
    drawn_log1p,
    multiply_add,
    normal_erf_inv,
)
from tests.peers import jax, processor_flags


def arguments() -> np.ndarray:
    r = np.random.default_rng(0)
    sizes = 10.0 ** r.uniform(-30, 0, 20_000) * r.choice([-1, 1], 20_000)
    tails = (1 - 10.0 ** r.uniform(-8, 0, 20_000)) * r.choice([-1, 1], 20_000)
    return np.concatenate([r.uniform(-1, 1, 60_000), sizes, tails, [0, -0.0, 1, -1]]).astype("f4")


def test_it_is_the_inverse() -> None:
    x = arguments()
    got, want = np.asarray(normal_erf_inv(x)), scipy.special.erfinv(x.astype(np.float64))
    inside = np.abs(x) < 1
    assert np.allclose(got[inside], want[inside], rtol=1e-5, atol=0)
    assert got[~inside].tolist() == want[~inside].tolist()
    outside = np.array([1.5, -np.inf, np.nan, 3e38], np.float32)
    assert np.isnan(np.asarray(normal_erf_inv(outside))).all()
    assert np.signbit(np.asarray(normal_erf_inv(np.array([0.0, -0.0], np.float32)))).tolist() == [
        False,
        True,
    ]


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="XLA has other bits without FMA")
def test_its_bits_are_those_of_xla() -> None:
    x = arguments()
    want = np.asarray(jax().jit(jax().lax.erf_inv)(x))
    assert np.asarray(normal_erf_inv(x)).tobytes() == want.tobytes()


def grid(low: float, high: float) -> np.ndarray:
    """Numbers of both ends and all sizes between them."""
    first, last = (int(np.float32(v).view(np.uint32)) for v in (low, high))
    return np.linspace(first, last, 200_000).astype(np.uint32).view(np.float32)


ENDS = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -3.0], np.float32)
NORMAL = grid(1.2e-38, 3.4e38)
FUNCTIONS = {
    "log": (drawn_log, np.log, np.concatenate([NORMAL, ENDS])),
    "log1p": (drawn_log1p, np.log1p, np.concatenate([NORMAL, -grid(1e-30, 1.0), ENDS])),
    "exp": (drawn_exp, np.exp, np.concatenate([grid(1e-30, 100.0), -grid(1e-30, 86.0), ENDS])),
    "erf": (drawn_erf, scipy.special.erf, np.concatenate([NORMAL, -NORMAL, ENDS])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_near_the_exact_ones(name: str) -> None:
    f, exact, x = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        got, want = np.asarray(f(x)), exact(x.astype(np.float64))
        assert np.allclose(got, want.astype(np.float32), rtol=7e-7, atol=0, equal_nan=True)


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="XLA has other bits without FMA")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_bits_of_xla(name: str) -> None:
    f, _, x = FUNCTIONS[name]
    of = jax().lax.erf if name == "erf" else getattr(jax().numpy, name)
    got, want = np.asarray(f(x)), np.asarray(jax().jit(of)(x))
    same = got.view(np.int32) == want.view(np.int32)
    assert (same | (np.isnan(got) & np.isnan(want))).all()


def test_a_product_and_a_sum_are_rounded_once() -> None:
    r = np.random.default_rng(0)
    x, y, z = (r.standard_normal(10_000).astype(np.float32) for _ in range(3))
    exact = x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)
    assert np.array_equal(np.asarray(multiply_add(x, y, z)), exact.astype(np.float32))
