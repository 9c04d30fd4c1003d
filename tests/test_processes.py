"""What only shows with several processes or threads: the disk cache, fork, the number of threads,
importing."""

import os
import subprocess
import sys
import textwrap

import pytest


def run(code: str, **env: str) -> str:
    full = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **env}
    r = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=full,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert r.returncode == 0, r.stderr[-3000:]
    return r.stdout


PROGRAM = """
    import calque, calque.numpy as jnp, numpy as np
    from calque.machine.code import llvm
    @calque.jit
    def f(x):
        return calque.nn.softmax(jnp.sin(x) @ x.T) + calque.lax.fori_loop(0, 5, lambda i, c: c * 1.5 + i, x.sum())
    y = f(jnp.arange(12.0).reshape(3, 4))
    z = calque.grad(lambda x: f(x).sum())(jnp.ones((3, 4))) + 1
    print(llvm.stats.compiled, np.asarray(y).tobytes().hex(), np.asarray(z).tobytes().hex())
"""


def test_a_second_process_compiles_nothing_and_gives_the_same_bits(tmp_path):
    first = run(PROGRAM, CALQUE_CACHE_DIR=str(tmp_path)).split()
    second = run(PROGRAM, CALQUE_CACHE_DIR=str(tmp_path)).split()
    assert int(first[0]) > 0 and int(second[0]) == 0
    assert first[1:] == second[1:]


def test_without_a_cache(tmp_path):
    assert int(run(PROGRAM, CALQUE_CACHE="off").split()[0]) > 0
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert int(run(PROGRAM, CALQUE_CACHE_DIR=str(blocked)).split()[0]) > 0


def test_damaged_entries_are_replaced(tmp_path):
    first = run(PROGRAM, CALQUE_CACHE_DIR=str(tmp_path)).split()
    files = [p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size > 100]
    assert files
    for i, p in enumerate(files):
        data = bytearray(p.read_bytes())
        if i % 2:
            data[len(data) // 2] ^= 0xFF
            p.write_bytes(data)
        else:
            p.write_bytes(data[: len(data) // 2])
    again = run(PROGRAM, CALQUE_CACHE_DIR=str(tmp_path)).split()
    assert int(again[0]) > 0 and again[1:] == first[1:]
    assert int(run(PROGRAM, CALQUE_CACHE_DIR=str(tmp_path)).split()[0]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_a_full_disk(tmp_path):
    """No file may grow beyond a few bytes, as where nothing is left: all works without the cache,
    and no part of an entry stays."""
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))\n"
    first = run(full + textwrap.dedent(PROGRAM), CALQUE_CACHE_DIR=str(tmp_path)).split()
    assert int(first[0]) > 0 and not [
        p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size
    ]


def test_processes_that_fill_the_cache_at_once(tmp_path):
    """Two at the same time, each compiling the same programs: all give the same bits, and the next
    one compiles nothing."""
    full = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "CALQUE_CACHE_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    children = [
        subprocess.Popen(command, env=full, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    found = [child.communicate(timeout=300)[0].split() for child in children]
    assert len({tuple(f[1:]) for f in found}) == 1 and all(
        child.returncode == 0 for child in children
    )
    last = run(PROGRAM, CALQUE_CACHE_DIR=str(tmp_path)).split()
    assert int(last[0]) == 0 and last[1:] == found[0][1:]


@pytest.mark.parametrize("n", ["1", "2", "5"])
def test_results_do_not_depend_on_the_number_of_threads(n):
    code = """
        import calque, calque.numpy as jnp, numpy as np, hashlib
        x = jnp.asarray(np.random.default_rng(0).standard_normal((700, 900)).astype("f4"))
        outs = [calque.jit(f)(x) for f in (lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(1), lambda x: x @ x.T,
                lambda x: jnp.cumsum(x.ravel()), lambda x: calque.nn.softmax(x), lambda x: jnp.exp(x).mean())] + [x.sum(), x @ x.T]
        assert calque.get_num_threads() == int(__import__("os").environ["CALQUE_NUM_THREADS"])
        print(hashlib.sha1(b"".join(np.asarray(o).tobytes() for o in outs)).hexdigest())
    """
    assert run(code, CALQUE_NUM_THREADS=n) == run(code, CALQUE_NUM_THREADS="3")


def test_fork():
    code = """
        import os, calque, calque.numpy as jnp
        f = calque.jit(lambda x: (x @ x).sum())
        x = jnp.ones((300, 300))
        want = float(f(x))
        children = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                ok = float(f(x)) == want and float(calque.jit(lambda x: x.sum() * 3)(x)) == 270000.0
                os._exit(0 if ok else 1)
            children.append(pid)
        print([os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in children], float(f(x)) == want)
    """
    assert run(code).strip() == "[0, 0, 0] True"


def test_fork_waits_for_the_lazy_imports_of_other_threads(tmp_path):
    """A child could not end an import that another thread had begun: it would wait for ever."""
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.5)\nvalue = 3\n")
    code = f"""
        import os, sys, threading, time, calque
        from calque.machine.lazy import LazyModule
        sys.path.insert(0, {str(tmp_path)!r})
        slow = LazyModule("slow_to_import")
        thread = threading.Thread(target=lambda: slow.value)
        thread.start()
        while "slow_to_import" not in sys.modules: time.sleep(0.01)
        pid = os.fork()
        if pid == 0:
            os._exit(LazyModule("slow_to_import").value)
        thread.join()
        for _ in range(100):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done: break
            time.sleep(0.1)
        else:
            os.kill(pid, 9)
        print(os.waitstatus_to_exitcode(status) if done else "hangs", slow.value)
    """
    assert run(code).strip() == "3 3"


def test_set_num_threads():
    code = """
        import calque, calque.numpy as jnp
        x = jnp.ones((500, 500))
        f = calque.jit(lambda x: (x @ x).sum())
        a = float(f(x))
        for n in (1, 4, 2):
            calque.set_num_threads(n)
            assert calque.get_num_threads() == n and float(f(x)) == a
        try:
            calque.set_num_threads(0)
        except ValueError as e:
            print("refused")
    """
    assert run(code).strip() == "refused"


def test_lesser_processors_give_the_same_bits():
    code = """
        import calque, calque.numpy as jnp, numpy as np
        x = jnp.asarray(np.random.default_rng(0).standard_normal((37, 65)).astype("f4"))
        outs = [x.sum(), x.sum(0), jnp.exp(x), jnp.sin(x * 100), jnp.cumsum(x, 1), jnp.tanh(x).mean(1), x @ x.T]
        print("".join(np.asarray(o).tobytes().hex() for o in outs))
    """
    import platform

    if platform.machine() != "x86_64":
        pytest.skip("for x86-64")
    assert run(code, CALQUE_CPU="x86-64-v3") == run(code)


def test_exceptions_from_callbacks_come_back_as_themselves():
    code = """
        import calque, calque.numpy as jnp, numpy as np
        class Mine(Exception): pass
        def host(x):
            if x > 2: raise Mine("from the host")
            return np.asarray(x * 2)
        f = calque.jit(lambda x: calque.pure_callback(host, calque.ShapeDtypeStruct((), np.float32), x) + 1)
        print(float(f(1.0)))
        try:
            f(3.0)
        except Mine as e:
            print(e)
        print(float(f(2.0)))
    """
    assert run(code).split("\n")[:3] == [
        "3.0",
        "INTERNAL: CpuCallback error calling callback: Mine: from the host",
        "5.0",
    ]
