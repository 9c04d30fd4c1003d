"""The loop tree: immutable statements over expressions. A kernel is a tuple of statements.

    For         a counted loop: serial, a vector of some logical width, or the parallel outermost
                one; it may fold values (``accs``)
    Recurrence  a loop that carries scalars in registers, counted or with a condition: the body of
                a ``scan`` or ``while``
    Store       an element written
    Let         a value read now, whatever is stored later
    If          one of two bodies

Names (loop variables, accumulators, states, lets) are unique in a kernel. A name bound by ``Let``
is known to the statements that follow it in its body and to loops around that body for their
accumulators and next states; accumulators, states and the results of ``If`` are known after their
statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from calque.machine.records import record, replace
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    ex,
    is_float,
    item_size,
    load,
    ref,
    rewrite,
    show,
)

Touched = tuple[frozenset[Buffer], frozenset[Buffer]]
LoopKind = Literal["serial", "vector", "parallel", "tile", "rows"]
# In which order a fold takes what it folds: turn by turn, or in blocks of a fixed width.
Order = Literal["sequential", "blocked"]

FOLDS: Final = ("sum", "prod", "max", "min", "and", "or", "xor")
BLOCK: Final = 64  # the vector width at which floats are summed, and ...
# ... the partial sums kept: a block is added halves upon halves down to LANES values, which are
# added to those
LANES: Final = 16
SQUARE: Final = 16  # lanes of a square that is turned in registers, at most: as many hold one
NEAR: Final = 4  # elements of a row that is read or written in one piece, at most
ROUND: Final = 2048  # bytes of what a sum in the order of its loop takes before it is set aside
SCAN_BLOCK: Final = (
    16  # a running float sum is taken in blocks of this many elements, by doubling steps
)


@record
class Acc:
    """A value folded over the iterations of a loop with one of ``FOLDS``; after the loop
    ``ref(name)`` is the result.

    The order of a float sum (or product) is part of its meaning. ``sequential``: that of the loop,
    which is serial; with ``round`` that many turns make a sum of their own, and those are added in
    their order, so that a long sum loses few digits. ``blocked``: that of a vector loop: for every
    ``BLOCK`` elements (the last one filled up with the identity) 64 -> 32 -> 16 by adding halves,
    that to ``LANES`` partial sums, in the end 16 -> 8 -> 4 -> 2 -> 1. ``running``: inside the body
    ``ref(name)`` is the fold up to and including this iteration; in blocks the width is
    ``SCAN_BLOCK``. ``init``: a start value, else the identity."""

    name: str
    op: str
    value: Expr
    running: bool = False
    init: Expr | None = None
    order: Order = "blocked"
    round: int = 0

    def __post_init__(self) -> None:
        if self.op == "scan":  # a running sum
            object.__setattr__(self, "op", "sum")
            object.__setattr__(self, "running", True)

    @property
    def ordered(self) -> bool:
        """Whether the order of folding changes the result."""
        return is_float(self.value.dtype) and self.op in ("sum", "prod")

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def values(self) -> tuple[Expr, ...]:
        return (self.value,)


@record
class Fold:
    """The general accumulator: several values folded together by a function.

    ``combine`` says, in terms of ``left`` and ``right`` (refs; left is the earlier part), what two
    parts make. In blocks the function must be associative and ``init`` its identity. ``order`` and
    ``running`` as in ``Acc``. Example (argmax): names m, i; values x[k], k; combine over lm,
    li, rm, ri."""

    names: tuple[str, ...]
    init: tuple[Expr, ...]
    values: tuple[Expr, ...]
    left: tuple[Expr, ...]
    right: tuple[Expr, ...]
    combine: tuple[Expr, ...]
    running: bool = False
    neutral: tuple[
        Expr, ...
    ] = ()  # constants that change no bit when folded from the left, if there are any
    order: Order = "blocked"

    @property
    def ordered(self) -> bool:
        return True


Accumulator = Acc | Fold


@record
class For:
    """``for var in range(extent)``, the extent is ``var.attr[1]``. Iterations are independent but
    for accumulators and, in serial loops, memory.

    ``colliding``: iterations may write the same place, the last one stays; such a loop is serial.
    ``vector``: the body runs for ``width`` iterations at once, the rest is masked. ``tile``: a
    serial loop whose body is one vector loop of the same width without accumulators; what is
    contiguous along this loop, not along that one, is read in square tiles turned in registers.
    ``rows``: each statement is done for all iterations before the next one (`loops.rows`).
    ``ahead``: elements that later loops touch; each iteration has the memory of its own brought
    near, and reads nothing of it."""

    var: Expr
    body: tuple[Statement, ...]
    accs: tuple[Accumulator, ...] = ()
    kind: LoopKind = "serial"
    width: int = 1
    colliding: bool = False
    ahead: tuple[Expr, ...] = ()

    @property
    def name(self) -> str:
        return str(self.var.attr[0])

    @property
    def extent(self) -> Expr:
        e: Expr = self.var.attr[1]
        return e


@record
class LoopValue:
    """A scalar carried by a ``Recurrence``: ``ref(name)`` is its value in this round, and after the
    loop its last one."""

    name: str
    init: Expr
    next: Expr


@record
class Recurrence:
    """A serial loop that carries states, all replaced at once at the end of each round.

    In a vector loop each lane ends when its own condition fails. Counted (``var`` with its extent),
    or while ``cond`` holds (asked before each round, after the statements of ``test``, which see
    the states), or both: then it ends with whichever ends first."""

    states: tuple[LoopValue, ...]
    body: tuple[Statement, ...]
    var: Expr | None = None
    cond: Expr | None = None
    test: tuple[Statement, ...] = ()


@record
class Store:
    """``buf[idx] = value``, only where ``guard`` holds."""

    buf: Buffer
    idx: tuple[Expr, ...]
    value: Expr
    guard: Expr | None = None


@record
class Let:
    """``ref(name)`` is the value that the expression has here."""

    name: str
    value: Expr


@record
class Out:
    """A result of an ``If``: one of two expressions, each evaluated at the end of its side only."""

    name: str
    then: Expr
    orelse: Expr


@record
class If:
    """One of two bodies. In a vector loop each lane runs its own; one that no lane runs costs
    nothing."""

    cond: Expr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    outs: tuple[Out, ...] = ()


Statement = For | Recurrence | Store | Let | If
Body = tuple[Statement, ...]


# --- traversal ------------------------------------------------------------------------------------


def bodies(s: Statement) -> tuple[Body, ...]:
    """The bodies directly inside a statement, in order of execution."""
    if isinstance(s, For):
        return (s.body,)
    if isinstance(s, Recurrence):
        return (s.test, s.body)
    if isinstance(s, If):
        return (s.then, s.orelse)
    return ()


def own_exprs(s: Statement) -> tuple[Expr, ...]:
    """The expressions that stand directly in a statement (not in its bodies)."""
    if isinstance(s, Store):
        return (*s.idx, s.value) + ((s.guard,) if s.guard is not None else ())
    if isinstance(s, For):
        return (s.extent, *[e for a in s.accs for e in acc_exprs(a)])
    if isinstance(s, Recurrence):
        out = tuple(e for st in s.states for e in (st.init, st.next))
        return (
            out
            + ((s.var.attr[1],) if s.var is not None else ())
            + ((s.cond,) if s.cond is not None else ())
        )
    if isinstance(s, Let):
        return (s.value,)
    return (s.cond, *[e for o in s.outs for e in (o.then, o.orelse)])


def acc_exprs(a: Accumulator) -> tuple[Expr, ...]:
    """Init and values of an accumulator (the combining function of a ``Fold`` speaks of its own
    names only)."""
    if isinstance(a, Acc):
        return (a.value,) if a.init is None else (a.init, a.value)
    return a.init + a.values


def statements(body: Body) -> list[Statement]:
    """Every statement, outermost first, in order."""
    out: list[Statement] = []
    todo = [*body[::-1]]
    while todo:
        s = todo.pop()
        out.append(s)
        if s.__class__ is For:  # asked thousands of times for each program
            todo += s.body[::-1]  # type: ignore[union-attr]
        elif s.__class__ is not Store and s.__class__ is not Let:
            for b in bodies(s)[::-1]:
                todo += b[::-1]
    return out


def nodes(body: Body) -> list[Expr]:
    """Every distinct expression node of a body."""
    out: list[Expr] = []
    seen: set[Expr] = set()
    for s in statements(body):
        for root in own_exprs(s):
            todo = [root]
            while todo:
                e = todo.pop()
                if e not in seen:
                    seen.add(e)
                    out.append(e)
                    todo += e.args
    return out


def stored(body: Body) -> frozenset[Buffer]:
    """The buffers a body writes."""
    return frozenset(s.buf for s in statements(body) if isinstance(s, Store))


def loaded(body: Body) -> frozenset[Buffer]:
    """The buffers a body reads."""
    out: set[Buffer] = set()
    for s in statements(body):
        out.update(*[e.bufs for e in own_exprs(s)])
    return frozenset(out)


def touched(body: Body) -> Touched:
    """What a kernel reads, and what it writes, of what lives outside of it."""
    reads, writes = loaded(body), stored(body)
    return (
        frozenset([b for b in reads if b.place == "arg"]),
        frozenset([b for b in writes if b.place == "arg"]),
    )


def vector_names(s: Statement, known: set[str]) -> set[str]:
    """Names bound inside ``s`` (states, accumulators, lets, results) whose values are vectors,
    given the names that are."""
    pairs: list[tuple[str, tuple[Expr, ...]]] = []
    for x in statements((s,)):
        if isinstance(x, Recurrence):
            ends = () if x.cond is None else (x.cond,)
            pairs += [(t.name, (t.init, t.next, *ends)) for t in x.states]
        elif isinstance(x, For):
            pairs += [(name, acc_exprs(a)) for a in x.accs for name in a.names]
        elif isinstance(x, If):
            pairs += [(o.name, (o.then, o.orelse, x.cond)) for o in x.outs]
        elif isinstance(x, Let):
            pairs.append((x.name, (x.value,)))
    out: set[str] = set()
    vectors = set(known)
    grown = True
    while grown:  # in program order nearly all are found at once
        grown = False
        for name, exprs in pairs:
            if name not in out and any(not vectors.isdisjoint(e.names) for e in exprs):
                out.add(name)
                vectors.add(name)
                grown = True
    return out


def map_exprs(body: Body, f: Callable[[Expr], Expr]) -> Body:
    """The same statements with ``f`` applied to every expression (loop variables stay as they
    are)."""
    return tuple(_map_statement(s, f) for s in body)


def _map_statement(s: Statement, f: Callable[[Expr], Expr]) -> Statement:
    if isinstance(s, For):
        accs, ahead = tuple([map_acc(a, f) for a in s.accs]), tuple([f(e) for e in s.ahead])
        return replace(s, body=map_exprs(s.body, f), accs=accs, ahead=ahead)
    if isinstance(s, Recurrence):
        states = tuple(LoopValue(t.name, f(t.init), f(t.next)) for t in s.states)
        cond = f(s.cond) if s.cond is not None else None
        return replace(
            s, states=states, cond=cond, body=map_exprs(s.body, f), test=map_exprs(s.test, f)
        )
    if isinstance(s, Store):
        return Store(
            s.buf, tuple(map(f, s.idx)), f(s.value), f(s.guard) if s.guard is not None else None
        )
    if isinstance(s, Let):
        return Let(s.name, f(s.value))
    outs = tuple(Out(o.name, f(o.then), f(o.orelse)) for o in s.outs)
    return If(f(s.cond), map_exprs(s.then, f), map_exprs(s.orelse, f), outs)


def map_stores(body: Body, f: Callable[[Store], Store]) -> Body:
    """The same statements with ``f`` applied to every store."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, Store):
            out.append(f(s))
        elif isinstance(s, For):
            out.append(replace(s, body=map_stores(s.body, f)))
        elif isinstance(s, Recurrence):
            out.append(replace(s, body=map_stores(s.body, f), test=map_stores(s.test, f)))
        elif isinstance(s, If):
            out.append(replace(s, then=map_stores(s.then, f), orelse=map_stores(s.orelse, f)))
        else:
            out.append(s)
    return tuple(out)


