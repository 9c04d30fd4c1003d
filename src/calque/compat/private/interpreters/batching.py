"""`jax._src.interpreters.batching`: the names of `calque.interpreters.batching`."""

from typing import Any

from calque.interpreters import batching as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


def __dir__() -> list[str]:
    return dir(_public)
