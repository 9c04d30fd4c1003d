"""What is made once is made once and whole, however many threads ask for it first."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from calque.machine.once import Turns, making, once

THREADS = 12

# Each expression is the first that a process does; it is done by many threads at the same moment.
FIRST_USES = {
    "sorting": [
        "jnp.sort(jnp.arange(5))",
        "jnp.argsort(jnp.arange(5.0))",
        "jnp.unique(jnp.arange(5))",
        "lax.top_k(jnp.arange(5.0), 2)",
        "jnp.sort(jnp.arange(5, dtype=jnp.uint8))",
        "jnp.sort(jnp.arange(900.0)[::-1])",
        "jax.random.permutation(jax.random.key(0), 5)",
    ],
    "routines": [
        "jnp.linalg.solve(jnp.eye(3), jnp.ones(3))",
        "jnp.linalg.svd(jnp.eye(40))",
        "jnp.fft.fft(jnp.arange(8.0))",
        "jnp.linalg.eigh(jnp.eye(3))",
    ],
    "programs": [
        "jax.jit(lambda x: x + 1)(jnp.arange(3.0))",
        "jax.grad(lambda x: jnp.sin(x) * x)(1.0)",
        "jax.vmap(jnp.dot)(jnp.ones((3, 2)), jnp.ones((3, 2)))",
        "lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(4.0))",
        "jax.jit(lambda x: jnp.where(x > 1, x, 0).sum())(jnp.arange(300000.0))",
        "jax.jit(lambda x: x[x > 1].sum())(jnp.arange(3.0))",
        "jax.jit(converted, control_flow='convert')(jnp.arange(3.0))",
        "jnp.ones((70, 70)) @ jnp.ones((70, 70))",
    ],
    "arrays": [
        "jnp.arange(4.0)[1]",
        "jnp.arange(4.0)[::2]",
        "jnp.arange(4.0).at[1].set(2.0)",
        "jnp.zeros((3, 4)).T",
        "jax.random.normal(jax.random.key(0), (3,))",
        "jnp.array([1.0, 2.0])",
        "jax.nn.softmax(jnp.arange(3.0))",
        "jsp.special.gammaln(jnp.arange(1.0, 4.0))",
    ],
}

CHILD = textwrap.dedent("""
    import os, signal, sys, threading, traceback
    import numpy as np
    import calque as jax, calque.numpy as jnp
    import calque.scipy as jsp
    from calque import lax
    sys.setswitchinterval(1e-5)

    def converted(x):
        if x.sum() > 1:
            return x + 1
        return x

    def leaves(expression):
        return [np.asarray(a) for a in jax.tree.leaves(eval(expression))]

    def all_at_once(expression, count):
        barrier, results = threading.Barrier(count), [None] * count
        def work(k):
            barrier.wait()
            try:
                results[k] = leaves(expression)
            except BaseException:
                traceback.print_exc()
        threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for r in results:
            for a, b in zip(r, leaves(expression), strict=True):
                np.testing.assert_array_equal(a, b)

    failed = []
    for expression in EXPRESSIONS * REPEATS:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                signal.alarm(120)
                all_at_once(expression, COUNT)
                code = 0
            except BaseException:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            failed.append((expression, status))
    assert not failed, failed
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("sort", FIRST_USES)
def test_the_first_use_by_many_threads(sort, tmp_path):
    program = tmp_path / "first_uses.py"
    cold_and_warm = 2  # the second process finds what the first has put on disk
    head = f"EXPRESSIONS, REPEATS, COUNT = {FIRST_USES[sort]!r}, {cold_and_warm}, {THREADS}\n"
    program.write_text(head + CHILD)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_once_runs_once_for_each_argument():
    calls, barrier = [], threading.Barrier(8)

    @once
    def made(n):
        calls.append(n)
        threading.Event().wait(0.01)
        return [n]

    found = []

    def work(k):
        barrier.wait()
        found.append((k % 2, made(k % 2)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(calls) == [0, 1]
    assert all(result is made(n) for n, result in found)


def test_what_fails_is_tried_again():
    attempts = []

    @once
    def made():
        attempts.append(None)
        if len(attempts) == 1:
            raise ValueError("not yet")
        return 7

    with pytest.raises(ValueError, match="not yet"):
        made()
    assert (made(), made(), len(attempts)) == (7, 7, 2)


def test_once_within_once():
    inner = once(lambda: 3)
    outer = once(lambda: inner() + 1)
    assert outer() == 4


@pytest.mark.filterwarnings("ignore")  # libraries that keep threads of their own warn of any fork
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_forked_child_does_not_wait_for_threads_of_its_parent():
    turns, inside, leave = Turns(), threading.Event(), threading.Event()

    def hold():
        with turns.taken(), making.taken():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    pid = os.fork()
    if pid == 0:
        with turns.taken(), making.taken():
            os._exit(0)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
