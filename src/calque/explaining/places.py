"""Names of places in the user's source."""

from __future__ import annotations

import os
import sys


def file_name(file: str) -> str:
    """Of a file, its name; of a cell of a notebook, its number."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return " ".join(named) if named else os.path.basename(file)
