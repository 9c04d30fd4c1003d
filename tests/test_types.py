"""What a type checker sees of calque: ordinary code passes it, mistakes are found."""

import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

import calque

ROOT = pathlib.Path(calque.__file__).parent

ORDINARY = '''
import calque.numpy as jnp
import numpy as np
from calque import nn, random
from calque.scipy import linalg, special, stats
from calque.typing import Array, ArrayLike, DTypeLike


def standardized(x: ArrayLike, dtype: DTypeLike = jnp.float32) -> Array:
    """Operators, methods, reductions and updates."""
    y = jnp.asarray(x, dtype=dtype)
    centered = (y - y.mean(axis=0, keepdims=True)) / jnp.maximum(y.std(0), 1e-6)
    clipped = jnp.where(centered > 3, 3.0, centered)
    return -clipped.at[0].set(0.0).at[1:, None].add(1) ** 2


def products(n: int) -> list[Array]:
    a = jnp.eye(n) @ jnp.ones((n, n), jnp.float32)
    q, r = jnp.divmod(jnp.arange(n), 2)
    rows, columns = jnp.nonzero(a > 0)
    total = jnp.add(jnp.add.reduce(q), jnp.sum(r, axis=0, where=q > 0))
    solved = jnp.linalg.solve(a + jnp.eye(n), jnp.linspace(0, 1, n))
    spectrum = jnp.fft.fft(solved).real.astype(np.float32)
    pieces = jnp.split(jnp.concatenate([spectrum, solved]), 2)
    return [total, rows, columns, 2 * jnp.float32(1) + total, *pieces]


def library(key: Array, x: Array) -> list[Array]:
    first, second = random.split(key)
    noise = random.normal(first, (3,), jnp.float32) + random.gamma(second, 2.0, shape=3)
    density = stats.norm.pdf(x, loc=1.0) * stats.beta.cdf(x, 2, b=3)
    return [noise, density, nn.gelu(x), special.gammaln(x), linalg.expm(jnp.eye(2)), random.key(0)]


def sizes(x: Array) -> tuple[int, ...]:
    if bool((x > 0).all()) and float(x.sum()) > 0 and x.dtype == jnp.float32:
        return x.reshape(-1).T.shape
    return (x.ndim, x.size, len(x), int(x[0]))
'''

# a mistake on each line, and the words in which a checker must answer
MISTAKES = {
    "jnp.sinn(1.0)": '"sinn"',
    "jnp.sum(x, axs=0)": '"axs"',
    "jnp.zeros((2,), dype=float)": '"dype"',
    "jnp.linalg.invert(x)": '"invert"',
    "jnp.float33": '"float33"',
    "x[0] = 1.0": "indexed assignment",
    "x.summ()": '"summ"',
    "x.at[0].sett(1.0)": '"sett"',
    "x.reshape(2, ordr='F')": '"ordr"',
    "jnp.sin(x, x)": "Too many",
    "jnp.sin('x')": "incompatible type",
    "jnp.clip(x, mn=0)": '"mn"',
    "length: str = x.ndim": "Incompatible types in assignment",
    "jnp.concatenate([x, 'y'])": "incompatible type",
    "random.normal(x, shpe=(2,))": '"shpe"',
    "stats.norm.pdf(x, scle=2)": '"scle"',
    "stats.beta.pdf(x, 1)": "Missing positional argument",
    "nn.relu(x, 2)": "Too many",
}


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_checker_accepts_ordinary_code_and_finds_mistakes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ordinary.py").write_text(ORDINARY)
    imports = "from calque import nn, numpy as jnp, random; from calque.scipy import stats"
    planted = [imports, "x = jnp.ones(3)", *MISTAKES]
    (tmp_path / "mistaken.py").write_text("\n".join(planted) + "\n")
    # calque as it is when installed: a checker reads it and is silent about it
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = True\nignore_missing_imports = True\n"
        "[mypy-calque.*]\nfollow_imports = silent\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", "cache", "ordinary.py", "mistaken.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
    )
    reports = re.findall(r"^(\w+)\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    assert not [r for r in reports if r[0] == "ordinary"], done.stdout
    found = {int(line) - 3: words for file, line, words in reports if file == "mistaken"}
    for k, (mistake, words) in enumerate(MISTAKES.items()):
        assert words in found.get(k, ""), (mistake, found.get(k), done.stdout)


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").exists()
    assert "py.typed" in (ROOT.parent.parent / "pyproject.toml").read_text()


def _untyped(function: ast.FunctionDef) -> list[str]:
    a = function.args
    parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
    missing = [p.arg for p in parameters if p is not None and p.annotation is None]
    return missing + ["return"] * (function.returns is None)


def test_every_function_of_numpy_says_its_types() -> None:
    files = sorted((ROOT / "numpy").rglob("*.py"))
    assert files
    bare = [
        (file.name, f.name, names)
        for file in files
        for f in ast.walk(ast.parse(file.read_text()))
        if isinstance(f, ast.FunctionDef)
        and not f.name.startswith("_")
        and (names := [n for n in _untyped(f) if n not in ("self", "cls")])
    ]
    assert not bare
