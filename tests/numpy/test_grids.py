"""Sequences and coordinates."""

import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.geomspace(1,1000,4)
jnp.geomspace(-1,-1000,4)
jnp.geomspace(1,1000,4,endpoint=False)
jnp.logspace(0,3,4)
jnp.logspace(0,3,4,base=2,dtype=int)
jnp.meshgrid(np.arange(3),np.arange(2))
jnp.meshgrid(np.arange(3),np.arange(2),indexing='ij',sparse=True)
jnp.indices((2,3))
jnp.indices((2,3),sparse=True)
jnp.mgrid[0:3,0:2]
jnp.mgrid[0:1:5j]
jnp.ogrid[0:3,0:2:0.5]
jnp.r_[1:4,0,np.array([5,6])]
jnp.c_[np.array([1,2]),np.array([3,4])]
jnp.r_['0,2',np.array([1,2]),np.array([3,4])]
jnp.r_['1,2,0',np.array([1,2]),np.array([3,4])]
jnp.r_['c',np.array([1,2])]
jnp.r_['0,3,-1',np.ones((2,2)),np.ones((2,2))]
jnp.ix_(np.array([1,2]),np.array([True,False,True]))
jnp.fromfunction(lambda i,j:i*j,(2,3))
jnp.broadcast_shapes((2,1),(3,),())
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA, tol=0.0001)


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA, tol=0.0001)


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA, tol=0.0001)


@pytest.mark.parametrize("ends", [(0, 1), (1, 0), (-1, 1), (2, -8)])
def test_there_is_no_ratio_from_0_or_between_signs(ends):
    assert bool(jnp.isnan(jnp.geomspace(*ends, 4)).all())
    both = jnp.geomspace(jnp.array([ends[0], 1.0]), jnp.array([ends[1], 8.0]), 4)
    assert bool(jnp.isnan(both[:, 0]).all()) and not bool(jnp.isnan(both[:, 1]).any())
