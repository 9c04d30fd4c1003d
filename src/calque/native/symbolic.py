"""Programs for every size: kernels take their sizes when they are called, so only the driver's
words differ from size to size.

A program is planned once, with free sizes. `resized` works out its words for given sizes: the
arguments of kernels, bytes to copy, the types of results, the places of temporaries. That takes
some microseconds; nothing is traced, planned or compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import to_array
from calque.core.at_sizes import at_sizes, free_in
from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import MemoryStats, Options
from calque.core.dims import hint_of, poly_of
from calque.core.jaxprs import ClosedJaxpr
from calque.core.symbols import Symbols
from calque.machine.call.arrays import as_numpy, share
from calque.machine.call.functions import run_program
from calque.machine.driver.builder import Reg, Slot, Varying
from calque.machine.driver.program import Program
from calque.machine.driver.sizes import Pattern, SizedProgram
from calque.native.emit.alike import Argument
from calque.native.emit.kernels import Kernel
from calque.native.executable import Planned, is_long
from calque.native.lower.sizes import Sizes
from calque.native.plan.memory import ALIGN, arrange
from calque.native.plan.program import Assembler, host_function
from calque.native.plan.steps import Count, Host, Made, Step
from calque.native.scalars.expr import Buffer, Expr, const, ex, item_size
from calque.native.schedule.nests import Schedule

OF_FOUND_SIZE: Final = ShapedArray((0,), np.dtype(np.uint8))  # until the size is known
SPARE: Final = 8  # bytes behind the end of a block of found size, which kernels may write
MOST_KNOWN: Final = 512  # found sizes of which the types of results are kept


class SymbolicAssembler(Assembler):
    """Writes the words that depend on free sizes as immediates that vary."""

    def __init__(
        self,
        sizes: Sizes,
        params: dict[str, Any],
        sizes_of: dict[Buffer, int],
        kernels: dict[Schedule, Kernel],
    ) -> None:
        super().__init__(sizes, params, sizes_of, kernels)
        # Host calls, each with the found sizes that it is told, and constants that depend on sizes.
        self.hosts: list[tuple[Host | Made, list[str]]] = []
        self.unallocated: dict[
            Buffer, Slot
        ] = {}  # blocks of found sizes that are not allocated yet
        self.found_results: list[tuple[int, Buffer]] = []  # results of found sizes
        self.depth = 0
        self.reported: dict[
            str, int
        ] = {}  # found sizes that the caller has to know -> which word of the last result
        self.rooms: list[Expr] = []  # bytes of each part of the arena
        self.room_of: list[int] = []  # the part in which each place of the arena lies

    def word(self, e: Expr) -> Any:
        """A size as an operand."""
        found = e.names & self.sizes.found.keys()
        if not found <= self.counters.keys():
            raise AssertionError(
                f"a size is used before the program has found it: {', '.join(sorted(found))}"
            )
        if found:
            return self.integer(e)
        value = self.sizes.hinted.value(e)
        return value if self.sizes.free.isdisjoint(e.names) else Varying(value, e)

    def size(self, name: Argument) -> Any:
        if name in self.counters or name not in self.sizes.free:
            return super().size(name)
        return self.word(self.sizes.symbol(name))

    def known(self, e: Expr) -> int:
        made: int = self.word(e)
        return made

    def bytes_of(self, b: Buffer) -> Any:
        return self.word(bytes_expr(b))

    def is_found(self, b: Buffer) -> bool:
        """Whether the size of a buffer is one that the program finds."""
        return not self.sizes.found.keys().isdisjoint(bytes_expr(b).names)

    def results(self, outputs: Sequence[tuple[Buffer, Any]]) -> list[tuple[Any, int]]:
        """Blocks of found sizes are the program's; then there is one more result, those sizes."""

        def names_of(aval: Any) -> set[str]:
            return {
                n for d in aval.shape for n in self.sizes.dim(d).names
            } & self.sizes.found.keys()

        self.found_results = [(i, b) for i, (b, aval) in enumerate(outputs) if names_of(aval)]
        mine = {i for i, _ in self.found_results}
        out = [
            (OF_FOUND_SIZE, -1) if i in mine else (aval, nbytes(aval))
            for i, (_, aval) in enumerate(outputs)
        ]
        names = sorted(set().union(*[names_of(aval) for _, aval in outputs]))
        self.reported = {n: k for k, n in enumerate(names)}
        return [*out, (ShapedArray((len(names),), np.int64), 8 * len(names))] if names else out

    def result(self, i: int, b: Buffer) -> Slot:
        return self.block(b) if i in dict(self.found_results) else super().result(i, b)

    def block(self, b: Buffer) -> Slot:
        """A block that is allocated when its size is known."""
        slot = self.unallocated[b] = self.builder.owned()
        return slot

    def before(self, s: Step) -> None:
        """Allocate the blocks that a step touches."""
        if not self.unallocated:
            return
        for b in s.reads() | s.writes():
            slot = self.unallocated.get(b)
            if slot is not None and all(
                n in self.counters for n in bytes_expr(b).names & self.sizes.found.keys()
            ):
                del self.unallocated[b]
                self.builder.alloc(slot, self.word(ex("add", bytes_expr(b), const(SPARE))))

    def count(self, s: Count) -> None:
        super().count(s)
        if s.name in self.reported:
            place = self.builder.output(len(self.builder.outputs) - 1)
            self.builder.store(place, self.counters[s.name], "i64", 8 * self.reported[s.name])

    def steps(self, steps: Sequence[Step]) -> None:
        """A list of steps; the sizes that it finds are its own."""
        known = set(self.counters)
        self.depth += 1
        super().steps(steps)
        self.depth -= 1
        if self.depth:
            for name in self.sizes.found.keys() & self.counters.keys() - known:
                del self.counters[name]

    def finish(self) -> None:
        for slot in self.unallocated.values():  # nothing is written to them
            self.builder.alloc(slot, SPARE)
        for i, b in self.found_results:
            self.builder.give(i, self.slots[b])

    def lay_out(self, steps: Sequence[Step], temporaries: set[Buffer]) -> None:
        """Buffers share a part of the arena where they are never needed at the same time, and are
        of one size for all sizes."""
        found = {b for b in temporaries if self.is_found(b)}
        self.slots |= {b: self.block(b) for b in found}
        offsets, _ = arrange(steps, temporaries - found, self.nbytes)
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
        if next(free_in([s.arg_avals, s.out_avals, s.params]), None) is not None:
            found = [n for n in self.sizes.found if n in self.counters]
            self.hosts.append((s, found))
            words: list[Slot | Reg | int] = [*args, *[self.counters[n] for n in found]]
            self.builder.host(function, words, name=s.op, key=("host", len(self.hosts) - 1))
        else:
            super().host_call(s, function, args)

    def operand(self, word: Any) -> Any:
        if isinstance(word, Made) and next(free_in(word.sizes), None) is not None:
            array = word.function(*map(hint_of, word.sizes))
            self.hosts.append((word, []))
            self.builder.const(array)  # lives as long as the program
            return Varying(array.ctypes.data, ("host", len(self.hosts) - 1))
        return super().operand(word)


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


