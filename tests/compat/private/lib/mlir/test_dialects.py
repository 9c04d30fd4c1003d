"""Dialects of jaxlib under the names of `jax._src.lib.mlir`."""

import pytest

from calque.compat.private.lib.mlir import dialects
from calque.xla import jaxlib


def test_the_old_name_of_stablehlo():
    with pytest.raises(AttributeError, match="_hidden"):
        dialects._hidden
    try:
        jaxlib.folder()
    except jaxlib.XlaUnavailable:
        pytest.skip("jaxlib is not installed")
    assert dialects.hlo is dialects.stablehlo and dialects.func.FuncOp
