"""Whole functions run eagerly: a program with one step for each primitive, made of the kernels that
serve every shape.

Nothing is compiled for a new shape, nothing is fused: for small arrays the cost of a call is all
that matters. What needs a kernel of its own (loops, products, indexing by arrays) is not
expressible here; such functions stay with Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.dtypes import is_extended
from calque.core.jaxprs import ClosedJaxpr, Eqn, Literal, Var
from calque.core.primitives import Primitive
from calque.machine.driver.builder import ProgramBuilder, Slot
from calque.machine.driver.program import Program
from calque.native.eager import execution as eager
from calque.native.eager import layout as eager_layout
from calque.native.library.routines import EAGER
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.program import array_at

ALIASES: Final = frozenset(
    ("reshape", "squeeze", "copy", "copy_p", "stop_gradient", "optimization_barrier")
)
MOST_STEPS: Final = 60
MOST_BYTES: Final = 1 << 20


class Inexpressible(Exception):
    """The function needs more than these steps."""


class Assembler:
    """Places for the values of a program, and its steps."""

    def __init__(self, closed: ClosedJaxpr, out_avals: Sequence[Any]):
        jaxpr = closed.jaxpr
        if closed.consts or len(jaxpr.eqns) > MOST_STEPS:
            raise Inexpressible
        self.builder = self.begin(len(jaxpr.invars), [(aval, bytes_of(aval)) for aval in out_avals])
        self.slots: dict[Any, Slot] = {v: self.builder.input(i) for i, v in enumerate(jaxpr.invars)}
        self.homes: dict[Var, Slot] = {}
        self.used = 0
        for i, a in enumerate(jaxpr.outvars):
            if isinstance(a, Var) and a not in self.slots:
                self.homes.setdefault(a, self.builder.output(i))

    def begin(self, n_in: int, outputs: Sequence[tuple[Any, Any]]) -> ProgramBuilder:
        """What the steps are written with."""
        return ProgramBuilder(n_in, outputs)

    def room(self, size: Any) -> Slot:
        """A place for so many bytes."""
        size = -(-max(size, 1) // 64) * 64
        slot = self.builder.arena(self.used, size)
        self.used += size
        if self.used > MOST_BYTES:
            raise Inexpressible
        return slot

    def read(self, a: Any) -> Slot:
        if isinstance(a, Literal):
            return self.builder.const(np.ascontiguousarray(np.asarray(a.val).astype(a.aval.dtype)))
        return self.slots[a]

    def place(self, v: Var) -> Slot:
        """Where a result is written: its output, or temporary memory."""
        slot = self.homes.get(v)
        if slot is None:
            slot = self.room(bytes_of(v.aval))
        self.slots[v] = slot
        return slot

    def step(self, e: Eqn) -> None:
        p, params = e.primitive, e.params
        avals = [a.aval for a in e.invars]
        outs = [v.aval for v in e.outvars]
        if any(is_extended(a.dtype) for a in (*avals, *outs)) or not eager.small(outs):
            raise Inexpressible
        if p.name in ALIASES and len(avals) == 1:
            self.alias(e)
            return
        form = eager.normal_form(p, avals, params, tuple(params.items()))
        made = eager.template_of(p, form) if form is not None else None
        ins = [self.read(a) for a in e.invars]
        if form is not None and made is not None:
            made.emit(self.builder, ins, [self.place(v) for v in e.outvars], form.dims)
        elif p.name in EAGER and EAGER[p.name](
            self.builder, p.name, params, ins, avals, [self.place(v) for v in e.outvars]
        ):
            pass
        elif not eager_layout.emit(
            self.builder, p.name, params, ins, avals, self.place(e.outvars[0]), outs[0]
        ):
            self.host(e, ins, avals, outs)

    def host(self, e: Eqn, ins: Sequence[Slot], avals: Sequence[Any], outs: Sequence[Any]) -> None:
        """What has neither a kernel for every shape nor a strided copy runs its meaning."""
        if (
            e.primitive.effect
            or eager.holds_programs(e.params)
            or e.primitive.name in eager.COMPILED
        ):
            raise Inexpressible
        slots = [self.place(v) if v not in self.slots else self.slots[v] for v in e.outvars]
        self.call_host(e, [*ins, *slots], avals, outs)

    def call_host(
        self, e: Eqn, slots: Sequence[Slot], avals: Sequence[Any], outs: Sequence[Any]
    ) -> None:
        """Run the meaning of a primitive."""
        self.builder.host(
            meaning_at(e.primitive, e.params, avals, outs), slots, name=e.primitive.name
        )

    def alias(self, e: Eqn) -> None:
        """The same bytes under another name; an output gets its own."""
        source, v = self.read(e.invars[0]), e.outvars[0]
        if v in self.homes:
            self.builder.copy(self.place(v), source, bytes_of(v.aval))
        else:
            self.slots[v] = source

    def finish(self, outvars: Sequence[Any]) -> Program:
        """Results that are inputs, literals, or stand twice are copied."""
        for i, a in enumerate(outvars):
            source = self.read(a)
            if source != self.builder.output(i):
                self.builder.copy(self.builder.output(i), source, bytes_of(a.aval))
        return self.builder.build()


def bytes_of(aval: Any) -> Any:
    """Bytes of the elements, where sizes may be free."""
    return aval.size * int(aval.dtype.itemsize)


def meaning_at(
    primitive: Primitive, params: dict[str, Any], avals: Sequence[Any], outs: Sequence[Any]
) -> Any:
    """A function of addresses that runs the meaning of a primitive."""

    def run(*addresses: int) -> None:
        args = [array_at(p, a) for p, a in zip(addresses, avals)]
        for a in args:
            a.flags.writeable = False
        with np.errstate(all="ignore"):
            out = primitive.meaning(*args, **params)
        for p, aval, x in zip(
            addresses[len(avals) :], outs, out if primitive.multiple_results else [out]
        ):
            array_at(p, aval)[...] = x

    return run


def assemble(closed: ClosedJaxpr) -> Program:
    """The program of one step for each equation. Raises Inexpressible."""
    out_avals = closed.out_avals  # passes may give a result the variable of another that is weaker
    closed = run_passes(closed)
    a = Assembler(closed, out_avals)
    for e in closed.jaxpr.eqns:
        a.step(e)
    return a.finish(closed.jaxpr.outvars)
