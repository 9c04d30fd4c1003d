"""Entries of the call path are valid for one configuration, and for none after `clear_caches`."""

import numpy as np

import calque


def test_numbers_are_not_used_again_after_clearing():
    """What was traced with 64 bits must not serve another configuration that came into being after
    the caches were cleared."""
    f = calque.jit(lambda x: x * 2 + 1)
    with calque.config.override("calque_enable_x64", True):
        assert f(1.0).dtype == np.float64 and f(1.0).dtype == np.float64
    calque.clear_caches()
    with calque.config.override("calque_exact", True):
        assert f(1.0).dtype == np.float32
    with calque.config.override("calque_numpy_rank_promotion", "raise"):
        assert f(1.0).dtype == np.float32
    assert f(1.0).dtype == np.float32
