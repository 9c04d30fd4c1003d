"""Identity matrices and their diagonals."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp


@pytest.mark.parametrize("n, m", [(3, None), (2, 4), (4, 2), (0, 3)])
@pytest.mark.parametrize("k", [-2, 0, 1, 9, -9])
def test_ones_on_a_diagonal(n, m, k):
    got = jnp.eye(n, m, k)
    assert got.dtype == jnp.float32 and got.tolist() == np.eye(n, m, k).tolist()
    assert jnp.eye(n, m, k, dtype="int8").tolist() == got.tolist()


def test_a_diagonal_that_is_traced():
    f = calque.jit(lambda k: jnp.eye(3, k=k))
    for k in (-1, 0, 2, 2**31 - 1):
        assert f(k).tolist() == np.eye(3, k=k).tolist()


def test_identity():
    assert jnp.identity(2).tolist() == [[1, 0], [0, 1]] and jnp.identity(2, bool).dtype == bool
    for wrong in (2.5, "3", (2,)):
        with pytest.raises(TypeError):
            jnp.identity(wrong)
    with pytest.raises((ValueError, TypeError)):
        jnp.eye(-1)
