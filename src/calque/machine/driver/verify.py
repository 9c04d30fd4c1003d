"""The verifier of driver programs: what passes cannot read or write outside its frame, jump outside
its code, or use a slot that holds nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import numpy as np

from calque.machine.driver.interpreter import Op
from calque.machine.integers import IntegerType

# The operands of each operation: pointer or integer read (p, i), written (P, I), either (w, W),
# owned slot (o), raw number (n), jump target (t), exchanged (S), the function and result of a host
# call (h, r) and count followed by as many integers or pointers (a) or targets (T).
OPERANDS: Final = {
    Op.END: "",
    Op.CALL: "na",
    Op.CALL_RANGE: "niiia",
    Op.COPY: "ppi",
    Op.FILL: "piin",
    Op.ADDRESS: "Ppiii",
    Op.SWAP: "SS",
    Op.MOVE: "Ww",
    Op.LOOP: "Iiiit",
    Op.NEXT: "Iiit",
    Op.BACK: "t",
    Op.JUMP: "t",
    Op.UNLESS: "pit",
    Op.SWITCH: "iT",
    Op.HOST: "hra",
    Op.LOAD: "Ipin",
    Op.STORE: "piin",
    Op.ALLOC: "Oi",
    Op.FREE: "o",
    Op.GIVE: "no",
} | {op: "Iii" for op in Op if Op.ADD <= op <= Op.NE}

_POINTERS = ("in", "out", "own", "slot", "const", "arena")
_REGIONS: Final = {
    "p": _POINTERS,
    "P": ("in", "out", "slot", "arena"),
    "S": ("in", "out", "own", "slot", "arena"),
    "i": ("reg", "imm"),
    "h": ("imm",),
    "I": ("reg",),
    "o": ("own",),
    "O": ("own",),
    "w": (*_POINTERS, "reg", "imm"),
    "W": ("in", "out", "slot", "arena", "reg"),
    "a": (*_POINTERS, "reg", "imm"),
}
_WRITES = "POWI"
_EMPTY_AT_FIRST = ("own", "slot")
_OPS: Final = {int(op): op for op in OPERANDS}  # no stamps: `timed` alone puts them in
_CHECKED = (
    Op.MOVE,
    Op.CALL,
    Op.CALL_RANGE,
    Op.FILL,
    Op.LOAD,
    Op.STORE,
    Op.GIVE,
    Op.SWITCH,
    Op.HOST,
)
_WIDTHS = (1, 2, 4, 8)


class ProgramError(ValueError):
    """A program that cannot be run: a defect of whoever built it."""


class Frame:
    """Where the regions of a frame begin, in words."""

    __slots__ = ("args", "starts", "words")

    def __init__(self, starts: dict[str, int], words: int, args: int) -> None:
        self.starts, self.words, self.args = starts, words, args

    def regions(self) -> list[str]:
        """The region of each word that code may name."""
        edges = list(self.starts.items())
        return [
            name for (name, start), (_, end) in itertools.pairwise(edges) for _ in range(start, end)
        ]

    def offset(self, region: str, index: int) -> int:
        return 8 * (self.starts[region] + index)


def verify(code: np.ndarray, frame: Frame, n_out: int) -> None:
    """Raise ``ProgramError`` when the code is not right in every word."""
    words = code.tolist()
    found = list(instructions(words))
    starts = {8 * at for at, _, _ in found}
    regions = frame.regions()
    written: set[int] = set()
    for at, op, operands in found:
        for letter, word in operands:
            allowed = _REGIONS.get(letter)
            if allowed is not None:
                region = (
                    regions[word >> 3]
                    if 0 <= word < 8 * frame.args and word & 7 == 0
                    else "nothing"
                )
                if region not in allowed:
                    raise ProgramError(
                        f"{op.name} at word {at}: names {region}, where only {', '.join(allowed)}"
                        " may be"
                    )
                if letter in _WRITES:
                    written.add(word)
                elif region in _EMPTY_AT_FIRST and word not in written:
                    name = f"{region}{word // 8 - frame.starts[region]}"
                    raise ProgramError(
                        f"{op.name} at word {at}: {name} is read before anything was put into it"
                    )
            elif letter == "t" and word not in starts:
                raise ProgramError(
                    f"{op.name} at word {at}: jump to byte {word}, where no instruction begins"
                )
        if op in _CHECKED:
            _check_numbers(f"{op.name} at word {at}", op, operands, frame, n_out)
    if not found or found[-1][:2] != (len(words) - 1, Op.END):
        raise ProgramError("the code does not end with END")


def instructions(words: list[int]) -> Iterator[tuple[int, Op, list[tuple[str, int]]]]:
    """Each instruction: its place, its operation, and its operands with the letter that says what
    each one is."""
    at = 0
    while at < len(words):
        op = _OPS.get(words[at])
        if op is None:
            raise ProgramError(f"unknown operation {words[at]} at word {at}")
        start, at = at, at + 1
        letters = OPERANDS[op]
        fixed = len(letters) - (letters[-1:] in ("a", "T"))
        operands = list(zip(letters, words[at : at + fixed]))
        at += fixed
        if fixed < len(letters):
            count = words[at] if at < len(words) else -1
            at += 1
            operands.append(("#", count))
            operands += [(letters[-1].lower(), word) for word in words[at : at + max(count, 0)]]
            at += max(count, 0)
            if count < 0:
                raise ProgramError(f"{op.name} at word {start} has {count} operands")
        if at > len(words):
            raise ProgramError(f"{op.name} at word {start} is cut short")
        yield start, op, operands


def _is_integer(offset: int, frame: Frame) -> bool:
    starts = frame.starts
    return (
        starts["reg"] <= offset // 8 < starts["slot"]
        or starts["imm"] <= offset // 8 < starts["arena"]
    )


def _check_numbers(
    where: str, op: Op, operands: list[tuple[str, int]], frame: Frame, n_out: int
) -> None:
    """Counts, widths and other raw words."""
    raw = [word for letter, word in operands if letter == "n"]
    count = next((word for letter, word in operands if letter == "#"), 0)
    if op == Op.MOVE:  # integers do not become pointers
        good = _is_integer(operands[0][1], frame) == _is_integer(operands[1][1], frame)
    elif op in (Op.CALL, Op.CALL_RANGE):
        good = raw[0] > 0 and count <= frame.words - frame.args
    elif op == Op.FILL:
        good = raw[0] in _WIDTHS
    elif op in (Op.LOAD, Op.STORE):
        good = raw[0] in list(IntegerType)
    elif op == Op.GIVE:
        good = 0 <= raw[0] < n_out
    elif op == Op.SWITCH:
        good = count >= 1
    else:
        registers = range(8 * frame.starts["reg"], 8 * frame.starts["slot"], 8)
        good = operands[1][1] == -1 or operands[1][1] in registers
    if not good:
        raise ProgramError(f"{where}: bad numbers {raw or operands[0][1]}, {count} operands")
