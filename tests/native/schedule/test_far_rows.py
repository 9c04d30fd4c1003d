"""Rows of a large matrix that are added up four at a time: the bits of every row are those that it
has alone."""

from collections.abc import Callable

import numpy as np
import pytest

import calque
import calque.numpy as jnp


def rows_of(f: Callable, *args: object) -> int:
    """How many rows the first loop of a compiled function adds up at a time."""
    text: str = calque.jit(f).lower(*args).compile().as_text("loops").split("driver:")[0]
    return max(text.count(" = sum("), 1) if "far apart" in text else 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "n, k, at_a_time",
    [(1024, 256, 4), (1000, 1000, 4), (68, 4001, 4), (1022, 256, 1), (60, 5000, 1), (256, 64, 4)],
)
def test_rows_have_the_bits_that_they_have_alone(
    n: int, k: int, at_a_time: int, dtype: str
) -> None:
    r = np.random.default_rng(n)
    with calque.enable_x64(dtype == "float64"):
        x, w = r.normal(size=k).astype(dtype), r.normal(size=(n, k)).astype(dtype)
        f = lambda w, x: w @ x * 0.125  # noqa: E731
        assert rows_of(f, w, x) == at_a_time
        got = np.asarray(calque.jit(f)(w, x))
        np.testing.assert_allclose(got, w @ x * 0.125, rtol=2e-4, atol=2e-3)
        for start in (0, n // 4 - 3, n - 31):
            part = w[start : start + 31].copy()
            alone = np.asarray(calque.jit(f)(part, x))
            assert rows_of(f, part, x) == 1
            assert alone.tobytes() == got[start : start + 31].tobytes()


@pytest.mark.parametrize(
    "f",
    [
        lambda w: w.sum(1),
        lambda w: jnp.log(1 + (w * w).mean(1)) * 2,
        lambda w: (w**2).sum(1) > 7,
        lambda w: w[:, ::-1].sum(1),  # read from the end: one row after the other
    ],
)
def test_sums_of_many_kinds(f: Callable) -> None:
    w = np.random.default_rng(2).normal(size=(400, 333)).astype("f")
    got = np.asarray(calque.jit(f)(w))
    part = np.asarray(calque.jit(f)(w[100:130].copy()))
    assert part.tobytes() == got[100:130].tobytes()


def test_threads_and_free_sizes_change_no_bit() -> None:
    r = np.random.default_rng(0)
    x, w = r.normal(size=300).astype("f"), r.normal(size=(4000, 300)).astype("f")
    f = calque.jit(lambda w, x: w @ x)
    one = np.asarray(f(w, x))
    free = calque.jit(lambda w, x: w @ x, dynamic={0: (0, 1), 1: 0})
    assert np.asarray(free(w, x)).tobytes() == one.tobytes()
    before = calque.get_num_threads()
    try:
        calque.set_num_threads(1 + before % 2)
        assert np.asarray(f(w, x)).tobytes() == one.tobytes()
    finally:
        calque.set_num_threads(before)


def test_rows_that_are_read_again_stay_near() -> None:
    """What normalises rows reads each a second time, right after it was added up."""
    w = np.ones((512, 512), "f")
    assert rows_of(lambda w: w / w.sum(1, keepdims=True), w) == 1
