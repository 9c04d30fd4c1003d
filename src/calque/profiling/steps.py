"""What the steps of a driver program are, in the words of the user's program: which operations, of
which lines, how much work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from calque.core.jaxprs import subjaxprs
from calque.core.source import Source
from calque.machine.driver.program import Program
from calque.machine.frozen import all_objects
from calque.native.backend import Found
from calque.native.emit import kernels
from calque.native.executable import Planned
from calque.native.library.shared_rounds import ROUNDS
from calque.native.loops.tree import own_exprs, statements
from calque.native.lower.cost import WEIGHTLESS, operations
from calque.native.lower.graph import Node
from calque.native.plan.steps import Call, Copy, Host, Repeat, Routine, Switch, walk
from calque.native.scalars.expr import Buffer
from calque.profiling.work import bytes_touched, work_of

MOST_NAMES: Final = 6  # operations that a name lists
SHOWN: Final = {"matmul_tiled": "matmul", "conv_tiled": "conv"}
KINDS: Final[dict[type, str]] = {Call: "call", Routine: "call", Copy: "copy", Host: "host"}
_GIVEN: Final = ("input", "const", "literal", "get")


class Facts(NamedTuple):
    """One step. `sources` are places in the user's code, that of the most work first; work and
    bytes are those of one turn, None where they depend on sizes that vary."""

    name: str
    kind: str  # kernel, routine, host call, copy, fill
    sources: tuple[Source, ...] = ()
    flops: float | None = None
    additions: float | None = None
    nbytes: float | None = None
    double: bool = False  # does it compute with 64-bit floats?
    nodes: tuple[Node, ...] = ()  # what it computes, in the order of the program


class Described(NamedTuple):
    """A driver program: the name of its function, and its steps by kind and number."""

    name: str
    steps: dict[tuple[str, int], Facts]
    single: bool = False  # one operation, which runs wherever it is called


def executables() -> list[Any]:
    """Every compiled program that there is now, found by its exact type: there may be millions of
    objects, and `isinstance` would ask those of others for their `__class__`, which may run their
    code."""
    ours = {id(kind) for kind in (*_with_subclasses(Planned), *_with_subclasses(Found))}
    return [o for o in all_objects() if id(type(o)) in ours]


def _with_subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    derived: type[Any]
    for derived in kind.__subclasses__():
        yield from _with_subclasses(derived)


def programs_of(compiled: Iterable[Any]) -> dict[int, Any]:
    """The executable of each driver program, by its identity."""
    out: dict[int, Any] = {}
    for e in compiled:
        program = e.program if isinstance(e, Found) else e.__dict__.get("template")
        program = program or e.__dict__.get("program")
        if isinstance(program, Program):
            out[id(program)] = e
    return out


def described(executable: Any) -> Described:
    """The steps of an executable's program: calls, copies and host calls, each in the order of the
    program."""
    planned = executable.planned if isinstance(executable, Found) else executable
    described_by = _Describer(planned)
    counts: dict[str, int] = {}
    steps: dict[tuple[str, int], Facts] = {}
    order: list[tuple[Any, tuple[str, int]]] = []
    for s in walk(planned.steps):
        kind = KINDS.get(type(s))
        if kind is not None:
            index = counts.get(kind, 0)
            counts[kind] = index + 1
            steps[kind, index] = described_by.step(s)
            order.append((s, (kind, index)))
    _name_preparations(order, steps)
    eqns, name = planned.closed.eqns, planned.options.name
    return Described(name, steps, len(eqns) == 1 and eqns[0].primitive.name == name)


def _name_preparations(
    order: Sequence[tuple[Any, tuple[str, int]]], steps: dict[tuple[str, int], Facts]
) -> None:
    """What computes no node of the graph (such as panels of a matrix laid out for a product)
    prepares for the step that reads it next; what sums the rounds of a long product does its work,
    and the next step adds them up."""
    for k, (s, key) in enumerate(order):
        if steps[key].name:
            continue
        reader = next((at for x, at in order[k + 1 :] if x.reads() & s.writes()), None)
        facts = steps[reader] if reader is not None else steps[key]
        if reader is not None and any(b.name.startswith(ROUNDS) for b in s.writes()):
            steps[key] = facts._replace(nbytes=steps[key].nbytes)
            steps[reader] = facts._replace(name=f"add up {facts.name}", flops=None, additions=None)
            continue
        name = f"prepare for {facts.name}" if facts.name else "copy"
        steps[key] = steps[key]._replace(name=name, sources=facts.sources)


class _Describer:
    """Which nodes of the graph each step computes: those that end in what it writes, as far back as
    what other steps have written."""

    def __init__(self, planned: Planned) -> None:
        p = planned.planner
        self.sizes, self.nbytes = p.sizes, p.bytes
        self.free = bool(p.sizes.free)
        self.apart = any(isinstance(s, (Repeat, Switch)) for s in walk(planned.steps))
        self.done: set[Node] = set()
        self.ends: dict[Buffer, list[Node]] = {}  # what is left to be written into each buffer
        for n, home in p.view.items():
            if n.op not in ("input", "const", "literal"):
                self.ends.setdefault(_final(home.buf, planned.homes), []).append(n)
        for nodes in self.ends.values():
            nodes.sort(key=lambda n: n.id)
        self.writers: dict[Buffer, int] = {}
        for s in walk(planned.steps):
            if type(s) in KINDS:
                for b in s.writes():
                    self.writers[b] = self.writers.get(b, 0) + 1

    def step(self, s: Any) -> Facts:
        nodes = self.nodes(s)
        names = self.names(self.inside(nodes) or nodes)
        sources = _blamed(nodes)
        flops, additions = work_of(self.inside(nodes))
        double = any(n.dtype in ("f64", "c128") for n in nodes)
        touched = float(sum(self.nbytes.get(b, 0) for b in s.reads() | s.writes()))
        match s:
            case Copy():
                moved = 2.0 * self.nbytes.get(s.dst, 0)
                facts = Facts("copy", "copy", sources, 0.0, 0.0, moved)
            case Host():
                facts = Facts(s.op, "host call", sources)
            case Routine():
                facts = Facts(s.name, "routine", sources, nbytes=touched, double=double)
            case _:
                touched = bytes_touched(s.body, self.sizes, self.nbytes)
                facts = Facts(names, "kernel", sources, flops, additions, touched, double)
                if nodes and not self.inside(nodes):  # a part of a loop that is steps itself
                    facts = facts._replace(flops=None, additions=None)
        facts = facts._replace(nodes=tuple(self.inside(nodes) or nodes))
        return facts._replace(flops=None, additions=None, nbytes=None) if self.free else facts

    def inside(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Without loops and branches that are steps themselves: their parts are nodes too."""
        if not self.apart:
            return nodes
        return [n for n in nodes if next(iter(subjaxprs(n.params)), None) is None]

    def nodes(self, s: Any) -> list[Node]:
        """What a step computes."""
        roots: list[Node] = []
        for b in s.writes():
            left = self.ends.get(b, [])
            self.writers[b] -= 1
            taken = left[:] if self.writers[b] == 0 else left[:1]
            del left[: len(taken)]
            roots += taken
        found: dict[Node, None] = {}
        todo = list(roots)
        while todo:
            n = todo.pop()
            if n in found or n.op in ("input", "const", "literal"):
                continue
            if n in self.done and n not in roots:
                continue
            found[n] = None
            todo += n.args
        self.done |= set(roots)
        return sorted(found, key=lambda n: n.id)

    @staticmethod
    def names(nodes: Sequence[Node]) -> str:
        """Its operations, those that only move elements where there are no others."""
        ops = [SHOWN.get(n.op, n.op) for n in nodes if n.op not in _GIVEN]
        return _listed([op for op in ops if op not in WEIGHTLESS] or ops)


