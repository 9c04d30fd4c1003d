"""MLIR of jaxlib under JAX's names."""

import subprocess
import sys

import pytest

from calque.extend import mlir
from calque.xla import jaxlib

IMPORTS = (
    "from jax.extend.mlir import ir",
    "import jax.extend.mlir.ir",
    "from jax.extend.mlir.dialects import stablehlo",
    "import jax.extend.mlir.dialects.func",
    "from jax._src.lib.mlir.dialects import hlo",
    "from jax._src.lib.mlir import ir",
    "import jaxlib.mlir.ir",
)
SERVED = """
import calque
calque.as_jax()
import jax.extend.mlir.dialects.func
import jaxlib.mlir.ir
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax._src.lib.mlir.dialects import hlo
from jax._src.lib.mlir import ir as same
import jax.extend.mlir.passmanager as manager
print(ir is same is jaxlib.mlir.ir, hlo is stablehlo, manager.PassManager.__name__)
"""
WITHOUT = """
import calque
calque.as_jax()
from calque.xla import jaxlib
def nowhere():
    raise jaxlib.XlaUnavailable("XLA needs jaxlib, which is not installed")
jaxlib.folder = nowhere
for line in IMPORTS:
    try:
        exec(line)
    except ImportError as e:
        print(e)
"""


def said(code: str) -> list[str]:
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return out.stdout.splitlines()


def test_without_jaxlib_it_is_an_import_error_that_says_so():
    lines = said(f"IMPORTS = {IMPORTS!r}" + WITHOUT)
    assert len(lines) == len(IMPORTS)
    assert all(
        "MLIR is jaxlib's: XLA needs jaxlib, which is not installed" in line for line in lines
    )


def test_names_that_are_none():
    assert {"ir", "dialects", "passmanager", "serialize_portable_artifact"} <= set(dir(mlir))
    with pytest.raises(AttributeError, match="no_such_name"):
        mlir.no_such_name


def test_it_is_jaxlibs_own():
    try:
        jaxlib.folder()
    except jaxlib.XlaUnavailable:
        pytest.skip("jaxlib is not installed")
    assert said(SERVED) == ["True True PassManager"]
    with mlir.ir.Context():
        assert str(mlir.ir.F32Type.get()) == "f32"
