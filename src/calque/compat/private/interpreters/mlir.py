"""`jax._src.interpreters.mlir`: the names of `calque.interpreters.mlir`."""

from typing import Any

from calque.interpreters import mlir as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


def __dir__() -> list[str]:
    return dir(_public)