_SIGNS: Final = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}


def python_text(e: Expr) -> str:
    """A size expression as Python."""
    if e.op == "const":
        return str(e.attr)
    if e.op == "var":
        return str(e.attr[0])
    a, b = map(python_text, e.args)
    return f"({a} {_SIGNS[e.op]} {b})" if e.op in _SIGNS else f"{e.op}({a}, {b})"


class Resizable:
    """A driver program with free sizes, as `assembler` wrote it, with results of these types;
    `resized` makes the program for some sizes."""

    def __init__(
        self,
        assembler: SymbolicAssembler,
        program: Program,
        out_avals: Sequence[ShapedArray],
        symbols: Symbols,
    ) -> None:
        self.assembler, self.program = assembler, program
        self.out_avals, self.symbols = out_avals, symbols
        self.words = self.evaluator()
        self.makers = [self.maker(s, found) for s, found in assembler.hosts]
        self.pattern = Pattern(program, self.places)
        self.kinds = [  # of the results, but those of found sizes
            None if i in self.found else (a.ndim, a.dtype, a.weak_type, int(a.dtype.itemsize))
            for i, a in enumerate(out_avals)
        ]

    def evaluator(self) -> Callable[..., tuple[int, ...]]:
        """A function of the sizes: varying immediates, parts of the arena, dimensions of the
        results."""
        builder, sizes = self.assembler.builder, self.assembler.sizes
        varying = [(i, e) for i, e in builder.varying() if isinstance(e, Expr)]
        self.places = [i for i, _ in varying] + [
            i for i, key in builder.varying() if not isinstance(key, Expr)
        ]
        self.varying = len(varying)
        exprs = [e for _, e in varying] + self.assembler.rooms
        self.dimensions_at = len(exprs)
        found = self.found = {i for i, _ in self.assembler.found_results}
        exprs += [
            sizes.dim(d) for i, a in enumerate(self.out_avals) if i not in found for d in a.shape
        ]
        names = ", ".join(f"n{i}" for i in range(len(self.symbols.hints)))
        scope: dict[str, Any] = {
            name: n for name, n in sizes.values.items() if name not in sizes.free
        }
        values = "".join([f"{python_text(e)}, " for e in exprs])
        exec(f"def words({names}):\n return ({values})", scope)
        words: Callable[..., tuple[int, ...]] = scope["words"]
        return words

    def resized(self, sizes: Sequence[int]) -> Sized | SizedByProgram:
        """The program for these sizes."""
        words = self.words(*sizes)
        at, values = self.dimensions_at, words[: self.varying]
        outputs, arena, total, kept = [], None, 0, []
        for kind in self.kinds:
            if kind is None:
                outputs.append((OF_FOUND_SIZE, -1))
                continue
            rank, dtype, weak, item = kind
            aval = ShapedArray(words[at : at + rank], dtype, weak)
            at += rank
            outputs.append((aval, aval.size * item))
        if self.found:
            outputs += self.program.outputs[len(self.kinds) :]
        if self.assembler.rooms:
            starts, total = places(words[self.varying : self.dimensions_at])
            arena = [starts[r] for r in self.assembler.room_of]
        if self.makers:
            kept = [make(*sizes) for make in self.makers]
            pointers = [x.ctypes.data if isinstance(x, np.ndarray) else id(x) for x in kept]
            values = (*values, *pointers)
        program = self.pattern.program(outputs, values, None, arena, total, kept)
        return SizedByProgram(program, self, sizes) if self.found else Sized(program)

    def shapes_found(self, sizes: Sequence[int], found: Sequence[int]) -> dict[int, ShapedArray]:
        """The types of the results whose size the program has found."""
        known = self.numbers_of_found()
        values = {f"a{known[name]}": found[k] for name, k in self.assembler.reported.items()}
        out = {}
        for i, _ in self.assembler.found_results:
            a = self.out_avals[i]
            polys = [poly_of(d) or () for d in a.shape]
            needed = {f"a{j}" for j in self.symbols.needed(polys)}
            shape = self.symbols.program([("value", p) for p in polys])(
                *sizes, **{k: v for k, v in values.items() if k in needed}
            )
            out[i] = ShapedArray(shape, a.dtype, a.weak_type)
        return out

    def numbers_of_found(self) -> dict[str, int]:
        """The atom of each found size, by the name that it has in kernels."""
        return {f"f{a}": i for i, (op, a, _) in enumerate(self.symbols.atoms) if op == "found"}

    def maker(self, s: Host | Made, found: list[str]) -> Callable[..., Any]:
        """What makes a host call, or a constant, for given sizes."""
        return self.constants(s) if isinstance(s, Made) else self.host_calls(s, found)

    def constants(self, s: Made) -> Callable[..., np.ndarray]:
        """A constant for given sizes."""
        numbers = self.symbols.program([("value", poly_of(n) or ()) for n in s.sizes])
        return lambda *sizes: s.function(*numbers(*sizes))

    def host_calls(self, s: Host, found: list[str]) -> Callable[..., Callable[..., None]]:
        """A host call for given sizes; those that the program has found come after the
        addresses."""
        atoms, described = self.numbers_of_found(), (s.params, s.arg_avals, s.out_avals)
        used = list(dict.fromkeys(free_in(described)))
        polys = [d.poly for d in used]
        numbers = self.symbols.program([("value", p) for p in polys])
        needed = set(self.symbols.needed(polys))

        def at(sizes: Sequence[int], words: Sequence[int]) -> Callable[..., None]:
            known = {f"a{atoms[f]}": v for f, v in zip(found, words) if atoms[f] in needed}
            number = dict(zip(used, numbers(*sizes, **known))).__getitem__
            return host_function(s, *[at_sizes(x, number) for x in described])

        if not found:
            return lambda *sizes: at(sizes, ())

        def making(*sizes: int) -> Callable[..., None]:
            def call(*words: int) -> None:
                split = len(words) - len(found)
                at(sizes, words[split:])(*words[:split])

            return call

        return making


