"""The end of a process in which daemon threads are at work: status 0 and silence, whatever they
do."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from calque.machine import daemons, threads
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
    "LAPACK": "m = jnp.asarray(np.random.rand(400, 400))\nf = lambda x: jnp.linalg.svd(m)",
    "LAPACK in the pool": (
        "m = jnp.asarray(np.random.rand(40, 60, 60))\nf = jax.jit(lambda x: jnp.linalg.qr(m))"
    ),
    "NumPy's BLAS": "m = np.random.rand(1200, 1200)\nf = lambda x: m @ m",
    "LAPACK in a callback": (
        "m = np.random.rand(400, 400)\ng = lambda a: np.linalg.svd(m)[1]\n"
        "s = jax.ShapeDtypeStruct((400,), 'float64')\n"
        "f = jax.jit(lambda x: jax.pure_callback(g, s, x))\n"
        "jax.config.update('jax_enable_x64', True)"
    ),
    "Fourier transforms": "m = jnp.ones((700, 701))\nf = lambda x: jnp.fft.fft2(m)",
    "a loop": (
        "f = jax.jit(lambda x: lax.while_loop(lambda c: c[0].sum() < 9, lambda c: (c[0] + 1e-6, ),"
        " (x[:50] * 0,)))"
    ),
    "better programs": (
        "import itertools\nturns = itertools.count()\n"
        "def f(x):\n"
        "    n = next(turns)\n"
        "    g = jax.jit(lambda x: sum(jnp.sin(x) ** k @ jnp.cos(x + n) for k in range(2, 9)))\n"
        "    for _ in range(4): g(x)"
    ),
    "the disk": (
        "import itertools\nturns = itertools.count()\n"
        "def f(x):\n"
        "    n = next(turns) % 40\n"
        "    jax.jit(lambda x: sum(jnp.sin(x) ** k for k in range(n % 7, n % 7 + 9)) + n)(x)\n"
        "    jax.clear_caches()"
    ),
}
APART = {  # of the files that other tests share
    "LLVM": {"CALQUE_CACHE": "off"},
    "better programs": {"CALQUE_CACHE": "off"},
}


def leave(kind: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that ends while daemon threads do this; what does not end in two minutes hangs."""
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": path, **APART.get(kind, {}), **environment}
    return subprocess.run(
        [sys.executable, "-c", LEAVING.format(program=PROGRAMS[kind])],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_process_ends_while_daemon_threads_are_at_work(kind: str, tmp_path: Path) -> None:
    """Once; `tests/soak` does it many times."""
    environment = {"CALQUE_CACHE_DIR": str(tmp_path)} if kind == "the disk" else {}
    done = leave(kind, **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info >= (3, 14), reason="Python parks them itself"
)
def test_the_interpreter_is_found() -> None:
    """In a child, for which there is no way back."""
    code = (
        "from calque.machine import daemons, threads\n"
        "park = threads.threads_park.address\n"
        "library = daemons._interpreter()\n"
        "words = list(daemons._words_that_call(library.tables(), library.bias))\n"
        "assert daemons.park_daemon_threads(park)\n"
        "import ctypes\n"
        "assert words and all(ctypes.c_uint64.from_address(w).value == park for w in words)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's loader")
def test_destructors_of_openblas_are_left_out() -> None:
    """Those of NumPy's and of SciPy's; a second time there is nothing to do."""
    code = (
        "import numpy.linalg, scipy.linalg\n"
        "from calque.machine import daemons as d\n"
        "found = [each.tables() for each in d._libraries() if 'openblas' in each.file]\n"
        "words = [list(d._words_of_destructors(tables)) for tables in found]\n"
        "assert all(words) and d.keep_blas() == len(sum(words, [])) >= len(found)\n"
        "assert d.keep_blas() == 0\n"
        "print(len(found))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    if not int(done.stdout):
        pytest.skip("NumPy and SciPy have another BLAS here")


def test_systems_that_do_not_tell_of_libraries_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "PyDLL", lambda name: object())
    assert daemons._libraries() == []
    assert daemons.keep_blas() == 0


def test_newer_interpreters_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    assert not park_daemon_threads(threads.threads_park.address)
