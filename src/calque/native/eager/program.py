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

from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import hint_of
from calque.core.dtypes import is_extended
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from calque.core.lazy import LazyModule
from calque.machine.driver.program import Program
from calque.native.eager import execution as eager
from calque.native.eager import layout as eager_layout
from calque.native.library.routines import ROUTINES
from calque.native.lower.graph import memory_type
from calque.native.lower.rules import buffer_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.memory import ALIGN
from calque.native.plan.program import Assembler
from calque.native.plan.steps import Copy, Host, Step, WriteSize
from calque.native.scalars.expr import Buffer, Expr

checks = LazyModule("calque.native.plan.verify")
ALIASES: Final = frozenset(
    ("reshape", "squeeze", "copy", "copy_p", "stop_gradient", "optimization_barrier")
)
MOST_STEPS: Final = 60
MOST_BYTES: Final = 1 << 20


class BeyondSteps(Exception):
    """The function needs more than these steps."""


class EagerSteps:
    """A program as one step for each equation, with a buffer for each value. Without free sizes
    nobody asks for the extents of a buffer, but for its bytes."""

    def __init__(self, jaxpr: Jaxpr, out_avals: Sequence[ShapedArray], free: bool) -> None:
        self.sizes, self.free = Sizes(), free
        self.kinds: dict[ShapedArray, tuple[tuple[Expr, ...], str, int]] = {}
        self.bytes: dict[Buffer, int] = {}
        self.consts: list[tuple[Buffer, np.ndarray]] = []
        self.temporaries: set[Buffer] = set()
        self.used = 0  # bytes of them
        self.steps: list[Step] = []
        self.inputs = [self.buffer(v.aval) for v in jaxpr.invars]
        self.outputs = [(self.buffer(aval), aval) for aval in out_avals]
        self.buffers: dict[Any, Buffer] = dict(zip(jaxpr.invars, self.inputs))
        self.homes: dict[Var, Buffer] = {}
        for a, (home, _) in zip(jaxpr.outvars, self.outputs):
            if isinstance(a, Var) and a not in self.buffers:
                self.homes.setdefault(a, home)
        for e in jaxpr.eqns:
            self.step(e)
        for a, (home, _) in zip(jaxpr.outvars, self.outputs):
            source = self.read(a)  # inputs, literals, and what is given twice
            if source is not home:
                self.steps.append(Copy(home, source))

    def buffer(self, aval: ShapedArray) -> Buffer:
        found = self.kinds.get(aval)
        if found is None:
            shape, dtype = memory_type(aval)
            extents = tuple([self.sizes.dim(d) for d in shape]) if self.free else ()
            found = extents, dtype, hint_of(aval.size * int(aval.dtype.itemsize))
            self.kinds[aval] = found
        extents, dtype, nbytes = found
        made = buffer_of(f"b{len(self.bytes)}", extents, dtype)
        self.bytes[made] = nbytes
        return made

    def read(self, a: Any) -> Buffer:
        if not isinstance(a, Literal):
            return self.buffers[a]
        made = self.buffer(a.aval)
        value = np.ascontiguousarray(np.asarray(a.val).astype(a.aval.dtype))
        self.consts.append((made, value))
        return made

    def place(self, v: Var) -> Buffer:
        """Where a result is written: its output, or temporary memory."""
        made = self.homes.get(v)
        if made is None:
            made = self.buffer(v.aval)
            self.temporaries.add(made)
            self.used += -(-self.bytes[made] // ALIGN) * ALIGN
            if self.used > MOST_BYTES:
                raise BeyondSteps
        self.buffers[v] = made
        return made

    def step(self, e: Eqn) -> None:
        p, params = e.primitive, e.params
        avals = [a.aval for a in e.invars]
        out_avals = [v.aval for v in e.outvars]
        if p.name == "size_value":
            self.steps.append(WriteSize(params["dim"], self.place(e.outvars[0])))
            return
        if any(is_extended(a.dtype) for a in (*avals, *out_avals)) or not eager.small(out_avals):
            raise BeyondSteps
        if p.name in ALIASES and len(avals) == 1:
            self.alias(e)
            return
        ins = [self.read(a) for a in e.invars]
        outs = [self.place(v) for v in e.outvars]
        form = eager.normal_form(p, avals, params, tuple(params.items()))
        kernel = eager.template_of(p, form) if form is not None else None
        if form is not None and kernel is not None:
            self.steps.append(kernel.step(ins, outs, form.dims))
            return
        if p.name in ROUTINES:
            routine = ROUTINES[p.name](p.name, params, avals, ins, outs)
            if routine is not None:
                self.steps.append(routine)
                return
        copies = eager_layout.copies(p.name, params, ins, avals, outs[0], out_avals[0])
        if copies is not None:
            self.steps += copies
            return
        # what has neither a kernel for every shape nor a strided copy runs its meaning
        if p.effect or eager.holds_programs(params) or p.name in eager.COMPILED:
            raise BeyondSteps
        self.steps.append(Host(p.name, params, ins, outs, avals, out_avals))

    def alias(self, e: Eqn) -> None:
        """The same bytes under another name; an output gets its own."""
        source, v = self.read(e.invars[0]), e.outvars[0]
        if v in self.homes:
            self.steps.append(Copy(self.place(v), source))
        else:
            self.buffers[v] = source

    def program(self, assembler: Assembler) -> Program:
        return assembler.program(
            self.inputs, self.outputs, self.consts, self.temporaries, self.steps, False
        )


def planned(closed: ClosedJaxpr, free: bool) -> EagerSteps:
    """One step for each equation, which may have free sizes. Raises Inexpressible."""
    out_avals = closed.out_avals  # passes may give a result the variable of another that is weaker
    closed = run_passes(closed)
    if closed.consts or len(closed.jaxpr.eqns) > MOST_STEPS:
        raise BeyondSteps
    made = EagerSteps(closed.jaxpr, out_avals, free)
    if config.verify_kernels:
        given = [*made.inputs, *[b for b, _ in made.consts]]
        checks.verify_steps(made.steps, "steps", given, [b for b, _ in made.outputs])
    return made


def assemble(closed: ClosedJaxpr, meanings: bool = True) -> Program:
    """The program of one step for each equation; without `meanings` each of them is a kernel.
    Raises BeyondSteps."""
    steps = planned(closed, free=False)
    if not meanings and any(isinstance(s, Host) for s in steps.steps):
        raise BeyondSteps
    return steps.program(Assembler(steps.sizes, {}, steps.bytes, {}))
