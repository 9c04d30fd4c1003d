"""What the instructions of a driver program are written with, before they are words: slots,
registers, immediates, labels."""

from __future__ import annotations

from typing import Any

from calque.machine.driver.verify import Frame
from calque.machine.records import record


@record
class Slot:
    """A pointer in the frame: an input, an output, a constant, a place in the arena, an owned
    block, or a plain slot."""

    region: str
    index: int

    def __str__(self) -> str:
        return f"{self.region}{self.index}"


@record
class Reg:
    """A 64-bit integer in the frame."""

    index: int

    def __str__(self) -> str:
        return f"r{self.index}"


@record
class Immediate:
    """A constant integer in the template."""

    index: int


class Varying(int):
    """An integer of the template that another call, or a program that is the same otherwise, has
    otherwise: `key` says which it is."""

    key: Any

    def __new__(cls, value: int, key: Any) -> Varying:
        self = super().__new__(cls, value)
        self.key = key
        return self


class Label:
    """A place in the code, known once it is bound."""

    def __init__(self) -> None:
        self.instruction = -1


Integer = Reg | int
Operand = Slot | Reg | int


def encode(word: Any, frame: Frame) -> int:
    """The word of an operand."""
    if isinstance(word, Slot):
        return frame.offset(word.region, word.index)
    if isinstance(word, Reg):
        return frame.offset("reg", word.index)
    if isinstance(word, Immediate):
        return frame.offset("imm", word.index)
    return int(word)
