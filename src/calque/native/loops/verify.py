"""Verifies that a kernel is well formed. On in tests and while debugging: a defect is reported
here, in words, not by LLVM or a wrong number."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

from calque.native.loops.canonical import canonical
from calque.native.loops.tree import (
    BLOCK,
    FOLDS,
    SCAN_BLOCK,
    Acc,
    Accumulator,
    Body,
    Fold,
    For,
    If,
    Let,
    LoopKind,
    Recurrence,
    Statement,
    Store,
    acc_exprs,
    loaded,
    pretty,
    statements,
    stored,
    vector_names,
)
from calque.native.scalars.expr import (
    LANE,
    Buffer,
    Expr,
    index_and_guard,
    is_const,
    scalar_dtype,
    show,
    walk,
)

Chosen = Literal["nothing", "vectors", "all"]


class MalformedKernel(ValueError):
    """A loop tree that means nothing."""


@dataclass
class _Verifier:
    inputs: frozenset[Buffer]
    sizes: frozenset[str]
    known: dict[str, str]  # names in scope -> dtype
    vec: str | None = None
    vecnames: set[str] = field(default_factory=set)
    idle: bool = False  # inside a loop of no turns: what stands there may mean nothing
    chosen: Chosen = "all"

    def need(self, ok: bool, what: str) -> None:
        if not ok:
            raise MalformedKernel(what)

    def bind(self, name: str, dtype: str, vec: bool) -> None:
        self.need(name not in self.known, f"the name {name} is bound where it is known already")
        self.known[name] = dtype
        (self.vecnames.add if vec else self.vecnames.discard)(name)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Names bound inside are forgotten at the end."""
        known = dict(self.known)
        yield
        self.known = known

    def varies(self, e: Expr) -> bool:
        return self.vec is not None and not self.vecnames.isdisjoint(e.names)

    # -- expressions -------------------------------------------------------------------------------

    def expr(self, e: Expr, dtype: str | None = None) -> None:
        if dtype is not None and e.dtype != dtype:  # to print takes longer than all checks
            raise MalformedKernel(f"{dtype} wanted, not {e.dtype}: {show(e)}")
        for x in walk(e, set()):
            self.node(x)

    def node(self, x: Expr) -> None:
        if x.op == "var":
            name = x.attr[0]
            known = name in self.known and (x.attr[1] is not None or name in self.sizes)
            self.need(known, f"{name} is used outside of its loop")
        elif x.op == "ref":
            name = x.attr[0]
            self.need(name in self.known, f"{name} is not known here")
            self.need(
                self.known[name] == x.dtype, f"{name} is {self.known[name]}, read as {x.dtype}"
            )
        elif x.op == "load":
            self.access(x.attr, index_and_guard(x)[0], index_and_guard(x)[1])

    def access(self, buf: Buffer, idx: tuple[Expr, ...], guard: Expr | None) -> None:
        self.need(
            len(idx) == len(buf.shape),
            f"{buf.name} has {len(buf.shape)} dimensions, {len(idx)} indices given",
        )
        for i, d in zip(idx, buf.shape, strict=True):
            self.need(i.dtype == "i64", f"an index into {buf.name} is {i.dtype}")
            outside = i.op == "const" and d.op == "const" and not 0 <= i.attr < max(d.attr, 1)
            if outside and guard is None and not self.idle:
                raise MalformedKernel(f"{buf.name}[{show(i)}] of {show(d)}")
        self.need(
            guard is None or guard.dtype == "i1",
            f"a guard of {buf.name} is {guard and guard.dtype}",
        )
        if buf.place == "lane" and self.vec is not None:
            self.need(
                not any(self.varies(i) for i in idx),
                f"the lane buffer {buf.name} is indexed by a lane",
            )

    # -- statements --------------------------------------------------------------------------------

    def body(self, body: Body, outermost: bool = False) -> None:
        for s in body:
            self.statement(s, outermost and len(body) == 1)

    def statement(self, s: Statement, alone: bool) -> None:
        if isinstance(s, Store):
            self.store(s)
        elif isinstance(s, For):
            self.for_(s, alone)
        elif isinstance(s, Recurrence):
            self.loop(s)
        elif isinstance(s, Let):
            self.expr(s.value)
            self.bind(s.name, s.value.dtype, self.varies(s.value))
        else:
            self.if_(s)

    def store(self, s: Store) -> None:
        for e in (*s.idx, s.value) + ((s.guard,) if s.guard is not None else ()):
            self.expr(e)
        self.access(s.buf, s.idx, s.guard)
        self.expr(s.value, scalar_dtype(s.buf.dtype))
        self.need(s.buf not in self.inputs, f"{s.buf.name} is an input, and stored")
        self.need(s.buf.place != "const", f"{s.buf.name} is constant, and stored")
        if (
            self.vec is not None
            and s.buf.place != "lane"
            and not any(self.varies(i) for i in s.idx)
            and self.varies(s.value)
        ):
            place = f"{s.buf.name}[{', '.join(map(show, s.idx))}]"
            raise MalformedKernel(f"all lanes store their own value at {place}")

    def for_(self, s: For, alone: bool) -> None:
        self.need(s.var.op == "var" and s.var.attr[1] is not None, "a loop variable without extent")
        self.expr(s.extent, "i64")
        self.need(
            self.vec is None or not self.varies(s.extent),
            f"the extent of {s.name} differs from lane to lane",
        )
        self.need(s.kind != "parallel" or alone, f"{s.name} is parallel but not the outermost loop")
        self.need(s.kind in get_args(LoopKind), f"no kind {s.kind!r}")
        if s.kind == "rows":
            self.rows(s)
        self.need(
            not s.colliding or s.kind == "serial",
            f"the turns of {s.name} may write the same place, but it is {s.kind}",
        )
        if s.kind == "tile":
            inner = s.body[0] if len(s.body) == 1 else None
            ok = (
                isinstance(inner, For)
                and inner.kind == "vector"
                and inner.width == s.width
                and not inner.accs
                and not s.accs
            )
            self.need(ok, f"the tile loop {s.name} is not around one vector loop of its width")
        if s.kind == "vector":
            self.need(self.vec is None, f"the vector loop {s.name} stands in that over {self.vec}")
            self.need(
                1 <= s.width <= 512 and s.width & (s.width - 1) == 0,
                f"width {s.width} is no power of two",
            )
        for a in s.accs:
            self.acc_outside(s, a)
        outer, names, idle = self.vec, set(self.vecnames), self.idle
        self.idle = idle or (is_const(s.extent) and s.extent.attr == 0)  # its body never runs
        with self.scope():
            self.bind(s.name, "i64", s.kind == "vector")
            if s.kind == "vector":
                self.vec = s.name
                self.vecnames.add(LANE)
            plain = s.kind == "serial" and not s.colliding
            self.need(not s.ahead or plain, f"{s.name} brings near, but is {s.kind} or collides")
            for e in s.ahead:
                self.need(e.op == "load", f"{show(e)} is no element that {s.name} could bring near")
                self.expr(e)
            self.inside(s)
            vec = [any(self.varies(e) for e in acc_exprs(a)) for a in s.accs]
        self.vec, self.idle = outer, idle
        if s.kind == "vector":
            self.vecnames, vec = names, [False] * len(vec)
        for a, v in zip(s.accs, vec, strict=True):
            for name, e in zip(a.names, a.values, strict=True):
                self.bind(name, e.dtype, v)

    def rows(self, s: For) -> None:
        """Whether each statement may be done for all rows before the next one: sums first, which
        read nothing that is stored, then values, then stores."""
        plain = not s.accs and is_const(s.extent) and self.vec is not None
        self.need(plain, f"the rows {s.name} are not a number of them inside of a vector loop")
        order = [0 if isinstance(t, For) else 1 if isinstance(t, Let) else 2 for t in s.body]
        sums = tuple([t for t in s.body if isinstance(t, For)])
        self.need(
            order == sorted(order)
            and stored(sums) == frozenset()
            and loaded(sums).isdisjoint(stored(s.body)),
            f"the rows {s.name} are not sums first, then values, then stores",
        )
        inner = statements(s.body)
        plain = all(isinstance(a, Acc) for t in inner if isinstance(t, For) for a in t.accs)
        plain &= not any(isinstance(t, If) and t.outs for t in inner)
        self.need(plain, f"the rows {s.name} have values that rows cannot each have")

    def inside(self, s: For) -> None:
        for a in s.accs:
            if a.running:
                self.values(a)
                made = {b for b in stored(s.body) if b.place == "stack"}
                late = {b.name for v in a.values for b in v.bufs & made}
                names = ", ".join(a.names)
                self.need(not late, f"{names} is folded before its turn stores {', '.join(late)}")
                for name, v in zip(a.names, a.values, strict=True):
                    self.bind(name, v.dtype, self.varies(v))
        self.body(s.body)
        for a in s.accs:
            if not a.running:
                self.values(a)

    def values(self, a: Accumulator) -> None:
        for v in a.values:
            self.expr(v)

    def acc_outside(self, s: For, a: Accumulator) -> None:
        dtypes = [v.dtype for v in a.values]
        if isinstance(a, Acc):
            self.need(a.op in FOLDS, f"no fold {a.op!r}")
            if a.init is not None:
                self.expr(a.init, a.value.dtype)
        else:
            self.fold(a, dtypes)
        if a.ordered:
            self.order(s, a)

    def order(self, s: For, a: Accumulator) -> None:
        """Whether the loop folds in the order that the fold asks for."""
        self.need(a.order in ("sequential", "blocked"), f"no order {a.order!r}")
        names = ", ".join(a.names)
        if isinstance(a, Acc) and self.chosen == "all":
            self.need(not a.round, f"{names} goes in rounds of {s.name}, which is one loop")
        if a.order == "sequential":
            self.need(
                s.kind == "serial",
                f"{names} is folded in the order of {s.name}, which is {s.kind}",
            )
            return
        if self.chosen == "nothing":
            return
        once = s.extent.op == "const" and s.extent.attr <= 1
        self.need(
            s.kind == "vector" or once,
            f"{names} is folded in blocks, but {s.name} is {s.kind}",
        )
        if s.kind != "vector":
            return
        small = s.extent.op == "const" and s.extent.attr <= s.width
        if a.running:
            ok = s.width == SCAN_BLOCK or (small and s.width < SCAN_BLOCK)
            self.need(
                ok, f"a running fold over {s.name} at width {s.width}: {SCAN_BLOCK} is its order"
            )
        else:
            ok = s.width == BLOCK or (small and s.width < BLOCK)
            self.need(ok, f"a fold over {s.name} at width {s.width}: {BLOCK} is its order")

    def fold(self, a: Fold, dtypes: list[str]) -> None:
        lengths = {len(x) for x in (a.names, a.init, a.values, a.left, a.right, a.combine)}
        self.need(
            len(lengths) == 1, f"the fold {', '.join(a.names)} has parts of different lengths"
        )
        for e, d in zip(a.init, dtypes, strict=True):
            self.expr(e, d)
        own = {r.attr[0]: r.dtype for r in (*a.left, *a.right)}
        self.need(
            len(own) == 2 * len(a.left), f"the fold {', '.join(a.names)} names its parts twice"
        )
        for part in (a.left, a.right, a.combine):
            self.need(
                [e.dtype for e in part] == dtypes,
                f"the dtypes of the fold {', '.join(a.names)} disagree",
            )
        for x in (x for e in a.combine for x in walk(e, set())):
            if x.op == "load" or (x.op == "ref" and x.attr[0] not in own):
                names = ", ".join(a.names)
                raise MalformedKernel(f"the fold {names} combines more than its parts: {show(x)}")

    def loop(self, s: Recurrence) -> None:
        self.need(s.var is not None or s.cond is not None, "a loop without count and condition")
        vec = vector_names(s, self.vecnames) if self.vec is not None else set()
        for t in s.states:
            self.expr(t.init)
            self.need(
                t.init.dtype == t.next.dtype,
                f"the state {t.name} changes from {t.init.dtype} to {t.next.dtype}",
            )
        with self.scope():
            if s.var is not None:
                self.expr(s.var.attr[1], "i64")
                self.bind(s.var.attr[0], "i64", False)
            for t in s.states:
                self.bind(t.name, t.init.dtype, t.name in vec)
            self.body(s.test)
            if s.cond is not None:
                self.expr(s.cond, "i1")
            self.body(s.body)
            for t in s.states:
                self.expr(t.next)
        for t in s.states:
            self.bind(t.name, t.init.dtype, t.name in vec)

    def if_(self, s: If) -> None:
        self.expr(s.cond, "i1")
        vec = {o.name for o in s.outs} if self.varies(s.cond) else set()
        for body, exprs in (
            (s.then, [(o.name, o.then) for o in s.outs]),
            (s.orelse, [(o.name, o.orelse) for o in s.outs]),
        ):
            with self.scope():
                self.body(body)
                for name, e in exprs:
                    self.expr(e)
                    vec |= {name} if self.varies(e) else set()
        for o in s.outs:
            self.need(
                o.then.dtype == o.orelse.dtype, f"{o.name} is {o.then.dtype} or {o.orelse.dtype}"
            )
            self.bind(o.name, o.then.dtype, o.name in vec)


def verify(body: Body, inputs: Iterable[Buffer] = (), chosen: Chosen = "all") -> None:
    """Raise ``MalformedKernel`` unless a body is well formed and leaves ``inputs`` as they are.

    ``chosen`` says how much of its schedule is: while it is nothing, folds in blocks still stand
    in serial loops; while it is the vectors, folds in rounds still stand in one loop."""
    try:
        sizes = frozenset(canonical(body).sizes)
        known = dict.fromkeys(sizes, "i64")
        v = _Verifier(frozenset(inputs), sizes, known, chosen=chosen)
        v.body(body, outermost=True)
    except MalformedKernel as error:
        raise MalformedKernel(f"{error}\nin the kernel\n{pretty(body)}") from None
