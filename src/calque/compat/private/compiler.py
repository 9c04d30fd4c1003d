"""`jax._src.compiler`: the step from a program to machine code, for those who count its calls."""

from typing import Any

from calque.core.backends import compile as backend_compile_and_load

__all__ = ["backend_compile_and_load"]


def get_latest_profile_version(backend: Any) -> int:
    """The version of profiles that guide the compiler: it takes none."""
    return 0
