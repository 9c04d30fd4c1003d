"""Differences, gradients, interpolation, convolution."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "C": ARRAYS["C4"],
}

CASES = lines("""
jnp.diff(X)
jnp.diff(X,2,0)
jnp.diff(X>0)
jnp.diff(I,prepend=0)
jnp.diff(X,axis=0,append=X[:1])
jnp.diff(X,n=7)
jnp.diff(X,-1)
jnp.ediff1d(I)
jnp.ediff1d(I,to_begin=np.array([-1]),to_end=np.array([7,8]))
jnp.gradient(X)
jnp.gradient(X,2.0,axis=0)
jnp.gradient(X[0],np.array([0.,1,3,4]))
jnp.gradient(X,1.0,np.array([0.,1,3,4]))
jnp.gradient(I)
jnp.gradient(X,1.,2.,3.)
jnp.trapezoid(X)
jnp.trapezoid(X,dx=2.,axis=0)
jnp.trapezoid(X[0],np.array([0.,1,3,4]))
jnp.trapezoid(X,X,axis=0)
jnp.trapezoid(I)
jnp.cumulative_sum(I[0],include_initial=True)
jnp.cumulative_sum(I,axis=1)
jnp.cumulative_sum(I)
jnp.cumulative_prod(X,axis=0)
jnp.cumulative_sum(X>0,axis=0)
jnp.cumulative_sum(I.astype(np.int8),axis=1)
jnp.interp(np.array([0.,1.5,2.5,9.]),np.array([1.,2,3]),np.array([3.,2,0]))
jnp.interp(2.5,np.array([1,2,3]),np.array([3,2,0]))
jnp.interp(np.array([0.,1.5,2.5,9.]),np.array([1.,2,3]),np.array([3.,2,0]),left=-1,right='extrapolate')
jnp.interp(np.array([-180,-170,-185,185,-10,-5,0,365]),np.array([190,-190,350,-350]),np.array([5,10,3,4]),period=360)
jnp.interp(1.,np.array([1.,2]),np.array([1+1j,2]))
jnp.unwrap(np.array([0,.5,3.5,7,-2,9.]))
jnp.unwrap(X*10,axis=0)
jnp.unwrap(np.array([0,1,2,-1,0]),period=4)
jnp.unwrap(X*9,discont=4.)
jnp.convolve(X[0],X[1])
jnp.convolve(X[0],X[1,:2],mode='same')
jnp.convolve(X[1,:3],X[0],mode='valid')
jnp.convolve(I[0],I[1],mode='same')
jnp.convolve(C[0],C[1])
jnp.convolve(X,X)
jnp.convolve(X[0],X[1],mode='x')
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


@pytest.mark.parametrize("points", [1, 3])
def test_interpolation_has_the_dtype_of_all_it_reads(points: int) -> None:
    wide, narrow = np.float64, np.float32
    with calque.enable_x64(True):
        for x, xp, fp in [(narrow, wide, narrow), (wide, narrow, narrow), (narrow, narrow, wide)]:
            y = jnp.interp(np.ones(2, x), np.arange(points, dtype=xp), np.ones(points, fp))
            assert y.dtype == wide, (x, xp, fp)
        ones = np.ones(points, narrow)
        assert jnp.interp(narrow(1), ones, ones).dtype == narrow


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_reaches_no_padding(bad: float, mode: str) -> None:
    """Convolutions add only products of elements, as NumPy's do: the ends stay finite."""
    x, k = np.arange(1.0, 31, dtype="float32"), np.array([2, bad, 1, 3], "float32")
    for name in ("convolve", "correlate"):
        f, want = getattr(jnp, name), getattr(np, name)(x, k, mode)
        np.testing.assert_allclose(f(x, k, mode), want, rtol=1e-5)
        np.testing.assert_allclose(calque.jit(f, static_argnums=2)(x, k, mode), want, rtol=1e-5)
        met = np.isfinite(k)
        slope = calque.grad(lambda x, k, f=f: f(x, k, mode).sum())
        np.testing.assert_array_equal(np.isfinite(slope(x, k)), slope(x, 1.0 - met) == 0)


@pytest.mark.parametrize("period", [3, 4, 5, 7])
def test_whole_angles(period: int) -> None:
    """Half of an odd period is no whole number."""
    angles = np.random.default_rng(0).integers(-9, 9, 40)
    want = np.unwrap(angles, period=period)
    for f in (jnp.unwrap, calque.jit(jnp.unwrap, static_argnames="period")):
        np.testing.assert_array_equal(f(angles, period=period), want)


@pytest.mark.parametrize("xp", [[0.0, 1, 2], [0.0, 1, 1], [0.0, 0, 1], [1.0, 1, 1]])
@pytest.mark.parametrize("fp", [[0, 1, np.inf], [np.inf, 1, 2], [-np.inf, 3, 3], [np.inf] * 3])
def test_interpolation_between_infinite_values_and_at_equal_places(xp: list, fp: list) -> None:
    x = np.array([-1.0, 0, 0.25, 0.5, 1, 1.5, 2, 3])
    want = np.interp(x, xp, fp)
    for f in (jnp.interp, calque.jit(jnp.interp)):
        np.testing.assert_allclose(f(x, np.array(xp), np.array(fp, float)), want, rtol=1e-6)


def test_interpolation_at_numbers_has_the_dtype_of_the_values():
    known = jnp.array([0.0, 1.0, 3.0], jnp.bfloat16)
    out = jnp.interp(0.5, jnp.arange(3), known)
    assert out.dtype == jnp.bfloat16 and out == 0.5
    assert jnp.interp(0.5, jnp.arange(3), known, period=4).dtype == jnp.bfloat16
    single = jnp.float32(4)
    assert jnp.interp(0.5, jnp.arange(3), known, period=single).dtype == jnp.float32
