"""Diagonals and triangles."""

import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.diag(np.arange(3.))
jnp.diag(np.arange(3.),2)
jnp.diag(np.arange(3),-1)
jnp.diag(np.ones((3,4)),1)
jnp.diagflat(np.ones((2,2)),1)
jnp.tri(3,4,1)
jnp.tril(np.ones((2,3,3)),-1)
jnp.triu(np.ones((3,4)),1)
jnp.tril_indices(3,1,4)
jnp.triu_indices(3)
jnp.triu_indices_from(np.ones((2,3)))
jnp.diag_indices(3,3)
jnp.fill_diagonal(np.zeros((3,3)),np.array([1.,2.]),inplace=False)
jnp.mask_indices(3,np.triu)
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


def test_triangles_beyond_memory_are_refused():
    with pytest.raises(MemoryError, match="more than a process can address"):
        jnp.tril_indices(2**63)
    with pytest.raises(TypeError, match="triu_indices: m must be an integer, got nan"):
        jnp.triu_indices(2, m=float("nan"))


def test_the_size_of_a_mask_is_an_integer_of_which_memory_holds_the_square():
    with pytest.raises(TypeError, match="mask_indices: n must be an integer, got nan"):
        jnp.mask_indices(float("nan"), jnp.triu)
    with pytest.raises(ValueError, match="must not be negative"):
        jnp.mask_indices(-1, jnp.triu)
    with pytest.raises(MemoryError, match="more than a process can address"):
        jnp.mask_indices(2**62, jnp.triu)
