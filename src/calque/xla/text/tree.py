"""A module of StableHLO as plain data: functions, regions, operations, values.

An operation is its text with values and regions in the places where they stand; names are given
when it is printed (`text/printing.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.xla.text.types import Tensor, Type


class Value:
    """A result of an operation, or an argument. Identity is equality."""

    __slots__ = ("hint", "type")

    def __init__(self, type: Type, hint: str = "") -> None:
        self.type, self.hint = type, hint

    @property
    def tensor(self) -> Tensor:
        """Its type, of what is no token."""
        assert isinstance(self.type, Tensor)
        return self.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def ndim(self) -> int:
        return len(self.tensor.shape)

    @property
    def dtype(self) -> Any:
        return self.tensor.dtype

    def __repr__(self) -> str:
        return f"Value({self.type})"


@dataclass(frozen=True, slots=True, eq=False)
class Location:
    """Where an operation comes from: the path of names it was made under, and the user's line."""

    path: str
    file: str = ""
    line: int = 0
    function: str = ""


@dataclass(slots=True, eq=False)
class Region:
    """Operations inside an operation. Without a header its arguments are named by the operation
    itself."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    header: bool = True


Part = str | Value | Region


@dataclass(slots=True, eq=False)
class Op:
    """results = parts. A line break in a part goes to the indentation of the operation."""

    parts: Sequence[Part]
    results: Sequence[Value]
    location: Location | None = None


@dataclass(slots=True, eq=False)
class Function:
    """A function of a module; the attributes of arguments and results are text: `{...}` or
    nothing."""

    name: str
    body: Region
    results: Sequence[Type]
    public: bool = False
    arg_attributes: Sequence[str] = ()
    result_attributes: Sequence[str] = ()
    arg_names: Sequence[str] = ()


@dataclass(slots=True, eq=False)
class Module:
    """Functions under a name, the first of them `main`."""

    name: str
    functions: list[Function] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)  # meshes, ahead of the functions
    others: list[str] = field(default_factory=list)  # functions of other modules, as text
    attributes: Sequence[str] = ()


def escaped(text: str) -> str:
    """A text as MLIR writes it between quotation marks."""
    if text.isascii() and text.isprintable() and '"' not in text:
        return text.replace("\\", "\\\\")
    shown = (chr(c) if 32 <= c < 127 and c != ord('"') else f"\\{c:02X}" for c in text.encode())
    return "".join("\\\\" if c == "\\" else c for c in shown)


def symbol(name: str) -> str:
    """A name as MLIR writes it without quotes."""
    return "".join(c if c.isalnum() or c in "_.$" else "_" for c in name) or "_"
