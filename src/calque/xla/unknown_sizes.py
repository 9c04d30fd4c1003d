"""Programs whose sizes are not all known when they are traced. XLA has fixed sizes only: it
compiles such a program for the sizes of a call, and where a size is found while the program runs,
the program is cut there; what comes after is compiled for the number that was found. Loops and
branches whose bodies find sizes are not cut: calque's own engine runs them, called back on the
host.

    x -> [n = sum(mask)] -> n = 3 -> [places of 3, ...] -> results"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from calque.core.arrays import to_array, to_numpy
from calque.core.at_sizes import at_sizes, free_in, program_at
from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import MemoryStats, Options
from calque.core.dims import Dim
from calque.core.errors import DataDependentSizeError
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, without_places
from calque.core.symbols import Symbols
from calque.machine.caches import Entries, Tables
from calque.native.passes.inline import inline_calls
from calque.transforms.primitives.found_sizes import found_in
from calque.xla.engine import Executable

_COMPILED: Final[Tables[tuple[int, ...], Executable]] = Tables(
    "programs of XLA at sizes that were found", 256, programs=True
)


class Piece:
    """A part of a program that runs without a break: a program of what comes before it, and the
    sizes that it finds: (the atom of each, its position among the results)."""

    def __init__(
        self, program: ClosedJaxpr, reads: Sequence[Var], finds: Sequence[tuple[int, int]]
    ) -> None:
        self.program, self.reads, self.finds = program, tuple(reads), tuple(finds)
        within = found_in(program.jaxpr)  # by bodies of loops and branches
        self.needs = sorted(roots_of(program.jaxpr) - within)
        self.compiled: Entries[tuple[int, ...], Executable] = _COMPILED.new()

    def at(self, number: Callable[[Dim], Any], found: Mapping[int, int], options: Options) -> Any:
        """The program for sizes that were found."""
        key = tuple([found[i] for i in self.needs])
        known = self.compiled.find(key)
        if known is None:
            known = Executable(at_sizes(self.program, number), options)
            self.compiled[key] = known
        return known


class InPieces:
    """A program that finds sizes while it runs, for given sizes of its arguments."""

    program: Any = None  # it is called from Python
    copies = True  # arguments that are no arrays, to its devices
    kernels: Sequence[Any] = ()

    def __init__(
        self, closed: ClosedJaxpr, options: Options, symbols: Symbols, sizes: Sequence[int]
    ) -> None:
        self.symbols, self.sizes = symbols, tuple(sizes)
        self.options = replace(options, donated=())
        self.closed = at_sizes(closed, lambda d: self.number(d, {}))
        self.in_avals: Sequence[ShapedArray] = self.closed.in_avals
        self.out_avals: Sequence[ShapedArray] = self.closed.out_avals
        self.pieces = pieces_of(self.closed)
        self.last: list[Executable] = []  # what ran in the last call

    def number(self, d: Dim, found: Mapping[int, int]) -> Any:
        """A size, once all are found that it is made of; until then as it is."""
        roots = self.symbols.roots(d.poly)
        if not roots <= found.keys():
            return d
        known = {f"a{i}": found[i] for i in roots}
        return self.symbols.program([("value", d.poly)])(*self.sizes, **known)[0]

    def call(self, args: Sequence[Any]) -> list[Any]:
        """The results. It waits for each size that is found."""
        values: dict[Var, Any] = dict(zip(self.closed.jaxpr.invars, map(to_array, args)))
        found: dict[int, int] = {}
        ran, out = [], []
        for piece in self.pieces:
            executable = piece.at(lambda d: self.number(d, found), found, self.options)
            out = executable.call([values[v] for v in piece.reads])
            ran.append(executable)
            written = zip(piece.program.jaxpr.outvars, out, strict=True)
            values.update({v: x for v, x in written if isinstance(v, Var)})
            found.update({atom: int(to_numpy(out[at])) for atom, at in piece.finds})
        self.last = ran
        return out[: len(self.out_avals)]

    def compiled(self) -> list[Executable]:
        """The programs of the last call; before any, the first of them."""
        if not self.last:
            self.last = [self.pieces[0].at(lambda d: self.number(d, {}), {}, self.options)]
        return self.last

    @property
    def host_calls(self) -> list[str]:
        """The operations that run in Python."""
        return [name for e in self.compiled() for name in e.host_calls]

    @property
    def units(self) -> int:
        """How many loops and calls XLA made of it."""
        return sum(e.units for e in self.compiled())

    def as_text(self, stage: str | None = None) -> str:
        """The pieces at the sizes of the last call."""
        if stage == "jaxpr":
            return str(self.closed)
        made = self.compiled()
        head = f"// {len(self.pieces)} programs: the first finds sizes, which the others are for\n"
        rest = "" if len(made) > 1 else "// the others are compiled when their sizes are found\n"
        return head + "\n\n".join(e.as_text(stage) for e in made) + rest

    def cost_analysis(self) -> dict[str, float]:
        """The costs of the last call."""
        total: dict[str, float] = {}
        for e in self.compiled():
            for k, v in e.cost_analysis().items():
                total[k] = total.get(k, 0.0) + v
        return total

    def memory_analysis(self) -> MemoryStats:
        """The memory of the last call; results of sizes that are found count as their bounds."""
        parts = [e.memory_analysis() for e in self.compiled()]
        return MemoryStats(
            sum(map(nbytes, self.in_avals)),
            sum(map(nbytes, self.out_avals)),
            max(p.temp_size_in_bytes for p in parts),
            0,
            sum(p.generated_code_size_in_bytes for p in parts),
        )


class AnySize:
    """A program with free sizes, which `resized` compiles for some."""

    program: Any = None
    kernels: Sequence[Any] = ()
    host_calls: Sequence[str] = ()
    units = 0

    def __init__(self, closed: ClosedJaxpr, options: Options, symbols: Symbols) -> None:
        self.closed, self.options, self.symbols = closed, options, symbols
        self.in_avals, self.out_avals = closed.in_avals, closed.out_avals
        self.finds = bool(found_in(closed.jaxpr))

    def resized(self, sizes: Sequence[int]) -> Any:
        """The program for these sizes."""
        if self.finds:
            return InPieces(self.closed, self.options, self.symbols, sizes)
        return Executable(program_at(self.closed, self.symbols, sizes), self.options)

    def as_text(self, stage: str | None = None) -> str:
        """The program with its free sizes: XLA's own are made for each."""
        return str(self.closed)


