"""Functions that call a handler when an exception leaves them, and cost nothing when none does.

An entry of the function's table of exceptions leads to a few instructions behind its code: they
call the handler and raise again. Calls that succeed run what they ran before, in the same frames.

    before   def f(x): return g(x)
    after    def f(x):
                 try: return g(x)
                 except BaseException: handler(); raise"""

from __future__ import annotations

import opcode
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from calque.machine.once import once

__all__ = ["handler_of", "with_exit"]

Handler = Callable[[], None]

_PLACEHOLDER: Final = "the handler"
_TEMPLATE: Final = f"def f():\n    try:\n        g()\n    finally:\n        {_PLACEHOLDER!r}()\n"
_SUSPENDED: Final = 0x20 | 0x80 | 0x200  # generators and coroutines: left and entered again


class Entry(NamedTuple):
    """Instructions, in units of two bytes, whose exceptions go to `target` with the stack cut to
    `depth`; `flags` has bit 0 where the place of the exception goes onto the stack, too."""

    start: int
    size: int
    target: int
    depth: int
    flags: int

    def moved(self, by: int) -> Entry:
        return self._replace(start=self.start + by, target=self.target + by)


class Tail(NamedTuple):
    """The instructions that call a handler and raise again, as this interpreter compiles them."""

    before: bytes  # what loads the handler, the constant of this number
    after: bytes
    entries: tuple[Entry, ...]
    stack: int

    def code(self, constant: int) -> bytes:
        high, low = divmod(constant, 256)
        load = (opcode.opmap["EXTENDED_ARG"], high, opcode.opmap["LOAD_CONST"], low)
        return self.before + bytes(load) + self.after


def with_exit(code: CodeType, handler: Handler) -> CodeType:
    """The code, calling `handler` when an exception leaves it: that exception is being handled
    then. Generators, and all code on an interpreter of another form, are given back as they are."""
    tail = _tail()
    if tail is None or code.co_flags & _SUSPENDED or handler_of(code) is handler:
        return code
    return _joined(code, tail, handler)


def handler_of(code: CodeType) -> Handler | None:
    """What is called when an exception leaves the code; None when nothing is."""
    last = code.co_consts[-1] if code.co_consts else None
    return last if isinstance(last, FunctionType) else None


def _joined(code: CodeType, tail: Tail, handler: Handler) -> CodeType:
    text = tail.code(len(code.co_consts))
    end, more = len(code.co_code) // 2, len(text) // 2
    own = tuple(_entries(code.co_exceptiontable))
    entries = (*own, *_gaps(own, end), *(e.moved(end) for e in tail.entries))
    return code.replace(
        co_code=code.co_code + text,
        co_consts=(*code.co_consts, handler),
        co_exceptiontable=b"".join(map(_written, sorted(entries))),
        co_linetable=code.co_linetable + _without_lines(more),
        co_stacksize=max(code.co_stacksize, tail.stack),
    )


def _gaps(entries: tuple[Entry, ...], end: int) -> Iterator[Entry]:
    """Entries for what is between these: their exceptions go to the end of the code."""
    at = 0
    for e in entries:
        if at < e.start:
            yield Entry(at, e.start - at, end, 0, 0)
        at = e.start + e.size
    if at < end:
        yield Entry(at, end - at, end, 0, 0)


# ---------------------------------------------------------------- the interpreter's form


@once
def _tail() -> Tail | None:
    """None where the interpreter's form is not what is expected: found out by trying."""
    found: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # a text is called
            exec(_TEMPLATE, found)
        tail = _tail_of(found["f"].__code__)
        return tail if _works(tail) else None
    except Exception:
        return None


def _tail_of(code: CodeType) -> Tail:
    entries = tuple(_entries(code.co_exceptiontable))
    begin = entries[0].target
    text = code.co_code[2 * begin :]
    constant = code.co_consts.index(_PLACEHOLDER)
    at = text.index(bytes((opcode.opmap["LOAD_CONST"], constant)))
    after = [e for e in entries if e.start >= begin]
    (cover,) = after  # of the instructions from the first on: one more loads the handler
    cover = Entry(0, cover.size + 1, cover.target - begin + 1, cover.depth, cover.flags)
    return Tail(text[:at], text[at + 2 :], (cover,), code.co_stacksize)


def _works(tail: Tail) -> bool:
    seen: list[object] = []

    def handler() -> None:
        seen.append((sys.exc_info()[1], sys._getframe(1).f_code))

    def fails(x: BaseException | None) -> int:
        for i in range(3):
            try:
                [i][i]
            except IndexError:
                if x is not None:
                    raise x from None
        return 7

    fails.__code__ = code = _joined(fails.__code__, tail, handler)
    error, caught = KeyError(1), None
    try:
        good = fails(None) == 7 and not seen
        fails(error)
    except KeyError as e:
        caught = e
    return good and caught is error and seen == [(error, code)] and sys.exc_info()[1] is None


def _entries(table: bytes) -> Iterator[Entry]:
    numbers = _numbers(table)
    for start in numbers:
        size, target, depth = next(numbers), next(numbers), next(numbers)
        yield Entry(start, size, target, depth >> 1, depth & 1)


def _numbers(table: bytes) -> Iterator[int]:
    """The numbers of a table: six bits a byte, the highest first; bit 6 says that more follow."""
    number = 0
    for byte in table:
        number = number << 6 | byte & 63
        if not byte & 64:
            yield number
            number = 0


def _written(e: Entry) -> bytes:
    text = bytearray()
    for number in (e.start, e.size, e.target, e.depth << 1 | e.flags):
        digits = [number & 63]
        while number := number >> 6:
            digits.append(number & 63 | 64)
        text += bytes(reversed(digits))
    text[0] |= 128  # an entry begins
    return bytes(text)


def _without_lines(size: int) -> bytes:
    """Entries of the table of lines for instructions that have none: eight at most in each."""
    whole, rest = divmod(size, 8)
    return bytes([0xF8 | 7] * whole + ([0xF8 | rest - 1] if rest else []))
