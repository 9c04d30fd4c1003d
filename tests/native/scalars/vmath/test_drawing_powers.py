"""pow and tan as random numbers are drawn with: near the exact ones, and the C library's bits."""

import numpy as np
import pytest

from calque import lax
from calque.ops.special import drawn_pow, drawn_tan
from tests.native.scalars.vmath.test_drawing import ENDS, NORMAL, arguments, grid
from tests.peers import glibc, jax, processor_flags

# of every size, with a base as it is drawn and others
BASES = np.abs(np.concatenate([arguments(), NORMAL[::2]]))
EXPONENTS = np.random.default_rng(1).normal(size=BASES.size).astype("f4") * 8
ANGLES = np.concatenate([grid(1e-12, 2.3), -grid(1e-12, 2.3), grid(2.3, 1e9), ENDS])


def test_powers_and_tangents_are_near_the_exact_ones() -> None:
    with np.errstate(all="ignore"):
        want = np.power(BASES.astype(np.float64), EXPONENTS.astype(np.float64)).astype("f4")
        assert np.allclose(drawn_pow(BASES, EXPONENTS), want, rtol=1.2e-7, atol=1e-45)
        want = np.tan(ANGLES.astype(np.float64)).astype("f4")
        assert np.allclose(drawn_tan(ANGLES), want, rtol=2.4e-7, atol=0, equal_nan=True)


def test_powers_of_what_is_not_drawn() -> None:
    x = np.array([0.0, -0.0, -8.0, -8.0, np.inf, np.nan, 1.0, 1e-40, -2.0, 0.5, 2.0, 3.0], "f4")
    y = np.array([2.0, -1.0, 3.0, 0.5, -1.0, 0.0, np.nan, 0.5, np.inf, -np.inf, 3e38, 0.0], "f4")
    got, want = np.asarray(drawn_pow(x, y)), np.asarray(lax.pow(x, y))
    assert got.tobytes() == want.tobytes()


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="the C library has other bits then")
def test_powers_have_the_bits_of_the_c_library() -> None:
    got, want = np.asarray(drawn_pow(BASES, EXPONENTS)), jax().jit(jax().lax.pow)(BASES, EXPONENTS)
    normal = np.abs(got) > 1.2e-38  # XLA has 0 for the others
    assert got[normal].tobytes() == np.asarray(want)[normal].tobytes()


@pytest.mark.peer
@pytest.mark.skipif(not () < glibc() < (2, 41), reason="the C library has another tangent")
def test_tangents_have_the_bits_of_the_c_library() -> None:
    x = ANGLES[np.abs(ANGLES) < 2.3]
    assert np.asarray(drawn_tan(x)).tobytes() == np.asarray(jax().jit(jax().lax.tan)(x)).tobytes()
