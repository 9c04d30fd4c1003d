"""Whole functions run eagerly on arrays of any size: the steps of `eager_program`, with words that
follow from the sizes of a call."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.at_sizes import at_sizes, free_in
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dims import Dim, hint_of
from calque.core.jaxprs import ClosedJaxpr, Eqn
from calque.core.symbols import Symbols
from calque.machine.driver.builder import ProgramBuilder, Slot, Varying
from calque.machine.driver.program import Program
from calque.machine.driver.sizes import Pattern
from calque.native.eager import execution as eager
from calque.native.eager import program as eager_program
from calque.native.eager.program import Inexpressible, meaning_at
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.memory import ALIGN
from calque.native.symbolic import Sized, SymbolicExecutable
from calque.transforms.engines.specialiser import TooEarly


class Builder(ProgramBuilder):
    """Writes sizes that are free as immediates that vary."""

    def _int(self, number: object) -> Any:
        return super()._int(Varying(number.hint, number) if type(number) is Dim else number)


class Assembler(eager_program.Assembler):
    """Every temporary value has a place of its own, and sizes are steps too."""

    def __init__(self, closed: ClosedJaxpr, out_avals: Sequence[Any]) -> None:
        self.rooms: list[Any] = []  # bytes of each place in the arena
        self.hosts: list[Any] = []  # what the host calls that depend on sizes are made of
        self.sizes_of_hosts: list[Dim] = []
        super().__init__(closed, out_avals)

    def begin(self, n_in: int, outputs: Sequence[tuple[Any, Any]]) -> ProgramBuilder:
        return Builder(n_in, [(aval, hint_of(size)) for aval, size in outputs])

    def room(self, size: Any) -> Slot:
        self.rooms.append(size)
        return super().room(hint_of(size))

    def step(self, e: Eqn) -> None:
        if e.primitive.name != "size_value":
            super().step(e)
            return
        (v,), d = e.outvars, e.params["dim"]
        self.builder.store(self.place(v), d, f"i{8 * v.aval.dtype.itemsize}")

    def call_host(
        self, e: Eqn, slots: Sequence[Slot], avals: Sequence[Any], outs: Sequence[Any]
    ) -> None:
        what = (e.params, list(avals), list(outs))
        self.sizes_of_hosts += free_in(what)
        if next(free_in(what), None) is None:
            super().call_host(e, slots, avals, outs)
            return
        self.builder.host(
            _stands_for_another, slots, name=e.primitive.name, key=("host", len(self.hosts))
        )
        self.hosts.append((e.primitive, *what))


def _stands_for_another(*_: int) -> None:
    raise AssertionError("a host call of no size")


class AnySize:
    """A program for every size that its symbols allow; `resized` gives the one for some."""

    def __init__(self, closed: ClosedJaxpr, symbols: Symbols, hosts: bool = True) -> None:
        out_avals = closed.out_avals
        closed = run_passes(closed)
        a = Assembler(closed, out_avals)
        for e in closed.jaxpr.eqns:
            a.step(e)
        self.program: Program = a.finish(closed.jaxpr.outvars)
        varying = [(i, d) for i, d in a.builder.varying() if type(d) is Dim]
        functions = {d[1]: i for i, d in a.builder.varying() if type(d) is not Dim}
        if a.hosts and not hosts:
            raise Inexpressible
        self.hosts, self.sizes_of_hosts = a.hosts, list(dict.fromkeys(a.sizes_of_hosts))
        places = [i for i, _ in varying] + [functions[k] for k in range(len(self.hosts))]
        self.pattern = Pattern(self.program, places)
        self.kinds = [(v.ndim, v.dtype, v.weak_type, np.dtype(v.dtype).itemsize) for v in out_avals]
        sizes = [d for _, d in varying] + a.rooms + [d for v in out_avals for d in v.shape]
        self.varying, self.rooms = len(varying), len(a.rooms)
        sizes += self.sizes_of_hosts
        self.words = symbols.program([("value", polynomial(d)) for d in sizes])
        self.words(*symbols.hints)  # raises where a size is known to the running program alone

    def resized(self, values: Sequence[int]) -> Sized:
        """The program for these sizes."""
        words = self.words(*values)
        at = self.varying + self.rooms
        outputs, arena, used = [], [], 0
        for n in words[self.varying : at]:
            arena.append(used)
            used += -(-n // ALIGN) * ALIGN
        for rank, dtype, weak, size in self.kinds:
            aval = ShapedArray(words[at : at + rank], dtype, weak)
            outputs.append((aval, aval.size * size))
            at += rank
        new = words[: self.varying]
        if not self.hosts:
            return Sized(self.pattern.program(outputs, new, None, arena, used))
        number = dict(zip(self.sizes_of_hosts, words[at:])).__getitem__
        kept = [meaning_at(p, *[at_sizes(x, number) for x in what]) for p, *what in self.hosts]
        return Sized(self.pattern.program(outputs, [*new, *map(id, kept)], None, arena, used, kept))


def polynomial(d: Any) -> Any:
    """A size as `Symbols.program` takes it."""
    if type(d) is Dim:
        return d.poly
    return (((), int(d)),) if d else ()


def executable(closed: ClosedJaxpr, symbols: Symbols, patient: bool) -> Any:
    """A program for every size: of steps, or where one primitive needs kernels of its own,
    compiled, unless we are `patient`."""
    name = closed.jaxpr.eqns[0].primitive.name if len(closed.jaxpr.eqns) == 1 else ""
    if name not in eager.COMPILED | eager.POSITIONS:
        return AnySize(closed, symbols)
    with contextlib.suppress(Inexpressible):
        return AnySize(closed, symbols, hosts=False)
    if patient:
        raise TooEarly
    return SymbolicExecutable(closed, Options(name, config.exact), symbols)
