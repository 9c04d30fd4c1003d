"""What is known about the numbers that index expressions take."""

import numpy as np

import calque
import calque.numpy as jnp


def test_bounds_of_an_index_chosen_by_comparing_floats():
    """Only what is compared as integers bounds a choice: floats have no interval."""
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    z = np.arange(9, dtype=np.int32) % 3

    @calque.jit
    def counts(limit):
        return jnp.bincount(jnp.where(x < limit, 1, z), length=3)

    np.testing.assert_array_equal(
        counts(np.float32(0.5)), np.bincount(np.where(x < 0.5, 1, z), minlength=3)
    )


def test_bounds_of_an_index_chosen_by_comparing_integers():
    z = np.arange(9, dtype=np.int32) % 3
    got = calque.jit(lambda z: jnp.zeros(4).at[jnp.where(z < 2, z, 3)].add(1.0))(z)
    np.testing.assert_array_equal(got, [3, 3, 0, 3])
