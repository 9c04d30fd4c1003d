"""Bits in bytes."""

import pytest

from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.packbits(X>0)
jnp.packbits(X>0,axis=1)
jnp.packbits(X>0,axis=0,bitorder='little')
jnp.packbits(np.ones(8,int))
jnp.unpackbits(U)
jnp.unpackbits(U,axis=1)
jnp.unpackbits(U,axis=0,bitorder='little')
jnp.unpackbits(U,count=10)
jnp.unpackbits(U,axis=1,count=-3)
jnp.packbits(X)
jnp.unpackbits(X)
jnp.unpackbits(U,axis=1,count=40)
jnp.packbits(U,bitorder='x')
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
