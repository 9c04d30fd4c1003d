"""Vector products."""

import numpy as np
import pytest

from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "A": ARRAYS["X"],
    "S": ARRAYS["G"][:3, :3],
    "I": np.arange(6).reshape(2, 3),
}

CASES = lines("""
jnp.cross(A[0,:3],A[1,:3])
jnp.cross(A[0,:2],A[1,:2])
jnp.cross(A[0,:2],A[1,:3])
jnp.cross(A[:,:3],S,axisc=0)
jnp.cross(S,S[0],axis=0)
jnp.cross(A,A)
jnp.cross(I,I)
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
