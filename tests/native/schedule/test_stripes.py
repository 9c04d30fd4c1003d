"""Sums over the rows of large matrices: the bits of every column are those that it has alone, in
whatever way the rows are read."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.schedule.stripes import STRIPE, WHOLE, width_of_stripes


def text_of(f, *args) -> str:
    return calque.jit(f).lower(*args).compile().as_text("steps")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "k, n",
    [
        (256, 768),
        (129, 1024),
        (64, 2049),
        (80, 1500),
        (1000, 511),
        (97, 3000),
        (300, 4096),
        (70, 4999),
    ],
)
def test_columns_have_the_bits_of_a_narrow_matrix(k: int, n: int, dtype: str) -> None:
    r = np.random.default_rng(k)
    with calque.enable_x64(dtype == "float64"):
        x, w = r.normal(size=k).astype(dtype), r.normal(size=(k, n)).astype(dtype)
        f = lambda x, w: jnp.tanh(x) @ w + 1  # noqa: E731
        text = text_of(f, x, w)
        large = k * n * w.itemsize >= 1 << 18
        whole = n * w.itemsize <= WHOLE
        assert ("whole rows" in text) == (large and whole)
        assert ("stripes of" in text) == (large and not whole)
        got = np.asarray(calque.jit(f)(x, w))
        for start in (0, 100, n - 101):
            part = np.ascontiguousarray(w[:, start : start + 101])
            assert "stream" not in text_of(f, x, part)
            alone = np.asarray(calque.jit(f)(x, part))
            assert alone.tobytes() == got[start : start + 101].tobytes()
        np.testing.assert_allclose(got, np.tanh(x) @ w + 1, rtol=2e-4, atol=2e-4)


def test_threads_and_free_sizes_change_no_bit() -> None:
    r = np.random.default_rng(0)
    x, w = r.normal(size=700).astype("f"), r.normal(size=(700, 3000)).astype("f")
    f = calque.jit(lambda x, w: (x[:, None] * w).sum(0))
    one = np.asarray(f(x, w))
    g = calque.jit(lambda x, w: (x[:, None] * w).sum(0), dynamic={0: 0, 1: (0, 1)})
    assert np.asarray(g(x, w)).tobytes() == one.tobytes()
    for n in (1, 255, 513, 2900):
        assert np.asarray(g(x, w[:, :n])).tobytes() == one[:n].tobytes()
    before = calque.get_num_threads()
    try:
        calque.set_num_threads(1 + before % 2)
        assert np.asarray(f(x, w)).tobytes() == one.tobytes()
    finally:
        calque.set_num_threads(before)


def test_several_sums_over_the_same_rows() -> None:
    r = np.random.default_rng(1)
    w = r.normal(size=(500, 900)).astype("f")

    def f(w):
        m = w.sum(0)
        return m, (w * w).sum(0) - m

    got = calque.jit(f)(w)
    np.testing.assert_allclose(got[0], w.sum(0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(got[1], (w * w).sum(0) - w.sum(0), rtol=1e-4)
    alone = calque.jit(f)(np.ascontiguousarray(w[:, :50]))
    for a, b in zip(got, alone, strict=True):
        assert np.asarray(a)[:50].tobytes() == np.asarray(b).tobytes()


def test_small_matrices_keep_their_sums_in_registers() -> None:
    x, w = np.ones(64, "f"), np.ones((64, 300), "f")
    assert "stream" not in text_of(lambda x, w: x @ w, x, w)


@pytest.mark.parametrize("columns", [256, 300, 512, 768, 1000, 1024, 1536, 2048, 3000, 4000])
@pytest.mark.parametrize("item", [4, 8])
def test_two_threads_have_equal_parts_of_a_matrix(columns: int, item: int) -> None:
    width = width_of_stripes(columns, 64, item, False)
    stripes = -(-columns // width)
    assert width % 64 == 0 and (width - 64) * item < STRIPE
    assert stripes % 2 == 0 and (stripes // 2 * width - columns / 2) <= 64 * stripes / 2
    assert width_of_stripes(columns, 64, item, True) == -(-columns // 64) * 64
