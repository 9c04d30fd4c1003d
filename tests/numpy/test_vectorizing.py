"""Functions of elements applied to arrays."""

import pytest

from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.vectorize(lambda x,y: x+y)(np.arange(3),np.arange(2)[:,None])
jnp.vectorize(lambda m,v:m@v,signature='(m,n),(n)->(m)')(np.ones((5,1,2,3)),np.ones((4,3)))
jnp.vectorize(lambda m,v:m@v,signature='(m,n),(n)->(m)')(np.ones((2,3)),np.ones((2)))
jnp.vectorize(lambda x:(x,x*2),signature='()->(),()')(X)
jnp.vectorize(lambda x,k:x+k,excluded={1})(X,2)
jnp.vectorize(lambda x,k=0:x+k,excluded={'k'})(X,k=2)
jnp.vectorize(lambda x:x,signature='(n->()')(X)
jnp.vectorize(lambda x:x,signature='(n),(m)->()')(X)
jnp.vectorize(lambda x:x,signature='(n)->()')(X)
jnp.vectorize(lambda x:x.sum(),signature='(n)->()')(np.ones((1,1,3)))
jnp.apply_along_axis(lambda v:v.sum(),0,X)
jnp.apply_along_axis(lambda v:v[::-1],1,np.ones((2,3,4)))
jnp.apply_along_axis(lambda v,p:v*p,-1,X,3.)
jnp.apply_over_axes(lambda a,k:a.sum(k),np.ones((2,3,4)),(0,2))
jnp.apply_along_axis(lambda v:v[:,None]*v,0,np.ones((2,3,4)))
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
