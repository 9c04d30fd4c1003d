"""The inverse of erf with which normal numbers are drawn: near the exact one, and XLA's bits."""

import numpy as np
import pytest
import scipy.special

from calque.ops.special import normal_erf_inv
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
