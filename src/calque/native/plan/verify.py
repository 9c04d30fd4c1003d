"""Are the homes and the steps of a program well formed? On in tests and while debugging, after each
pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal

from calque.native.loops.verify import MalformedKernel
from calque.native.loops.verify import verify as verify_body
from calque.native.lower.cost import is_expression
from calque.native.lower.graph import Node
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import MAKERS, Stage
from calque.native.plan.homes import IN_PLACE, LONGEST, Homes
from calque.native.plan.steps import (
    Call,
    Compute,
    Copy,
    Count,
    Names,
    Nest,
    Repeat,
    Routine,
    Step,
    Switch,
)
from calque.native.plan.text import home_text, stage_lines, step_lines
from calque.native.scalars.expr import Buffer, Expr, const, ex, is_const, scalar_dtype, walk
from calque.native.schedule import fuse

StepForm = Literal["stages", "nests", "steps"]
# What is computed, form after form: stages and what only loops can say; loops; loops as they run.
_HOLDS: Final = {"stages": (Compute, Nest), "nests": (Nest,), "steps": (Call,)}


class MalformedSteps(ValueError):
    """Steps that mean nothing."""


def verify_steps(
    steps: Sequence[Step], form: StepForm, given: Iterable[Buffer], results: Iterable[Buffer] = ()
) -> None:
    """Raise ``MalformedSteps`` unless the steps are of this form, each is well formed, and nothing
    is read before it is written. `given` are the buffers that come in, `results` those that go
    out."""
    written = _Verifier(form).steps(steps, frozenset(given))
    missing = sorted(b.name for b in frozenset(results) - written if not is_empty(b))
    if missing:
        raise MalformedSteps(f"nothing writes {', '.join(missing)}")


def is_empty(b: Buffer) -> bool:
    """Has a buffer no elements? Then nobody need write it."""
    return any(is_const(d, 0) for d in b.shape)


def size(b: Buffer) -> Expr:
    """The elements of a buffer."""
    out = const(1)
    for d in b.shape:
        out = ex("mul", out, d)
    return out


class MalformedHomes(ValueError):
    """Homes that no program could be lowered with."""


def verify_homes(h: Homes) -> None:
    """Raise ``MalformedHomes`` unless every node has a home that its operation allows, what is read
    from memory is there by then, and what is written over is read no more."""
    at = {n: i for i, n in enumerate(h.order)}
    for n in h.order:
        if n not in h.of:
            raise MalformedHomes(f"{n} has no home")
        wrong = _wrong_home(h, n) or _wrong_time(h, n, at)
        if wrong is not None:
            raise MalformedHomes(f"{wrong}: {home_text(h, n)}")


def _wrong_home(h: Homes, n: Node) -> str | None:
    """What is wrong with the kind of home that a node has."""
    home = h.of[n]
    match home.how:
        case "part" if n.op != "get" or n.args[0].aval is not None:
            return "this is no part of anything"
        case "inlined" if n in h.results:
            return "a result has no memory"
        case "inlined" if h.weight[n] > LONGEST:
            return "the expression is too long"
        case "inlined" if n.op in MAKERS and not is_expression(n):
            return "this is no expression"
        case "fused" if home.other is None or home.other not in h.ends:
            return "this is fused into no product"
        case "fused" if n in h.results and n not in h.ends.values():
            return "a result ends in a product"
        case "fused" if not any(a is home.other or h.of.get(a) == home for a in n.args):
            return "the chain from the product is broken"
    if home.place == "over":
        part = home.how == "part" and home.other in n.args[0].args
        if not part and (n.op not in IN_PLACE or home.other is not n.args[0]):
            return "this updates nothing"
    return None


def _wrong_time(h: Homes, n: Node, at: Mapping[Node, int]) -> str | None:
    """What is read by a node too early or too late."""
    home, i = h.of[n], at[n]
    for b in h.reads[n]:
        if at.get(b, -1) >= i:
            return f"%{b.id} is read before it is made"
        if home.how in ("stored", "step") and h.last.get(b, -1) < i:
            return f"%{b.id} is read after its end"
    if home.place == "over" and home.other is not None:
        x, end = home.other, at[n.args[0]] if home.how == "part" else i
        if h.last.get(x) != end or x.dtype != n.dtype:
            return f"%{x.id} is needed later, or does not fit"
    return None


class _Verifier:
    def __init__(self, form: StepForm) -> None:
        self.form, self.holds = form, _HOLDS[form]
        self.counters: frozenset[str] = frozenset()  # what the driver counts

    def need(self, ok: bool, s: Step, what: str) -> None:
        if not ok:
            raise MalformedSteps(f"{what}, in\n" + "\n".join(step_lines(s)))

    def steps(self, steps: Sequence[Step], known: frozenset[Buffer]) -> frozenset[Buffer]:
        """What is written after the steps."""
        for s in steps:
            known = self.step(s, known)
        return known

    def step(self, s: Step, known: frozenset[Buffer]) -> frozenset[Buffer]:
        match s:
            case Compute() | Nest() | Call():
                self.need(isinstance(s, self.holds), s, f"this is no step of {self.form}")
                return self.computed(s, known)
            case Repeat():
                return self.repeat(s, known)
            case Switch():
                if isinstance(s.index, Buffer):
                    self.reads(s, {s.index}, known)
                self.need(bool(s.cases), s, "a switch has no case")
                return frozenset.intersection(*[self.steps(c, known) for c in s.cases])
            case Copy():
                fits = size(s.dst) is size(s.src) and s.dst.dtype == s.src.dtype
                self.need(fits, s, f"{s.src.name} does not fit into {s.dst.name}")
            case Count():
                self.counters |= {s.name}
            case Routine():
                words = {w for w in s.words if isinstance(w, Buffer)}
                self.need(words <= {*s.args, *s.outs}, s, "the routine is given more than it says")
        self.reads(s, s.reads(), known)
        return known | s.writes()

    def reads(self, s: Step, buffers: Iterable[Buffer], known: frozenset[Buffer]) -> None:
        for b in sorted(buffers, key=lambda b: b.name):
            self.need(b in known or is_empty(b), s, f"{b.name} is read before it is written")

    def computed(self, s: Compute | Nest | Call, known: frozenset[Buffer]) -> frozenset[Buffer]:
        if isinstance(s, Compute):
            for stage in s.stages:
                verify_stage(stage, self.counters)
                self.reads(s, stage.buffers_read, known)
                known |= {stage.buf}
            return known
        self.renaming(s, s.names)
        if isinstance(s, Nest):
            self.need((s.loops is None) == (s.like is not None), s, "it has no loops, or two")
            try:
                verify_body(s.body, chosen="vectors" if s.vectors else "nothing")
            except MalformedKernel as error:
                raise MalformedSteps(str(error)) from None
        self.reads(s, s.reads() - s.writes(), known)
        return known | s.writes()

    def renaming(self, s: Nest | Call, names: Names) -> None:
        """Buffers of one kernel stay apart, and each gets one of its kind."""
        self.need(len({*names.values()}) == len(names), s, "two of its buffers become one")
        for b, other in names.items():
            fits = b.dtype == other.dtype and len(b.shape) == len(other.shape)
            self.need(fits, s, f"{other.name} does not fit in the place of {b.name}")

    def repeat(self, s: Repeat, known: frozenset[Buffer]) -> frozenset[Buffer]:
        """What the first round reads is there before it; what changes places is there after it."""
        self.need((s.count is None) == (s.flag is not None), s, "the loop has no end, or two")
        known = self.steps(s.test, known)
        if s.flag is not None:
            self.reads(s, {s.flag}, known)
        around = self.counters
        self.counters |= {s.counter} if s.counter is not None else set()
        known = self.steps(s.body, known)
        self.counters = around
        self.reads(s, {b for pair in s.swaps for b in pair}, known)
        return known


def verify_stage(s: Stage, counters: Collection[str] = ()) -> None:
    """Raise ``MalformedSteps`` unless a stage is well formed: its loops, what they fold, where it
    stores and what. `counters` are those of the loops of the driver around it."""

    def need(ok: bool, what: str) -> None:
        if not ok:
            raise MalformedSteps(f"{what}, in\n" + "\n".join(stage_lines(s)))

    need(all(d.op == "var" and d.attr[1] is not None for d in s.dims), "a loop has no extent")
    need(0 <= s.rank <= len(s.dims), f"{s.rank} of {len(s.dims)} loops are over the output")
    need(0 <= s.colliding <= len(s.dims), f"{s.colliding} of {len(s.dims)} loops collide")
    need(bool(s.parts), "nothing is stored")
    need(bool(s.accs) or not s.running, "nothing is folded, but it runs on")
    folding = len(s.dims) - s.rank
    need(folding == (1 if s.accs and not s.running else 0), f"{folding} loops are folded over")
    need(all(a.running == s.running for a in s.accs), "one fold runs on, another does not")
    for suffix, value in s.parts:
        at = len(s.idx) + len(suffix)
        need(at == len(s.buf.shape), f"{at} indices for {len(s.buf.shape)} dimensions")
        need(value.dtype == scalar_dtype(s.buf.dtype), f"{value.dtype} is stored")
    loops = {d.attr[0] for d in s.dims} | {*counters}
    for e in {e for v in (*s.values(), *s.idx) for e in walk(v, set())}:
        if e.op == "var" and e.attr[1] is not None:
            need(e.attr[0] in loops, f"{e.attr[0]} is used outside of its loop")
    if s.marks:
        need(s.guard is not None and not s.accs and s.buf.dtype == "i1", "it marks no cell")
    try:
        verify_body(tuple(fuse.nest([s], 0, Sizes())), chosen="nothing")
    except MalformedKernel as error:
        raise MalformedSteps(f"{error}, in\n" + "\n".join(stage_lines(s))) from None
