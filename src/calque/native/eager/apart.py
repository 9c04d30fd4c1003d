"""A program whose equations run one after the other, as in eager calls: nothing is fused, so that
each has the kernels, and the bits, that it has by itself.

What has no kernel for every shape (products, loops, gathers, factors of matrices) is compiled for
the sizes of the program here, where steps (`eager.program`) end."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.jaxprs import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from calque.native.control.emitters import EMITTERS, takes
from calque.native.executable import NativeExecutable, StagedProgram
from calque.native.lower.graph import graph_of, memory_type
from calque.native.lower.rules import View, buffer_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.dead_code import dead_code
from calque.native.passes.inline import IN_STEPS, inline_calls
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.blocks import Planner
from calque.native.plan.scheduling import scheduled
from calque.native.plan.steps import Call, Copy, Routine, Step, walk
from calque.native.scalars.expr import Buffer

MOST_BYTES: Final = 1 << 20  # of what lies between equations: small arrays are what calls cost at


class TooLargeError(Exception):
    """What lies between the equations is not small."""


class EquationsApart(NativeExecutable):
    """Such a program. Each value has memory of its own."""

    def plan(self, sizes: Sizes) -> None:
        """The steps of one equation behind those of another."""
        self.planner = Planner(sizes, EMITTERS, takes)
        self.between: list[Buffer] = []
        closed = inline_calls(self.closed, IN_STEPS)
        jaxpr = dead_code(closed.jaxpr)
        self.values: dict[Var, Buffer] = {}
        for v, array in zip(jaxpr.constvars, closed.consts):
            self.values[v] = self.constant(v.aval, np.asarray(array))
        self.inputs = tuple([self.memory(v.aval) for v in jaxpr.invars])
        self.values.update(zip(jaxpr.invars, self.inputs))
        self.outputs = tuple([(self.memory(a), a) for a in self.out_avals])
        homes: dict[Var, Buffer] = {}
        for a, (b, _) in zip(jaxpr.outvars, self.outputs):
            if isinstance(a, Var) and a not in self.values:
                homes.setdefault(a, b)
        used = Counter(a for e in jaxpr.eqns for a in e.invars if isinstance(a, Var))
        self.steps: list[Step] = []
        for e in jaxpr.eqns:
            wanted = [v for v in e.outvars if v in homes or used[v]]
            self.steps += self.of_equation(e, wanted, homes)
        for a, (b, _) in zip(jaxpr.outvars, self.outputs):
            source = self.read(a)
            if source is not b:
                self.steps.append(Copy(b, source))
        self.planner.mutable.update(self.between)
        self.checked(
            "steps", self.steps, StagedProgram(self.planner, self.inputs, self.outputs, ())
        )
        if sum(map(self.planner.bytes.__getitem__, self.planner.mutable)) > MOST_BYTES:
            raise TooLargeError
        self.homes: dict[Buffer, Buffer] = {}
        self.calls = [s for s in walk(self.steps) if isinstance(s, Call)]
        self.routines = [s for s in walk(self.steps) if isinstance(s, Routine)]

    def memory(self, aval: ShapedArray) -> Buffer:
        """Memory for a value."""
        p = self.planner
        shape, dtype = memory_type(aval)
        p.count += 1
        made = buffer_of(f"v{p.count}", tuple([p.sizes.dim(d) for d in shape]), dtype)
        p.measure(made)
        return made

    def constant(self, aval: ShapedArray, array: np.ndarray) -> Buffer:
        made = self.memory(aval)
        self.planner.consts.append((made, np.ascontiguousarray(array.astype(aval.dtype))))
        return made

    def read(self, a: Atom) -> Buffer:
        """Where a result of the program is."""
        return self.constant(a.aval, a.val) if isinstance(a, Literal) else self.values[a]

    def of_equation(self, e: Eqn, wanted: list[Var], homes: dict[Var, Buffer]) -> list[Step]:
        """The steps of an equation. Whatever it reads is wanted by others, too, as far as it
        knows."""
        p = self.planner
        operands = list(dict.fromkeys(a for a in e.invars if isinstance(a, Var)))
        one = run_passes(ClosedJaxpr(Jaxpr((), operands, wanted, [e]), ()))
        g = graph_of(one)
        for n, value in zip(g.consts, one.consts, strict=True):
            p.constant_array(n, value)
        for n, v in zip(g.inputs, operands, strict=True):
            p.view[n] = View(self.values[v])
        targets = []
        for n, v in zip(g.outputs, wanted, strict=True):
            home = homes.get(v)
            if home is None:
                home = self.memory(v.aval)
                self.between.append(home)
            self.values[v] = home
            targets.append((n, View(home)))
        inside = tuple(p.block(e.primitive.name, targets, g.effects))
        inputs = tuple([self.values[v] for v in operands])
        outputs = tuple([(self.values[v], v.aval) for v in wanted])
        made = StagedProgram(p, inputs, outputs, inside)
        left = scheduled(self.nests(made), p.sizes)
        for b in [b for s in walk(left) if isinstance(s, Call) for b in s.schedule.left]:
            p.mutable.add(b)
            p.measure(b)
        return left
