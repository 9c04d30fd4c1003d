"""Ranges of numbers."""

import math

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


@pytest.mark.parametrize("ends", [(math.inf,), (0, -math.inf), (math.inf, 5), (0, -math.inf, -1)])
def test_ranges_that_never_end_are_refused(ends):
    with pytest.raises(ValueError, match="never ends"):
        jnp.arange(*ends)


def test_ranges_of_nan_or_beyond_memory_are_refused():
    for ends in ((math.nan,), (0, math.nan), (0, 5, math.nan)):
        with pytest.raises(ValueError, match="cannot compute length"):
            jnp.arange(*ends)
    for ends in ((1e300,), (0.0, 1e18), (0, 5, 1e-300), (np.uint64(2**63),), (0, np.uint64(2**63))):
        with pytest.raises(MemoryError, match="more than a process can address"):
            jnp.arange(*ends)
    with pytest.raises(TypeError, match="linspace: a size must be an integer, got nan"):
        jnp.linspace(0, 1, math.nan)


def test_integers_between_complex_ends_are_those_of_the_real_parts():
    assert jnp.linspace(0j, 3 + 2j, 4, dtype=int).tolist() == [0, 1, 2, 3]
