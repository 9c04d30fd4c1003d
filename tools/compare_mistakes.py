#!/usr/bin/env python3
"""Prints what calque and JAX say of the ordinary mistakes in `tests/mistakes`, side by side: for
judging them. JAX must be installed.

python tools/compare_mistakes.py [word ...]    only mistakes with one of these words in their names
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.mistakes import TABLE, said  # noqa: E402

WIDTH = 110


def collected(library: str) -> dict[str, tuple[str, str, int]]:
    """What a library says of each mistake, in a process of its own."""
    command = [sys.executable, __file__, "--say", library]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(ran.stdout.splitlines()[-1])


def say(library: str) -> None:
    """Prints what the library says of all mistakes, as JSON."""
    jax = importlib.import_module(library)
    for part in ("export", "flatten_util", "experimental.checkify", "scipy.optimize"):
        importlib.import_module(f"{library}.{part}")
    found = {}
    for row in TABLE:
        kind, text, last = said(row, jax)
        found[row.name] = (kind, text, last.lineno if last else 0)
    sys.stdout.flush()
    print("\n" + json.dumps(found))


def show(words: list[str]) -> None:
    ours, theirs = collected("calque"), collected("jax")
    counts: dict[str, int] = {}
    for row in TABLE:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
        if words and not any(w in row.name for w in words):
            continue
        print(f"==== {row.name}: {row.verdict}")
        for who, (kind, text, line) in (("calque", ours[row.name]), ("JAX", theirs[row.name])):
            body = textwrap.indent(
                "\n".join(textwrap.wrap(text, WIDTH, replace_whitespace=False)), "      "
            )
            print(f"  {who}: {kind} (line {line})\n{body}")
    print(f"{len(TABLE)} mistakes:", ", ".join(f"{n} {verdict}" for verdict, n in counts.items()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--say"]:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        say(sys.argv[2])
    else:
        show(sys.argv[1:])
