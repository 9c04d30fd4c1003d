"""Polynomials."""

import numpy as np
import pytest

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
