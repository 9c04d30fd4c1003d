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
    return jax.jit(f).lower(*args).compile()._executable


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


def test_loops_whose_bodies_find_sizes_are_run_by_the_other_engine() -> None:
    def f(x: Any, n: Any) -> Any:
        chosen = x[x > 0]
        total = lax.fori_loop(0, n, lambda i, c: c + x[x < i].sum() + chosen.sum(), 0.0)
        return total, chosen * 2

    for x, n in ((X, 3), (-X, 2), (X, 0)):
        total, doubled = jax.jit(f)(x, n)
        assert float(total) == sum(x[x < i].sum() + x[x > 0].sum() for i in range(n))
        np.testing.assert_array_equal(doubled, 2 * x[x > 0])
    made = executable(f, X, 3)
    made.call([jnp.asarray(X), jnp.asarray(3)])
    assert made.host_calls == ["while"] and len(made.pieces) == 2


def test_effects_and_errors_of_such_bodies(capfd: pytest.CaptureFixture[str]) -> None:
    def body(c: Any, t: Any) -> Any:
        jax.debug.print("round {}", t, ordered=True)
        above = jnp.where(jnp.asarray(X) > t)[0]
        total = jnp.asarray(X)[above].sum()
        return c, jax.pure_callback(reciprocal, jax.ShapeDtypeStruct((), "float32"), total)

    def reciprocal(x: Any) -> Any:
        if x == 0:
            raise ZeroDivisionError("nothing is above")
        return np.float32(1 / x)

    def f(bounds: Any) -> Any:
        jax.debug.print("first", ordered=True)
        out = lax.scan(body, 0.0, bounds)[1]
        jax.debug.print("last", ordered=True)
        return out

    np.testing.assert_allclose(jax.jit(f)(np.float32([0, 2])), [0.25, 1 / 3])
    jax.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:4] == ["first", "round 0.0", "round 2.0", "last"]
    with pytest.raises(Exception, match="nothing is above"):
        jax.jit(f)(np.float32([0, 9]))


def test_keys_go_into_such_loops() -> None:
    def f(key: Any, x: Any) -> Any:
        def body(c: Any, t: Any) -> Any:
            return jax.random.fold_in(c, 1), x[x < t].sum() + jax.random.normal(c)

        return lax.scan(body, key, jnp.arange(3.0))

    (key, found), (same, wanted) = (
        jax.jit(f, backend=engine)(jax.random.key(3), X) for engine in ("xla_cpu", "cpu")
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(same))


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
