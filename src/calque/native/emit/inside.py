"""Vectors that lie wholly inside: what only the edges of an array ask is answered for all others.

    before: for d < n @vector: y[d] = select(d < 1, x[d + n - 1] if d < 1, x[d - 1] if d - 1 >= 0)
    after:  for d < n @vector: if no lane has d < 1: y[d] = x[d - 1], else as before

Shifts, padding and joined arrays ask where each element comes from: masks and reads under masks for
every lane. A question that changes its answer once along the loop has one answer for nearly all
vectors; two numbers tell which these are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from calque.machine.records import replace
from calque.native.emit.lanes import SCALAR
from calque.native.emit.values import value
from calque.native.emit.writer import Writer
from calque.native.loops.decided import decided
from calque.native.loops.tree import (
    For,
    If,
    Recurrence,
    map_acc,
    map_exprs,
    nodes,
)
from calque.native.loops.tree import statements as statements_of
from calque.native.scalars.expr import FALSE, TRUE, Expr, const, ex, rewrite, terms
from calque.native.scalars.ranges import interval
from calque.native.scalars.sums import sub, total

_MOST: Final = 200  # nodes of a body that is worth writing twice
_NEAR: Final = 64  # indices near the beginning
_QUESTIONS: Final = 12  # questions that are worth asking for each vector
_COMPARISONS: Final = frozenset(("lt", "le", "gt", "ge"))


class Question(NamedTuple):
    """A comparison that a vector has one answer to when ``low <= d`` and ``d <= high`` hold for all
    its lanes, of which one is given."""

    asked: Expr
    answer: bool
    low: Expr | None
    high: Expr | None


class Inside(NamedTuple):
    """The loop for vectors that lie inside, and where these are."""

    loop: For
    questions: tuple[Question, ...]


def inside_of(f: For, varying: Collection[str]) -> Inside | None:
    """A vector loop without the questions that only its edges ask; None where there are none, or
    writing it twice does not pay."""
    if f.extent.op == "const" and f.extent.attr <= 2 * f.width:
        return None
    if any(isinstance(s, For | If | Recurrence) for s in statements_of(f.body)):
        return None
    if any(a.running for a in f.accs):
        return None
    asked = list(nodes((f,)))
    found = [_test(e, f.name, varying) for e in asked if e.op in _COMPARISONS]
    questions = tuple([t for t in found if t is not None])
    if not questions or len(questions) > _QUESTIONS or len(asked) > _MOST:
        return None
    answers = {t.asked: TRUE if t.answer else FALSE for t in questions}
    memo: dict[Expr, Expr] = {}

    def known(e: Expr) -> Expr:
        return rewrite(e, answers.get, memo)

    body = decided(map_exprs(f.body, known))
    plain = replace(f, body=body, accs=tuple([map_acc(a, known) for a in f.accs]))
    if any(e.op == "load" and f.name not in e.names for e in _changed(asked, memo)):
        return None  # what was read under a mask alone might be read where nothing is
    return Inside(plain, questions)


def _changed(asked: Collection[Expr], memo: dict[Expr, Expr]) -> list[Expr]:
    """What became of the nodes that are others now."""
    return [memo[e] for e in asked if memo.get(e, e) is not e]


def _test(e: Expr, name: str, varying: Collection[str]) -> Question | None:
    """A comparison of indices that grows with the loop alone: ``d < bound``, however it is
    written."""
    a, b = e.args
    if a.dtype != "i64" or name not in e.names:
        return None
    parts, c = terms(sub(a, b))
    own = [x for x in parts if x.op == "var" and x.attr[0] == name]
    others = {x: k for x, k in parts.items() if x not in own}
    names = {n for x in others for n in x.names}
    if len(own) != 1 or parts[own[0]] not in (1, -1) or not names.isdisjoint(varying):
        return None
    sign = parts[own[0]]
    strict = e.op in ("lt", "gt")
    below = (e.op in ("lt", "le")) == (sign > 0)  # does it hold below the bound?
    rest = total({x: -sign * k for x, k in others.items()}, -sign * c)  # d against this
    # with d below: it holds for d <= rest - strict; with d above: for d >= rest + strict
    # a small number stands near the beginning, a size at the end
    near = not others or interval(rest)[1] <= _NEAR
    if below:
        last = sub(rest, const(int(strict)))
        if near:
            return Question(e, False, ex("add", last, const(1)), None)
        return Question(e, True, None, last)
    first = ex("add", rest, const(int(strict)))
    if near:
        return Question(e, True, first, None)
    return Question(e, False, None, sub(first, const(1)))


def lies_inside(w: Writer, inside: Inside, first: str, width: int) -> str:
    """Whether all lanes of the vector that begins at ``first`` lie inside."""
    lows = {t.low for t in inside.questions if t.low is not None}
    highs = {t.high for t in inside.questions if t.high is not None}
    conds = [f"icmp sge i64 {first}, {_bound(w, x)}" for x in sorted(lows, key=str)]
    if highs:
        last = w.new(f"add i64 {first}, {width - 1}")
        conds += [f"icmp sle i64 {last}, {_bound(w, x)}" for x in sorted(highs, key=str)]
    all_of = w.new(conds[0])
    for c in conds[1:]:
        all_of = w.new(f"and i1 {all_of}, {w.new(c)}")
    return all_of


def _bound(w: Writer, e: Expr) -> str:
    return value(w, e, SCALAR)
