"""`jax._src.lib.mlir.dialects`: the dialects of jaxlib's MLIR, StableHLO under its old name."""

from typing import Any

from calque.core.lazy import LazyModule
from calque.extend import mlir

_jaxlib = LazyModule("calque.xla.jaxlib")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    mlir.open_jaxlib()  # says what is missing
    return _jaxlib.mlir_part({"hlo": "stablehlo"}.get(name, name))
