"""Sizes and values that are known now."""

from __future__ import annotations

import calque
import calque.numpy as jnp
from calque.compat.private import core


def test_sizes_that_are_known() -> None:
    assert core.is_constant_dim(3) and not core.is_constant_dim(2.5)
    seen = []

    def f(x: calque.Array, n: calque.Array) -> calque.Array:
        seen.append((core.is_constant_shape(x.shape), core.is_constant_dim(n), core.is_concrete(n)))
        return x

    calque.jit(f)(jnp.ones(3), 2)
    assert seen == [(True, False, False)]
    assert core.new_ref(jnp.ones(2))[...].tolist() == [1, 1]
