"""Sessions: what they keep, and that they leave nothing behind."""

import threading

import pytest

import calque as jax
import calque.numpy as jnp
from calque.core.source import Source
from calque.machine.spans import now, recorded
from calque.profiling.session import Calls, Session


def test_times_spans_and_samples():
    x = jnp.ones(100)
    with Session(1000) as session:
        f = jax.jit(lambda x: jnp.cosh(x) * 0.4921)
        for _ in range(3):
            f(x)
    kinds = [s.kind for s in session.spans]
    for kind in ("trace", "passes", "compile", "plan", "kernels"):
        assert kind in kinds
    named = [m for m in session.measured() if m.function == "<lambda>" and m.facts is not None]
    assert [(m.facts.name, m.time.turns) for m in named] == [("cosh mul", 3)]
    assert len(session.samples) == 2 and session.ended > session.begun
    assert not recorded()


def test_sizes_that_vary_are_one_program():
    f = jax.jit(lambda x: jnp.cosh(x) * 0.1234)
    for n in (3, 4, 5):
        f(jnp.ones(n))
    with Session() as session:
        for n in (5, 6, 7, 7):
            f(jnp.ones(n))
    named = [m for m in session.measured() if m.function == "<lambda>" and m.facts is not None]
    ((facts, turns),) = [(m.facts, m.time.turns) for m in named if m.time.turns]
    assert turns == 4 and facts.name == "cosh mul" and facts.flops is None


def test_who_calls():
    f, x = jax.jit(lambda x: x + 1), jnp.ones(3)
    f(x), jnp.exp2(x)
    with Session(100) as session:
        for _ in range(4):
            f(x)
        jnp.exp2(x)
        y = jnp.exp2(x)
    assert y.shape == (3,)
    measured = session.measured()
    (number,) = [k for k, m in enumerate(measured) if m.callers and m.facts is None]
    first, second = measured[number].callers
    assert first.turns == second.turns == 1 and second.source.line == first.source.line + 1
    assert all(m.callers == () for m in measured if m.function == "<lambda>")
    lines = [
        session.calls.at(number, e.thread, e.begin)
        for e in session.timing.events()
        if e.step == number
    ]
    assert lines == [first.source, second.source]
    assert session.calls.at(number, 0, 0) is None


def test_calls_are_counted_when_no_more_moments_are_kept():
    source = Source(test_who_calls.__code__, 0)
    calls = Calls(2)
    for _ in range(5):
        calls.add(7, source)
    (caller,) = calls.of(7)
    assert caller.turns == 5 and calls.of(8) == ()
    assert calls.at(7, threading.get_ident(), now()) == source


def test_what_it_costs_is_taken_away():
    f, x = jax.jit(lambda x: x + 1), jnp.ones(3)
    f(x)
    with Session() as session:
        for _ in range(100):
            f(x)
    assert session.cost > 0 and session.overhead.whole >= session.overhead.seen > 0
    assert session.overhead.entry > 0
    raw = {(id(t.program), t.number, t.kind): t.ns for t in session.timing.steps()}
    for t in session.steps():
        assert t.turns <= t.ns <= max(raw[id(t.program), t.number, t.kind], t.turns)


def test_a_program_that_fails_leaves_all_as_it_was():
    def fails(x):
        raise ZeroDivisionError

    f = jax.jit(lambda x: jax.pure_callback(fails, jax.ShapeDtypeStruct((), "float32"), x))
    with pytest.raises(ZeroDivisionError), Session():
        f(1.0)
    assert not recorded()
    with Session():
        pass
