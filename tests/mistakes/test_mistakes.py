"""The table of ordinary mistakes: each message holds what it must, the traceback ends at the user's
line, and hardly a verdict is worse than JAX's."""

from __future__ import annotations

import inspect
import re
from collections import Counter

import pytest

import calque
from tests.mistakes import TABLE, Mistake, said
from tests.xla.mlir import is_there

AREAS = (
    "broadcasting", "dtypes", "indexing", "reshape", "einsum", "control flow", "leaks",
    "random keys", "pytrees", "gradients", "vmap", "scan", "static arguments", "donation",
    "custom rules", "meshes", "linear algebra", "fft", "images", "checkify", "configuration",
    "export", "ffi",
)  # fmt: skip
WORDS = {
    "broadcasting": "add_of", "dtypes": "dtype", "indexing": "index", "reshape": "reshape",
    "einsum": "einsum", "control flow": "branch", "leaks": "leaked", "random keys": "key",
    "pytrees": "tree_map", "gradients": "grad_", "vmap": "vmap_", "scan": "scan_",
    "static arguments": "static", "donation": "donated", "custom rules": "custom_vjp",
    "meshes": "mesh", "linear algebra": "cholesky", "fft": "fft", "images": "resize",
    "checkify": "check_", "configuration": "option", "export": "export", "ffi": "foreign",
}  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_message_says_what_it_must(row: Mistake) -> None:
    kind, text, last = said(row, calque)
    if kind == "XlaUnavailable" and not is_there():
        pytest.skip("jaxlib is not installed")
    if not row.holds:
        assert kind == "nothing"  # it works here
        return
    line = row.line() if any("{line}" in word for word in row.holds) else 0
    for word in row.holds:
        assert word.replace("{line}", str(line)) in text
    if last is not None:
        assert last.filename == inspect.getsourcefile(row.make), "the traceback is not trimmed"
        first = row.make.__code__.co_firstlineno
        assert first < (last.lineno or 0) <= first + len(inspect.getsource(row.make).splitlines())
    assert not re.search(r"0x[0-9a-f]{6,}", text) or "object at" in text or "<function" in text


def test_none_is_worse_than_in_jax_and_most_are_better() -> None:
    counts = Counter(row.verdict for row in TABLE)
    assert [row.name for row in TABLE if row.verdict == "worse"] == []
    assert len(TABLE) >= 120 and counts["better"] >= 231


def test_every_area_has_mistakes() -> None:
    names = [row.name for row in TABLE]
    assert len(set(names)) == len(names)
    assert [a for a in AREAS if not any(WORDS[a] in n for n in names)] == []
