"""Polynomials."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "p": np.array([1.0, -3, 2, 4], np.float32),
    "A": ARRAYS["G"][:4, :4],
    "S": ARRAYS["G"][:4] @ ARRAYS["G"][:4].T + np.eye(4, dtype=np.float32),
}

CASES = lines("""
jnp.polyval(p,2.)
jnp.polyval(p,A)
jnp.polyval(np.arange(20),np.float32(.5))
jnp.polyval(np.array([1,2]),3)
jnp.polyadd(p,np.array([1,2]))
jnp.polysub(np.array([1,2]),p)
jnp.polymul(p,p)
jnp.polymul(np.array([1,2]),np.array([0,2]),trim_leading_zeros=True)
jnp.polydiv(p,np.array([1.,2]))
jnp.polydiv(np.array([1.,2]),p)
jnp.polyder(p)
jnp.polyder(p,2)
jnp.polyder(np.array([1,2,3]))
jnp.polyder(p,-1)
jnp.polyint(p)
jnp.polyint(p,2,k=np.array([1,2]))
jnp.polyint(np.array([1,2,3]))
jnp.poly(p)
jnp.poly(S)
jnp.poly(np.array([]))
jnp.vander(p)
jnp.vander(p,2,increasing=True)
jnp.vander(np.array([1,2,3]),4)
jnp.vander(A)
jnp.polyfit(p,p**2,2)
jnp.polyfit(np.arange(6.),A[0:3].ravel()[:6],2,w=np.arange(6.)+1)
jnp.polyfit(np.arange(6.),A[:3].ravel()[:6],1,cov=True)
jnp.polyfit(np.arange(6.),A[:3].ravel()[:6],1,full=True)
jnp.polyfit(p,p,-1)
jnp.roots(np.array([0,0,1,2,0.]))
jnp.roots(np.array([3.]))
jnp.roots(np.array([0,0,1,2,0.]),strip_zeros=False)
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA, tol=0.001)


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA, tol=0.001)


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA, tol=0.001)


@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", "complex64", "float16"])
def test_vander_is_as_many_equations_for_every_count(dtype: str, increasing: bool) -> None:
    """Not one for each column, which would be as many programs."""
    x = np.array([0, 1, 2, 3]).astype(dtype)
    for n in (0, 1, 2, 5, 9):
        with np.errstate(over="ignore"):
            want = np.vander(x, n, increasing).astype(dtype)
        np.testing.assert_allclose(jnp.vander(x, n, increasing), want, rtol=1e-3)

    def equations(n: int) -> int:
        return len(calque.make_jaxpr(lambda x: jnp.vander(x, n, increasing))(x).eqns)

    assert equations(5) == equations(50)


def test_slopes_of_vander_at_zero() -> None:
    x = jnp.array([0.0, 2.0])
    assert calque.jacfwd(lambda x: jnp.vander(x, 4)[0])(x)[:, 0].tolist() == [0, 0, 1, 0]
    assert calque.grad(lambda x: jnp.vander(x, 3).sum())(x).tolist() == [1, 5]
    assert calque.hessian(lambda x: jnp.vander(x, 3).sum())(x).tolist() == [[2, 0], [0, 2]]


def test_a_fit_of_whole_numbers_has_the_dtype_of_the_places():
    with calque.enable_x64(True):
        places, values = jnp.arange(5, dtype=jnp.float32), jnp.arange(5) * 2 + 1
        out = jnp.polyfit(places, values, 1)
    assert out.dtype == jnp.float32 and out.round(4).tolist() == [2, 1]
    halves = jnp.polyfit(places.astype(jnp.bfloat16), values, 1, w=jnp.ones(5, jnp.float32))
    assert halves.dtype == jnp.float32 and halves.round(2).tolist() == [2, 1]
