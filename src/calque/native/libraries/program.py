"""A program that is planned for a library: no process runs it, so nothing of it is linked, and what
it calls must have machine code of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import Options
from calque.core.dims import is_found, is_symbolic
from calque.core.jaxprs import ClosedJaxpr
from calque.core.symbols import Symbols
from calque.machine.code.digest import digest
from calque.machine.code.shared_object import Table
from calque.machine.driver.interpreter import Header
from calque.machine.driver.program import External, Program
from calque.native import routines as outside
from calque.native.emit import kernels
from calque.native.emit.kernels import Kernel
from calque.native.emit.making import Making
from calque.native.executable import Planned
from calque.native.loops.tree import Body
from calque.native.lower.sizes import Sizes
from calque.native.plan.program import Assembler
from calque.native.plan.steps import Made
from calque.native.scalars.expr import Expr
from calque.native.schedule.nests import Schedule
from calque.native.symbolic import SymbolicAssembler


class _AtOnce:
    """A parallel loop is not cut into pieces between which signals are looked at."""

    def piece(self, schedule: Schedule) -> None:
        return None


class FixedAssembler(_AtOnce, Assembler):
    """Writes a program of fixed sizes."""


class FreeAssembler(_AtOnce, SymbolicAssembler):
    """Writes a program with free sizes, or such as it finds."""


class _Apart(Making):
    """Kernels that this process does not run: none is compiled before the library is."""

    def begin(
        self, bodies: Sequence[Body], values: Mapping[str, int], brief: Collection[int] = ()
    ) -> None:
        self.began = True

    def finish(
        self, bodies: Sequence[Body], values: Mapping[str, int], brief: Collection[int] = ()
    ) -> list[Kernel]:
        return kernels.apart(bodies, exact=self.exact)


class LibraryProgram(Planned):
    """A program planned for a library, in which it has a number. Its sizes are fixed, or those of
    `symbols`."""

    maker = _Apart

    def __init__(
        self, closed: ClosedJaxpr, options: Options, symbols: Symbols, number: int = 0
    ) -> None:
        self.number = number
        super().__init__(closed, options, Sizes())
        self.refuse_host_calls()
        p, self.symbols = self.planner, symbols
        make = FreeAssembler if len(symbols.atoms) else FixedAssembler
        self.assembler = make(p.sizes, p.params, p.bytes, self.code)
        self.refuse_results()
        self.program: Program = self.assembler.program(
            self.inputs, self.outputs, p.consts, p.mutable, self.steps, False
        )
        self.refuse_tables()

    # ---------------------------------------------------------------- what becomes no library

    def refuse_host_calls(self) -> None:
        """What would call Python, or SciPy."""
        lines = [f"{name} (runs in Python)" for name in dict.fromkeys(self.host_calls)]
        for r in self.routines:
            known = [w.name for w in (*r.words, r.address) if type(w) is External]
            lapack = [name for name in known if outside.is_library_function(name)]
            if lapack:
                lines.append(f"{r.name} (calls {', '.join(lapack)} of SciPy)")
        if lines:
            raise NotImplementedError(
                f"{self._name}: a library has machine code alone, and these operations have none of"
                f" their own: {'; '.join(dict.fromkeys(lines))}. Leave them to the host: export"
                " what comes before and after as libraries of their own"
            )

    def refuse_results(self) -> None:
        for k, aval in enumerate(self.out_avals):
            if any(is_found(d) for d in aval.shape):
                raise NotImplementedError(
                    f"{self._name}: the size of result {k} is found while the program runs, but its"
                    " memory is the caller's. Give the function that makes it a size= (and"
                    " fill_value=), and return the number of elements beside it"
                )

    def refuse_tables(self) -> None:
        """Constants that Python makes anew for each size."""
        hosts = getattr(self.assembler, "hosts", ())
        if not hosts:
            return
        made = {id(s) for s, _ in hosts if isinstance(s, Made)}
        names = [r.name for r in self.routines if any(id(w) in made for w in r.words)]
        raise NotImplementedError(
            f"{self._name}: {', '.join(dict.fromkeys(names))} needs tables that are made for one"
            " size: give a number in place of the name of that size"
        )

    @property
    def _name(self) -> str:
        return f"export_library of {self.options.name}"

    # ---------------------------------------------------------------- what it is made of

    def routine_names(self) -> list[str]:
        """What it calls beside its kernels."""
        places = self.places()
        names = [name for _, name in (*places.calls, *places.externals)]
        return [name for name in dict.fromkeys(names) if " " in name]

    def places(self) -> Any:
        places = self.program.places
        assert places is not None, "a program that calls something without a name"
        return places

    def varying(self) -> list[tuple[int, Expr]]:
        """The words of the frame that depend on free sizes: where, and how."""
        frame, builder = self.program.frame, self.assembler.builder
        return [(frame.offset("imm", i), e) for i, e in builder.varying()]

    def rooms(self) -> tuple[Sequence[Expr], Sequence[int]]:
        """Bytes of the parts of the arena, and in which part each of its places lies."""
        a = self.assembler
        return (a.rooms, a.room_of) if isinstance(a, FreeAssembler) else ((), ())

    def table(self, name: str) -> str:
        """The name of a table of this program in the library."""
        return f"library{self.number}_{name}"

    def tables(self) -> list[Table]:
        """The words of the program, and its constants, which others may have, too."""
        program, places = self.program, self.places()
        _, template, offsets = program.words()
        frame = program.frame
        code = program.code.copy()
        code[[at for at, _ in places.calls]] = 0
        contents = [np.ascontiguousarray(a).tobytes() for a in places.arrays]
        arrays = [(f"library_constant_{digest(c).hex()}", c) for c in contents]
        first = frame.starts["const"] - frame.starts["own"]
        filled = [(8 * (first + k), name, 0) for k, (name, _) in enumerate(arrays)]
        filled += [
            (8 * (program.first_immediate + i), symbol(name), 0) for i, name in places.externals
        ]
        words = np.array(template, np.int64)
        words[[at // 8 for at, _, _ in filled]] = 0
        calls = [(8 * at, symbol(name), 0) for at, name in places.calls]
        varying = [at for at, _ in self.varying()]
        return [
            self.header(),
            Table(self.table("code"), code.tobytes(), calls),
            Table(self.table("template"), words.tobytes(), filled),
            Table(self.table("offsets"), np.array(offsets, np.int64).tobytes()),
            Table(self.table("places"), np.array([len(varying), *varying], np.int64).tobytes()),
            *[Table(name, content) for name, content in arrays],
        ]

    def header(self) -> Table:
        """What the interpreter reads first."""
        words = self.program.words()[0]
        names = list(Header.fields)
        pointed = {"code": "code", "template": "template", "arena_offsets": "offsets"}
        unused = ("out_nbytes", "out_avals", "donated", "flags")
        numbers = [0 if n in pointed or n in unused else w for n, w in zip(names, words)]
        places = [(8 * names.index(f), self.table(name), 0) for f, name in pointed.items()]
        return Table(self.table("program"), np.array(numbers, np.int64).tobytes(), places)


def symbol(name: str) -> str:
    """The symbol of a kernel or a routine in a library."""
    return name.partition(" ")[2] or name


def no_bytes(aval: ShapedArray) -> bool:
    """Whether an array has no elements, whatever its free sizes."""
    return not is_symbolic(aval.shape) and nbytes(aval) == 0
