"""Sets of values."""

import numpy as np
import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "I": np.array([[1, 2, 3], [4, 2, 1]]),
    "C": np.array([1 + 1j, 2, 1 + 1j, 1 - 1j], np.complex64),
}

CASES = lines("""
jnp.unique(A)
jnp.unique(I)
jnp.unique(F)
jnp.unique(F,equal_nan=False)
jnp.unique(C)
jnp.unique(A,True,True,True)
jnp.unique(I,return_inverse=True)
jnp.unique(R,axis=0)
jnp.unique(R,axis=1,return_inverse=True)
jnp.unique(R,True,True,True,axis=0)
jnp.unique(A,size=3)
jnp.unique(A,size=7)
jnp.unique(A,size=7,fill_value=-1)
jnp.unique(A,True,True,True,size=6)
jnp.unique(R,axis=0,size=5,fill_value=9)
jnp.unique(A>2)
jnp.unique(np.zeros(0))
jnp.unique(np.zeros((0,3)),axis=0)
jnp.unique_all(A)
jnp.unique_counts(F)
jnp.unique_inverse(A)
jnp.unique_values(A)
jnp.unique_values(A,size=8,fill_value=0)
jnp.unique(3)
jnp.unique(np.zeros((2,0)),axis=0)
jnp.unique(np.zeros(0),size=2)
jnp.isin(A,B)
jnp.isin(I,np.array([2,4]),invert=True)
jnp.isin(F,F)
jnp.isin(A,np.array([]))
jnp.isin(3,A)
jnp.isin(X,np.array([]))
jnp.union1d(A,B)
jnp.union1d(A,B,size=9)
jnp.union1d(A,B,size=9,fill_value=-2)
jnp.union1d(A,X[0])
jnp.setdiff1d(A,B)
jnp.setdiff1d(A,B,size=4)
jnp.setdiff1d(A,B,size=4,fill_value=9)
jnp.setdiff1d(A,B,True)
jnp.setdiff1d(A,np.zeros(0))
jnp.setxor1d(A,B)
jnp.setxor1d(A,B,size=6,fill_value=-1)
jnp.setxor1d(A,B,size=6)
jnp.setxor1d(np.array([1,2,5]),np.array([2,7]),True)
jnp.setxor1d(A,A)
jnp.setxor1d(A,np.zeros(0,int))
jnp.intersect1d(A,B)
jnp.intersect1d(A,B,return_indices=True)
jnp.intersect1d(A,B,size=4)
jnp.intersect1d(A,B,size=4,fill_value=-1)
jnp.intersect1d(A,B,size=4,return_indices=True)
jnp.intersect1d(np.array([1,2,5]),np.array([2,5]),True,True)
jnp.intersect1d(A,np.zeros(0,int))
jnp.setxor1d(F,F[:2])
jnp.union1d(F,F)
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


def test_complex_numbers_with_a_nan_are_one_nan():
    """Whichever of their parts is one; they come last, in the order in which they stood."""
    nan = np.nan
    x = np.array([complex(1, nan), complex(nan, 1), 2, complex(0, nan), 3j], np.complex64)
    values, first, inverse, counts = jnp.unique(x, True, True, True)
    np.testing.assert_array_equal(values, np.array([3j, 2, nan], np.complex64))
    assert first.tolist() == [4, 2, 0] and counts.tolist() == [1, 1, 3]
    assert inverse.tolist() == [2, 2, 1, 2, 0]
    apart = jnp.unique(x, True, equal_nan=False)
    np.testing.assert_array_equal(apart[0], np.array([3j, 2, nan, nan, nan], np.complex64))
    assert apart[1].tolist() == [4, 2, 0, 1, 3]
    assert jnp.unique(x[:, None], axis=0).shape == (3, 1)
    assert jnp.setdiff1d(x, x[2:3]).shape == (2,)
