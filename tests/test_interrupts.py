"""Ctrl-C while compiled code runs: it arrives soon, as KeyboardInterrupt, and the process goes
on."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
SRC = Path(__file__).parent.parent / "src"
HEAD = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
import numpy as np, calque, calque.numpy as jnp
from calque import lax

def interrupted(f, *args):
    print("ready", flush=True)
    try:
        f(*args)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("it ended", flush=True)

small = calque.jit(lambda x: (x @ x).sum())
assert float(small(jnp.ones((8, 8)))) == 512
"""
# Each of them would run for minutes or hours.
FOREVER = 2_000_000_000
PROGRAMS = {
    "a while loop in registers": f"""
        f = calque.jit(lambda x: lax.while_loop(lambda c: c[1] < {FOREVER}, lambda c: (c[0] * 0.999 + 0.1, c[1] + c[1] % 2), (x, 0)))
        f.lower(1.0).compile()
        interrupted(f, 1.0)
    """,
    "a counted loop of scalars": f"""
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) * 0.999 + 0.1, x))
        f(1.0, 3)
        interrupted(f, 1.0, {FOREVER})
    """,
    "a loop inside each element": f"""
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.999 + 0.1, x))
        x = jnp.ones(100_000)
        f(x, 3)
        interrupted(f, x, {FOREVER})
    """,
    "a loop of small products": f"""
        w = jnp.ones((8, 8)) / 8
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: w @ c, x))
        f(jnp.ones(8), 3)
        interrupted(f, jnp.ones(8), {FOREVER})
    """,
    "a loop of large kernels": f"""
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: jnp.sin(c[::-1]), x))
        x = jnp.ones(1_000_000)
        f(x, 3)
        interrupted(f, x, {FOREVER})
    """,
    "a loop with a branch": f"""
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: lax.cond(c > 0.5, lambda c: c * 0.5, lambda c: c + 0.7, c), x))
        f(1.0, 3)
        interrupted(f, 1.0, {FOREVER})
    """,
    "a large product": """
        f = calque.jit(lambda x: x @ x @ x @ x @ x @ x @ x @ x)
        x = jnp.ones((8000, 8000))
        f.lower(x).compile()
        interrupted(f, x)
    """,
    "loops of other threads": f"""
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) * 0.999 + 0.1, x))
        f(1.0, 3)
        for _ in range(2):
            threading.Thread(target=f, args=(2.0, {FOREVER}), daemon=True).start()
        interrupted(f, 1.0, {FOREVER})
    """,
    "the main thread waits": f"""
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) * 0.999 + 0.1, x))
        f(1.0, 3)
        thread = threading.Thread(target=f, args=(2.0, {FOREVER}), daemon=True)
        thread.start()
        interrupted(thread.join)
    """,
    "a loop that donates": f"""
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c.at[i % 7].add(1), x), donate_argnums=0)
        f(jnp.zeros(7), 3)
        x = jnp.zeros(7)
        interrupted(f, x, {FOREVER})
        assert x.is_deleted()
    """,
}  # fmt: skip
TAIL = """
for n in (4, 300):
    assert float(small(jnp.ones((n, n)))) == n**3
assert float(calque.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c + i, x))(1.0)) == 11
print("alive", flush=True)
import os; os._exit(0)  # the other threads go on for ever
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c(name: str) -> None:
    code = HEAD + textwrap.dedent(PROGRAMS[name]) + TAIL
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), *filter(None, sys.path)])}
    child = subprocess.Popen([sys.executable, "-c", code], env=environment,
    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.3)  # well inside the kernel by now
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "interrupted\nalive\n", err[-2000:]


def test_a_handler_of_the_users_own_runs_meanwhile() -> None:
    """A handler that raises nothing: the loop goes on to its end."""
    code = HEAD + textwrap.dedent("""
        import os, signal
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        f = calque.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) + 1, x))
        f(1.0, 3)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        n = 1000
        while len(seen) < 3:
            n *= 4
            count = len(seen)
            f(1.0, n)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("seen")
        """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "seen\n", done.stderr[-2000:]
