"""Functions whose first call is compiled in a hurry: the second has another thread compile them
with care, and from then on machine code serves them; every call has the same bits."""

import gc
import os
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.native import executable
from calque.native.executable import NativeExecutable
from calque.transforms.jit import again
from calque.transforms.jit.traced import stats
from tests.native.hasty import in_haste  # noqa: F401

X = np.random.default_rng(0).standard_normal((40, 30)).astype("f")


@pytest.fixture(autouse=True)
def quick_first_calls(in_haste: None) -> Iterator[None]:  # noqa: F811
    calque.clear_caches()  # each test compiles the function anew
    with config.override("calque_quick_first_calls", True):
        yield


def layers(x: Any) -> Any:
    for _ in range(3):
        x = jnp.tanh(x @ x.T @ x) + x.mean(0)
    return x, lax.fori_loop(0, 4, lambda i, a: a * 0.5 + jnp.sin(a) * i, x[0])


def bits(out: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in calque.tree.leaves(out)]


def wait_for(improved: int) -> None:
    """Till so many programs have been improved."""
    for _ in range(6000):
        if again.stats.improved >= improved:
            return
        time.sleep(0.01)
    raise AssertionError("no thread improves the program")


def test_the_second_call_has_the_program_improved_and_the_bits_stay() -> None:
    f, improved = calque.jit(layers), again.stats.improved
    first = bits(f(X))
    assert again.stats.improved == improved
    second = bits(f(X))
    wait_for(improved + 1)
    third = bits(f(X))  # through Python, which teaches it
    asked = stats.asked
    assert [second, third, bits(f(X)), bits(f(X))] == [first] * 4
    assert stats.asked == asked and again.stats.improved == improved + 1


def test_until_then_calls_go_through_python(monkeypatch: pytest.MonkeyPatch) -> None:
    may = threading.Event()
    improve = NativeExecutable.improved

    def slowly(self: Any) -> Any:
        assert may.wait(60)
        return improve(self)

    monkeypatch.setattr(NativeExecutable, "improved", slowly)
    f, improved, asked = calque.jit(layers), again.stats.improved, stats.asked
    results = [bits(f(X)) for _ in range(5)]
    assert stats.asked == asked + 5 and results == [results[0]] * 5
    may.set()
    wait_for(improved + 1)
    assert [bits(f(X)), bits(f(X))] == results[:2] and stats.asked == asked + 6


def test_the_program_that_was_called_last_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    may, order = threading.Event(), []
    improve, improved = NativeExecutable.improved, again.stats.improved

    def slowly(self: Any) -> Any:
        order.append(self.options.name)
        assert may.wait(60)
        return improve(self)

    monkeypatch.setattr(NativeExecutable, "improved", slowly)
    for name, factor in (("one", 2.0), ("two", 3.0), ("three", 4.0)):

        def program(x: Any, factor: float = factor) -> Any:
            return layers(x * factor)

        program.__name__ = name
        f = calque.jit(program)
        f(X), f(X)
        while not order:
            time.sleep(0.01)
    may.set()
    wait_for(improved + 3)
    assert order == ["one", "three", "two"]


def test_stages_and_explain_show_what_was_made_with_care() -> None:
    f = calque.jit(layers)
    f(X)
    compiled = f.lower(X).compile()
    assert not compiled.runtime_executable().hasty
    assert not any(k.code.quick for k in compiled.runtime_executable().kernels)
    assert bits(compiled(X)) == bits(f(X))
    g = calque.jit(lambda x: layers(x * 2))
    g(X)
    assert "Machine code" in str(calque.explain(g, X))


def test_where_one_call_loses_more_than_it_gains_nothing_is_made_in_haste(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executable, "hasty", lambda *args: set())
    f, asked = calque.jit(lambda x: jnp.sin(x).sum(0) + jnp.cos(x).max()), stats.asked
    first = bits(f(X))
    assert bits(f(X)) == first and stats.asked == asked + 1


def test_the_flag_turns_it_off() -> None:
    with config.override("calque_quick_first_calls", False):
        f, asked = calque.jit(layers), stats.asked
        first = bits(f(X))
        assert bits(f(X)) == first and stats.asked == asked + 1


def test_with_one_thread_there_is_no_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "get_num_threads", lambda: 1)
    f, asked = calque.jit(layers), stats.asked
    first = bits(f(X))
    assert bits(f(X)) == first and stats.asked == asked + 1


def test_a_program_that_cannot_be_improved_stays_and_is_taught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = threading.Event()

    def fails(self: Any) -> Any:
        ended.set()
        raise MemoryError("no room")

    monkeypatch.setattr(NativeExecutable, "improved", fails)
    f, improved, asked = calque.jit(layers), again.stats.improved, stats.asked
    first = bits(f(X))
    for _ in range(6000):
        assert bits(f(X)) == first
        if ended.is_set():
            break
        time.sleep(0.01)
    while stats.asked < asked + 6000:
        before = stats.asked
        assert bits(f(X)) == first
        if stats.asked == before:
            break
        time.sleep(0.01)
    assert stats.asked == before and again.stats.improved == improved


def test_where_no_thread_can_be_had_the_first_code_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> int:
        raise RuntimeError("can't start new thread")

    f, asked = calque.jit(layers), stats.asked
    first = bits(f(X))
    with monkeypatch.context() as m:
        m.setattr(again._thread, "start_new_thread", refused)
        assert bits(f(X)) == first
    assert [bits(f(X)), bits(f(X))] == [first] * 2 and stats.asked == asked + 2


def test_many_threads_call_while_it_is_improved() -> None:
    f, improved = calque.jit(layers), again.stats.improved
    first, wrong = bits(f(X)), []

    def calls() -> None:
        for _ in range(200):
            if bits(f(X)) != first:
                wrong.append(1)

    threads = [threading.Thread(target=calls) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    wait_for(improved + 1)
    assert not wrong and bits(f(X)) == first and again.stats.improved == improved + 1


@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_process_improves_it_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that its parent has begun is not there, and what that holds is free."""
    may, begun = threading.Event(), threading.Event()
    improve = NativeExecutable.improved

    def slowly(self: Any) -> Any:
        begun.set()
        assert may.wait(60)
        return improve(self)

    monkeypatch.setattr(NativeExecutable, "improved", slowly)
    f, improved = calque.jit(layers), again.stats.improved
    first = bits(f(X))
    f(X)
    assert begun.wait(60)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            NativeExecutable.improved = improve  # type: ignore[method-assign]
            assert bits(f(X)) == first
            wait_for(improved + 1)
            assert bits(f(X)) == first and bits(f(X)) == first
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    may.set()
    wait_for(improved + 1)
    assert bits(f(X)) == first


def test_a_function_that_is_gone_is_not_kept() -> None:
    f, improved = calque.jit(layers), again.stats.improved
    f(X)
    f(X)
    kept = weakref.ref(f)
    del f
    calque.clear_caches()
    wait_for(improved + 1)
    gc.collect()
    assert kept() is None
