"""The steps of a program: what it does between its inputs and its outputs, before it is data for
the interpreter.

What is computed comes in three forms, one after the other: `Compute` (stages), `Nest` (loops in the
order of the program), `Call` (loops as they run). Steps are values: a pass makes new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from calque.machine.records import record, replace
from calque.native.loops.tree import NO_NUMBERS, Body, Touched, touched, with_buffers
from calque.native.lower.stages import Stage
from calque.native.routines import Begun
from calque.native.scalars.expr import Buffer, Expr
from calque.native.schedule.nests import Schedule

Names = Mapping[Buffer, Buffer]  # buffers in the place of others, no two of which become one
NO_NAMES: Final[Names] = MappingProxyType({})
Numbers = Mapping[Expr, Expr]  # parameters in the place of others


@record(eq=False)
class Compute:
    """Stages, in an order of evaluation, which may share kernels."""

    stages: tuple[Stage, ...]

    @cached_property
    def loaded(self) -> frozenset[Buffer]:
        return frozenset().union(*[s.buffers_read for s in self.stages])

    def reads(self) -> frozenset[Buffer]:
        return self.loaded

    def writes(self) -> frozenset[Buffer]:
        return frozenset([s.buf for s in self.stages])


@record(eq=False)
class Nest:
    """Loops that will be one kernel.

    `vectors`    their kinds are chosen already; they take `slower` times as long as it seems
    `in_order`   every element is written by one statement, after what it reads
    `stands_in`  of nests that stand for each other, chosen by a size, all but one say so
    `like`       another one that has the same loops over other buffers, which `names` tells; such a
                 one has no `loops` of its own"""

    loops: Body | None
    vectors: bool = False
    slower: float = 1.0
    in_order: bool = False
    stands_in: bool = False
    like: Nest | None = None
    names: Names = NO_NAMES

    @cached_property
    def body(self) -> Body:
        if self.like is not None:
            return with_buffers(self.like.body, self.names)
        assert self.loops is not None
        return self.loops

    @cached_property
    def touched(self) -> Touched:
        return touched(self.body) if self.like is None else named(self.like.touched, self.names)

    def reads(self) -> frozenset[Buffer]:
        return self.touched[0]

    def writes(self) -> frozenset[Buffer]:
        return self.touched[1]


@record(eq=False)
class Call:
    """Run a kernel. `nest` is what it was made of, where that is in the order of the program;
    `names` and `numbers` are the buffers and parameters in the place of those of its schedule,
    which other calls may share."""

    schedule: Schedule
    nest: Body | None = None
    stands_in: bool = False
    names: Names = NO_NAMES
    numbers: Numbers = NO_NUMBERS

    @cached_property
    def body(self) -> Body:
        body = self.schedule.body
        if not self.names and not self.numbers:
            return body
        return with_buffers(body, self.names, self.numbers)

    @cached_property
    def touched(self) -> Touched:
        made = self.schedule.touched
        return named(made, self.names) if self.names else made

    def buffers(self, kernel: Iterable[Buffer]) -> list[Buffer]:
        """What it gives for the buffers of its kernel."""
        return [self.names.get(b, b) for b in kernel]

    def parameters(self, kernel: Iterable[Expr]) -> list[Expr]:
        """What it gives for the parameters of its kernel."""
        return [self.numbers.get(p, p) for p in kernel]

    def reads(self) -> frozenset[Buffer]:
        return self.touched[0]

    def writes(self) -> frozenset[Buffer]:
        return self.touched[1]


def named(made: Touched, names: Names) -> Touched:
    """The same with other buffers."""
    reads, writes = made
    return frozenset([names.get(b, b) for b in reads]), frozenset([names.get(b, b) for b in writes])


@record(eq=False)
class Copy:
    """Copy a whole buffer."""

    dst: Buffer
    src: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset((self.src,))

    def writes(self) -> frozenset[Buffer]:
        return frozenset((self.dst,))


@record(eq=False)
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


@record(eq=False)
class Made:
    """An array of constants that a function makes for some sizes."""

    function: Callable[..., np.ndarray]
    sizes: Sequence[Any]


@record(eq=False)
class Routine:
    """Call machine code that is there already. `words` are its arguments: buffers, sizes, numbers,
    and arrays of constants, given or made; `ns` guesses how long it takes.

    It is called for `turns`, by `grain` of them at a time or (0) all at once. One that `asks` may
    let other Python code run. The `owner` keeps the code in memory; what is there for ever has
    none. One that may run `beside` others is short, and what threads share of it is shorter."""

    name: str
    address: int | Begun
    words: Sequence[Any]
    args: Sequence[Buffer]
    outs: Sequence[Buffer]
    ns: int = 0
    turns: Any = 1
    grain: int = 1
    asks: bool = True
    owner: object = None
    beside: bool = False

    def reads(self) -> frozenset[Buffer]:
        return frozenset(self.args)

    def writes(self) -> frozenset[Buffer]:
        return frozenset(self.outs)


@record(eq=False)
class Repeat:
    """A loop of steps: `count` rounds, or while the byte `flag`, which `test` sets, is not zero.
    The round number is the size symbol `counter`. After each round the two buffers of every swap
    change places."""

    body: Sequence[Step]
    swaps: Sequence[tuple[Buffer, Buffer]]
    count: Expr | None = None
    counter: str | None = None
    test: Sequence[Step] = ()
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


@record(eq=False)
class Switch:
    """Run one of several lists of steps, chosen by an int32 in memory, or by a size; what is too
    small or too large chooses the first or last."""

    index: Buffer | Expr
    cases: Sequence[Sequence[Step]]

    def reads(self) -> frozenset[Buffer]:
        index = (self.index,) if isinstance(self.index, Buffer) else ()
        return frozenset(index).union(*[s.reads() for c in self.cases for s in c])

    def writes(self) -> frozenset[Buffer]:
        return frozenset().union(*[s.writes() for c in self.cases for s in c])


@record(eq=False)
class Swap:
    """Two buffers change places."""

    a: Buffer
    b: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset((self.a, self.b))

    def writes(self) -> frozenset[Buffer]:
        return frozenset((self.a, self.b))


@record(eq=False)
class Count:
    """Let the size symbol `name` be the integer in a buffer from here on: the rounds of a loop, or
    the size of arrays, that only the running program knows."""

    name: str
    buffer: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset((self.buffer,))

    def writes(self) -> frozenset[Buffer]:
        return frozenset()


@record(eq=False)
class WriteSize:
    """Write a size into memory, as an integer."""

    size: Any
    buffer: Buffer

    def reads(self) -> frozenset[Buffer]:
        return frozenset()

    def writes(self) -> frozenset[Buffer]:
        return frozenset((self.buffer,))


Step = Call | Compute | Copy | Count | Host | Nest | Repeat | Routine | Swap | Switch | WriteSize


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


def changed(steps: Sequence[Step], change: Callable[[Step], Sequence[Step]]) -> list[Step]:
    """The same steps with every one that holds no others changed."""
    out: list[Step] = []
    for s in steps:
        if isinstance(s, Repeat):
            out.append(replace(s, body=changed(s.body, change), test=changed(s.test, change)))
        elif isinstance(s, Switch):
            out.append(replace(s, cases=[changed(c, change) for c in s.cases]))
        else:
            out += change(s)
    return out
