"""`doctor`: checks the installation; each check says what it has found, and what to do where
something is wrong."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import calque.numpy as jnp
from calque.command_line import terminal
from calque.command_line.information import version
from calque.machine.code import diskcache
from calque.machine.objects.pyapi import IS_KNOWN
from calque.machine.processors import available_cpus
from calque.machine.threads import get_num_threads, set_num_threads
from calque.transforms.functions.autodiff import grad
from calque.transforms.jit.decorator import jit

NEEDED: Final = {  # as pyproject.toml says
    "numpy": (1, 26),
    "scipy": (1, 11),
    "llvmlite": (0, 45),
    "ml_dtypes": (0, 5),
}

XLA_SECONDS: Final = 120  # more than a program of three lines takes on the slowest machine
XLA_PROGRAM: Final = """
import calque, calque.numpy as jnp
found = calque.jit(lambda x: (x * 2 + 1).sum())(jnp.arange(5.0))
if float(found) != 25.0:
    raise SystemExit(f"wrong numbers: {found} where 25.0 is right")
"""


class Problem(Exception):
    """What is wrong, and the remedy."""


def main(found: Any) -> int:
    """Check all; 1 where something is wrong."""
    wrong = 0
    for name, check in CHECKS.items():
        try:
            text, mark = check(), terminal.shown("ok     ", "good")
        except Problem as problem:
            text, mark, wrong = str(problem), terminal.shown("PROBLEM", "bad"), wrong + 1
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            mark, wrong = terminal.shown("PROBLEM", "bad"), wrong + 1
        print(f"{mark} {name}: {text}")
    print(f"{wrong} problem{'s' * (wrong != 1)}" if wrong else "all is well")
    return 1 if wrong else 0


def _python() -> str:
    text = sys.version.split()[0]
    if not IS_KNOWN:
        return f"{text}, which calque's call path does not know: calls take microseconds more"
    return text


def _packages() -> str:
    wrong = []
    for name, least in NEEDED.items():
        text = version(name)
        if text == "-":
            wrong.append(f"{name} is not installed")
        elif tuple(map(int, re.findall(r"\d+", text)[:2])) < least:
            wrong.append(f"{name} {text} is too old, {'.'.join(map(str, least))} is needed")
    if wrong:
        raise Problem(f"{'; '.join(wrong)}. Run `pip install --upgrade calque`")
    return ", ".join(f"{name} {version(name)}" for name in NEEDED)


def _llvm() -> str:
    binding = importlib.import_module("llvmlite.binding")
    return "LLVM " + ".".join(map(str, binding.llvm_version_info))


def _cache() -> str:
    folder = diskcache.directory()
    if folder is None:
        raise Problem(
            f"off: {diskcache.reason()}. Every process compiles anew; let CALQUE_CACHE_DIR name a"
            " directory that you alone can write to"
        )
    diskcache.put("doctor", "check", b"written and read")
    if diskcache.get("doctor", "check") != b"written and read":
        raise Problem(f"{folder} cannot be written to: make room, or set CALQUE_CACHE_DIR")
    return f"{folder}, {terminal.size(diskcache.size())}"


def _compiling() -> str:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(37, 53)), rng.normal(size=(53, 29))

    def f(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w).sum(0)

    found, want = np.asarray(jit(f)(jnp.array(x), jnp.array(w))), np.tanh(x @ w).sum(0)
    if not np.allclose(found, want, rtol=1e-4, atol=1e-4):
        raise Problem(f"wrong numbers: {found[:3]} where NumPy has {want[:3]}. Please report this")
    slope = float(grad(lambda x: jnp.sin(x) * x)(2.0))
    if abs(slope - (np.sin(2) + 2 * np.cos(2))) > 1e-5:
        raise Problem(f"a wrong derivative: {slope}. Please report this")
    return "a program and a derivative give what NumPy gives"


def _threads() -> str:
    before = get_num_threads()
    x = jnp.arange(1_000_000, dtype="float32")
    f = jit(lambda x: jnp.sin(x).sum())
    try:
        results = []
        for n in (1, max(before, 2)):
            set_num_threads(n)
            results.append(np.asarray(f(x)).tobytes())
    finally:
        set_num_threads(before)
    if len(set(results)) > 1:
        raise Problem("results depend on the number of threads. Please report this")
    return f"{before} in use, {available_cpus()} cores for this process"


def _another_process() -> str:
    """Whether a second process finds what the first has compiled."""
    if diskcache.directory() is None:
        return "not checked, as there is no cache"
    code = (
        "import calque, calque.numpy as jnp\n"
        "calque.jit(lambda x: jnp.cos(x) * 0.171717 + x)(jnp.ones(5))\n"
        "s = calque.stats(); print(s['compiles'])"
    )
    with tempfile.TemporaryDirectory() as folder:
        counts = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder,
                env={**os.environ, "CALQUE_CACHE_DIR": os.path.join(folder, "cache")},
            )  # fmt: skip
            if done.returncode:
                raise Problem(f"another process fails: {done.stderr.strip().splitlines()[-1:]}")
            counts.append(int(done.stdout))
    if counts[1]:
        raise Problem(f"a second process compiles {counts[1]} kernels again. Please report this")
    return f"compiles {counts[0]} kernels, the next one none"


def _drop_in() -> str:
    real = version("jax")
    beside = f"; the real jax {real} is installed beside" if real != "-" else ""
    return f"`{os.path.basename(sys.executable)} -m calque script.py` serves `import jax`{beside}"


def _xla() -> str:
    if version("jaxlib") == "-":
        return "not installed (`pip install calque[xla]` for accelerators)"
    text = f"jaxlib {version('jaxlib')}"
    # the last line is then the error itself, not a note about frames left out
    variables = {"CALQUE_PLATFORMS": "xla_cpu", "CALQUE_TRACEBACK_FILTERING": "off"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", XLA_PROGRAM],
            capture_output=True,
            text=True,
            timeout=XLA_SECONDS,
            env={**os.environ, **variables},
        )
        last = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        said = last[0] if done.returncode else ""
    except subprocess.TimeoutExpired:
        said = f"it had not ended after {XLA_SECONDS} seconds"
    if said:
        raise Problem(
            f"{text} is installed, but a program on XLA fails: {said}. Run"
            " `pip install --upgrade calque[xla]`, which brings a jaxlib that works"
        )
    return f"{text}, a program on its CPU gives what it should"


CHECKS: Final[dict[str, Callable[[], str]]] = {
    "Python": _python,
    "packages": _packages,
    "LLVM": _llvm,
    "cache": _cache,
    "compiling": _compiling,
    "threads": _threads,
    "another process": _another_process,
    "served as jax": _drop_in,
    "XLA": _xla,
}
