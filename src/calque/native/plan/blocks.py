"""A graph and its homes to stages; what no stage can make stands between them as a step of its
own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Self

import numpy as np

from calque.core.arrays import to_numpy
from calque.core.avals import ADDRESSABLE
from calque.core.config import config
from calque.core.lazy import LazyModule
from calque.native.lower.graph import Node, kind_of
from calque.native.lower.rules import LIMITS, RULES, Layer, Lower, View, buffer_of
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import MAKERS, Stage, loops_of, parts_of, stages_of
from calque.native.lower.table import elementwise
from calque.native.plan.homes import Around, Copies, Homes, Owner, copies_nothing, homes_of, needed
from calque.native.plan.steps import Compute, Copy, Host, Step
from calque.native.scalars.expr import Buffer, item_size

Emitter = Callable[["Planner", Node, "CodeBlock"], list[Step]]
Takes = Callable[["Planner", Node], Mapping[int, int]]
Told = Callable[[Sequence[Step]], None]
checks = LazyModule("calque.native.plan.verify")

_LEAVES: Final = frozenset(("input", "const", "literal", "get"))


def nothing_taken(p: Planner, n: Node) -> Mapping[int, int]:
    return {}


class CodeBlock:
    """A straight piece of program whose homes are known, being lowered to steps: nodes in order,
    and where its results must go."""

    def __init__(
        self,
        planner: Planner,
        name: str,
        targets: Sequence[tuple[Node, View]],
        effects: Sequence[Node] = (),
        homes: Homes | None = None,
        told: Told | None = None,
    ) -> None:
        self.planner, self.told = planner, told
        self.targets: dict[Node, View] = {}
        self.again: list[tuple[Node, View]] = []  # results that are wanted in a further place
        for n, view in targets:
            if n in self.targets:
                self.again.append((n, view))
            else:
                self.targets[n] = view
        self.kept = {view.buf for _, view in targets}
        outputs = list(self.targets)
        if homes is None:
            order = needed([*outputs, *effects], planner.view)
            homes = homes_of(name, order, outputs, planner.around(self.kept), effects)
        self.homes = homes
        if config.verify_kernels:
            checks.verify_homes(self.homes)
        self.steps: list[Step] = []
        self.stages: list[Stage] = []
        self.made: dict[Buffer, Node] = {}
        self.repeats: dict[Hashable, Any] = {}  # what may be done again with other arrays

    @property
    def order(self) -> Sequence[Node]:
        return self.homes.order

    def run(self) -> list[Step]:
        planner = self.planner
        for n in self.order:
            how = self.homes.of[n].how
            if how == "step":
                self.flush()
                made = planner.emitters.get(n.op, host_step)(planner, n, self)
                self.steps += made
                if self.told is not None:
                    self.told(made)
            elif how == "stored":
                self.stage(n)
        self.finish()
        return self.steps

    def home(self, n: Node) -> View:
        """The memory of a stored node. What a loop left as it came has none that could be written
        over."""
        home = self.homes.of[n]
        if home.place == "over" and home.other is not None:
            replaced = self.planner.view.get(home.other)
            if replaced is not None:
                return replaced
        return self.targets.get(n) or View(self.planner.temporary(n))

    def stage(self, n: Node) -> None:
        home = self.home(n)
        new = stages_of(self.planner, n, home)
        early = [s for s in new if s.early and s.buffers_read.isdisjoint(self.made)]
        if early:
            self.stages[:0] = early
        self.stages += [s for s in new if s not in early]
        self.planner.view[n] = home
        self.made[home.buf] = n

    def flush(self) -> None:
        """The stages that were collected are a step."""
        if self.stages:
            self.steps.append(Compute(tuple(self.stages)))
            self.stages = []

    def finish(self) -> None:
        """Flush, and copy the results that live elsewhere (an input, a constant) to where they must
        go."""
        for n, target in (*self.targets.items(), *self.again):
            home = self.planner.view.get(n)
            if home == target:
                continue
            if (
                home is not None
                and not home.prefix
                and not target.prefix
                and home.buf not in self.made
            ):
                self.flush()
                self.steps.append(Copy(target.buf, home.buf))
            else:
                self.copy(n, target)
        self.flush()

    def copy(self, n: Node, target: View) -> None:
        """A stage that writes `n` once more."""
        dims, idx = loops_of(self.planner, n.shape)
        s = Stage(
            target.buf, dims, len(dims), target.prefix + idx, parts_of(self.planner.at(n, idx))
        )
        self.stages.append(s)


class Planner(Lower):
    """The whole program: memory, kernels and steps."""

    def __init__(
        self,
        sizes: Sizes,
        emitters: dict[str, Emitter],
        takes: Takes = nothing_taken,
        copies: Copies = copies_nothing,
    ) -> None:
        super().__init__(sizes)
        self.takes, self.copies = takes, copies
        self.taken: dict[Node, Mapping[int, int]] = {}  # what it has answered
        self.emitters = (
            emitters  # what is neither an expression nor a stage: name -> how it becomes steps
        )
        self.bytes: dict[Buffer, int] = {}
        self.mutable: set[Buffer] = set()  # temporaries: ours to overwrite
        self.donated: set[Buffer] = set()  # inputs that are
        self.count = 0
        self.depth = 0
        self.homes: list[Homes] = []  # of the pieces that were lowered, each before those inside
        self.host_calls: list[str] = []
        self.consts: list[tuple[Buffer, np.ndarray]] = []

    def attempt(self) -> Self:
        out = super().attempt()
        out.bytes, out.mutable = Layer(self.bytes), set(self.mutable)
        out.host_calls, out.consts = [*self.host_calls], [*self.consts]
        out.homes = [*self.homes]
        return out

    def keep(self, attempt: Self) -> None:
        super().keep(attempt)
        self.bytes.update(attempt.bytes)
        self.mutable |= attempt.mutable
        self.host_calls, self.consts = attempt.host_calls, attempt.consts
        self.homes = attempt.homes
        self.count, self.depth = attempt.count, attempt.depth

    def buffer(self, n: Node, name: str) -> Buffer:
        self.count += 1
        b = buffer_of(f"{name}{self.count}", tuple(self.sizes.dim(d) for d in n.shape), n.dtype)
        self.measure(b)
        if self.bytes[b] > ADDRESSABLE:
            raise MemoryError(
                f"{n.op} makes an array of type {n.aval.str_short()}: {self.bytes[b]} bytes are"
                f" more than a process can address (at {n.source})"
            )
        return b

    def measure(self, b: Buffer) -> None:
        """Note the bytes of a buffer."""
        n = item_size(b.dtype)
        for d in b.shape:
            n *= self.sizes.planned(d)
        self.bytes[b] = n

    def temporary(self, n: Node) -> Buffer:
        b = self.buffer(n, "t")
        self.mutable.add(b)
        return b

    def is_barrier(self, n: Node) -> bool:
        return n.op in self.emitters or self.is_host(n)

    def is_host(self, n: Node) -> bool:
        """Does nothing native compute this node?"""
        if n.op in LIMITS and not LIMITS[n.op](n):
            return True
        return not (
            n.op in _LEAVES
            or n.op in RULES
            or n.op in MAKERS
            or n.op in self.emitters
            or elementwise(n)
        )

    def around(self, kept: Collection[Buffer]) -> Around:
        """What stands around a piece of program that must leave the buffers in `kept` alone."""

        def memory(n: Node) -> Owner:
            home = self.view[n]
            if home.prefix or home.buf in kept:
                return "foreign"
            if home.buf in self.donated:
                return "donated"
            return "ours" if home.buf in self.mutable else "foreign"

        takes = partial(self.takes, self)
        return Around(
            self.view.__contains__, memory, self.is_barrier, self.sizes, takes, copies=self.copies
        )

    def block(
        self,
        name: str,
        targets: Sequence[tuple[Node, View]],
        effects: Sequence[Node] = (),
        homes: Homes | None = None,
        told: Told | None = None,
    ) -> list[Step]:
        """Steps that compute nodes and leave each where it is wanted, and run those that have an
        effect; with homes that have been found before, if there are any. Steps that no stage makes
        are `told` as soon as there are any."""
        made = CodeBlock(self, name, targets, effects, homes, told)
        self.homes.append(made.homes)
        return made.run()

    def constant_array(self, n: Node, value: Any) -> None:
        """Let `n` be an array known now."""
        array = np.ascontiguousarray(to_numpy(value)).reshape(-1)
        if array.dtype.fields:  # records, such as typed keys: their words
            array = array.view(next(iter(array.dtype.fields.values()))[0].base)
        array = array.reshape(n.shape)
        if kind_of(array.dtype) != n.dtype:
            raise AssertionError(f"a constant of {n.dtype} was given as {array.dtype}")
        b = self.buffer(n, "const")
        self.consts.append((b, array))
        self.view[n] = View(b)

    def in_memory(self, n: Node, block: CodeBlock) -> Buffer:
        """A buffer that holds exactly this node (a copy is made of a literal, or of a part of
        something)."""
        home = self.view.get(n)
        if home is not None and not home.prefix:
            return home.buf
        b = self.temporary(n)
        block.copy(n, View(b))
        block.kept.add(b)
        block.flush()
        return b


def host_step(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """An equation without a native form: its meaning runs in Python."""
    gets = {m.params["index"]: m for m in block.order if m.op == "get" and m.args[0] is n}
    results = [n] if n.aval is not None else [gets.get(i) for i in range(max(gets, default=-1) + 1)]
    homes = []
    for r in results:
        if r is None:
            homes.append(View(Buffer("none", (), "i32")))
            continue
        home = block.targets.get(r)
        if home is None or home.prefix:
            home = View(p.temporary(r))
        p.view[r] = home
        homes.append(home)
    args = [p.in_memory(a, block) for a in n.args]
    p.host_calls.append(n.op)
    return [
        Host(
            n.op,
            n.params,
            args,
            [h.buf for h in homes],
            [a.aval for a in n.args],
            [r.aval if r is not None else None for r in results],
        )
    ]
