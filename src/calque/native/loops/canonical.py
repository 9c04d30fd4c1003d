"""The canonical key of a kernel: the same loops in another program, under other names, give the
same key and share their machine code.

A key numbers expressions, names and buffers in the order in which they are met; it is linear in the
size of the kernel. The leading extent of a buffer stands in no address and is left out, sizes and
parameters are known by position."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from calque.native.loops.tree import (
    Acc,
    Accumulator,
    Body,
    For,
    If,
    Let,
    Recurrence,
    Statement,
    Store,
    statements,
)
from calque.native.scalars.expr import DEEP, Buffer, Expr, is_const

OWN: Final = 0.4  # of what a row of a tile does, what differs from row to row


class Canonical(NamedTuple):
    """A key, and what stands at each position of the kernel's arguments in this body; and the
    letters that the key would have with the rows of tiles written out, which tell how much there is
    to compile."""

    key: str
    buffers: list[Buffer]
    sizes: list[str]
    params: list[Expr]
    letters: int


@dataclass
class Numbering:
    """Writes the lines of a key."""

    bound: set[str]
    lines: list[str] = field(default_factory=list)
    ids: dict[Expr, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    buffers: dict[Buffer, int] = field(default_factory=dict)
    args: list[Buffer] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    params: dict[Expr, int] = field(default_factory=dict)
    repeated: int = 0  # letters of further rows of tiles

    def below(self, e: Expr) -> tuple[Expr, ...]:
        """The nodes that the line of ``e`` speaks of."""
        if e.op == "var":
            return (e.attr[1],) if e.attr[0] in self.bound and e.attr[1] is not None else ()
        if e.op == "load":
            return e.args + self.dimensions(e.attr)
        return e.args

    def dimensions(self, b: Buffer) -> tuple[Expr, ...]:
        return b.shape[1:] if b.place == "arg" else b.shape

    def node(self, e: Expr) -> int:
        """The number of a node, behind all that its line speaks of."""
        n = self.ids.get(e)
        if n is not None:
            return n
        todo = [e]
        while todo:
            x = todo[-1]
            deep = self._first_deep(x) if x.depth > DEEP else None
            if deep is not None:
                todo.append(deep)
            else:
                self._number(todo.pop())
        return self.ids[e]

    def _first_deep(self, e: Expr) -> Expr | None:
        """The first node below that is too deep for recursion and has no number; those before it
        have theirs then."""
        for a in self.below(e):
            if a.depth > DEEP and a not in self.ids:
                return a
            self._number(a)
        return None

    def _number(self, e: Expr) -> None:
        ids, op = self.ids, e.op
        if e in ids:
            return
        for a in self.below(e) if op == "var" or op == "load" else e.args:
            if a not in ids:
                self._number(a)
        self.lines.append(self.line(e))
        ids[e] = len(ids)

    def line(self, e: Expr) -> str:
        op, ids = e.op, self.ids
        if op == "const":
            return f"{e.dtype} {e.attr}"
        if op == "var":
            name = e.attr[0]
            if name not in self.bound:
                return f"size {self.sizes.setdefault(name, len(self.sizes))}"
            extent = ids[e.attr[1]] if e.attr[1] is not None else ""
            return f"var {self.name(name)} {extent}"
        if op == "ref":
            return f"ref {e.dtype} {self.name(e.attr[0])}"
        if op == "param":
            return f"param {e.dtype} {self.params.setdefault(e, len(self.params))}"
        args = " ".join([str(ids[a]) for a in e.args])
        if op == "load":
            return f"load {self.buffer(e.attr)} {args}"
        return f"{op} {e.dtype} {args}" if e.attr is None else f"{op} {e.dtype} {e.attr} {args}"

    def name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def buffer(self, b: Buffer) -> int:
        n = self.buffers.get(b)
        if n is None:
            shape = self.many(self.dimensions(b))
            n = self.buffers[b] = len(self.buffers)
            if b.place == "arg":
                self.args.append(b)
            data = f" {b.data.hex()}" if b.data is not None else ""
            self.lines.append(f"buffer {b.place} {b.dtype} {len(b.shape)} {shape}{data}")
        return n

    def many(self, exprs: tuple[Expr, ...]) -> str:
        return " ".join([str(self.node(e)) for e in exprs])

    def body(self, body: Body) -> None:
        for s in body:
            self.statement(s)
        self.lines.append("end")

    def statement(self, s: Statement) -> None:
        if isinstance(s, Store):
            guard = f" if {self.node(s.guard)}" if s.guard is not None else ""
            idx, value, buf = self.many(s.idx), self.node(s.value), self.buffer(s.buf)
            self.lines.append(f"store {buf} {idx} = {value}{guard}")
        elif isinstance(s, For):
            self.lines.append(f"for {self.node(s.var)} {s.kind} {s.width}")
            if s.ahead:
                self.lines.append(f"ahead {self.many(s.ahead)}")
            first = len(self.lines)
            self.body(s.body)
            if s.kind == "rows" and is_const(s.extent):
                own = sum(map(len, self.lines[first:])) * OWN
                self.repeated += (s.extent.attr - 1) * round(own)
            for a in s.accs:
                self.acc(a)
        elif isinstance(s, Recurrence):
            self.loop(s)
        elif isinstance(s, Let):
            value = self.node(s.value)
            self.lines.append(f"let {self.name(s.name)} {value}")
        else:
            self.if_(s)

    def acc(self, a: Accumulator) -> None:
        """The order of a fold is that of its loop (the verifier sees to it), which the key
        tells."""
        if isinstance(a, Acc):
            values = self.many((a.value,) if a.init is None else (a.value, a.init))
            self.lines.append(f"acc {self.name(a.name)} {a.op} {a.running} {values}")
            return
        parts = [self.many(x) for x in (a.init, a.values, a.left, a.right, a.combine)]
        names = " ".join([str(self.name(n)) for n in a.names])
        self.lines.append(f"fold {names} {a.running} {'; '.join(parts)}")

    def loop(self, s: Recurrence) -> None:
        inits = [self.node(t.init) for t in s.states]
        var = str(self.node(s.var)) if s.var is not None else "-"
        self.lines.append(
            f"loop {var} "
            + " ".join([f"{self.name(t.name)}={v}" for t, v in zip(s.states, inits, strict=True)])
        )
        self.body(s.test)
        if s.cond is not None:
            self.lines.append(f"while {self.node(s.cond)}")
        self.body(s.body)
        self.lines.append(f"next {self.many(tuple([t.next for t in s.states]))}")

    def if_(self, s: If) -> None:
        self.lines.append(f"if {self.node(s.cond)}")
        for body, exprs in (
            (s.then, [o.then for o in s.outs]),
            (s.orelse, [o.orelse for o in s.outs]),
        ):
            self.body(body)
            self.lines.append(f"side {self.many(tuple(exprs))}")
        self.lines.append("out " + " ".join([str(self.name(o.name)) for o in s.outs]))


def canonical(body: Body) -> Canonical:
    """The key of a body and the order of its arguments."""
    bound = set()
    for s in statements(body):
        if isinstance(s, (For, Recurrence)) and s.var is not None:
            bound.add(s.var.attr[0])
    n = Numbering(bound)
    n.body(body)
    key = "\n".join(n.lines)
    return Canonical(key, n.args, list(n.sizes), list(n.params), len(key) + n.repeated)
