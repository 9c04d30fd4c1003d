"""`jax._src.interpreters.partial_eval`: the names of `calque.interpreters.partial_eval`."""

from typing import Any

from calque.interpreters import partial_eval as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


def __dir__() -> list[str]:
    return dir(_public)
