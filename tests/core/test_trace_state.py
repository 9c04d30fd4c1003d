"""Which trace receives an operation, also where threads and processes part."""

import gc
import os
import threading
from typing import Any

import pytest

import calque as jax
import calque.numpy as jnp


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
