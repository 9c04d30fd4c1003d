"""The steps of a driver: what a compiled program does between its inputs and its outputs, before it
is data for the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calque.native.emit.kernels import Kernel
from calque.native.loops.tree import Body, loaded, stored
from calque.native.scalars.expr import Buffer, Expr
from calque.native.schedule.nests import Schedule


@dataclass(eq=False)
class Call:
    """Run a kernel. `nest` is what the kernel was scheduled from, where it is one nest of loops in
    the order of the program.

    Of calls that stand for each other, chosen by a size, all but one say so in `stands_in`."""

    schedule: Schedule
    kernel: Kernel | None = None
    nest: Body | None = None
    stands_in: bool = False

    @property
    def body(self) -> Body:
        return self.schedule.body

    def reads(self) -> frozenset[Buffer]:
        return frozenset(b for b in loaded(self.body) if b.place == "arg")

    def writes(self) -> frozenset[Buffer]:
        return frozenset(b for b in stored(self.body) if b.place == "arg")


@dataclass(eq=False)
class Copy:
    """Copy a whole buffer."""

    dst: Buffer
    src: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset((self.src,))

    def writes(self) -> frozenset[Buffer]:
        return frozenset((self.dst,))


@dataclass(eq=False)
class Host:
    """Run the NumPy meaning of an equation in Python."""

    op: str
    params: dict[str, Any]
    args: Sequence[Buffer]
    outs: Sequence[Buffer]
    arg_avals: Sequence[Any]
    out_avals: Sequence[Any]

    def reads(self) -> frozenset[Buffer]:
        return frozenset(self.args)

    def writes(self) -> frozenset[Buffer]:
        return frozenset(self.outs)


@dataclass(eq=False)
class Made:
    """An array of constants that a function makes for some sizes."""

    function: Callable[..., np.ndarray]
    sizes: Sequence[Any]


@dataclass(eq=False)
class Routine:
    """Call machine code that is there already. `words` are its arguments: buffers, sizes, numbers,
    and arrays of constants, given or made; `ns` guesses how long it takes.

    It is called for `turns`, by `grain` of them at a time or (0) all at once. One that `asks` may
    let other Python code run."""

    name: str
    address: int
    words: Sequence[Any]
    args: Sequence[Buffer]
    outs: Sequence[Buffer]
    ns: int = 0
    turns: Any = 1
    grain: int = 1
    asks: bool = True

    def reads(self) -> frozenset[Buffer]:
        return frozenset(self.args)

    def writes(self) -> frozenset[Buffer]:
        return frozenset(self.outs)


@dataclass(eq=False)
class Repeat:
    """A loop of steps: `count` rounds, or while the byte `flag`, which `test` sets, is not zero.
    The round number is the size symbol `counter`. After each round the two buffers of every swap
    change places."""

    body: list[Step]
    swaps: Sequence[tuple[Buffer, Buffer]]
    count: Expr | None = None
    counter: str | None = None
    test: list[Step] = field(default_factory=list)
    flag: Buffer | None = None

    def reads(self) -> frozenset[Buffer]:
        out: set[Buffer] = set() if self.flag is None else {self.flag}
        for s in (*self.test, *self.body):
            out |= s.reads()
        for a, b in self.swaps:
            out |= {a, b}
        return frozenset(out)

    def writes(self) -> frozenset[Buffer]:
        out: set[Buffer] = set()
        for s in (*self.test, *self.body):
            out |= s.writes()
        for a, b in self.swaps:
            out |= {a, b}
        return frozenset(out)


@dataclass(eq=False)
class Switch:
    """Run one of several lists of steps, chosen by an int32 in memory, or by a size; what is too
    small or too large chooses the first or last."""

    index: Buffer | Expr
    cases: Sequence[list[Step]]

    def reads(self) -> frozenset[Buffer]:
        index = (self.index,) if isinstance(self.index, Buffer) else ()
        return frozenset(index).union(*[s.reads() for c in self.cases for s in c])

    def writes(self) -> frozenset[Buffer]:
        return frozenset().union(*[s.writes() for c in self.cases for s in c])


@dataclass(eq=False)
class Swap:
    """Two buffers change places."""

    a: Buffer
    b: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset((self.a, self.b))

    def writes(self) -> frozenset[Buffer]:
        return frozenset((self.a, self.b))


@dataclass(eq=False)
class Count:
    """Let the size symbol `name` be the integer in a buffer from here on: the rounds of a loop, or
    the size of arrays, that only the running program knows."""

    name: str
    buffer: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset((self.buffer,))

    def writes(self) -> frozenset[Buffer]:
        return frozenset()


@dataclass(eq=False)
class WriteSize:
    """Write a size into memory, as an integer."""

    size: Any
    buffer: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset()

    def writes(self) -> frozenset[Buffer]:
        return frozenset((self.buffer,))


Step = Call | Copy | Count | Host | Repeat | Routine | WriteSize | Switch | Swap


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, at any depth, in order."""
    for s in steps:
        yield s
        if isinstance(s, Repeat):
            yield from walk(s.test)
            yield from walk(s.body)
        elif isinstance(s, Switch):
            for c in s.cases:
                yield from walk(c)
