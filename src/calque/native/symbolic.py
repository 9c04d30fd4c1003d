"""Programs for every size: kernels take their sizes when they are called, so only the driver's words differ from size to size.

A program is planned once, with free sizes. `resized` works out its words for given sizes: the arguments of kernels, bytes to copy,
the types of results, the places of temporaries. That takes some microseconds; nothing is traced, planned or compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.dims import Symbols
from calque.core.jaxprs import ClosedJaxpr
from calque.machine.callpath import run_program
from calque.machine.program import Program, Slot, Varying
from calque.machine.program_sizes import Pattern, SizedProgram
from calque.native import views
from calque.native.at_sizes import at_sizes, free_in
from calque.native.backend import Planned, is_long
from calque.native.expr import Buffer, Expr, const, ex, item_size
from calque.native.lower_sizes import Sizes
from calque.native.plan_memory import ALIGN, arrange
from calque.native.plan_program import Assembler, host_function
from calque.native.plan_steps import Host, Step


class SymbolicAssembler(Assembler):
    """Writes the words that depend on free sizes as immediates that vary."""

    def __init__(self, sizes: Sizes, params: dict[str, Any], sizes_of: dict[Buffer, int]) -> None:
        super().__init__(sizes, params, sizes_of)
        self.hosts: list[Host] = []
        self.rooms: list[Expr] = []  # bytes of each part of the arena
        self.room_of: list[int] = []  # the part in which each place of the arena lies

    def word(self, e: Expr) -> int:
        """A size as an operand."""
        value = self.sizes.hinted.value(e)
        return value if self.sizes.free.isdisjoint(e.names) else Varying(value, e)

    def size(self, name: str) -> Any:
        reg = self.counters.get(name)
        if reg is not None or name not in self.sizes.free:
            return super().size(name)
        return self.word(self.sizes.symbol(name))

    def known(self, e: Expr) -> int:
        return self.word(e)

    def bytes_of(self, b: Buffer) -> int:
        return self.word(bytes_expr(b))

    def lay_out(self, steps: Sequence[Step], temporaries: set[Buffer]) -> None:
        """Buffers share a part of the arena where they are never needed at the same time, and are of one size for all sizes."""
        offsets, _ = arrange(steps, temporaries, self.nbytes)
        parts: dict[tuple[int, Expr], int] = {}
        for b, at in offsets.items():
            size = bytes_expr(b)
            part = parts.setdefault((at, size), len(parts))
            if part == len(self.rooms):
                self.rooms.append(size)
            self.room_of.append(part)
        starts, total = places([self.sizes.hinted.value(r) for r in self.rooms])
        for b, part in zip(offsets, self.room_of):
            self.slots[b] = self.builder.arena(starts[part], 0)
        self.builder.arena_bytes = total

    def host_call(self, s: Host, function: Callable[..., None], args: Sequence[Slot]) -> None:
        if next(free_in([s.arg_avals, s.out_avals, s.node.params]), None) is not None:
            self.hosts.append(s)
            self.builder.host(function, args, name=s.node.op, key=("host", len(self.hosts) - 1))
        else:
            super().host_call(s, function, args)


def bytes_expr(b: Buffer) -> Expr:
    n = const(item_size(b.dtype))
    for d in b.shape:
        n = ex("mul", d, n)
    return n


def places(rooms: Sequence[int]) -> tuple[list[int], int]:
    """(start of each part of the arena, bytes in all)."""
    out, at = [], 0
    for n in rooms:
        out.append(at)
        at += -(-n // ALIGN) * ALIGN
    return out, at


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}


def python_text(e: Expr) -> str:
    """A size expression as Python."""
    if e.op == "const":
        return str(e.attr)
    if e.op == "var":
        return str(e.attr[0])
    a, b = map(python_text, e.args)
    return f"({a} {_SIGNS[e.op]} {b})" if e.op in _SIGNS else f"{e.op}({a}, {b})"


class SymbolicExecutable(Planned):
    """A program with free sizes; `resized` makes the program for some."""

    def __init__(self, closed: ClosedJaxpr, options: Options, symbols: Symbols) -> None:
        super().__init__(closed, options, Sizes())
        self.symbols = symbols
        p = self.planner
        self.assembler = SymbolicAssembler(p.sizes, p.params, p.bytes)
        self.template: Program = self.assembler.program(
            self.inputs, self.outputs, p.consts, p.mutable, self.steps, is_long(self)
        )
        self.program = self.template
        self.words = self.evaluator()
        self.pattern = Pattern(self.template, self.places)
        self.kinds = [(a.ndim, a.dtype, a.weak_type, np.dtype(a.dtype).itemsize) for a in self.out_avals]
        hosts = self.assembler.hosts
        self.free = sorted({d for s in hosts for d in free_in([s.arg_avals, s.out_avals, s.node.params])}, key=str)

    def as_text(self, stage: str | None = None) -> str:
        return views.text(self, stage)

    def evaluator(self) -> Callable[..., list[int]]:
        """A function of the sizes: varying immediates, parts of the arena, dimensions of the results."""
        builder = self.assembler.builder
        varying = [(i, e) for i, e in builder.varying() if isinstance(e, Expr)]
        self.places = [i for i, _ in varying] + [i for i, key in builder.varying() if not isinstance(key, Expr)]
        self.varying = len(varying)
        exprs = [e for _, e in varying] + self.assembler.rooms
        exprs += [self.planner.sizes.dim(d) for a in self.out_avals for d in a.shape]
        names = ", ".join(f"n{i}" for i in range(len(self.symbols.hints)))
        sizes = self.planner.sizes
        scope: dict[str, Any] = {name: n for name, n in sizes.values.items() if name not in sizes.free}
        exec(f"def words({names}):\n return [{', '.join(map(python_text, exprs))}]", scope)
        words: Callable[..., list[int]] = scope["words"]
        return words

    def resized(self, sizes: Sequence[int]) -> Sized:
        """The program for these sizes."""
        words = self.words(*sizes)
        n, rooms = self.varying, self.assembler.rooms
        at, values = n + len(rooms), words[:n]
        outputs, arena, total = [], None, 0
        for rank, dtype, weak, item in self.kinds:
            shape = tuple(words[at : at + rank])
            at += rank
            aval = ShapedArray(shape, dtype, weak)
            outputs.append((aval, aval.size * item))
        if rooms:
            starts, total = places(words[n : n + len(rooms)])
            arena = [starts[r] for r in self.assembler.room_of]
        kept = self.host_functions(sizes)
        values += [id(f) for f in kept]
        return Sized(self.pattern.program(outputs, values, None, arena, total, kept))

    def host_functions(self, sizes: Sequence[int]) -> list[Callable[..., None]]:
        """The host calls for these sizes."""
        if not self.assembler.hosts:
            return []
        numbers = self.symbols.program([("value", d.poly) for d in self.free])(*sizes)
        number = dict(zip(self.free, numbers)).__getitem__
        return [
            host_function(s, *[at_sizes(x, number) for x in (s.node.params, s.arg_avals, s.out_avals)])
            for s in self.assembler.hosts
        ]


class Sized:
    """A symbolic program at given sizes."""

    __slots__ = ("out_avals", "program")

    def __init__(self, program: SizedProgram) -> None:
        self.program = program
        self.out_avals = [aval for aval, _ in program.outputs]

    def call(self, args: Sequence[Any]) -> list[Any]:
        return run_program(self.program, [to_array(a) for a in args])
