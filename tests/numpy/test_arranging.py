"""Blocks, rotations, order by several keys."""

import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.block([[X,X],[X,X]])
jnp.block([A,1])
jnp.block(3)
jnp.block([[np.eye(2),np.zeros((2,1))],[np.ones((1,2)),5]])
jnp.block([])
jnp.block([A,[A]])
jnp.rot90(X)
jnp.rot90(X,2)
jnp.rot90(X,-1)
jnp.rot90(np.ones((2,3,4)),axes=(1,2))
jnp.rot90(A)
jnp.rot90(X,axes=(0,0))
jnp.rollaxis(np.ones((2,3,4)),2)
jnp.rollaxis(np.ones((2,3,4)),0,3)
jnp.unstack(X,axis=1)
jnp.unstack(3)
jnp.lexsort((A,A[::-1]))
jnp.lexsort(np.stack([A,A%2]))
jnp.lexsort((X,X>0),axis=0)
jnp.sort_complex(A)
jnp.partition(A,2)[2]
jnp.partition(A,9)
jnp.lexsort(())
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


@pytest.mark.parametrize(
    "f", [lambda o: jnp.copy(jnp.ones(2), order=o), lambda o: jnp.ravel(jnp.ones(2), order=o)]
)
def test_orders_that_arrays_do_not_have_are_refused(f):
    with pytest.raises(NotImplementedError, match="order"):
        f("A")
    with pytest.raises(NotImplementedError, match="order='A'"):
        jnp.reshape(jnp.ones(2), (2, 1), order="A")


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_long_integers_keep_their_digits_as_complex_numbers(dtype):
    with calque.config.override("calque_enable_x64", True):
        found = jnp.sort_complex(jnp.array([2**31 + 1, 2**31 - 1], dtype))
    assert found.dtype == "complex128" and found.tolist() == [2**31 - 1, 2**31 + 1]
    assert jnp.sort_complex(jnp.array([3, 1], "int32")).dtype == "complex64"
