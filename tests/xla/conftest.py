"""Fixtures of the tests of XLA."""

import os
import pathlib
import sys

import pytest

from calque.core.backends import PLUGIN_PATHS


@pytest.fixture
def packages(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder of packages that Python looks into; no others have plugins."""
    folder = tmp_path / "packages"
    folder.mkdir()
    others = [p for p in sys.path if not os.path.isdir(os.path.join(p, "jax_plugins"))]
    monkeypatch.setattr(sys, "path", [str(folder), *others])
    monkeypatch.delenv(PLUGIN_PATHS, raising=False)
    return folder
