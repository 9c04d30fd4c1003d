"""Little memory, sizes beyond any memory, small stacks, signals, the ends of processes."""

import resource
import sys

import pytest

from tests.crash.child import check, run

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")

SIZES = """
import calque, calque.numpy as jnp, numpy as np
from calque import lax
calls = {
    "ones": lambda: jnp.ones(1 << 62),
    "ones far beyond": lambda: jnp.ones((1 << 70,)),
    "zeros": lambda: jnp.zeros((1 << 33, 1 << 33)),
    "iota": lambda: lax.iota(np.float32, 1 << 62),
    "eye": lambda: jnp.eye(1 << 40),
    "scan": lambda: lax.scan(lambda c, x: (c, c), jnp.ones(4), None, length=1 << 60),
    "fft": lambda: jnp.fft.fft(jnp.ones(3), n=1 << 50),
    "jit": lambda: calque.jit(lambda: jnp.ones((1 << 40,)))(),
    "jit beyond": lambda: calque.jit(lambda: jnp.ones((1 << 33, 1 << 33)))(),
    "random": lambda: calque.random.normal(calque.random.key(0), (1 << 50,)),
    "concatenate": lambda: jnp.concatenate([jnp.broadcast_to(jnp.ones(1), (1 << 40,))] * 2),
}
for name, call in calls.items():
    try:
        call()
    except MemoryError as e:
        assert "bytes" in str(e) and "[" in str(e), (name, str(e))
    else:
        raise AssertionError(name)
"""


@linux
def test_sizes_beyond_memory_are_named() -> None:
    """The type of the array, and how many bytes it would take."""
    check(SIZES, before=f"ulimit -v {16 << 20}")


def test_the_line_of_what_no_process_can_hold_is_named() -> None:
    check(
        """
        import calque, calque.numpy as jnp, traceback
        def f(x):
            y = x + 1
            return jnp.broadcast_to(y, (1 << 33, 1 << 33))
        try:
            calque.jit(f)(1.0)
        except MemoryError as e:
            assert "f32[8589934592,8589934592]" in str(e), e
            assert traceback.extract_tb(e.__traceback__)[-1].name == "f"
        else:
            raise AssertionError("no MemoryError")
        """
    )


def test_sizes_that_are_none() -> None:
    check(
        """
        import calque, calque.numpy as jnp
        from calque import lax
        nan, inf, far = float("nan"), float("inf"), 1 << 62
        x = jnp.ones(3)
        for call in (
            lambda: jnp.ones(nan), lambda: jnp.ones(inf), lambda: jnp.ones(-1),
            lambda: jnp.zeros((3, -2)), lambda: jnp.arange(nan), lambda: jnp.arange(inf),
            lambda: jnp.linspace(0, 1, -1), lambda: jnp.tile(x, far), lambda: jnp.repeat(x, far),
            lambda: jnp.pad(x, far), lambda: jnp.pad(x, -5), lambda: x.reshape(-1, 0),
            lambda: lax.scan(lambda c, x: (c, c), 1.0, None, length=-1),
            lambda: calque.jit(lambda: jnp.zeros((-3,)))(),
            lambda: lax.full((far, far, far), 1.0), lambda: jnp.arange(0, 1, 1e-300),
        ):
            try:
                call()
            except (TypeError, ValueError, OverflowError, MemoryError):
                continue
            raise AssertionError("nothing was raised")
        """
    )


@linux
@pytest.mark.parametrize("megabytes", [800, 1200])
def test_little_memory(megabytes: int) -> None:
    """Arrays of growing size until memory is out, eagerly and compiled; then smaller ones."""
    check(
        """
        import calque, calque.numpy as jnp
        f = calque.jit(lambda x: jnp.sort(jnp.sin(x) @ jnp.ones((8, 8)), 0) + x)
        g = calque.jit(calque.grad(lambda x: (jnp.cumsum(x[:, 0]) ** 2).sum()))
        out = 0
        for n in (1 << k for k in range(4, 27)):
            for call in (f, g, lambda x: jnp.concatenate([x, x * 2]).sum()):
                try:
                    call(jnp.ones((n, 8)))
                except MemoryError as e:
                    out += 1
        assert out, "memory was enough"
        assert float(f(jnp.zeros((4, 8))).sum()) == 0.0
        """,
        before=f"ulimit -v {megabytes << 10}",
        environment={"OPENBLAS_NUM_THREADS": "1", "CALQUE_NUM_THREADS": "2"},
    )


