"""Syntax trees of Python, also when several threads ask for them."""

from __future__ import annotations

import ast
from typing import Final

from calque.machine.once import making

_ATTEMPTS: Final = 20


def syntax_tree(text: str) -> ast.Module:
    """The tree of a source text.

    Some interpreters (3.11, 3.12) count the depth of a tree for all threads together, and raise
    SystemError when two threads make one at the same time: ours take turns, and where foreign
    code makes trees meanwhile, trying again helps."""
    for _ in range(_ATTEMPTS - 1):
        try:
            with making.taken():
                return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)
