"""Loops over what was joined from parts are cut where one part ends: what is read there is plain
then, and as quick as if the parts were copied one after the other.

before: for j < 7: y[j] = a[j] if j < 3 else b[j - 3]
after:  for j < 3: y[j] = a[j]; for k < 4: y[k + 3] = b[k]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from calque.machine.records import replace
from calque.native.loops.decided import decided
from calque.native.loops.tree import Body, For, Store, map_exprs, nodes, statements
from calque.native.lower.cost import body_weight
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import FALSE, TRUE, Expr, ex, rewrite, var
from calque.native.schedule.flat import is_plain

MOST: Final = 4  # parts
LONG: Final = 8  # vectors beside which one more is little
LIGHT: Final = 80  # weight of two parts that may be written one after the other
GROWTH: Final = 1.1  # more than the whole that other two may weigh, which share little then


def cut(f: For, sizes: Sizes, least: int) -> Sequence[For]:
    """A loop as one for each part, where these have so many turns at least; else as it is."""
    parts = [f]
    if not sizes.known or not all(map(is_plain, [f, *loops_of(f.body)])):
        return (f,)
    if not all(isinstance(s, Store | For) for s in statements(f.body)):
        return (f,)
    while len(parts) < MOST:
        found = [(k, at) for k, g in enumerate(parts) if (at := end_of_part(g, sizes, least))]
        short = not found
        if short:
            found = [(k, at) for k, g in enumerate(parts) if (at := end_of_short(g, sizes, least))]
        if not found:
            break
        k, test = found[0]
        made = halves(parts[k], test, sizes)
        if short and max(map(reads, made)) >= reads(parts[k]):
            break  # nothing is read less often
        if body_weight(tuple(made)) > max(LIGHT, GROWTH * body_weight((parts[k],))):
            break
        parts[k : k + 1] = made
    return parts


def loops_of(body: Body) -> list[For]:
    """The loops inside."""
    return [s for s in statements(body) if isinstance(s, For)]


def reads(f: For) -> int:
    """From how many places a turn reads."""
    return sum(e.op == "load" for e in nodes(f.body))


def end_of_short(f: For, sizes: Sizes, least: int) -> Expr | None:
    """The same where one part fills no vector, beside many that the others fill."""
    long = sizes.interval(f.extent)[1] >= LONG * least
    return end_of_part(f, sizes, 1) if long else None


def end_of_part(f: For, sizes: Sizes, least: int) -> Expr | None:
    """A question that the first turns of a loop answer with yes, all others with no."""
    extent = sizes.interval(f.extent)[1]
    for e in nodes(f.body):
        if e.op != "lt" or e.args[0] is not f.var or f.name in e.args[1].names or e.args[1].bufs:
            continue
        low, high = sizes.interval(e.args[1])
        if low == high and least <= low <= extent - least:
            return e
    return None


def halves(f: For, test: Expr, sizes: Sizes) -> list[For]:
    """The turns before and behind the end of a part; what fewer turns decide is decided."""
    end = test.args[1]
    front, behind = var(f.name, end), var(f"{f.name}.x", ex("sub", f.extent, end))
    parts = []
    for v, at, answer in ((front, front, TRUE), (behind, ex("add", behind, end), FALSE)):
        known = {test: answer, f.var: at}
        memo: dict[Expr, Expr] = {}
        body = rewritten(f.body, known, memo)
        body = decided(rewritten(body, answers(body, sizes), {}))
        parts.append(replace(f, var=v, body=body if v is front else renamed(body)))
    return parts


def answers(body: Body, sizes: Sizes) -> dict[Expr, Expr]:
    """The questions about indices whose answer is the same for all turns."""
    found: dict[Expr, Expr] = {}
    for e in nodes(body):
        if e.op in ("lt", "ge") and e.args[0].index and e.args[1].index:
            known = sizes.decide(e.op, *e.args)
            if known is not None:
                found[e] = TRUE if known else FALSE
    return found


def rewritten(body: Body, new: Mapping[Expr, Expr], memo: dict[Expr, Expr]) -> Body:
    """With other expressions in place of some."""
    return map_exprs(body, lambda e: rewrite(e, new.get, memo))


def renamed(body: Body) -> Body:
    """With loops of other names: those before have these."""
    new: dict[Expr, Expr] = {s.var: var(f"{s.name}.x", s.extent) for s in loops_of(body)}
    return with_variables(rewritten(body, new, {}), new)


def with_variables(body: Body, new: Mapping[Expr, Expr]) -> Body:
    """The loops have these variables."""
    return tuple(
        replace(s, var=new[s.var], body=with_variables(s.body, new)) if isinstance(s, For) else s
        for s in body
    )
