"""Window functions."""

import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.bartlett(7)
jnp.bartlett(1)
jnp.bartlett(0)
jnp.blackman(7)
jnp.hamming(7)
jnp.hanning(7)
jnp.kaiser(7,14.)
jnp.hanning(1)
jnp.kaiser(1,2)
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA)


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA)


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA)


def test_numbers_of_points_may_be_floats_as_in_numpy():
    assert jnp.hanning(3.7).tolist() == jnp.hanning(3).tolist()
    for points in (float("nan"), float("inf"), "3"):
        with pytest.raises(TypeError, match="number of points of a window, M, must be an integer"):
            jnp.hanning(points)
