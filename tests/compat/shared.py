"""What the tests of this room share: processes of their own, because the switch stays on."""

import os
import pathlib
import subprocess
import sys

import calque
from calque.compat import switch

SOURCE = str(pathlib.Path(calque.__file__).parent.parent)


def run(*arguments: str, code: int = 0, **environment: str) -> str:
    """What a Python process prints; it must end with this status."""
    inherited = {k: v for k, v in os.environ.items() if k not in (switch.VARIABLE, "PYTHONPATH")}
    out = subprocess.run(
        [sys.executable, *arguments],
        env={**inherited, "PYTHONPATH": SOURCE, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert out.returncode == code, out.stdout + out.stderr
    return (out.stdout + out.stderr).strip()


def served(code: str) -> str:
    return run("-c", "import calque; calque.as_jax()\n" + code)
