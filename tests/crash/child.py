"""Processes that do something dangerous."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Every child ends with this: whatever came before, the next call is right.
NEXT = """
import calque, calque.numpy as jnp, numpy as np
assert calque.jit(lambda x: jnp.sin(x) * 2 + 1)(np.float32(0.0)) == 1.0
assert jnp.sort(jnp.array([3, 1, 2])).tolist() == [1, 2, 3]
print("fine")
"""


def run(
    code: str,
    *,
    before: str = "",
    after: str = NEXT,
    environment: Mapping[str, str] | None = None,
    timeout: int = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python and then one call more; `before` are commands of the shell."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code) + after]
    if before:
        command = ["sh", "-c", f'{before}; exec "$@"', "sh", *command]
    return subprocess.run(
        command,
        env={**given, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def check(code: str, **options: object) -> None:
    """Run a piece of Python, which must go well, and the call after it, too."""
    done = run(code, **options)  # type: ignore[arg-type]
    said = f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), said
