"""`jax._src.interpreters.pxla`: the names of `calque.interpreters.pxla`."""

from typing import Any

from calque.interpreters import pxla as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


def __dir__() -> list[str]:
    return dir(_public)
