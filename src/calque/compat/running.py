"""`python -m calque script.py args...` and `python -m calque -m module args...`: a program as
`__main__`, with `import jax` served by calque."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from calque.compat.switch import as_jax

USAGE = """usage: python -m calque script.py [arguments ...]
       python -m calque -m module [arguments ...]
       python -m calque -c code [arguments ...]

Runs a Python program in which `import jax` is served by calque."""


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments name; the status for the shell."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    first, rest = arguments[0], list(arguments[1:])
    if first in ("-m", "-c") and not rest:
        print(f"python -m calque: {first} needs an argument\n{USAGE}", file=sys.stderr)
        return 2
    if first.startswith("-") and first not in ("-m", "-c"):
        print(f"python -m calque: unknown option {first}\n{USAGE}", file=sys.stderr)
        return 2
    if not first.startswith("-") and not os.path.exists(first):
        print(f"python -m calque: there is no file {first!r}", file=sys.stderr)
        return 2
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
    return 0