def _listed(ops: Iterable[str]) -> str:
    names = list(dict.fromkeys(ops))
    more = f" +{len(names) - MOST_NAMES}" if len(names) > MOST_NAMES else ""
    return " ".join(names[:MOST_NAMES]) + more


def _final(b: Buffer, homes: dict[Buffer, Buffer]) -> Buffer:
    """The buffer whose memory one has taken."""
    while b in homes:
        b = homes[b]
    return b


def _blamed(nodes: Sequence[Node]) -> tuple[Source, ...]:
    """The lines of these nodes, the one with the most work first."""
    weights: dict[tuple[str, int], float] = {}
    first: dict[tuple[str, int], Source] = {}
    for n in nodes:
        if n.source is not None and n.op not in _GIVEN:
            place = (n.source.file, n.source.line)
            first.setdefault(place, n.source)
            weights[place] = weights.get(place, 0.0) + work_of([n]).additions
    order = sorted(weights, key=lambda p: -weights[p])
    return tuple(first[p] for p in [p for p in order if weights[p]] or order)


def kernel_names() -> dict[int, str]:
    """The operations of every kernel that is known, by its address."""
    out = {}
    for code in kernels.known():
        seen: set[Any] = set()
        ops = [
            e.op
            for s in statements(code.body)
            for e in operations(own_exprs(s), seen)
            if e.op != "load"
        ]
        out[code.address] = _listed(ops) or "copy"
    return out
