"""Results in the place of what dies with them: the steps of a program with fewer buffers.

    before: t = f(x); u = g(t); out = h(u)      three temporaries' worth of memory
    after:  one, when each element of t, u and out is computed from the element in the same place

A buffer may take the memory of another one that is read for the last time by the very step that
writes it first, when that step reads an element before it writes it, and never after. Donated
inputs and results take part: so an update step works in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import (
    NO_NUMBERS,
    Body,
    For,
    If,
    Let,
    Recurrence,
    Statement,
    Store,
    acc_exprs,
    loaded,
    map_exprs,
    own_exprs,
    reading,
    statements,
    stored,
)
from calque.native.plan.memory import Lifetimes, swapped
from calque.native.plan.steps import (
    NO_NAMES,
    Call,
    Copy,
    Count,
    Host,
    Repeat,
    Routine,
    Step,
    Swap,
    Switch,
    WriteSize,
)
from calque.native.plan.steps import walk as walk_steps
from calque.native.scalars.expr import Buffer, Expr, load, ref, rewrite, walk

MOST_PAIRS: Final = 16  # of buffers that might become one, of which each is asked about early
SMALLEST: Final = 1024  # bytes of a temporary that is worth a thought
Gone = dict[Buffer, Buffer]  # each with what stands in its place


def reuse(
    steps: Sequence[Step],
    temporaries: set[Buffer],
    outputs: Sequence[Buffer],
    donated: Sequence[Buffer],
    nbytes: dict[Buffer, int],
) -> tuple[Sequence[Step], Gone]:
    """The steps with fewer buffers, and for each buffer that is gone the one that stands in its
    place."""
    if not donated and sum(nbytes[b] >= SMALLEST for b in temporaries) + bool(outputs) < 2:
        return steps, {}
    names = _Finder(steps, temporaries, outputs, donated, nbytes).find()
    return (_renamed_steps(steps, names), names) if names else (steps, names)


# ---------------------------------------------------------------- which


class _Finder:
    """Joins buffers into chains: each takes the memory of the one before."""

    def __init__(
        self,
        steps: Sequence[Step],
        temporaries: set[Buffer],
        outputs: Sequence[Buffer],
        donated: Sequence[Buffer],
        nbytes: dict[Buffer, int],
    ) -> None:
        self.donated, self.outputs = set(donated), set(outputs)
        self.steps, self.nbytes = steps, nbytes
        self.members = temporaries | self.donated | self.outputs
        self.life = Lifetimes(steps, self.members, donated, outputs)
        self.swapped = {b for s in walk_steps(steps) for b in swapped(s)}
        self.after: Gone = {}  # buffer -> who takes its memory
        self.before: Gone = {}

    def find(self) -> Gone:
        """The buffers that go, with what stands in their place."""
        for s in walk_steps(self.steps):
            if isinstance(s, (Call, Copy)):
                self.step(s)
        return {
            b: home
            for chain in self.chains()
            if (home := self.home(chain))
            for b in chain
            if b is not home
        }

    def chains(self) -> Iterator[list[Buffer]]:
        for first in self.after:
            if first not in self.before:
                chain = [first]
                while chain[-1] in self.after:
                    chain.append(self.after[chain[-1]])
                yield chain

    def home(self, chain: list[Buffer]) -> Buffer:
        """A donated input can only be the first, a result only the last."""
        return chain[0] if chain[0] in self.donated or chain[-1] not in self.outputs else chain[-1]

    def step(self, s: Call | Copy) -> None:
        at = self.life.at[s]
        writes = [
            d
            for d in s.writes()
            if d in self.members and self.life.first[d] == at and d not in self.before
        ]
        if not writes:
            return
        dying = [
            b
            for b in s.reads()
            if b in self.members and self.life.last[b] == at and b not in self.after
        ]
        for b in sorted(dying, key=lambda b: b.name):
            for d in sorted(writes, key=lambda d: d.name):
                if d not in self.before and self.fits(b, d) and self.safe(s, b, d):
                    self.after[b], self.before[d] = d, b
                    break

    def fits(self, b: Buffer, d: Buffer) -> bool:
        if (
            b is d
            or b.shape != d.shape
            or b.dtype != d.dtype
            or b in self.outputs
            or d in self.donated
        ):
            return False
        if b in self.donated:
            return True  # what changes places in a loop may begin in the memory of an input
        return self.nbytes[b] >= SMALLEST and b not in self.swapped and d not in self.swapped

    def safe(self, s: Call | Copy, b: Buffer, d: Buffer) -> bool:
        if isinstance(s, Copy):
            return True
        return s.nest is not None and reads_before_writing(s.nest, b, d)


def keeps_apart(s: Call, members: Collection[Buffer]) -> bool:
    """Do all buffers of a call surely stay what they are to each other, so that its kernel is known
    before it is decided which of the buffers in `members` take the memory of others?"""
    nest = s.nest
    if nest is None:
        return True
    left = s.schedule.left  # memory that its kernel was left by another one
    reads = [b for b in s.reads() if b in members or b in left]
    pairs = [
        (b, d)
        for d in s.writes()
        if d in members or d in left
        for b in reads
        if b is not d and (b.shape, b.dtype) == (d.shape, d.dtype)
    ]
    # many are as many questions: it may as well be found out with the rest
    return len(pairs) <= MOST_PAIRS and not any(reads_before_writing(nest, *p) for p in pairs)


def reads_before_writing(body: Body, b: Buffer, d: Buffer) -> bool:
    """Would a kernel do the same if `b` and `d` were one? Yes when every element of `b` is read
    before it is overwritten."""
    written = [k for k, s in enumerate(body) if d in stored((s,))]
    if not written:
        return True
    if all(isinstance(s, (Store, Let)) for s in body):
        return _straight(body, b, d)
    first = written[0]
    if any(b in loaded((s,)) for s in body[first + 1 :]):
        return False
    s = body[first]
    if b not in loaded((s,)) or isinstance(s, Store):
        return True
    if not isinstance(s, For) or any(
        b in e.bufs for a in s.accs if not a.running for e in acc_exprs(a)
    ):
        return False
    return _confined(s, b, d) and reads_before_writing(s.body, b, d)


def _straight(body: Body, b: Buffer, d: Buffer) -> bool:
    """Stores in a row: those to `d` may wait until all else is done, unless something wants to read
    there."""
    k = next(k for k, s in enumerate(body) if isinstance(s, Store) and s.buf is d)
    if not any(b in loaded((s,)) for s in body[k + 1 :]):
        return True
    waiting = [s for s in body if isinstance(s, Store) and s.buf is d]
    return d not in loaded(body) and all(
        s.guard is None and not any(i.bufs for i in s.idx) for s in waiting
    )


def _confined(f: For, b: Buffer, d: Buffer) -> bool:
    """Does each turn of the loop touch its own part of both buffers: one index is the loop
    variable, the same in all accesses?"""
    places = set(range(len(b.shape)))
    seen: set[Expr] = set()
    for s in statements((f,)):
        if isinstance(s, Store) and s.buf is d:
            places &= {p for p, i in enumerate(s.idx) if i is f.var}
        for e in own_exprs(s):
            if b in e.bufs:
                for x in walk(e, seen):
                    if x.op == "load" and x.attr is b:
                        places &= {p for p in places if x.args[p] is f.var}
    return bool(places)


# ---------------------------------------------------------------- renaming


def _renamed_steps(steps: Sequence[Step], names: Gone) -> list[Step]:
    """The steps with the new names, without those that have nothing left to do."""
    return [new for s in steps if (new := _renamed_step(s, names)) is not None]


def _renamed_step(s: Step, names: Gone) -> Step | None:
    """A step with the new names; None where nothing of it is left."""

    def new(b: Buffer) -> Buffer:
        return names.get(b, b)

    match s:
        case Call():
            return _renamed_call(s, names)
        case Copy():
            dst, src = new(s.dst), new(s.src)
            return Copy(dst, src) if dst is not src else None
        case Host():
            return replace(s, args=[new(b) for b in s.args], outs=[new(b) for b in s.outs])
        case Routine():
            words = [new(w) if isinstance(w, Buffer) else w for w in s.words]
            args, outs = [new(b) for b in s.args], [new(b) for b in s.outs]
            return replace(s, args=args, outs=outs, words=words)
        case Repeat():
            return replace(
                s,
                body=_renamed_steps(s.body, names),
                test=_renamed_steps(s.test, names),
                swaps=[(new(a), new(b)) for a, b in s.swaps],
                flag=new(s.flag) if s.flag is not None else None,
            )
        case Switch():
            index = new(s.index) if isinstance(s.index, Buffer) else s.index
            return Switch(index, [_renamed_steps(c, names) for c in s.cases])
        case Count() | WriteSize():
            return replace(s, buffer=new(s.buffer))
        case Swap():
            return Swap(new(s.a), new(s.b))
    raise AssertionError(f"memory is shared among scheduled steps, not {s}")


def _renamed_call(s: Call, names: Gone) -> Call | None:
    """A call on other buffers: of the same kernel as long as none of them become one."""
    own = s.reads() | s.writes()
    if names.keys().isdisjoint(own):
        return s
    if len({names.get(b, b) for b in own}) == len(own):
        reads, writes = s.schedule.touched
        given = {b: s.names.get(b, b) for b in reads | writes}
        return replace(s, names={b: names.get(other, other) for b, other in given.items()})
    body = renamed(s.body, names)
    if not body:
        return None
    made = replace(s.schedule, body=body)
    return replace(s, schedule=made, names=NO_NAMES, numbers=NO_NUMBERS)


def renamed(body: Body, names: Gone) -> Body:
    """A kernel over other buffers. What is only copied onto itself goes; a store that something
    after it must not see waits."""
    names = {b: names[b] for b in loaded(body) | stored(body) if b in names}
    return _settled(reading(_wait(body, names), names), names)


def _wait(body: Body, names: Gone) -> Body:
    """Before renaming: stores to a buffer whose new memory is read further down in the same row
    come last; until then what they store is read by its name.

    before: m[i] = f(a[i]); p[i] = g(a[i], m[i])
    after (m in the place of a): let x = f(a[i]); p[i] = g(a[i], x); m[i] = x
    """
    out: list[Statement] = []
    late: list[Statement] = []
    waiting: dict[Expr, Expr] = {}  # places, and the names of what is stored there later
    row = [
        k for k, s in enumerate((*body, None)) if not isinstance(s, (Store, Let))
    ]  # where rows of stores end
    for k, s in enumerate(body):
        if not isinstance(s, (Store, Let)):
            out += [*late, replace(s, body=_wait(s.body, names)) if isinstance(s, For) else s]
            late, waiting = [], {}
            continue
        s = _by_name(s, waiting)
        end = next(e for e in row if e > k)
        if isinstance(s, Store) and (
            _is_read(body[k + 1 : end], s.buf, names) or _is_stored(late, s.buf, names)
        ):
            held = f"held{k}.{s.buf.name}"
            out.append(Let(held, s.value))
            late.append(Store(s.buf, s.idx, ref(held, s.value.dtype), s.guard))
            if s.guard is None:
                waiting = {**waiting, load(s.buf, s.idx): ref(held, s.value.dtype)}
        else:
            out.append(s)
    return (*out, *late)


def _by_name(s: Statement, waiting: dict[Expr, Expr]) -> Statement:
    """A statement that reads what is stored later by its name."""
    memo: dict[Expr, Expr] = {}
    (out,) = map_exprs((s,), lambda e: rewrite(e, waiting.get, memo)) if waiting else (s,)
    return out


def _is_stored(late: Sequence[Statement], buf: Buffer, names: Gone) -> bool:
    """Does a store that waits write the memory of `buf`? One behind it must not come first."""
    home = names.get(buf, buf)
    return any(names.get(b, b) is home for b in stored(tuple(late)))


def _is_read(rest: Body, buf: Buffer, names: Gone) -> bool:
    """Does anything read the memory that `buf` is going to share with others?"""
    home = names.get(buf, buf)
    shared = {b for b in (*names, *names.values()) if b is not buf and names.get(b, b) is home}
    return not shared.isdisjoint(loaded(rest))


def _settled(body: Body, names: Gone) -> Body:
    """After renaming the expressions: the stores as well, but for those of a value to its own
    place."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, Store):
            buf = names.get(s.buf, s.buf)
            v = s.value
            if not (v.op == "load" and v.attr is buf and v.args == s.idx):
                out.append(replace(s, buf=buf))
        elif isinstance(s, For):
            inner = _settled(s.body, names)
            if inner or s.accs:
                out.append(replace(s, body=inner))
        elif isinstance(s, Recurrence):
            out.append(replace(s, body=_settled(s.body, names), test=_settled(s.test, names)))
        elif isinstance(s, If):
            out.append(replace(s, then=_settled(s.then, names), orelse=_settled(s.orelse, names)))
        else:
            out.append(s)
    return tuple(out)


__all__ = ["reads_before_writing", "renamed", "reuse"]
