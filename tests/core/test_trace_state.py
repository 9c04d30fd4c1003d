"""Which trace receives an operation, also where threads and processes part."""

import gc
import os
import threading
from typing import Any

import pytest

import calque as jax
import calque.numpy as jnp
from calque.core import trace_state


@pytest.mark.filterwarnings("ignore")  # libraries that keep threads of their own warn of any fork
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_child_forked_while_another_thread_traces() -> None:
    """The thread that traces does not exist there: nothing waits for it, and machine code serves
    calls again."""
    inside, leave = threading.Event(), threading.Event()

    def traced(x: Any) -> Any:
        inside.set()
        leave.wait(60)
        return x + 1

    x = jnp.arange(3.0)
    served = jax.jit(lambda x: x * 2)
    served(x)
    thread = threading.Thread(target=jax.jit(traced), args=(x,))
    thread.start()
    inside.wait()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            fine = gc.isenabled()
            for _ in range(5):
                served(x)
            before = jax.stats()["calls_through_python"]
            for _ in range(5):
                served(x)
            fine = fine and jax.stats()["calls_through_python"] == before
            fine = fine and float(jax.jit(lambda x: x.sum())(x)) == 3.0
            code = 0 if fine else 2
        finally:
            os._exit(code)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert gc.isenabled()


@pytest.mark.parametrize("interrupted", [1, 2])
def test_an_interrupt_as_recording_begins_or_ends_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, interrupted: int
) -> None:
    tell, calls = trace_state._tell, []

    def interrupt() -> None:
        calls.append(None)
        if len(calls) == interrupted:
            raise KeyboardInterrupt
        tell()

    monkeypatch.setattr(trace_state, "_tell", interrupt)
    with pytest.raises(KeyboardInterrupt):
        jax.make_jaxpr(lambda x: x + 1)(1.0)
    assert trace_state.is_evaluating() and not trace_state.any_recording()
    assert trace_state.depth() == 0 and float(jnp.float32(2) + 1) == 3.0
    assert float(jax.jit(lambda x: x * interrupted)(2.0)) == 2.0 * interrupted
    assert gc.isenabled() and not trace_state._told.value  # the next one put it right


def test_libraries_name_classes_of_traces_and_values_by_each_other() -> None:
    class Value(trace_state.Tracer):
        __slots__ = ()

    class Own(trace_state.Trace[Value]):
        pass

    assert Own.__mro__[1] is trace_state.Trace and trace_state.Tracer[Own].__args__ == (Own,)
