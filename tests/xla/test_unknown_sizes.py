"""Sizes that are free, or found while a program runs, on XLA: programs are compiled for each, and
cut where one is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.backends import Options, Places
from calque.core.config import config
from calque.core.errors import DataDependentSizeError
from calque.core.jaxprs import found_symbols
from calque.transforms.jit.traced import stats
from calque.xla.unknown_sizes import InPieces, compile
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
X = np.array([1, -2, 3, -4, 0, -1], np.float32)


@pytest.fixture(autouse=True)
def on_xla() -> Iterator[None]:
    with config.override("calque_platforms", "xla_cpu"):
        yield


def executable(f: Any, *args: Any) -> Any:
    return jax.jit(f).lower(*args).compile().runtime_executable()


def test_a_program_is_cut_where_a_size_is_found() -> None:
    def below(x: Any, bound: Any) -> Any:
        chosen = x[x < bound]
        return chosen * 2, chosen.sum(), x + 1

    made = executable(below, X, np.float32(0))
    assert isinstance(made, InPieces) and len(made.pieces) == 2
    for x in (X, -X, np.abs(X), np.full(6, -1, np.float32)):
        doubled, total, more = jax.jit(below)(x, 0.0)
        np.testing.assert_array_equal(doubled, 2 * x[x < 0])
        assert float(total) == x[x < 0].sum()
        np.testing.assert_array_equal(more, x + 1)


def test_each_number_is_compiled_once() -> None:
    made = executable(lambda n: jnp.arange(n) * 2, 3)
    for n in (3, 5, 3, 0, 5):
        np.testing.assert_array_equal(made.call([jnp.asarray(n)])[0], 2 * np.arange(n))
    first, second = (len(piece.compiled) for piece in made.pieces)
    assert (first, second) == (1, 3)


def test_sizes_found_one_after_the_other() -> None:
    def f(x: Any) -> Any:
        positive = x[x > 0]
        large = positive[positive > positive.mean()]
        return large, positive.shape[0] + jnp.arange(large.shape[0])

    made = executable(f, X)
    assert len(made.pieces) == 3
    large, places = jax.jit(f)(X)
    np.testing.assert_array_equal(large, [3.0])
    np.testing.assert_array_equal(places, [2])


def test_sizes_that_need_nothing_of_each_other_are_found_together() -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = jnp.sum(x > 0), jnp.sum(y > 0)
        return jnp.ones(a), jnp.zeros(b)

    made = executable(f, X, -X)
    ones, zeros = made.call([jnp.asarray(X), jnp.asarray(-X)])
    assert len(made.pieces) == 3 and (ones.shape, zeros.shape) == ((2,), (3,))


def test_results_that_are_inputs_and_numbers() -> None:
    x, n, one = jax.jit(lambda x: (x, jnp.nonzero(x)[0].shape[0] + 0, 1))(X)
    np.testing.assert_array_equal(x, X)
    assert (int(n), int(one)) == (5, 1)


def test_errors_of_checks_are_raised() -> None:
    with pytest.raises(ValueError, match="a size cannot be negative, got -2"):
        jax.jit(lambda n: jnp.ones(n))(-2)


def test_sizes_beyond_all_memory_are_an_error() -> None:
    with pytest.raises(MemoryError, match="more than a process can address"):
        jax.jit(lambda n: jnp.ones((n, 1 << 20, 1 << 20)))(1 << 30)
    with pytest.raises(MemoryError, match="more than a process can address"):
        jax.jit(lambda: jnp.ones((1 << 30, 1 << 20, 1 << 20)))()


def test_bodies_of_loops_cannot_be_cut() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: c + x[x > c].sum(), 0.0)

    with pytest.raises(
        DataDependentSizeError, match=r"scan on XLA \(.*test_unknown_sizes.py.*size="
    ):
        jax.jit(f)(X)


def test_one_trace_serves_all_sizes() -> None:
    traces = 0

    @jax.jit
    def f(x: Any) -> Any:
        nonlocal traces
        traces += 1
        return x - x.mean(), x[-1]

    for n in (3, 4, 5, 6, 4, 4, 4, 4, 4, 4, 4, 4, 4, 7):
        x = np.arange(n, dtype=np.float32)
        apart, last = f(x)
        np.testing.assert_allclose(apart, x - x.mean(), atol=1e-6)
        assert float(last) == n - 1
    assert traces == 2


def test_sizes_that_come_often_are_matched_by_machine_code() -> None:
    f = jax.jit(lambda x: x * 2)
    for n in (3, 4, *(5,) * 20):
        f(np.ones(n, np.float32))
    before = stats.asked
    np.testing.assert_array_equal(f(np.ones(5, np.float32)), np.full(5, 2, np.float32))
    assert stats.asked == before
    f(np.ones(6, np.float32))
    assert stats.asked == before + 1


def test_free_and_found_sizes() -> None:
    f = jax.jit(lambda x: x[x < 0].sum() + x.shape[0])
    for n in (3, 4, 5, 6):
        x = np.arange(n, dtype=np.float32) - 2
        assert float(f(x)) == x[x < 0].sum() + n


def test_explain_says_it() -> None:
    f = jax.jit(lambda x: x * x)
    for n in (3, 4):
        f(np.ones(n, np.float32))
    text = str(jax.explain(f, np.ones(4, np.float32)))
    assert "XLA compiles it for each size" in text and "Compiled by XLA: 1 kernel" in text
    found = str(jax.explain(lambda x: x[x < 0], X))
    assert "2 programs: the first finds sizes" in found


def test_texts_and_costs() -> None:
    made = executable(lambda x: x[x < 0] * 2, X)
    assert "compiled when their sizes are found" in made.as_text()
    made.call([jnp.asarray(X)])
    assert made.as_text("stablehlo").count("func.func public @main") == 2
    assert "let_size" in made.as_text("jaxpr")
    assert made.cost_analysis()["flops"] > 0 and made.host_calls == []
    assert made.memory_analysis().argument_size_in_bytes == X.nbytes


def test_several_devices_have_fixed_sizes() -> None:
    closed = jax.make_jaxpr(lambda x: x[x < 0])(X)
    symbols = found_symbols(closed.jaxpr)
    assert symbols is not None
    two = Places(tuple(jax.devices("xla_cpu")[:1]) * 2)
    with pytest.raises(DataDependentSizeError, match=r"over several devices of XLA.*size="):
        compile(closed, Options("f", places=two), symbols)
