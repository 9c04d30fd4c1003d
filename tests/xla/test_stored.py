"""Programs of XLA on disk: another process compiles nothing, and gets the same."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from calque.machine.code import diskcache
from calque.xla import jaxlib, stored
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
SCRIPT = """
import os, numpy as np, calque as jax, calque.numpy as jnp
jax.config.update("jax_enable_compilation_cache", "OFF" not in os.environ)
from calque.machine.code import diskcache
counts = {"found": 0, "missed": 0, "written": 0}
get, put = diskcache.get, diskcache.put
def counting_get(key, kind):
    data = get(key, kind)
    if kind == "xla":
        counts["missed" if data is None else "found"] += 1
    return data
def counting_put(key, kind, data):
    counts["written"] += kind == "xla"
    put(key, kind, data)
diskcache.get, diskcache.put = counting_get, counting_put
devices = np.array(jax.devices("xla_cpu"))
mesh = jax.sharding.Mesh(devices, ("x",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
x = jax.device_put(jnp.arange(8.0), split)
one = jax.jit(lambda v: jnp.linalg.cholesky(jnp.outer(v, v) + 9 * jnp.eye(3)), backend="xla_cpu")
several = jax.jit(lambda v: (v * 2, v.sum()))
calling = jax.jit(lambda v: jax.pure_callback(np.sin, v, v), backend="xla_cpu")
factor = np.asarray(one(np.ones(3, "f4")))
print(factor.sum().round(3), [np.asarray(r).tolist() for r in several(x)])
calling(1.0)
assert "HloModule" in several.lower(x).compile().as_text()
print(counts)
"""


def run(folder: pathlib.Path, **changes: str) -> list[str]:
    environment = {**os.environ, "CALQUE_CACHE_DIR": str(folder), "CALQUE_NUM_CPU_DEVICES": "4"}
    environment.pop("CALQUE_PLATFORMS", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment | changes,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_another_process_compiles_nothing(folder: pathlib.Path) -> None:
    first, second = run(folder), run(folder)
    assert first[0] == second[0]
    assert first[1] == "{'found': 0, 'missed': 2, 'written': 2}"
    assert second[1] == "{'found': 2, 'missed': 0, 'written': 0}"


def test_other_flags_are_other_programs(folder: pathlib.Path) -> None:
    run(folder)
    other = run(folder, XLA_FLAGS="--xla_cpu_enable_fast_min_max=true")
    assert other[1] == "{'found': 0, 'missed': 2, 'written': 2}"


def test_it_can_be_turned_off(folder: pathlib.Path) -> None:
    off = run(folder, OFF="1")
    assert off[1] == "{'found': 0, 'missed': 0, 'written': 0}"


def test_entries_that_are_no_programs_are_compiled_anew(folder: pathlib.Path) -> None:
    first = run(folder)
    spoilt = 0
    for path in folder.rglob("*xla*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-40])
            spoilt += 1
    again = run(folder)
    assert spoilt == 3  # two programs, and that jaxlib has been tried out
    assert again[0] == first[0] and "'found': 0" in again[1]


def test_an_installation_is_tried_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, str], bytes] = {}
    tried = []
    monkeypatch.setattr(diskcache, "get", lambda key, kind: kept.get((key, kind)))
    monkeypatch.setattr(diskcache, "put", lambda key, kind, data: kept.update({(key, kind): data}))
    monkeypatch.setattr(jaxlib, "prove", lambda: tried.append(1))
    for _ in range(3):
        stored.proven.__wrapped__()
    assert len(tried) == 1 and len(kept) == 1
    monkeypatch.setattr(jaxlib, "identity", lambda: ("another",))
    stored.proven.__wrapped__()
    assert len(tried) == 2


AT_A_LINE = '''
import sys, calque as jax, calque.numpy as jnp
source = "\\n" * int(sys.argv[1]) + """
@jax.jit
def helper(x):
    return jnp.cos(x)
@jax.jit
def f(x):
    with jax.named_scope(sys.argv[2]):
        return jnp.sin(x @ x) + helper(x)
"""
exec(compile(source, "program of the test.py", "exec"))
print(f.lower(jnp.ones((3, 3))).compile().as_text())
'''


def text_at(folder: pathlib.Path, line: int, scope: str) -> str:
    """The text of a compiled program that begins at this line."""
    done = subprocess.run(
        [sys.executable, "-c", AT_A_LINE, str(line), scope],
        env=os.environ | {"CALQUE_CACHE_DIR": str(folder), "CALQUE_PLATFORMS": "xla_cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compiled_programs_know_where_operations_were_made(folder: pathlib.Path) -> None:
    text = text_at(folder, 0, "layer")
    assert 'op_name="jit(f)/layer/sin"' in text
    assert 'op_name="jit(f)/layer/jit(helper)/cos"' in text
    assert '"program of the test.py"' in text and "line=8" in text


def test_the_same_program_at_other_lines_is_found(folder: pathlib.Path) -> None:
    text_at(folder, 0, "layer")
    programs = {p for p in folder.rglob("*xla*") if p.is_file()}
    found = text_at(folder, 5, "other")
    assert "/layer/sin" in found and "/other/" not in found  # the places of what was compiled
    assert {p for p in folder.rglob("*xla*") if p.is_file()} == programs


def test_scopes_of_any_name_are_compiled(folder: pathlib.Path) -> None:
    text = text_at(folder, 0, 'a "b"\\c\n\u00e9')
    assert r'op_name="jit(f)/a \"b\"\\c\n\303\251/sin"' in text
