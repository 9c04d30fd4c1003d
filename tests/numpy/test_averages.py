"""Averages, order statistics, covariance."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.count_nonzero(X>0)
jnp.count_nonzero(I,1,keepdims=True)
jnp.average(X)
jnp.average(X,1,weights=np.arange(4))
jnp.average(X,0,weights=np.array([1.,2,3]),returned=True)
jnp.average(I,returned=True)
jnp.average(X,weights=np.ones(3))
jnp.average(X,(0,1),weights=np.ones((3,4)),keepdims=True)
jnp.quantile(X,0.3)
jnp.quantile(X,np.array([.1,.9]),1)
jnp.quantile(X,np.array([.1,.9]),1,keepdims=True)
jnp.quantile(X,0.3,(0,1),method='lower')
jnp.quantile(X,0.3,0,method='higher')
jnp.quantile(X,0.3,0,method='midpoint')
jnp.quantile(X,0.37,0,method='nearest')
jnp.quantile(Y,0.3,1)
jnp.nanquantile(Y,0.3,1)
jnp.percentile(X,30,0)
jnp.percentile(I,np.array([0,50,100]))
jnp.median(X)
jnp.median(X,1)
jnp.median(I,0,keepdims=True)
jnp.nanmedian(Y,1)
jnp.nanpercentile(Y,40,0)
jnp.quantile(X,0.3,method='bad')
jnp.quantile(X,1.5)
jnp.quantile(C,.3)
jnp.quantile(X,0.4,1,method='inverted_cdf')
jnp.quantile(X,np.array([.2,.5]),1,method='inverted_cdf',weights=np.array([1.,2,3,1]))
jnp.median(np.float32([1,np.nan]))
jnp.quantile(X.astype(np.float16),.5)
jnp.cov(X)
jnp.cov(X,rowvar=False)
jnp.cov(X[0],X[1])
jnp.cov(X,bias=True)
jnp.cov(X,ddof=0,fweights=np.array([1,2,1,3]),aweights=np.array([.1,.2,.3,.4]))
jnp.cov(X,aweights=np.array([.1,.2,.3,.4]))
jnp.cov(C)
jnp.corrcoef(X)
jnp.corrcoef(C)
jnp.corrcoef(X[0],X[1])
jnp.cov(X[0])
jnp.corrcoef(X[0])
jnp.cov(np.ones((2,2,2)))
jnp.cov(I)
jnp.cov(X,fweights=np.array([1.,2,1,3]))
jnp.correlate(X[0],X[1,:3])
jnp.correlate(X[0],X[1,:3],mode='full')
jnp.correlate(X[1,:3],X[0],mode='same')
jnp.correlate(X[1,:3],X[0],mode='full')
jnp.correlate(C[0],C[1],mode='full')
jnp.correlate(X[1,:2],X[0,:3],mode='same')
jnp.correlate(X[0],X[1],mode='same')
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


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_quantiles_of_integers_of_four_bits(dtype):
    x = jnp.array([3, 1, 2, 7]).astype(dtype)
    for got, want in ((jnp.median(x), 2.5), (jnp.quantile(x, 0.5), 2.5), (jnp.percentile(x, 0), 1)):
        assert got.dtype == "float32" and got == want


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "int4", "uint4", "int8"])
@pytest.mark.parametrize("method", ["linear", "nearest", "higher"])
def test_places_in_numbers_of_few_bits(name: str, method: str) -> None:
    """The place is an array of another dtype, which nothing joins with 8 bits or fewer."""
    numbers = jnp.arange(5).astype(name)
    wide = numbers.astype("float32")
    for f, at in ((jnp.quantile, 0.5), (jnp.nanquantile, 0.5), (jnp.percentile, 75.0)):
        got = f(numbers, jnp.float32(at), method=method)
        assert got.dtype == (numbers.dtype if "float" in name else jnp.float32)
        assert got.astype("float32") == f(wide, jnp.float32(at), method=method)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest"])
def test_quantiles_that_are_infinite_elements(method: str) -> None:
    x = np.array([np.inf, 1, -np.inf, 2, 3], np.float32)
    for function in (jnp.quantile, calque.jit(jnp.quantile, static_argnames="method")):
        got = [float(function(x, q, method=method)) for q in (0.0, 0.25, 0.5, 0.75, 1.0)]
        assert got == [-np.inf, 1, 2, 3, np.inf]
    holes = np.append(x, np.nan)
    assert float(jnp.nanquantile(holes, 1.0, method=method)) == np.inf


@pytest.mark.parametrize("n", [1, 2, 5, 13])
def test_shares_of_what_is_there(n: int) -> None:
    x = np.random.default_rng(n).normal(size=(3, 2 * n)).astype(np.float32)
    x[:, ::2] = np.nan
    q = np.array([0.0, 0.1, 0.3, 0.55, 0.8, 0.95, 1.0], np.float32)
    got = jnp.nanquantile(x, q, axis=1, method="inverted_cdf")
    np.testing.assert_array_equal(got, np.quantile(x[:, 1::2], q, axis=1, method="inverted_cdf"))
