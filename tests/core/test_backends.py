"""Backends by name, the reference backend, and rough counts of work."""

from types import SimpleNamespace

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core import backends
from calque.core.backends import (
    MOVES,
    TRANSCENDENTAL,
    Backends,
    MemoryStats,
    Options,
    ReferenceExecutable,
    compile_program,
    flops,
    transcendentals,
)
from calque.core.config import config
from calque.core.primitives import REGISTRY


@pytest.fixture
def own(monkeypatch):
    found = Backends()
    monkeypatch.setattr(backends, "known", found)
    with config.override("platforms", ""):  # whichever the tests run on is not among them
        yield found


def noted(log, name):
    return lambda closed, options: log.append((name, options.name)) or name


def test_the_chosen_one_compiles(own):
    log = []
    own.register("first", noted(log, "first"), default=True)
    own.register("second", noted(log, "second"))
    closed = calque.make_jaxpr(jnp.sin)(1.0)
    assert compile_program(closed, Options("f")) == "first"
    assert compile_program(closed, Options("g"), "second") == "second"
    assert log == [("first", "f"), ("second", "g")]
    with pytest.raises(RuntimeError, match="Unknown backend 'third'; the backends are first, sec"):
        compile_program(closed, Options(), "third")


def test_the_first_platform_is_chosen(own):
    own.register("native", print, default=True)
    own.register_devices("other", lambda: ["d0", "d1"])
    for platforms, want in (
        ("", "native"),
        ("cpu", "native"),
        ("cpu,missing", "native"),
        (" other ,cpu", "other"),
    ):
        with config.override("platforms", platforms):
            assert own.chosen == own.of_platform == want
            assert own.leaves_home() == own.may_leave_home() == (want == "other")
    with (
        config.override("platforms", "tpu,gpu"),
        pytest.raises(
            RuntimeError, match=r"initialize backend 'tpu': Unknown backend tpu.*: cpu, other"
        ),
    ):
        _ = own.chosen
    assert own.devices_of("other") == ["d0", "d1"]
    with pytest.raises(RuntimeError, match="Unknown backend tpu"):
        own.devices_of("tpu")


def test_an_accelerator_is_chosen_where_nothing_else_is(own, monkeypatch):
    own.register("native", print, default=True)
    card = SimpleNamespace(engine="card", process_index=0)
    monkeypatch.setattr(own, "accelerator", lambda: [card])
    with config.override("platforms", None):
        assert own.chosen == "card" and own.default_devices() == [card] and own.home() is card
        assert own.leaves_home()
        with config.override("default_device", "cpu"):
            assert own.chosen == "native" and own.leaves_home()
    with config.override("platforms", "cpu"):
        assert own.chosen == "native" and own.default_devices() != [card]
        assert not own.leaves_home() and not own.may_leave_home()


def test_programs_that_find_sizes_go_to_who_can(own):
    own.register("native", lambda c, o: "fixed", default=True)
    own.register_symbolic("native", lambda c, o, symbols: ("found", len(symbols.sizes()) >= 0))
    plain = calque.make_jaxpr(jnp.sin)(1.0)
    finding = calque.make_jaxpr(lambda x: x[x > 0])(jnp.ones(3))
    assert compile_program(plain, Options()) == "fixed"
    assert compile_program(finding, Options()) == ("found", True)
    assert backends.has_symbolic()


def test_who_asks_before_compiling_may_forbid_it(monkeypatch):
    def forbid():
        raise RuntimeError("not now")

    closed = calque.make_jaxpr(jnp.sin)(1.0)
    listeners = backends._before_compiling
    monkeypatch.setattr(backends, "_before_compiling", type(listeners)("a test's own"))
    backends.before_compiling(forbid)
    with pytest.raises(RuntimeError, match="not now"):
        compile_program(closed, Options(), "reference")


def test_sizes_that_the_reference_finds_are_known() -> None:
    closed = calque.make_jaxpr(lambda x: (jnp.flatnonzero(x), x[x > 0]))(jnp.ones(3))
    for x, n in (([1.0, 0.0, 2.0], 2), ([0.0, 0.0, 0.0], 0)):
        places, values = ReferenceExecutable(closed, Options("f", False, ())).call([jnp.array(x)])
        assert places.shape == values.shape == (n,) and (values * 2).shape == (n,)


def test_the_reference_runs_meanings():
    closed = calque.make_jaxpr(lambda x, y: (x @ y, 2.0, jnp.sin(x)))(np.ones((2, 3)), np.ones(3))
    e = ReferenceExecutable(closed, Options())
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([1, 0, 2])
    a, b, c = e.call([x, y])
    np.testing.assert_array_equal(a, x @ y)
    np.testing.assert_allclose(c, np.sin(x), rtol=1e-6)
    assert float(b) == 2 and b.weak_type and e.as_text() == e.as_text("jaxpr") == str(closed)
    with pytest.raises(ValueError, match="no stage 'loops'"):
        e.as_text("loops")
    memory = e.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (36, 8 + 4 + 24)
    assert e.cost_analysis() == {"flops": 12.0 + 6.0, "bytes accessed": 72.0}


@pytest.mark.parametrize(
    "f, args, want",
    [
        (lambda a, b: a @ b, (np.ones((2, 3)), np.ones((3, 5))), 2 * 10 * 3),
        (lambda a: a.sum(), (np.ones((4, 5)),), 20),
        (lambda a: a + 1, (np.ones(7),), 7),
        (lambda a: lax.scan(lambda c, x: (c * x, None), np.float32(1), a), (np.ones(9),), 9),
        (lambda a: calque.jit(lambda v: v * 2)(a), (np.ones(7),), 7),
        (lambda a, b: a + b, (np.ones((4, 5)), np.ones(5)), 20),
        (lambda a: a.T.reshape(2, 10)[:, 1:3], (np.ones((4, 5)),), 0),
        (
            lambda x, k: lax.conv(x, k, (1, 1), "VALID"),
            (np.ones((1, 3, 8, 8), "f4"), np.ones((4, 3, 3, 3), "f4")),
            2 * 4 * 6 * 6 * 27,
        ),
    ],
)
def test_operations_are_counted(f, args, want):
    assert flops(calque.make_jaxpr(f)(*args).eqns) == want


def test_what_only_moves_elements_is_known_by_name():
    assert REGISTRY.keys() >= MOVES | TRANSCENDENTAL


def test_transcendental_functions_are_counted():
    def f(a):
        return lax.fori_loop(0, 3, lambda i, c: jnp.exp(c) + jnp.sin(c) * 2, a)

    assert transcendentals(calque.make_jaxpr(f)(np.ones(5)).eqns) == 3 * 2 * 5
    found = calque.jit(lambda a: jnp.tanh(a) + 1).lower(np.ones(7)).cost_analysis()
    assert found["transcendentals"] == 7
    assert "transcendentals" not in calque.jit(lambda a: a + 1).lower(np.ones(7)).cost_analysis()


def test_what_is_not_said_of_memory_is_all_at_once():
    found = MemoryStats(8, 4, 2, alias_size_in_bytes=1)
    assert found.peak_memory_in_bytes == 13 and found.host_temp_size_in_bytes == 0
    assert MemoryStats(8, 4, 2, peak_memory_in_bytes=9).peak_memory_in_bytes == 9
