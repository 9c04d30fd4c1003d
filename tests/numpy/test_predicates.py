"""Closeness and equality."""

import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.isclose(np.array([1.,2.,np.inf,np.nan]),np.array([1.,2.1,np.inf,np.nan]))
jnp.isclose(np.array([1.,np.nan]),np.array([1.,np.nan]),equal_nan=True)
jnp.allclose(1,1.0)
jnp.isclose(np.array([1,2]),np.array([1,3]))
jnp.array_equal(np.ones(2),np.ones(3))
jnp.array_equiv(np.ones(2),np.ones((3,2)))
jnp.isclose(1+1j,1+1.0000001j)
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


def test_equivalent_numbers_of_the_smallest_dtypes() -> None:
    """Dtypes that have none in common are compared as numbers."""
    ones = jnp.ones((2, 3), "int4")
    for dtype in ("float32", "uint32", "float8_e5m2", "uint4", "bfloat16"):
        assert jnp.array_equiv(ones, jnp.ones(3, dtype))
        assert not jnp.array_equiv(ones, jnp.full(3, 2, dtype))
    with pytest.raises(ValueError, match="no available implicit dtype promotion"):
        jnp.array_equal(ones, jnp.ones((2, 3)))
