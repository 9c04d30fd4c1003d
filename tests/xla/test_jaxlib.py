"""jaxlib as it is found, or is not: errors say what to install."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from calque.xla import jaxlib
from tests.xla.mlir import needs_jaxlib


def run(script: str, *folders: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "CALQUE_PLATFORMS"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [*folders, *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fake(folder: pathlib.Path, version: str) -> str:
    package = folder / "fake" / "jaxlib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text(f"__version__ = {version!r}\n")
    return str(folder / "fake")


def test_it_is_too_old(tmp_path: pathlib.Path) -> None:
    folder = fake(tmp_path, "0.4.38")
    out = run("import calque as jax\ntry: jax.devices('xla_cpu')\n"
              "except RuntimeError as e: print(e)", folder)  # fmt: skip
    assert "XLA needs jaxlib 0.5.0 or newer, but 0.4.38 is installed" in out
    assert "pip install calque[xla]" in out


def test_it_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(jaxlib.XlaUnavailable, match="which is not installed: install it with"):
        jaxlib.folder()


def test_types_are_compared_by_what_they_are() -> None:
    f4 = np.dtype("f4")
    kind = jaxlib.array_type((2, 3), f4)
    assert kind is jaxlib.array_type((2, 3), f4) and kind == jaxlib.ArrayType((2, 3), f4)
    assert kind != jaxlib.array_type((3, 2), f4) and kind != "type"
    assert hash(kind) == hash(jaxlib.ArrayType((2, 3), f4))


@needs_jaxlib
def test_modules_go_through_bytes() -> None:
    text = (
        "module @m {\n  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {\n"
        "    %0 = stablehlo.sine %arg0 : tensor<3xf32>\n    return %0 : tensor<3xf32>\n  }\n}\n"
    )
    assert "stablehlo.sine" in jaxlib.portable_text(jaxlib.portable(text))
