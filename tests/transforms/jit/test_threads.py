"""Calls of the same functions in threads whose flags differ: each gets the results of its own."""

import concurrent.futures
import threading

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.call import functions as callpath

SETTINGS = [
    [],
    [("calque_enable_x64", True)],
    [("calque_exact", True)],
    [("calque_numpy_rank_promotion", "raise")],
    [("calque_enable_x64", True), ("calque_numpy_rank_promotion", "raise")],
    [("calque_disable_jit", True)],
]


def results(f, ready):
    ready.wait()
    out = set()
    for _ in range(40):
        wide = f(np.arange(3.0))
        sums = jnp.ones(3) + wide[0] * jnp.sum(jnp.ones(2))
        try:
            ranks = str((jnp.ones((2, 3)) + wide).dtype)
        except ValueError:
            ranks = "refused"
        out.add((str(wide.dtype), str(sums.dtype), ranks))
    return out


def inside(settings, f, ready):
    if not settings:
        return results(f, ready)
    (name, value), *others = settings
    with calque.config.override(name, value):
        return inside(others, f, ready)


@pytest.mark.parametrize("recording", [False, True], ids=["calls", "while others trace"])
def test_threads_with_flags_of_their_own(recording):
    f = calque.jit(lambda x: jnp.asarray(x) * 2 + 1)
    ready = threading.Barrier(len(SETTINGS) + recording)
    end = threading.Event()

    def trace():
        ready.wait()
        while not end.is_set():
            calque.make_jaxpr(lambda x: x + 1)(1.0)

    with concurrent.futures.ThreadPoolExecutor(len(SETTINGS) + 1) as threads:
        others = [threads.submit(trace)] if recording else []
        answers = [threads.submit(inside, s, f, ready) for s in SETTINGS]
        found = [a.result() for a in answers]
        end.set()
        [o.result() for o in others]
    narrow, wide = ("float32",) * 3, ("float64",) * 3
    assert found == [
        {narrow},
        {wide},
        {narrow},
        {("float32", "float32", "refused")},
        {("float64", "float64", "refused")},
        {narrow},
    ]
    assert f(np.arange(3.0)).dtype == np.float32


def test_machine_code_serves_threads_with_flags_of_their_own():
    f = calque.jit(lambda x: x * 2 + 1)

    def served():
        with calque.enable_x64():
            x = jnp.arange(3.0)
            f(x), f(x)
            before = callpath.calls_served()
            return f(x).dtype, callpath.calls_served() - before

    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        assert threads.submit(served).result() == (np.float64, int(callpath.LEARNS))
