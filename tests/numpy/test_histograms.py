"""Counting in bins."""

import numpy as np
import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "I": np.array([[1, 2, 3], [4, 2, 1]]),
}

CASES = lines("""
jnp.bincount(A)
jnp.bincount(A,minlength=12)
jnp.bincount(A,weights=np.arange(6.))
jnp.bincount(A,length=4)
jnp.bincount(X[0])
jnp.bincount(I)
jnp.bincount(np.array([-1,2,2]))
jnp.bincount(A>2)
jnp.digitize(X,np.array([-1.,0,1]))
jnp.digitize(X,np.array([1.,0,-1]))
jnp.digitize(A,np.array([1,3,5]),right=True)
jnp.digitize(A,I)
jnp.histogram(X)
jnp.histogram(X,5,(-1.,1.))
jnp.histogram(X,np.array([-1,0,.5,1]),density=True)
jnp.histogram(A,4,weights=np.arange(6.))
jnp.histogram(np.ones(3),3)
jnp.histogram_bin_edges(X,4)
jnp.histogram_bin_edges(X,'auto')
jnp.histogram2d(X[0],X[1],bins=3)
jnp.histogram2d(X[0],X[1],bins=[2,3],range=[(-1,1),(-2,2)])
jnp.histogramdd(X,bins=(2,3,2,2))
jnp.histogramdd(X[:,:2],bins=2,density=True,weights=np.arange(3.))
jnp.histogram(A,bins=np.array([1,3,7]))
jnp.histogram(F[:1])
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


def test_edges_check_weights():
    assert jnp.histogram_bin_edges(jnp.arange(3.0), 2, weights=jnp.ones(3)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="weights"):
        jnp.histogram_bin_edges(jnp.arange(3.0), 2, weights=jnp.ones(4))


def test_numbers_of_bins_are_positive_integers():
    for bins in (0, -1):
        with pytest.raises(ValueError, match="`bins` must be positive"):
            jnp.histogram(jnp.arange(4.0), bins=bins)
    with pytest.raises(TypeError, match="`bins` must be an integer, got nan"):
        jnp.histogram(jnp.arange(4.0), bins=float("nan"))
    with pytest.raises(TypeError, match=r"bincount: length must be an integer, got 3\.5"):
        jnp.bincount(jnp.arange(3), length=3.5)


def test_cells_of_halves_have_the_dtype_of_points_and_weights():
    points, single = jnp.ones((4, 2), jnp.float16), jnp.ones(4, jnp.float32)
    counts, edges = jnp.histogramdd(points, 2, weights=single)
    assert counts.dtype == edges[0].dtype == jnp.float32
    counts, edges = jnp.histogramdd(points, 2, weights=jnp.ones(4, int))
    assert counts.dtype == edges[0].dtype == jnp.float16
    assert jnp.histogramdd(points, 2, density=True)[0].dtype == jnp.float16
    assert jnp.histogramdd(points, 2)[0].dtype == jnp.int32
