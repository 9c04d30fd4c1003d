"""Partial sums that threads share: the bits that one thread makes, and that narrow columns have."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.loops.tree import For, Store
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, const, var
from calque.native.schedule.shared_sums import shared_sums


@pytest.mark.parametrize("k", [768, 800, 830])
@pytest.mark.parametrize("n, parts", [(400, 2), (1500, 4)])
def test_threads_share_the_partial_sums_of_whole_rows(k: int, n: int, parts: int) -> None:
    """Two kernels: the rows stream past parts of the partial sums, which are added up then."""
    r = np.random.default_rng(k)
    k *= 3  # enough for threads
    x, w = r.normal(size=k).astype("f"), r.normal(size=(k, n)).astype("f")
    f = calque.jit(lambda x, w: jnp.tanh(x @ w))
    compiled = f.lower(x, w).compile()
    first, second = compiled.as_text("loops").split("kernel ")[1:3]
    assert f"for j1.c < {parts} @parallel" in first and "whole rows" in first
    assert "adds up partial sums" in second and "tanh" in second and "tanh" not in first
    got = np.asarray(compiled(x, w))
    before = calque.get_num_threads()
    try:
        calque.set_num_threads(1 + before % 2)
        assert np.asarray(f(x, w)).tobytes() == got.tobytes()
    finally:
        calque.set_num_threads(before)
    narrow = np.asarray(calque.jit(lambda x, w: jnp.tanh(x @ w))(x, w[:, :50].copy()))
    assert narrow.tobytes() == got[:50].tobytes()


def test_sums_that_threads_share_are_added_up_in_loops_too() -> None:
    """The partial sums are memory of the program, which the rounds of a loop use again."""
    r = np.random.default_rng(3)
    x = r.normal(size=768).astype("f")
    w = (r.normal(size=(2, 768, 768)) / 28).astype("f")

    def once(x, w):
        return jnp.tanh(x @ w[0]) @ w[1]

    got = calque.jit(lambda x, w: calque.lax.fori_loop(0, 3, lambda i, x: once(x, w), x))(x, w)
    for _ in range(3):
        x = calque.jit(once)(x, w)
    assert np.asarray(got).tobytes() == np.asarray(x).tobytes()


def test_what_does_not_begin_with_partial_sums_stays_one_kernel() -> None:
    out = Buffer("y", (16,), "f32")
    i = var("i", 16)
    zeros = For(i, (Store(out, (i,), const(0.0, "f32")),))
    assert shared_sums((zeros, zeros, zeros), Sizes()) is None
    assert shared_sums((zeros,), Sizes()) is None
