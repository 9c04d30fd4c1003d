"""Loops with a condition and choices in a driver program: what `ProgramBuilder` gives to write
their insides with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calque.machine.driver.interpreter import Op
from calque.machine.driver.words import Integer, Label, Slot


class WhileBlock:
    """The inside of ``while_``."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self.leave = Label()
        self.checked = False

    def check(self, flag: Slot, offset: Integer = 0) -> None:
        """Leave the loop when the byte at a slot is zero."""
        b = self._builder
        self.checked = True
        b._emit(
            lambda: f"leave unless {flag}[{offset}]",
            Op.UNLESS,
            b._slot(flag),
            b._int(offset),
            self.leave,
        )


class SwitchBlock:
    """The inside of ``switch``."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self.labels: list[Label] = []
        self.leave = Label()

    @contextmanager
    def case(self) -> Iterator[None]:
        """The next case."""
        b, label = self._builder, Label()
        number = len(self.labels)
        b._lines.append((b._depth, lambda: f"case {number}:"))
        self.labels.append(label)
        b._bind(label)
        with b._indented():
            yield
        b._emit(None, Op.JUMP, self.leave)
