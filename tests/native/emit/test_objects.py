"""Machine code by symbol."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import calque
from calque.machine.code import target
from calque.native import backend
from calque.native.emit import objects


def test_a_kernel_is_found_by_its_symbol() -> None:
    x = np.arange(30, dtype="f")
    made = backend.compile(calque.make_jaxpr(lambda x: (x * 3 + 1).sum())(x))
    (kernel,) = made.kernels
    found = objects.by_symbol(kernel.symbol)
    assert found is not None and found[0] == kernel.address
    assert found[1].addresses[kernel.symbol] == kernel.address
    assert objects.by_symbol("k_nobody_has_made_this") is None


def test_versions_are_of_the_files_in_the_folders(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.py").write_text("1")
    before = objects.fingerprint(str(tmp_path), ["a"])
    (tmp_path / "a" / "notes.txt").write_text("no source")
    assert objects.fingerprint(str(tmp_path), ["a"]) == before
    (tmp_path / "a" / "two.py").write_text("2")
    assert objects.fingerprint(str(tmp_path), ["a"]) != before


PROGRAM = """
import numpy as np, calque, calque.numpy as jnp
r = np.random.default_rng(0)
for m, k, n in ((40, 50, 7), (20, 64, 20), (33, 5, 70)):
    x, y = (r.standard_normal(s).astype("f") for s in ((m, k), (k, n)))
    for f in (lambda x, y: jnp.tanh(x @ y), lambda x, y: jnp.exp(x).sum(0) @ jnp.cos(y)):
        print(np.allclose(calque.jit(f)(x, y), f(x, y), atol=1e-4), end=" ")
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="levels of x86-64")
def test_processors_share_a_directory(tmp_path) -> None:
    """The same text is other code on each, whose calls pass vectors in other registers."""
    levels = (
        [None, "x86-64-v3", "x86-64"] if target.describe().vector_bytes > 16 else [None, "x86-64"]
    )
    for level in levels * 2:
        env = {**os.environ, "CALQUE_CACHE_DIR": str(tmp_path)}
        env.pop("CALQUE_CPU", None)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=env | ({"CALQUE_CPU": level} if level else {}),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["True"] * 6, level