class SymbolicExecutable(Planned):
    """A program with free sizes; `resized` makes the program for some."""

    def __init__(self, closed: ClosedJaxpr, options: Options, symbols: Symbols) -> None:
        super().__init__(closed, options, Sizes())
        p = self.planner
        assembler = SymbolicAssembler(p.sizes, p.params, p.bytes, self.code)
        self.template: Program = assembler.program(
            self.inputs, self.outputs, p.consts, p.mutable, self.steps, is_long(self)
        )
        self.program: Any = self.template
        self.resizable = Resizable(assembler, self.template, self.out_avals, symbols)

    @property
    def driver(self) -> Program:
        return self.template

    def resized(self, sizes: Sequence[int]) -> Sized | SizedByProgram:
        """The program for these sizes."""
        return self.resizable.resized(sizes)


class Sized:
    """A symbolic program at given sizes."""

    __slots__ = ("program",)

    def __init__(self, program: SizedProgram) -> None:
        self.program = program

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the results."""
        return [aval for aval, _ in self.program.outputs]

    def call(self, args: Sequence[Any]) -> list[Any]:
        return run_program(self.program, [to_array(a) for a in args])


class SizedByProgram:
    """As `Sized`, with results whose sizes the program finds: it is called from Python, which makes
    their types."""

    def __init__(self, program: SizedProgram, executable: Resizable, sizes: Sequence[int]) -> None:
        self.program = None  # none for the machine's call path
        self.running, self.executable, self.sizes = program, executable, tuple(sizes)
        self.out_avals = executable.out_avals
        self.known: dict[tuple[int, ...], dict[int, ShapedArray]] = {}

    def call(self, args: Sequence[Any]) -> list[Any]:
        out = run_program(self.running, [to_array(a) for a in args])
        found = tuple(as_numpy(out[-1], np.dtype(np.int64), out[-1].shape).tolist())
        avals = self.known.get(found)
        if avals is None:
            avals = self.executable.shapes_found(self.sizes, found)
            if len(self.known) < MOST_KNOWN:
                self.known[found] = avals
        return [share(x, avals[i]) if i in avals else x for i, x in enumerate(out[:-1])]


class FoundExecutable(SymbolicExecutable):
    """A program whose only free sizes are those that it finds while it runs."""

    def __init__(self, closed: ClosedJaxpr, options: Options, symbols: Symbols) -> None:
        super().__init__(closed, Options(options.name, options.exact), symbols)
        self.sized = self.resized(())
        self.program = (
            None if options.donated else self.sized.program
        )  # from Python, which deletes what was donated

    def call(self, args: Sequence[Any]) -> list[Any]:
        return self.sized.call(args)

    def memory_analysis(self) -> MemoryStats:
        """Bytes; sizes that are found count as their bounds."""
        return MemoryStats(
            sum(map(nbytes, self.in_avals)),
            sum(map(nbytes, self.out_avals)),
            int(self.template.arena_bytes),
        )


def compile(closed: ClosedJaxpr, options: Options, symbols: Symbols) -> SymbolicExecutable:
    """The public entry: with no free sizes but those that are found, an executable for arguments of
    one kind."""
    return (
        SymbolicExecutable(closed, options, symbols)
        if symbols.hints
        else FoundExecutable(closed, options, symbols)
    )
