"""A cache of programs that a test has for itself."""

import pathlib
from collections.abc import Iterator

import pytest

from calque.core.config import config
from calque.machine.code import diskcache
from calque.native import stored


@pytest.fixture
def private_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is known in memory or on disk, and programs are kept, which kernels that are verified
    would forbid."""
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path))
    diskcache.reload()
    stored.recent.clear()
    with config.override("calque_verify_kernels", False):
        yield
    monkeypatch.undo()
    diskcache.reload()
