"""What MLIR itself makes of a module's text."""

from typing import Any

import pytest

from calque.machine.once import once
from calque.xla import jaxlib


@once
def is_there() -> bool:
    """Whether jaxlib is installed."""
    try:
        jaxlib.folder()
    except jaxlib.XlaUnavailable:
        return False
    return True


needs_jaxlib = pytest.mark.skipif(not is_there(), reason="jaxlib is not installed")


def printed(text: str) -> str:
    """The module as MLIR prints it after reading it, which checks every operation. The test ends
    here where jaxlib is not installed."""
    if not is_there():
        pytest.skip("jaxlib is not installed")
    module: Any = jaxlib.mlir_module(text)
    assert module.operation.verify()
    return str(module)


def assert_canonical(text: str) -> None:
    """The text is what MLIR prints."""
    assert printed(text).strip() == text.strip()
