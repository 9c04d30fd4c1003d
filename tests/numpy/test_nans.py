"""Reductions that leave nan out."""

import pytest

from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.nanmax(Y)
jnp.nanmax(Y,1)
jnp.nanmin(Y,0,keepdims=True)
jnp.nanmax(I)
jnp.nansum(Y,1)
jnp.nanprod(Y,0)
jnp.nanmean(Y,1)
jnp.nanmean(Y)
jnp.nanvar(Y,1)
jnp.nanvar(Y,0,ddof=1)
jnp.nanstd(Y)
jnp.nanargmax(Y,0)
jnp.nanargmin(Y,1)
jnp.nancumsum(Y,1)
jnp.nancumprod(Y)
jnp.nanmean(I)
jnp.nanvar(I)
jnp.nansum(Y.astype(np.float16))
jnp.nanmean(Y,where=Y>0)
jnp.nanvar(C,0)
jnp.nanargmax(I,1)
jnp.nanmax(Y,initial=0.)
jnp.nanmax(np.float32(1.0))
jnp.nanmean(3.0)
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
