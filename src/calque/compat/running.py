"""Running a program for JAX as `__main__`, with `import jax` served by calque."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from calque.compat.switch import as_jax


def problem_of(arguments: Sequence[str]) -> str:
    """Why a program cannot be run, or the empty string."""
    first = arguments[0]
    if first in ("-m", "-c"):
        return "" if len(arguments) > 1 else f"{first} needs an argument"
    if first.startswith("-"):
        return f"unknown option {first}"
    return "" if os.path.exists(first) else f"there is no file {first!r}"


def run(arguments: Sequence[str]) -> None:
    """Run `script.py arguments ...`, `-m module arguments ...` or `-c code arguments ...`."""
    first, rest = arguments[0], list(arguments[1:])
    as_jax()
    if first == "-m":
        sys.argv = rest
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [first, *rest]
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")
