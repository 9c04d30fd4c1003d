"""`jax._src.lax.slicing`: the names of `calque.lax`."""

from typing import Any

from calque import lax as _lax


def __getattr__(name: str) -> Any:
    return getattr(_lax, name)


def __dir__() -> list[str]:
    return dir(_lax)
