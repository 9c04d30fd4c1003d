"""`jax._src.lib.mlir`: jaxlib's MLIR, with dialects under their old names."""

from typing import Any

from calque.extend import mlir
from calque.machine.lazy import imported


def __getattr__(name: str) -> Any:
    if name == "dialects":
        return imported(f"{__name__}.{name}")
    return getattr(mlir, name)


def __dir__() -> list[str]:
    return dir(mlir)
