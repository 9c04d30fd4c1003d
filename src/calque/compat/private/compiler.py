"""`jax._src.compiler`: the step from a program to machine code, for those who watch or forbid it.

A library may put a function of its own in the place of `backend_compile_and_load`: it is asked
before each compilation, and what it raises reaches the caller."""

from typing import Any

from calque.core import backends
from calque.core.devices import DEFAULT_DEVICE


def backend_compile_and_load(backend: Any, *args: Any, **kwargs: Any) -> None:
    """Stands before each compilation, and lets it go on."""


def _ask() -> None:
    """The function that stands in this module now."""
    backend_compile_and_load(DEFAULT_DEVICE)


backends.before_compiling(_ask)
