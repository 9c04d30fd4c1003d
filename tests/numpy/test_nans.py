"""Reductions that leave nan out."""

import numpy as np
import pytest

import calque.numpy as jnp
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


@pytest.mark.parametrize("ddof", [0, 1, 0.5, 1.5, -1, 3.5])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "complex64"])
def test_what_is_taken_off_the_count_may_be_a_fraction(ddof: float, dtype: str) -> None:
    x = jnp.asarray([[1.0, 2.0, 4.0, 7.0], [3.0, 3.0, 9.0, 0.0]]).astype(dtype)
    for f, plain in ((jnp.nanvar, jnp.var), (jnp.nanstd, jnp.std)):
        got, want = f(x, axis=1, ddof=ddof), plain(x, axis=1, ddof=ddof)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-3 if dtype == "float16" else 1e-6)
    if dtype == "float32":
        holed = jnp.concatenate([x, jnp.full((2, 3), jnp.nan)], axis=1)
        np.testing.assert_allclose(
            jnp.nanvar(holed, axis=1, ddof=ddof), jnp.var(x, axis=1, ddof=ddof), rtol=1e-6
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_variances_of_halves_as_complex_numbers_are_computed_as_such(dtype):
    x = jnp.array([1.5, 2.25, -3.5, np.nan, 7.1], dtype)
    wide = np.asarray(x).astype("float32")
    for f, g in ((jnp.nanvar, np.nanvar), (jnp.nanstd, np.nanstd)):
        out = f(x, dtype="complex64")
        assert out.dtype == np.complex64
        np.testing.assert_allclose(out, g(wide), rtol=1e-6)
