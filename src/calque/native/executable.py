"""A planned program: steps over compiled kernels, and the driver that runs them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from calque.core.avals import ShapedArray
from calque.core.backends import MemoryStats, Options, flops, traffic
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.lazy import LazyModule
from calque.machine.code import llvm
from calque.machine.driver.program import Program
from calque.machine.spans import span
from calque.machine.threads import get_num_threads
from calque.native import stored
from calque.native.calls import call_program, compiled, memory_of
from calque.native.control.emitters import EMITTERS, copies_left, takes
from calque.native.emit.kernels import Kernel
from calque.native.emit.making import Making
from calque.native.lower.graph import graph_of
from calque.native.lower.rules import View
from calque.native.lower.sizes import Sizes
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.beside import beside
from calque.native.plan.blocks import Planner, Told
from calque.native.plan.fusion import fused
from calque.native.plan.layouts import laid_out
from calque.native.plan.ordering import ordered
from calque.native.plan.program import Assembler
from calque.native.plan.reuse import keeps_apart, reuse
from calque.native.plan.scheduling import products, scheduled
from calque.native.plan.shares import brief, hasty
from calque.native.plan.steps import Call, Nest, Routine, Step, Switch, walk
from calque.native.scalars.expr import Buffer, Expr
from calque.native.schedule.nests import Schedule

if TYPE_CHECKING:
    from calque.native.plan.verify import StepForm

checks = LazyModule("calque.native.plan.verify")
views = LazyModule("calque.native.views")
EARLY = 6000  # letters of the keys of products that LLVM begins with before all are lowered
MANY = 100  # equations of a program for which a thread waits that compiles
SOME = 8  # steps of which kernels are begun before all are scheduled; then half as many again
RELEASE_NS = 20_000  # shorter programs keep the GIL: giving it up costs some 50 ns


class StagedProgram(NamedTuple):
    """A program in stages: where its arguments and results live, what is to be done, and what
    lowering knows of it."""

    planner: Planner
    inputs: tuple[Buffer, ...]
    outputs: tuple[tuple[Buffer, ShapedArray], ...]
    steps: tuple[Step, ...]


class Planned:
    """A program as steps over compiled kernels. With `Sizes(known=False)` the kernels serve every
    shape of these ranks."""

    program: Any
    maker: type[Making] = Making  # of kernels

    def __init__(self, closed: ClosedJaxpr, options: Options, sizes: Sizes) -> None:
        self.closed, self.options = closed, options
        self.in_avals: Sequence[ShapedArray] = closed.in_avals
        self.out_avals: Sequence[ShapedArray] = closed.out_avals
        if get_num_threads() > 1:
            llvm.get_ready()
        self.simplified = run_passes(closed)
        self.making = self.maker(options.exact)
        if len(self.simplified.eqns) >= MANY:
            self.making.expect()
        self.in_haste: tuple[Schedule, ...] = ()  # what LLVM made quickly for the sake of one call
        self.products: dict[Nest, Schedule] = {}
        self.looked_at = 0  # steps that were scheduled
        try:
            with span("plan", options.name):
                self.plan(sizes)
            schedules = list(dict.fromkeys(c.schedule for c in self.calls))
            with span("kernels", options.name):
                self.kernels = self.kernels_of(schedules)
        finally:
            self.making.drop()
            del self.making, self.products  # texts of LLVM's, which a program need not keep
        self.code = dict(zip(schedules, self.kernels))
        self.host_calls = list(self.planner.host_calls)
        compiled.tell(self)

    def lowers(self, sizes: Sizes, steps: Sequence[Step]) -> None:
        """The first products are compiled while others are lowered, if they are much."""
        if not sizes.known or self.making.began:
            return
        made = products(steps, sizes, self.products)
        if made:
            self.products |= made
            if self.making.weight([s.body for s in made.values()]) >= EARLY:
                self.begin_products(sizes)

    def begin(
        self, schedules: Sequence[Schedule], sizes: Sizes, quick: Collection[Schedule] = ()
    ) -> None:
        """Compile some of the kernels while the rest is planned; these quickly."""
        schedules = list(dict.fromkeys(schedules))
        self.making.begin(
            [s.body for s in schedules],
            sizes.fixed(),
            [k for k, s in enumerate(schedules) if s in quick],
        )

    def begin_products(self, sizes: Sizes) -> None:
        """Compile those that are known."""
        made = [*self.products.values()]
        self.begin(made, sizes, made if self.options.hasty else ())

    def kernels_of(self, schedules: Sequence[Schedule]) -> list[Kernel]:
        """Machine code for each body of loops."""
        sizes = self.planner.sizes
        few = brief(self.steps, sizes) if sizes.known else set()
        quick = few | self.hasty_ones(self.steps)
        made = self.making.finish(
            [s.body for s in schedules],
            sizes.fixed(),
            [k for k, s in enumerate(schedules) if s in quick],
        )
        self.in_haste = tuple(
            [s for s, k in zip(schedules, made, strict=True) if k.code.quick and s not in few]
        )
        return made

    def hasty_ones(self, steps: Sequence[Step]) -> set[Schedule]:
        """The kernels of a hasty program, or of its first steps, that LLVM is to make quickly."""
        sizes = self.planner.sizes
        if not (self.options.hasty and sizes.known) or get_num_threads() == 1:
            return set()
        return hasty(steps, sizes, {*self.products.values()}, self.length)

    def length(self, s: Schedule) -> int:
        """Of a kernel's key, in letters."""
        return self.making.order(s.body).letters

    def plan(self, sizes: Sizes) -> None:
        """The steps, and where everything is."""
        lowered = self.lowered(sizes, partial(self.lowers, sizes))
        self.planner = lowered.planner
        self.inputs, self.outputs = lowered.inputs, lowered.outputs
        if sizes.known:
            self.products = products(lowered.steps, sizes, self.products)
            self.begin_products(sizes)
        told = self.begin_some if self.options.hasty and sizes.known else None
        steps = scheduled(self.nests(lowered), sizes, self.products, told=told)
        self.steps = self.checked("steps", steps, lowered)
        for b in [b for s in walk(self.steps) if isinstance(s, Call) for b in s.schedule.left]:
            self.planner.mutable.add(b)
            self.planner.measure(b)
        self.homes: dict[Buffer, Buffer] = {}
        if sizes.known:
            self.share_memory()
        self.calls = [s for s in walk(self.steps) if isinstance(s, Call)]
        self.routines = [s for s in walk(self.steps) if isinstance(s, Routine)]

    def lowered(self, sizes: Sizes, told: Told | None = None) -> StagedProgram:
        """Homes for what comes in and goes out, and the stages between. Steps that no stage makes
        are `told` as they come."""
        p, g = Planner(sizes, EMITTERS, takes, copies_left), graph_of(self.simplified, opens=True)
        p.opened.update(g.opened)
        inputs: list[Buffer] = []
        for n, value in zip(g.consts, self.simplified.consts):
            p.constant_array(n, value)
        for n in g.inputs:
            inputs.append(p.buffer(n, "in"))
            p.view[n] = View(inputs[-1])
        p.donated = {inputs[i] for i in self.options.donated}
        outputs = [(p.buffer(n, "out"), aval) for n, aval in zip(g.outputs, self.out_avals)]
        homes = [(n, View(b)) for n, (b, _) in zip(g.outputs, outputs)]
        made = StagedProgram(
            p,
            tuple(inputs),
            tuple(outputs),
            tuple(p.block("program", homes, g.effects, told=told)),
        )
        self.checked("stages", made.steps, made)
        return made

    def nests(self, lowered: StagedProgram) -> Sequence[Step]:
        """Stages that share loops as one nest each."""
        p = lowered.planner
        made = laid_out(fused(lowered.steps, p.mutable, p.sizes), p.mutable, p.bytes, p.sizes)
        return self.checked("nests", made, lowered)

    def checked(
        self, form: StepForm, steps: Sequence[Step], lowered: StagedProgram
    ) -> Sequence[Step]:
        """The steps; in tests they are verified."""
        if config.verify_kernels:
            given = [*lowered.inputs, *[b for b, _ in lowered.planner.consts]]
            checks.verify_steps(steps, form, given, [b for b, _ in lowered.outputs])
        return steps

    def begin_some(self, steps: Sequence[Step]) -> None:
        """Compile those of the first kernels that no sharing of memory changes, if they are many
        more than when this was asked before."""
        if len(steps) - self.looked_at < max(SOME, self.looked_at // 2) or get_num_threads() == 1:
            return
        calls = self.apart([s for s in steps[self.looked_at :] if isinstance(s, Call)])
        self.looked_at = len(steps)
        self.begin([c.schedule for c in calls], self.planner.sizes, self.hasty_ones(steps))

    def apart(self, calls: Iterable[Call]) -> list[Call]:
        """Those whose kernels no sharing of memory changes."""
        members = self.planner.mutable.union([b for b, _ in self.outputs], self.donated)
        return [c for c in calls if keeps_apart(c, members)]

    @property
    def donated(self) -> list[Buffer]:
        return [self.inputs[i] for i in self.options.donated]

    def share_memory(self) -> None:
        """Let results take the memory of what dies with them, that of donated inputs above all;
        in an order in which much dies early."""
        p = self.planner
        outputs = [b for b, _ in self.outputs]
        if get_num_threads() > 1:
            calls = self.apart(c for c in walk(self.steps) if isinstance(c, Call))
            quick = brief(self.steps, p.sizes) | self.hasty_ones(self.steps)
            self.begin([c.schedule for c in calls], p.sizes, quick)
        self.steps = beside(ordered(self.steps, p.mutable, p.bytes), get_num_threads())
        self.steps, self.homes = reuse(self.steps, p.mutable, outputs, self.donated, p.bytes)
        p.mutable -= self.homes.keys()

    @property
    def driver(self) -> Program:
        """The program whose text is shown."""
        made: Program = self.program
        return made

    def cost_analysis(self) -> dict[str, float]:
        return {
            "flops": float(flops(self.simplified.eqns)),
            "bytes accessed": float(traffic(self.closed)),
        }

    def as_text(self, stage: str | None = None) -> str:
        text: str = views.text(self, stage)
        return text


def is_long(p: Planned) -> bool:
    """Whether other Python threads should run meanwhile."""
    known = sum(c.schedule.ns for c in p.calls if not c.stands_in) + sum(r.ns for r in p.routines)
    return known > RELEASE_NS or not all(is_plain(s) for s in p.steps)


def is_plain(s: Step) -> bool:
    """Whether these are just calls, perhaps chosen by a size."""
    if isinstance(s, Switch):
        return isinstance(s.index, Expr) and all(is_plain(x) for c in s.cases for x in c)
    return isinstance(s, (Call, Routine))


class NativeExecutable(Planned):
    """A compiled program: `program` for the machine's call path, `call` from Python."""

    key: stored.Key | None = None  # its name on disk

    def __init__(self, closed: ClosedJaxpr, options: Options) -> None:
        super().__init__(closed, options, Sizes())
        self.program: Program = self.assemble()

    @property
    def hasty(self) -> bool:
        return bool(self.in_haste)

    def improved(self) -> NativeExecutable:
        """The same with kernels made with care: one after the other, since whoever compiles
        something else meanwhile waits for one at most."""
        made = copy.copy(self)
        made.in_haste, made.code = (), dict(self.code)
        for s in self.in_haste:
            making = self.maker(self.options.exact, much=True)
            (made.code[s],) = making.finish([s.body], self.planner.sizes.fixed())
        made.kernels = [*made.code.values()]
        made.program = made.assemble()
        made.keep(self.key)
        compiled.tell(made)
        return made

    def keep(self, key: stored.Key | None) -> None:
        """Let other processes find the program under this name."""
        self.key = key
        if key is not None:
            given = self.planner.consts[: len(self.simplified.consts)]  # planning's come behind
            stored.keep(key, self.program, [a for _, a in given], self.hasty)

    def assemble(self) -> Program:
        p = self.planner
        lenders = [b for b, _ in self.outputs if b not in self.homes]
        a = Assembler(p.sizes, p.params, p.bytes, self.code, lenders, p.open)
        return a.program(
            self.inputs,
            self.outputs,
            p.consts,
            p.mutable,
            self.steps,
            is_long(self),
            self.donations(),
        )

    def donations(self) -> list[tuple[int, int | None]]:
        """Each donated input with the output that takes its memory; with None what the program
        computes takes it."""
        places = {self.inputs[i]: i for i in self.options.donated}
        taken = {
            places[home]: k
            for k, (b, _) in enumerate(self.outputs)
            if (home := self.homes.get(b)) in places
        }
        return [(i, taken.get(i)) for i in self.options.donated]

    def call(self, args: Sequence[Any]) -> list[Any]:
        """Run on arrays (or what can become arrays) of exactly the avals of the program; gives
        arrays."""
        return call_program(self, args)

    def memory_analysis(self) -> MemoryStats:
        return memory_of(self, [k for _, k in self.donations() if k is not None])
