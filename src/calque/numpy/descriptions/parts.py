"""Docstrings of functions that tables make, from their parts."""

from __future__ import annotations

__all__ = ["described"]


def described(does: str, arguments: str, returns: str, example: str) -> str:
    """A docstring of its parts, all of whose lines begin at the margin."""
    parts = [does, "", "Args:", *_indented(arguments), "Returns:", *_indented(returns)]
    return "\n".join([*parts, "", example])


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.split("\n")]
