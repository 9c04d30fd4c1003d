"""Runs type checkers on the code of users, with calque as it is when installed: they read its
annotations and say nothing about its own code."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

import calque

SOURCE = pathlib.Path(calque.__file__).parent.parent
Reports = dict[str, list[tuple[int, str]]]  # file -> lines and what is said of them
REPORT = re.compile(r"^(\w+)\.py:(\d+): error: (.*)$", re.MULTILINE)


def _run(folder: pathlib.Path, *command: str) -> subprocess.CompletedProcess[str]:
    found = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    paths = {"PYTHONPATH": os.pathsep.join(found), "MYPYPATH": str(SOURCE)}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **paths}, capture_output=True, text=True
    )


def mypy(folder: pathlib.Path, names: Sequence[str]) -> Reports:
    """What `mypy --strict` reports of these files of a folder."""
    (folder / "mypy.ini").write_text(
        "[mypy]\nstrict = True\n[mypy-calque.*]\nfollow_imports = silent\n"
    )
    files = [f"{name}.py" for name in names]
    done = _run(folder, sys.executable, "-m", "mypy", "--cache-dir", "cache", *files)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr + done.stdout
    found: Reports = {name: [] for name in names}
    for name, line, words in REPORT.findall(done.stdout):
        found[name].append((int(line), words))
    assert (done.returncode == 0) == (not any(found.values())), done.stdout
    return found


def pyright(folder: pathlib.Path, names: Sequence[str]) -> Reports:
    """What pyright reports of these files of a folder, in its standard settings."""
    settings = {"typeCheckingMode": "standard", "include": [f"{name}.py" for name in names]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = _run(
        folder, sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"
    )
    assert done.returncode in (0, 1), done.stderr + done.stdout
    found: Reports = {name: [] for name in names}
    for d in json.loads(done.stdout)["generalDiagnostics"]:
        if d["severity"] == "error":
            name = pathlib.Path(d["file"]).stem
            found[name].append((d["range"]["start"]["line"] + 1, d["message"]))
    return found


@functools.cache
def _why_no_pyright() -> str:
    if importlib.util.find_spec("pyright") is None:
        return "pyright is not installed: pip install -e '.[dev]'"
    if shutil.which("node") is None:
        return "pyright needs node"
    started = _run(pathlib.Path.cwd(), sys.executable, "-m", "pyright", "--version")
    return "" if started.returncode == 0 else f"pyright does not start: {started.stderr[-200:]}"


def available(checker: Callable[[pathlib.Path, Sequence[str]], Reports]) -> None:
    """Skips a test whose checker is not there."""
    if checker is pyright and _why_no_pyright():
        pytest.skip(_why_no_pyright())
    if checker is mypy and importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