@linux
def test_no_memory_for_lapack() -> None:
    """OpenBLAS tries for ever to get memory, or interrupts the process, when there is none."""
    check(
        """
        import resource
        import calque, calque.numpy as jnp
        x = jnp.ones((100, 100)) + 0
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20), hard))
        try:
            jnp.linalg.svd(x)
        except MemoryError as e:
            assert "LAPACK" in str(e), e
        else:
            raise AssertionError("no MemoryError")
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        assert abs(float(jnp.linalg.svd(x)[1][0]) - 100) < 1e-3
        """,
        environment={"CALQUE_NUM_THREADS": "1"},
        timeout=100,
    )


@pytest.mark.parametrize("kilobytes", [64, 256])
def test_threads_with_small_stacks(kilobytes: int) -> None:
    check(
        f"""
        import threading
        import calque, calque.numpy as jnp
        threading.stack_size({kilobytes} << 10)
        x, out = jnp.arange(64.0).reshape(8, 8), []
        y, z = jnp.ones((300, 4000)), jnp.ones((4000, 500))  # a product that copies its rows
        f = calque.jit(lambda x: jnp.sort(jnp.tanh(x @ x), 0).sum() + jnp.fft.fft(x).real.sum())
        product = calque.jit(lambda y, z: (y @ z)[0, 0])
        f(x), jnp.linalg.svd(x), jnp.sort(x), product(y, z)  # compiled by the main thread
        def work():
            out.append(float(f(x)) + float(jnp.linalg.svd(x)[1][0]) + float(jnp.sort(x)[0, 0]))
            assert float(product(y, z)) == 4000
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert len(out) == 4 and len(set(out)) == 1
        """
    )


@linux
def test_a_small_main_stack() -> None:
    limit = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if limit not in (resource.RLIM_INFINITY,) and limit < 2 << 20:
        pytest.skip("the stack is small already")
    check(
        """
        import calque, calque.numpy as jnp
        x = jnp.ones((100, 100))
        f = calque.jit(calque.grad(lambda x: jnp.sum(jnp.sort(jnp.sin(x) @ x, axis=0))))
        assert f(x).shape == x.shape and jnp.linalg.svd(x)[1].shape == (100,)
        """,
        before="ulimit -s 1024",
    )


def test_signals_at_random_moments() -> None:
    """A handler that raises, every few milliseconds, while functions are traced, compiled and run:
    each call gives its result or the handler's exception."""
    check(
        """
        import random, signal
        import calque, calque.numpy as jnp
        class Now(Exception):
            pass
        def handler(*_):
            raise Now
        x, stopped, done = jnp.arange(1000.0), 0, 0
        def once(n):
            f = calque.jit(lambda x: jnp.sort(jnp.sin(x) * n).sum() + calque.lax.fori_loop(
                0, 2000, lambda i, c: c + x[i % 10], 0.0))
            return float(f(x)), float(f(x))
        once(1)
        signal.signal(signal.SIGALRM, handler)
        r = random.Random(0)
        for n in range(60):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, r.uniform(0.0005, 0.03))
                    a, b = once(n)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                assert a == b
                done += 1
            except Now:
                stopped += 1
        assert stopped > 5, (stopped, done)
        assert once(1)[0] == once(1)[1]
        """,
        timeout=600,
    )


LEAVING = """
import atexit, gc, os, sys
import numpy as np
import calque, calque.numpy as jnp
kept = [jnp.ones(1000), np.asarray(jnp.ones(10)), memoryview(np.asarray(jnp.ones(9)))]
cycle = [jnp.ones(5)]
cycle.append(cycle)
f = calque.jit(lambda x: x + kept[0][0])
class Late:
    def __del__(self):
        assert float(f(1.0)) == 2.0
kept.append(Late())
atexit.register(lambda: f(2.0))
f(1.0)
"""


@pytest.mark.parametrize("end", ["", "sys.exit()", "os._exit(0)", "del calque, jnp, np"])
def test_exit_with_live_arrays_and_views(end: str) -> None:
    done = run(f"{LEAVING}{end}\n", after="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_start_methods_and_threads_at_import() -> None:
    check(
        """
        import os, threading
        out = []
        def work():
            import calque, calque.numpy as jnp
            out.append(float(calque.jit(lambda x: jnp.sin(x) + 1)(0.0)))
        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert out == [1.0] * 8
        import warnings
        warnings.simplefilter("ignore")
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                import calque, calque.numpy as jnp
                good = float(calque.jit(lambda x: jnp.cos(x) * 3)(0.0)) == 3.0
                os._exit(0 if good else 1)
            assert os.waitpid(pid, 0)[1] == 0
        """
    )