# ---------------------------------------------------------------- pieces


def pieces_of(closed: ClosedJaxpr) -> list[Piece]:
    """The program cut ahead of the first equation that mentions a size found since the last
    cut."""
    groups: list[list[Eqn]] = [[]]
    waiting: set[int] = set()
    for e in closed.jaxpr.eqns:
        if e.primitive.name == "let_size":
            waiting |= roots_of(e.params["size"])
        elif waiting & roots_of([e.params, [v.aval for v in e.outvars]]):
            groups.append([])
            waiting = set()
        groups[-1].append(e)
    consts = dict(zip(closed.jaxpr.constvars, closed.consts))
    made = [piece_of(groups[-1], closed.jaxpr.outvars, consts)]
    later = dict.fromkeys(made[0].reads)
    for group in reversed(groups[:-1]):
        own = {v for e in group for v in e.outvars}
        piece = piece_of(group, [v for v in later if v in own], consts)
        made.append(piece)
        later |= dict.fromkeys(piece.reads)
    return made[::-1]


def roots_of(x: Any) -> set[int]:
    """The found sizes that parameters or types mention, as atoms."""
    return {i for d in free_in(x) for i in d.symbols.roots(d.poly)}


def piece_of(group: Sequence[Eqn], wanted: Sequence[Any], consts: Mapping[Var, Any]) -> Piece:
    """The piece of these equations that gives what is wanted of them."""
    eqns = [e for e in group if e.primitive.name != "let_size"]
    finding = [e for e in group if e.primitive.name == "let_size"]
    outs = [*wanted]
    finds = []
    for e in finding:
        finds.append((e.params["size"].poly[0][0][0], len(outs)))
        outs.append(e.invars[0])
    own = {v for e in eqns for v in e.outvars}
    read = [a for e in eqns for a in e.invars] + outs
    before = dict.fromkeys(a for a in read if not isinstance(a, Literal) and a not in own)
    given = [v for v in before if v not in consts]
    held = [v for v in before if v in consts]
    jaxpr = Jaxpr(held, given, outs, eqns)
    return Piece(ClosedJaxpr(jaxpr, [consts[v] for v in held]), given, finds)


def compile(closed: ClosedJaxpr, options: Options, symbols: Symbols) -> Any:
    """The public entry: a program with free sizes, or one whose only free sizes are those that it
    finds."""
    if options.places is not None and len(options.places.devices) > 1:
        raise DataDependentSizeError(
            f"{options.name}: a program over several devices of XLA has fixed sizes only: give the"
            " function that finds a size a static size= (and fill_value=)"
        )
    closed = inline_calls(without_places(closed))
    made = AnySize(closed, options, symbols)
    return made if symbols.hints else made.resized(())


__all__ = ["AnySize", "InPieces", "compile"]
