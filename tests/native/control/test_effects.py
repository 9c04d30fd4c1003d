"""Callbacks run though nobody reads their results, once for each time that the program gets
there."""

import calque
import calque.debug
import calque.numpy as jnp
from calque import lax


def recorded():
    seen = []
    return seen, lambda *values: seen.append(tuple(float(v) for v in values))


def test_a_callback_whose_function_returns_nothing():
    seen, note = recorded()
    f = calque.jit(lambda x: calque.debug.callback(note, x))
    for x in (1.0, 2.0, 3.0):
        f(x)
    assert seen == [(1.0,), (2.0,), (3.0,)]


def test_beside_other_results():
    seen, note = recorded()

    @calque.jit
    def f(x):
        calque.debug.callback(note, x * 2)
        return x + 1

    assert [float(f(x)) for x in (1.0, 2.0)] == [2.0, 3.0] and seen == [(2.0,), (4.0,)]


def test_in_loops_and_branches():
    seen, note = recorded()

    @calque.jit
    def f(n, x):
        def body(i, c):
            calque.debug.callback(note, i)
            return c + 1

        x = lax.fori_loop(0, 3, body, x)
        x = lax.while_loop(lambda c: c < n, lambda c: (calque.debug.callback(note, c), c * 2)[1], x)
        lax.cond(
            x > 5,
            lambda: calque.debug.callback(note, 100.0),
            lambda: calque.debug.callback(note, -100.0),
        )
        lax.scan(lambda c, y: (calque.debug.callback(note, y), (c, None))[1], 0.0, jnp.arange(2.0))
        return x

    assert float(f(6.0, 1.0)) == 8.0
    assert seen == [(0.0,), (1.0,), (2.0,), (4.0,), (100.0,), (0.0,), (1.0,)]
    seen.clear()
    assert float(f(1.0, 0.0)) == 3.0
    assert seen == [(0.0,), (1.0,), (2.0,), (-100.0,), (0.0,), (1.0,)]


def test_in_an_inner_call():
    seen, note = recorded()
    inner = calque.jit(lambda x: calque.debug.callback(note, x))
    calque.jit(lambda x: (inner(x), x * 2)[1])(4.0)
    assert seen == [(4.0,)]