NO_NUMBERS: Final[Mapping[Expr, Expr]] = MappingProxyType({})


def with_buffers(
    body: Body, names: Mapping[Buffer, Buffer], numbers: Mapping[Expr, Expr] = NO_NUMBERS
) -> Body:
    """A body over other buffers, no two of which become one, and of other parameters."""

    def store(s: Store) -> Store:
        return replace(s, buf=names[s.buf]) if s.buf in names else s

    return map_stores(reading(body, names, numbers), store)


def reading(
    body: Body, names: Mapping[Buffer, Buffer], numbers: Mapping[Expr, Expr] = NO_NUMBERS
) -> Body:
    """A body that reads other buffers and parameters."""
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr | None:
        if e.op == "param":
            return numbers.get(e)
        if e.op != "load" or e.attr not in names:
            return None
        rank = len(e.attr.shape)
        args = [rewrite(a, rule, memo) for a in e.args]
        return load(names[e.attr], tuple(args[:rank]), args[rank] if len(args) > rank else None)

    return map_exprs(body, lambda e: rewrite(e, rule, memo))


def round_of(dtype: str) -> int:
    """How many floats of this type are added in one go."""
    return ROUND // item_size(dtype) if is_float(dtype) else 0


def map_acc(a: Accumulator, f: Callable[[Expr], Expr]) -> Accumulator:
    if isinstance(a, Acc):
        return replace(a, value=f(a.value), init=f(a.init) if a.init is not None else None)
    return replace(a, init=tuple(map(f, a.init)), values=tuple(map(f, a.values)))


