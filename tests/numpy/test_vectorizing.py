"""Functions of elements applied to arrays."""

import pytest

import calque
import calque.numpy as jnp
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


def test_none_is_no_array():
    f = jnp.vectorize(lambda x, y: x if y is None else x + y)
    assert f(jnp.arange(3), None).tolist() == [0, 1, 2]
    assert f(jnp.arange(3), 1).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"Cannot pass None at locations \{1\}"):
        jnp.vectorize(lambda x, y: x, signature="(k),(k)->(k)")(jnp.arange(3), None)


def test_ranks_that_differ_are_told_of():
    f = jnp.vectorize(jnp.add, signature="(),()->()")
    with calque.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="require rank promotion"):
            f(jnp.ones((2, 2)), jnp.ones(2))
        assert f(jnp.ones((2, 2)), 1.0).shape == (2, 2)
    with calque.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        f(jnp.ones((2, 2)), jnp.ones(2))


def test_several_results_are_a_tuple():
    f = jnp.vectorize(jnp.dot, signature="(n,m),(m,k)->(n,k),()")
    with pytest.raises(TypeError, match="output must be a tuple"):
        f(jnp.ones((2, 2)), jnp.ones((2, 2)))
