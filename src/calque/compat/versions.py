"""The version of JAX whose interface is served."""

from typing import Final

JAX: Final = "0.10.2"
JAXLIB: Final = JAX


def as_numbers(version: str) -> tuple[int, ...]:
    """The version as numbers, for comparisons.

    >>> from calque.compat.versions import as_numbers
    >>> as_numbers("0.10.2")
    (0, 10, 2)"""
    return tuple(int(part) for part in version.split("."))
