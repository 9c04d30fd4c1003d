"""Ranges of numbers."""

import numpy as np
import pytest

import calque.numpy as jnp


@pytest.mark.parametrize(
    "args",
    [(5,), (2, 8), (2, 8, 3), (8, 2, -2), (0,), (-3,), (2.5,), (0.0, 1.0, 0.25), (np.int8(4),)],
    ids=str,
)
def test_arange(args):
    got, want = jnp.arange(*args), np.arange(*args)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.shape == want.shape
