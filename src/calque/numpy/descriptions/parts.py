"""Docstrings of functions that factories make: their parts, and tables of what each one does."""

from __future__ import annotations

__all__ = ["described", "entries"]

# what it does, what it returns and what differs from NumPy (both empty where its kind says so), an
# example
Entry = tuple[str, str, str, str]


def entries(table: str) -> dict[str, Entry]:
    """The entries of a table by name. They stand apart by empty lines:

    name: what it does, in a sentence or more; then `= ` what it returns, `! ` what differs from
    NumPy, where its kind does not say it; then an example with what it prints."""
    return dict(_entry(block) for block in table.strip().split("\n\n"))


def _entry(block: str) -> tuple[str, Entry]:
    name, _, rest = block.partition(": ")
    told, _, example = rest.partition("\n>>> ")
    told, _, differs = told.partition("\n! ")
    does, _, returns = told.partition("\n= ")
    return name, (does, returns, differs, f">>> {example}")


def described(does: str, arguments: str, returns: str, example: str, differs: str = "") -> str:
    """A docstring of its parts, all of whose lines begin at the margin."""
    parts = [does, "", "Args:", *_indented(arguments), "Returns:", *_indented(returns)]
    if differs:
        parts += ["Differs from NumPy:", *_indented(differs)]
    return "\n".join([*parts, "", example])


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.split("\n")]
