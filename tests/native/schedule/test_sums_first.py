"""Blocks of rows whose sums come first: the bits of a row are those that it has alone, and loops
that read a matrix again and again let it lie as they like it."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.native.lower.dot import block_of_rows


def loops_of(f: Callable[..., Any], *args: Any) -> str:
    text: str = calque.jit(f).lower(*args).compile().as_text("loops")
    return text.split("driver:")[0]


def numbers(*shape: int, dtype: Any = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def test_blocks_of_rows() -> None:
    sizes = (31, 32, 64, 100, 128, 200, 251, 300, 301, 509, 512, 1000)
    blocks = (0, 32, 64, 100, 128, 100, 251, 100, 43, 0, 128, 125)
    assert tuple(map(block_of_rows, sizes)) == blocks
    assert [block_of_rows(n, for_threads=True) for n in sizes[-4:]] == [43, 0, 16, 20]


def test_a_large_matrix_is_many_blocks_that_threads_share() -> None:
    w, x = numbers(600, 1000), numbers(1000)
    text = loops_of(lambda w, x: jnp.tanh(w @ x), w, x)
    assert "blocks of 20 rows" in text
    assert "threads" in text or calque.get_num_threads() == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, k", [(100, 70), (128, 128), (251, 130), (300, 64), (66, 999)])
def test_rows_have_the_bits_that_they_have_alone(n: int, k: int, dtype: str) -> None:
    with calque.enable_x64(dtype == "float64"):
        w, x, z = (numbers(*s, dtype=dtype) for s in ((n, k), (k,), (n,)))

        def f(w: Any, x: Any, z: Any) -> Any:
            s = w @ x / k**0.5
            return jnp.tanh(s + z), s * 2

        assert "whose sums come first" in loops_of(f, w, x, z)
        got = [np.asarray(y) for y in calque.jit(f)(w, x, z)]
        np.testing.assert_allclose(got[0], np.tanh(w @ x / k**0.5 + z), rtol=2e-4, atol=2e-4)
        for start in (0, n // 4 - 3, n - 31):
            rows = slice(start, start + 31)
            alone = calque.jit(f)(w[rows].copy(), x, z[rows].copy())
            for a, b in zip(alone, got, strict=True):
                assert np.asarray(a).tobytes() == b[rows].tobytes()


def test_short_rows_many_accumulators_and_free_sizes_stay_as_they_were() -> None:
    w, x = numbers(100, 20), numbers(20)
    assert "sums come first" not in loops_of(lambda w, x: jnp.tanh(w @ x), w, x)
    v = numbers(100, 100)
    both = lambda v: jnp.tanh(v.sum(1) * v.max(1))  # noqa: E731
    np.testing.assert_allclose(
        calque.jit(both)(v), np.tanh(v.sum(1) * v.max(1)), rtol=1e-3, atol=1e-4
    )
    f = calque.jit(lambda w: jnp.exp(-(w**2).mean(1)))
    for n in (64, 96, 100):
        part = numbers(n, 100)
        np.testing.assert_allclose(f(part), np.exp(-(part**2).mean(1)), rtol=1e-5)


def rnn(h: Any, w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(w @ h + x)
        return h, h * 2

    return lax.scan(step, h, xs)


def across(h: Any, w: Any, xs: Any) -> Any:
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h), h, xs)


@pytest.mark.parametrize("f", [rnn, across])
@pytest.mark.parametrize("n, kind", [(48, "serial loops"), (128, "sums come first")])
def test_matrices_in_loops_lie_as_the_loop_likes_it(
    f: Callable[..., Any], n: int, kind: str
) -> None:
    """Small ones with the sums beside each other, others with their rows."""
    h, w, xs = numbers(n), numbers(n, n) / n, numbers(9, n)
    assert kind in loops_of(f, h, w, xs)
    got = calque.jit(f)(h, w, xs)
    with calque.disable_jit():
        want = f(h, w, xs)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [48, 100, 130, 251])
def test_loops_have_the_bits_of_their_steps_in_exact_mode(n: int) -> None:
    h, w, xs = numbers(n), numbers(n, n) / n, numbers(5, n)
    with config.override("calque_exact", True):
        for f, step in (
            (rnn, lambda h, x: jnp.tanh(w @ h + x)),
            (across, lambda h, x: jnp.tanh(h @ w + x)),
        ):
            last, _ = calque.jit(f)(h, w, xs)
            eager = jnp.asarray(h)
            for x in xs:
                eager = step(eager, x)
            assert np.asarray(last).tobytes() == np.asarray(eager).tobytes()


def test_one_matrix_in_both_directions_and_gates() -> None:
    n = 96
    w, h = numbers(n, n) / n**0.5, numbers(n)

    def there_and_back(w: Any, h: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, h: jnp.tanh(w.T @ jnp.sin(w @ h)), h)

    gates = numbers(3 * n, n, seed=1) / n**0.5

    def gru(gates: Any, h: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            r, z, c = jnp.split(gates @ h, 3)
            r, z = calque.nn.sigmoid(r), calque.nn.sigmoid(z)
            h = (1 - z) * jnp.tanh(r * c) + z * h
            return h, None

        return lax.scan(step, h, None, 6)[0]

    def powers(w: Any, h: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            y = w @ h
            return y / jnp.sqrt((y * y).sum()), None

        return lax.scan(step, h, None, 20)[0]

    for f, m in ((there_and_back, w), (gru, gates), (powers, w @ w.T)):
        with calque.disable_jit():
            want = f(jnp.asarray(m), jnp.asarray(h))
        np.testing.assert_allclose(calque.jit(f)(m, h), want, rtol=2e-3, atol=1e-4)


def test_no_register_without_anything_to_add() -> None:
    """Fifty sums beside each other are one vector of 64, not half of one of 128."""

    def f(w: Any, h: Any) -> Any:
        return lax.fori_loop(0, 9, lambda i, h: w @ h * 0.125, h)

    w, h = numbers(50, 50), numbers(50)
    text = loops_of(f, w, h)
    wide = {int(n) for n in re.findall(r"around serial loops: .*, (\d+) wide", text)}
    assert wide and all(n <= 64 for n in wide)
    want = h.astype("f8")
    for _ in range(9):
        want = w @ want * 0.125
    np.testing.assert_allclose(calque.jit(f)(w, h), want, rtol=1e-4, atol=1e-4)
