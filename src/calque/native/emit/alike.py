"""Kernels of a program that are the same loops over other numbers share their code: the layers of a
model read their rows of one array, convolutions have tiles in blocks of four or of eight. What
differs, constants of indices and sizes, becomes an argument.

before: x[16 + i] = y[i]; x[32 + i] = z[i]       after: a[u0 + i] = b[i], called twice"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Final, NamedTuple

from calque.machine.records import replace
from calque.native.loops.canonical import Canonical, Numbering, canonical
from calque.native.loops.tree import Acc, Body, For, If, Let, Out, Recurrence, Statement, Store
from calque.native.loops.tree import statements as all_statements
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, make, rebuild, var

_SUMS: Final = frozenset(("add", "sub", "min", "max"))
_STATEMENTS: Final = re.compile(r"^(?:for|store|let|acc|fold|loop|if|end|buffer)\b", re.MULTILINE)
_OF_SIZES: Final = frozenset(("floordiv", "mod"))
Argument = str | int  # the name of a size, or a number


class Common(NamedTuple):
    """A body that serves several, and what each gives for its sizes."""

    body: Body
    order: Canonical
    arguments: list[tuple[Argument, ...]]

    def values(self, known: Mapping[str, int]) -> dict[str, int]:
        """What divides each size, whoever calls."""
        out = {}
        for k, name in enumerate(self.order.sizes):
            given = [a[k] if isinstance(a[k], int) else known.get(a[k]) for a in self.arguments]  # type: ignore[arg-type]
            if None not in given:
                out[name] = gcd(*given)  # type: ignore[arg-type]
        return out


class _Unlike(Exception):
    """Bodies that differ in more than numbers."""


def in_groups(bodies: Sequence[Body], orders: Sequence[Canonical]) -> list[list[int]]:
    """Which bodies look alike, where there are two and more. Most are told apart by an outline of
    their keys, which is little to work out."""
    outlines: dict[str, list[int]] = {}
    for k, order in enumerate(orders):
        outlines.setdefault(_outline(order.key), []).append(k)
    groups: dict[str, list[int]] = {}
    for near in outlines.values():
        for k in near if len(near) > 1 else ():
            groups.setdefault(_Shape(bodies[k]).text(), []).append(k)
    return [g for g in groups.values() if len(g) > 1]


def _outline(key: str) -> str:
    """The statements of a key without what they speak of."""
    return " ".join(_STATEMENTS.findall(key))


def common(bodies: Sequence[Body], orders: Sequence[Canonical]) -> Common | None:
    """A body that serves all of these; None where they differ in more than numbers."""
    u = _Unifier(bodies)
    try:
        body = u.body(tuple(bodies))
    except _Unlike:
        return None
    order = canonical(body)
    for m, own in enumerate(orders):
        if [u.buffers_of[b][m] for b in order.buffers] != own.buffers:
            return None
        if [u.params_of[p][m] for p in order.params] != own.params:
            return None
    given = [
        tuple([u.arguments[n][m] if n in u.arguments else n for n in order.sizes])
        for m in range(len(bodies))
    ]
    return Common(body, order, given)


def _vectors(body: Body) -> frozenset[str]:
    """The variables along which vectors lie: what they are multiplied by shapes the code."""
    wide = [s for s in all_statements(body) if isinstance(s, For) and s.kind in ("vector", "tile")]
    return frozenset([s.name for s in wide])


def _takes_numbers(e: Expr, bound: frozenset[str] | set[str], vectors: frozenset[str]) -> bool:
    """Whether constants among the operands may as well be arguments."""
    if e.op == "load":
        return True
    if e.dtype != "i64" or not e.index:
        return False
    if e.op == "mul":
        return vectors.isdisjoint(e.names)
    return e.op in _SUMS or (e.op in _OF_SIZES and e.names.isdisjoint(bound))


def _bound(body: Body) -> set[str]:
    loops = [s for s in all_statements(body) if isinstance(s, (For, Recurrence))]
    return {s.var.attr[0] for s in loops if s.var is not None}


class _Shape(Numbering):
    """A key that is the same for bodies that differ in numbers only. Expressions are told apart by
    hashes: bodies that look alike are compared for good afterwards."""

    def __init__(self, body: Body) -> None:
        super().__init__(_bound(body))
        self.vectors = _vectors(body)
        self.body(body)

    def text(self) -> str:
        return "\n".join(self.lines)

    def node(self, e: Expr) -> int:
        ids, todo = self.ids, [(e, False)]
        while todo:
            x, ready = todo.pop()
            if x in ids:
                continue
            below = () if ready else self.below(x)
            if below:
                todo.append((x, True))
                todo += [(a, False) for a in reversed(below) if a not in ids]
            else:
                ids[x] = hash(self.line(x))
        return ids[e]

    def line(self, e: Expr) -> str:
        if e.op == "var" and e.attr[0] not in self.bound:
            return "size"
        if _takes_numbers(e, self.bound, self.vectors):
            first = self.buffer(e.attr) if e.op == "load" else e.op
            return f"{first} {e.dtype} " + " ".join([self.place(a) for a in e.args])
        return super().line(e)

    def place(self, e: Expr) -> str:
        number = e.op == "const" and e.dtype == "i64"
        return "size" if number or self.ids[e] == hash("size") else str(self.ids[e])

    def many(self, exprs: tuple[Expr, ...]) -> str:
        """Subscripts and the like."""
        for e in exprs:
            self.node(e)
        return " ".join([self.place(e) for e in exprs])


class _Unifier:
    """Walks through several bodies at the same time."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self.bound = set().union(*map(_bound, bodies))
        self.vectors = frozenset().union(*map(_vectors, bodies))
        self.memo: dict[tuple[Expr, ...], Expr] = {}
        self.arguments: dict[str, tuple[Argument, ...]] = {}
        self.names: dict[tuple[tuple[int, Argument], ...], Expr] = {}
        self.buffers: dict[tuple[Buffer, ...], Buffer] = {}
        self.buffers_of: dict[Buffer, tuple[Buffer, ...]] = {}
        self.params_of: dict[Expr, tuple[Expr, ...]] = {}

    # --- expressions ---

    def expr(self, es: tuple[Expr, ...], number: bool = False) -> Expr:
        """The expression that stands for several; `number`: constants may differ."""
        first = es[0]
        if first.op == "const" or (first.op == "var" and first.attr[0] not in self.bound):
            return self.leaf(es, number)
        made = self.memo.get(es)
        if made is None:
            made = self.memo[es] = self.node(es)
        return made

    def leaf(self, es: tuple[Expr, ...], number: bool) -> Expr:
        """A constant or a size."""
        if all(e is es[0] for e in es):
            return es[0]
        sizes = [e.op == "var" and e.attr[0] not in self.bound for e in es]
        plain = all(s or (e.op == "const" and e.dtype == "i64") for s, e in zip(sizes, es))
        if not plain or not (number or all(sizes)):
            raise _Unlike
        given = tuple([e.attr[0] if s else e.attr for s, e in zip(sizes, es)])
        if any(isinstance(x, int) and x < 0 for x in given):
            if not all(isinstance(x, int) and x <= 0 for x in given):
                raise _Unlike
            return ex("sub", const(0), self.argument(tuple([-x for x in given])))
        return self.argument(given)

    def argument(self, given: tuple[Argument, ...]) -> Expr:
        """A size with these values, which are not negative."""
        key = tuple([(isinstance(x, int), x) for x in given])
        e = self.names.get(key)  # type: ignore[arg-type]
        if e is None:
            name = f"u{len(self.names)}"
            e = self.names[key] = var(name)  # type: ignore[index]
            self.arguments[name] = given
        return e

    def node(self, es: tuple[Expr, ...]) -> Expr:
        first = es[0]
        if any(
            e.op != first.op or e.dtype != first.dtype or len(e.args) != len(first.args) for e in es
        ):
            raise _Unlike
        if first.op == "var":
            if any(e.attr[0] not in self.bound for e in es):
                raise _Unlike
            extents = tuple([e.attr[1] for e in es])
            if None in extents:
                raise _Unlike
            return make("var", (), "i64", (first.attr[0], self.expr(extents)))
        if first.op == "ref":
            return first
        if first.op == "param":
            self.params_of[first] = es
            return first
        number = all(_takes_numbers(e, self.bound, self.vectors) for e in es)
        args = tuple(
            [self.expr(tuple([e.args[k] for e in es]), number) for k in range(len(first.args))]
        )
        if first.op == "load":
            r = len(first.attr.shape)
            buf = self.buffer(tuple([e.attr for e in es]))
            return load(buf, args[:r], args[r] if len(args) > r else None)
        if any(e.attr != first.attr for e in es):
            raise _Unlike
        return rebuild(first, args)

    def buffer(self, bs: tuple[Buffer, ...]) -> Buffer:
        made = self.buffers.get(bs)
        if made is None:
            b = bs[0]
            for x in bs:
                if (x.place, x.dtype, x.data, len(x.shape)) != (
                    b.place,
                    b.dtype,
                    b.data,
                    len(b.shape),
                ):
                    raise _Unlike
            shape = [
                d[0] if k == 0 and b.place == "arg" else self.expr(d, b.place == "arg")
                for k, d in enumerate(zip(*[x.shape for x in bs]))
            ]
            made = Buffer(b.name, shape, b.dtype, b.place, b.data)
            self.buffers[bs] = made
            self.buffers_of[made] = bs
        return made

    def exprs(self, many: Iterable[tuple[Expr, ...]], number: bool = False) -> tuple[Expr, ...]:
        return tuple([self.expr(es, number) for es in zip(*many, strict=True)])

    # --- statements ---

    def body(self, bodies: tuple[Body, ...]) -> Body:
        if any(len(b) != len(bodies[0]) for b in bodies):
            raise _Unlike
        return tuple([self.statement(s) for s in zip(*bodies, strict=True)])

    def statement(self, ss: tuple[Statement, ...]) -> Statement:
        first = ss[0]
        if isinstance(first, Store):
            return self.store([s for s in ss if isinstance(s, Store)], len(ss))
        if isinstance(first, For):
            return self.loop([s for s in ss if isinstance(s, For)], len(ss))
        if isinstance(first, Let):
            lets = [s for s in ss if isinstance(s, Let)]
            if len(lets) == len(ss):
                return Let(first.name, self.expr(tuple([s.value for s in lets])))
        if isinstance(first, If):
            return self.branch([s for s in ss if isinstance(s, If)], len(ss))
        raise _Unlike

    def store(self, ss: list[Store], count: int) -> Store:
        if len(ss) != count or len({s.guard is None for s in ss}) > 1:
            raise _Unlike
        buf = self.buffer(tuple([s.buf for s in ss]))
        guards = [s.guard for s in ss if s.guard is not None]
        return Store(
            buf,
            self.exprs([s.idx for s in ss], True),
            self.expr(tuple([s.value for s in ss])),
            self.expr(tuple(guards)) if guards else None,
        )

    def loop(self, ss: list[For], count: int) -> For:
        first = ss[0]
        facts = {(s.kind, s.width, s.colliding, len(s.accs), len(s.ahead)) for s in ss}
        if len(ss) != count or len(facts) > 1:
            raise _Unlike
        counter = self.expr(tuple([s.var for s in ss]))
        accs = tuple([self.acc(a) for a in zip(*[s.accs for s in ss], strict=True)])
        body, ahead = (
            self.body(tuple([s.body for s in ss])),
            self.exprs([s.ahead for s in ss], True),
        )
        return replace(first, var=counter, body=body, accs=accs, ahead=ahead)

    def acc(self, found: Sequence[object]) -> Acc:
        accs = [a for a in found if isinstance(a, Acc)]
        facts = {(a.op, a.running, a.order, a.round, a.init is None) for a in accs}
        if len(accs) != len(found) or len(facts) > 1:
            raise _Unlike
        inits = tuple([a.init for a in accs if a.init is not None])
        value = self.expr(tuple([a.value for a in accs]))
        return replace(accs[0], value=value, init=self.expr(inits) if inits else None)

    def branch(self, ss: list[If], count: int) -> If:
        if len(ss) != count or len({len(s.outs) for s in ss}) > 1:
            raise _Unlike
        sides = [self.body(tuple([getattr(s, side) for s in ss])) for side in ("then", "orelse")]
        outs = [
            Out(
                o[0].name,
                self.expr(tuple([x.then for x in o])),
                self.expr(tuple([x.orelse for x in o])),
            )
            for o in zip(*[s.outs for s in ss], strict=True)
        ]
        return If(self.expr(tuple([s.cond for s in ss])), sides[0], sides[1], tuple(outs))
