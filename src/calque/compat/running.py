"""Running a program for JAX as `__main__`, with `import jax` served by calque."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence

from calque.compat.switch import as_jax


def problem_of(arguments: Sequence[str]) -> str:
    """Why a program cannot be run, or the empty string."""
    first = arguments[0]
    if first in ("-m", "-c"):
        if len(arguments) == 1:
            return f"{first} needs an argument"
        package = arguments[1].partition(".")[0]
        known = first == "-c" or package in ("jax", *sys.modules) or _is_found(package)
        return "" if known else f"there is no module {arguments[1]!r}"
    if first.startswith("-"):
        return f"unknown option {first}"
    return "" if os.path.exists(first) else f"there is no file {first!r}"


def _is_found(package: str) -> bool:
    """Whether Python would find it: in the folder where `-m` looks first, too."""
    before = sys.path[:]
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # a name that is none
        return False
    finally:
        sys.path[:] = before


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
