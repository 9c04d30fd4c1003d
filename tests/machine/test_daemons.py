"""The end of a process in which daemon threads are at work: status 0 and silence, whatever they
do."""

import os
import subprocess
import sys

import pytest

from calque.machine import threads
from calque.machine.daemons import park_daemon_threads

# `Slow` keeps the process a while in the state in which Python ends every thread that asks for the
# GIL, so that each of the threads below does ask.
LEAVING = """
import threading, time
import numpy as np, scipy.fft
import calque as jax, calque.numpy as jnp
from calque import lax
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)
slow = Slow()
x = jnp.ones(100_000)
started = threading.Event()
{program}
def work():
    f(x)  # once to its end, so that it is compiled
    started.set()
    while True:
        f(x)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""
PROGRAMS = {
    "calls": "f = jax.jit(lambda x: jnp.sin(x) + 1)",
    "a long kernel": (
        "f = jax.jit(lambda x: lax.fori_loop(0, 3000, lambda i, x: jnp.sin(x) + i, x))"
    ),
    "eager": "f = lambda x: jnp.sin(x) + 1",
    "trees": "f = lambda x: jax.tree.map(lambda a: a, [{'a': 1, 'b': (x, x)}] * 50)",
    "tracing": "f = lambda x: jax.make_jaxpr(lambda a: jax.grad(lambda b: (b * b).sum())(a))(x)",
    "a callback": (
        "g = lambda a: np.asarray(a) + 1\n"
        "f = jax.jit(lambda x: jax.pure_callback(g, jax.ShapeDtypeStruct(x.shape, x.dtype), x))"
    ),
    "a callback in a loop": (
        "f = jax.jit(lambda x: lax.fori_loop(0, 99, lambda i, x: (jax.debug.callback(len, x),"
        " jnp.sin(x))[1], x))"
    ),
    "the pool": "jax.set_num_threads(4)\nf = jax.jit(lambda x: jnp.sin(x @ x[:, None] * x))",
    "sorts": "f = jnp.sort",
    "LLVM": (
        "import itertools\nturns = itertools.count()\n"
        "def f(x):\n"
        "    n = next(turns)\n"
        "    jax.jit(lambda x: sum(jnp.sin(x) ** k + n for k in range(n % 7, n % 7 + 9)))(x)"
    ),
    "another library": "a = np.ones(1 << 18)\nf = lambda x: scipy.fft.fft(a)",
}


def leave(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(
        [sys.executable, "-c", LEAVING.format(program=program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_process_ends_while_daemon_threads_are_at_work(kind: str) -> None:
    """Once; `tests/soak` does it many times."""
    environment = {"CALQUE_CACHE": "off"} if kind == "LLVM" else {}
    done = leave(PROGRAMS[kind], **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info >= (3, 14), reason="Python parks them itself"
)
def test_the_interpreter_is_found() -> None:
    """In a child, for which there is no way back."""
    code = (
        "from calque.machine import daemons, threads\n"
        "park = threads.threads_park.address\n"
        "words = list(daemons._words_that_call(daemons._interpreter()))\n"
        "assert daemons.park_daemon_threads(park)\n"
        "import ctypes\n"
        "assert words and all(ctypes.c_uint64.from_address(w).value == park for w in words)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_newer_interpreters_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    assert not park_daemon_threads(threads.threads_park.address)
