"""Names for `perf`."""

import itertools
import os
import pathlib
import re
import subprocess
import sys

import calque as jax
import calque.numpy as jnp


def test_kernels_have_names_and_ranges(tmp_path):
    jax.jit(lambda x: jnp.cosh(x) * 0.5511)(jnp.ones(9))
    path = jax.profiler.perf_map(str(tmp_path / "map"))
    rows = [line.split() for line in pathlib.Path(path).read_text().splitlines()]
    assert any(re.fullmatch(r"calque:\w*cosh\w*:k_\w+", name) for _, _, name in rows)
    places = [(int(a, 16), int(n, 16)) for a, n, _ in rows]
    assert places == sorted(places) and all(n > 0 for _, n in places)
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(places))


def test_it_is_where_perf_looks():
    path = jax.profiler.perf_map()
    assert path == f"/tmp/perf-{os.getpid()}.map"
    os.remove(path)


PROGRAM = """
import os, calque as jax, calque.numpy as jnp
f = jax.jit(lambda x: jnp.cosh(x) * 0.5513)
f(jnp.ones(9))
print(os.getpid())
"""


def test_a_process_writes_it_at_its_end_where_a_variable_asks_for_it():
    for value in ("1", "off"):
        out = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "CALQUE_PERF_MAP": value},
            capture_output=True,
            text=True,
            check=True,
        )
        path = pathlib.Path(f"/tmp/perf-{int(out.stdout)}.map")
        assert path.exists() == (value == "1") and not out.stderr
        if path.exists():
            assert "cosh" in path.read_text()
            path.unlink()
