"""Fourier transforms."""

import numpy as np
import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "T": ARRAYS["W"],
    "D": ARRAYS["W"] + np.complex64(1j) * ARRAYS["W"][::-1],
}

CASES = lines("""
jnp.fft(T)
jnp.fft(T,3,0)
jnp.fft(T,9,1,'ortho')
jnp.ifft(D,norm='forward')
jnp.rfft(T)
jnp.rfft(T,7,1)
jnp.irfft(D)
jnp.irfft(D,5,0)
jnp.irfft(D,n=7,norm='ortho')
jnp.hfft(D)
jnp.hfft(D,5,1,'forward')
jnp.ihfft(T)
jnp.ihfft(T,4,0,'ortho')
jnp.fft2(T)
jnp.ifft2(D,(3,4))
jnp.rfft2(T,axes=(0,1))
jnp.irfft2(D,(4,5))
jnp.fftn(T)
jnp.fftn(T,(3,3),axes=(0,2))
jnp.ifftn(D,norm='ortho')
jnp.rfftn(T)
jnp.irfftn(D,(4,5,8))
jnp.fftn(np.ones((2,3,2,2)))
jnp.rfftn(np.ones((2,3,2,4)))
jnp.irfftn(np.ones((2,3,2,3))+0j)
jnp.fft(np.arange(4))
jnp.rfft(D)
jnp.fft(T,norm='x')
jnp.fft(T,axis=5)
jnp.fft(T,0)
jnp.fft2(T,axes=(0,))
jnp.fftn(T,(2,),axes=(0,1))
jnp.fft(T,axis=(0,1))
jnp.fftfreq(5,.1)
jnp.rfftfreq(5)
jnp.fftfreq(4)
jnp.fftshift(T)
jnp.ifftshift(T,axes=1)
jnp.fftshift(T,(0,2))
jnp.fft(T.astype(np.float16))
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA, tol=0.0001, module="fft")


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA, tol=0.0001, module="fft")


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA, tol=0.0001, module="fft")


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8", "bool", "float16", "complex64"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_frequencies_have_the_dtype_asked_for(dtype: str, n: int) -> None:
    """Made as floats, so that the negative ones do not wrap."""
    got = jnp.fft.fftfreq(n, 1.5, dtype=dtype)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.fft.fftfreq(n, 1.5).astype(dtype), rtol=2e-3)