# --- folds ----------------------------------------------------------------------------------------


def identity(op: str, dtype: str) -> Expr:
    """What changes nothing when folded."""
    if op in ("sum", "or", "xor"):
        return const(0, dtype)
    if op == "prod":
        return const(1, dtype)
    if op == "and":
        return const(-1 if dtype != "i1" else True, dtype)
    if is_float(dtype):
        return const(float("-inf") if op == "max" else float("inf"), dtype)
    if dtype == "i1":
        return const(op == "min", dtype)
    bits = int(dtype[1:])
    low, high = (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return const(low if op == "max" else high, dtype)


def as_fold(a: Accumulator) -> Fold:
    """A simple accumulator in the general form."""
    if isinstance(a, Fold):
        return a
    d = a.value.dtype
    left, right = ref(f"{a.name}.left", d), ref(f"{a.name}.right", d)
    op = {"sum": "add", "prod": "mul"}.get(a.op, a.op)
    if d == "i1":
        op = {"max": "or", "min": "and", "add": "or", "mul": "and"}.get(op, op)
    init = a.init if a.init is not None else identity(a.op, d)
    neutral = const(-0.0, d) if a.op == "sum" and is_float(d) else identity(a.op, d)
    return Fold(
        (a.name,),
        (init,),
        (a.value,),
        (left,),
        (right,),
        (ex(op, left, right),),
        a.running,
        (neutral,),
        a.order,
    )


# --- printing -------------------------------------------------------------------------------------


@dataclass
class LoopPrinter:
    """Writes statements and expressions as lines."""

    lines: list[str] = field(default_factory=list)
    counter: int = 0

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def exprs(self, depth: int, roots: tuple[Expr, ...]) -> list[str]:
        """Texts of expressions; what they use more than once is printed first, under a name of its
        own."""
        uses: dict[Expr, int] = {}
        order: list[Expr] = []
        todo = [(e, False) for e in reversed(roots)]
        while todo:
            e, ready = todo.pop()
            if ready:
                order.append(e)
                continue
            uses[e] = uses.get(e, 0) + 1
            if uses[e] == 1 and e.args:
                todo.append((e, True))
                todo += [(a, False) for a in reversed(e.args)]
        known: dict[Expr, str] = {}
        for e in order:
            if uses[e] > 1 and e.op not in ("load", "cast") and e.dtype != "i64":
                text = show(e, known)
                known[e] = f"%{self.counter}"
                self.counter += 1
                self.line(depth, f"{known[e]} = {text}")
        return [show(e, known) for e in roots]

    def body(self, body: Body, depth: int) -> None:
        for s in body:
            if isinstance(s, For):
                self.for_(s, depth)
            elif isinstance(s, Recurrence):
                self.loop(s, depth)
            elif isinstance(s, If):
                self.if_(s, depth)
            elif isinstance(s, Store):
                self.store(s, depth)
            else:
                (v,) = self.exprs(depth, (s.value,))
                self.line(depth, f"let {s.name} = {v}")

    def store(self, s: Store, depth: int) -> None:
        texts = self.exprs(depth, own_exprs(s))
        r = len(s.idx)
        guard = f" if {texts[r + 1]}" if s.guard is not None else ""
        self.line(depth, f"{s.buf.name}[{', '.join(texts[:r])}] = {texts[r]}{guard}")

    def for_(self, s: For, depth: int) -> None:
        kind = (
            ""
            if s.kind == "serial"
            else f" @{s.kind}" + (f"({s.width})" if s.kind == "vector" else "")
        )
        kind += " @colliding" if s.colliding else ""
        self.line(depth, f"for {s.name} < {show(s.extent)}{kind}:")
        for e in s.ahead:
            self.line(depth + 1, f"ahead {show(e)}")
        self.body(s.body, depth + 1)
        for a in s.accs:
            self.acc(a, depth + 1)

    def acc(self, a: Accumulator, depth: int) -> None:
        how = ("running " if a.running else "") + (a.op if isinstance(a, Acc) else "fold")
        how = f"{a.order} {how}" if a.ordered and a.order != "blocked" else how
        texts = self.exprs(depth, acc_exprs(a))
        if isinstance(a, Acc):
            start = f" from {texts[0]}" if a.init is not None else ""
            self.line(depth, f"{a.name} = {how}({texts[-1]}){start}")
            return
        n = len(a.names)
        pairs = (
            f"({', '.join(map(show, a.left))}), ({', '.join(map(show, a.right))}) ->"
            f" ({', '.join(map(show, a.combine))})"
        )
        self.line(
            depth,
            f"{', '.join(a.names)} = {how}({', '.join(texts[n:])}) from {', '.join(texts[:n])} by"
            f" {pairs}",
        )

    def loop(self, s: Recurrence, depth: int) -> None:
        states = ", ".join(f"{t.name} = {show(t.init)}" for t in s.states)
        count = f" {s.var.attr[0]} < {show(s.var.attr[1])}" if s.var is not None else ""
        self.line(depth, f"loop{count} with {states}:")
        self.body(s.test, depth + 1)
        if s.cond is not None:
            (c,) = self.exprs(depth + 1, (s.cond,))
            self.line(depth + 1, f"while {c}")
        self.body(s.body, depth + 1)
        for t, v in zip(
            s.states, self.exprs(depth + 1, tuple(t.next for t in s.states)), strict=True
        ):
            self.line(depth + 1, f"next {t.name} = {v}")

    def if_(self, s: If, depth: int) -> None:
        self.line(depth, f"if {show(s.cond)}:")
        self.body(s.then, depth + 1)
        for o in s.outs:
            self.line(depth + 1, f"{o.name} = {show(o.then)}")
        if s.orelse or s.outs:
            self.line(depth, "else:")
            self.body(s.orelse, depth + 1)
            for o in s.outs:
                self.line(depth + 1, f"{o.name} = {show(o.orelse)}")


def pretty(body: Body) -> str:
    """Readable text of a body."""
    p = LoopPrinter()
    p.body(body, 0)
    return "\n".join(p.lines)
