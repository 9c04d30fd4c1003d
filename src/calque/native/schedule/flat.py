"""Loops over rows that do not fill vectors become one loop over all elements, where these lie one
after the other in everything that is read and written.

before: for i < 128: for j < 65: y[i, j] = x[i, j] + 1
after:  for v < 128 * 65: y[v // 65, v % 65] = x[v // 65, v % 65] + 1     (both at place v)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import Body, For, Let, Store, map_exprs, nodes, own_exprs
from calque.native.lower.cost import nanoseconds
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    ex,
    index_and_guard,
    linear,
    rewrite,
    var,
    walk,
)
from calque.native.schedule.threads import PARALLEL_NS, SPLIT

DEEP: Final = 4  # loops of a nest that are looked at one by one
WASTE: Final = 8  # a row may end with lanes that idle, one in so many
Access = tuple[Buffer, tuple[Expr, ...]]


def flattened(f: For, sizes: Sizes, width: int) -> For:
    """A nest of loops around one body as fewer loops, if its rows waste vectors of this width;
    else as it is. Of a deep nest those loops are one in any case that count elements in order."""
    f = shallow(f, sizes)
    chain = nest_of(f)
    if len(chain) < 2 or not sizes.known or not all(map(is_plain, chain)):
        return f
    leaf = chain[-1]
    if not all(isinstance(s, (Let, Store)) for s in leaf.body):
        return f
    rows = [1]  # the elements of the loops from one on, the last one first
    while len(rows) <= len(chain) and (len(rows) < 2 or wastes(rows[-1], width)):
        extent = chain[-len(rows)].extent
        rows.append(rows[-1] * max(sizes.hinted.interval(extent)[1], 1))
    depth = len(chain) - len(rows) + 1
    if depth == len(chain) - 1 or rows[-1] < width:
        return f
    # more loops may be in order where these are not; shorter rows waste less than single ones
    shorter = [d for d in range(depth + 1, len(chain) - 1) if rows[len(chain) - d] >= width]
    for d in (*range(depth, -1, -1), *shorter):
        made = as_one(chain[d:])
        if made is not None and (d or not takes_from_threads(f, made, sizes)):
            return nested([*chain[:d], made])
    return f


def shallow(f: For, sizes: Sizes) -> For:
    """A deep nest with those loops as one that only count elements in their order, however long
    they are: arrays of twenty axes are read along three or four.

    before: for i, j, k, l, m < 2: y[i, j, k, l, m] = x[k, i, j, l, m]
    after:  for i < 4: for k < 2: for l < 4: y[i // 2, i % 2, k, l // 2, l % 2] = x[k, i // 2, ...]
    """
    chain = nest_of(f)
    if len(chain) <= DEEP or not sizes.known or not all(map(is_plain, chain)):
        return f
    if not all(isinstance(s, (Let, Store)) for s in chain[-1].body):
        return f
    return nested(joined(chain))


def nest_of(f: For) -> list[For]:
    """A loop, the only one in its body, the only one in the body of that, and so on."""
    chain = [f]
    while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], For):
        chain.append(inner)
    return chain


def nested(loops: Sequence[For]) -> For:
    """Each loop around the next one; the last one as it is."""
    *around, made = loops
    for x in reversed(around):
        made = replace(x, body=(made,))
    return made


def joined(loops: Sequence[For]) -> list[For]:
    """A nest of plain loops in which each that goes on where the one inside ends is one with it."""
    groups = [[loops[-1]]]
    for f in reversed(loops[:-1]):
        pair, inner = [f, groups[0][0]], groups[0]
        found = accesses(loops[-1].body, {x.name for x in pair})
        if found is not None and all(in_order(a, pair) for a in found):
            inner.insert(0, f)
        else:
            groups.insert(0, [f])
    body = loops[-1].body
    out: list[For] = []
    for group in reversed(groups):
        made = as_one([*group[:-1], replace(group[-1], body=body)]) if len(group) > 1 else None
        if made is not None:
            group, body = [made], made.body
        out[:0] = [replace(x, body=()) for x in group]
    return [*out[:-1], replace(out[-1], body=body)]


def divided(loops: Sequence[For], sizes: Sizes) -> Sequence[For]:
    """A nest of plain loops in which one that is used in parts, quotients and remainders by one
    number that divides it, is two: the opposite of `as_one`. Else as it is.

    before: for v < 6: y[v] = x[v % 2, v // 2]
    after:  for q < 3: for r < 2: y[2 q + r] = x[r, q]"""
    leaf = loops[-1]
    found = {e for e in nodes(leaf.body) if e.op in ("floordiv", "mod") and e.args[0].op == "var"}
    for k, f in enumerate(loops):
        by = {e.args[1] for e in found if e.args[0] is f.var}
        if len(by) != 1 or f.accs or not goes_into(divisor := by.pop(), f.extent, sizes):
            continue
        if lies_in_order(leaf.body, f.name):
            continue
        q = var(f"{f.name}.q", ex("floordiv", f.extent, divisor))
        r = var(f"{f.name}.r", divisor)
        parts = {
            f.var: ex("add", ex("mul", q, divisor), r),
            ex("floordiv", f.var, divisor): q,
            ex("mod", f.var, divisor): r,
        }
        memo: dict[Expr, Expr] = {}
        body = map_exprs(leaf.body, lambda e: rewrite(e, parts.get, memo))
        two = [replace(f, var=q, body=()), replace(f, var=r, body=())]
        made = [*loops[:k], *two, *loops[k + 1 :]]
        return [*made[:-1], replace(made[-1], body=body)]
    return loops


def lies_in_order(body: Body, name: str) -> bool:
    """Does a loop variable only count elements that lie one after the other, whatever indices are
    made of it?"""
    found = accesses(body, {name})
    return found is not None and not any(divides(linear(b.shape, idx), name) for b, idx in found)


def goes_into(divisor: Expr, extent: Expr, sizes: Sizes) -> bool:
    """Are both sizes known, and is one a multiple of the other?"""
    (low, high), (least, most) = sizes.interval(divisor), sizes.interval(extent)
    return sizes.known and low == high > 1 and least == most > 0 and most % low == 0


def takes_from_threads(f: For, made: For, sizes: Sizes) -> bool:
    """Would threads share the rows, but not so few elements?"""
    few = sizes.hinted.interval(made.extent)[1] < 4 * SPLIT
    return few and nanoseconds((f,), sizes) > PARALLEL_NS


def is_plain(f: For) -> bool:
    return f.kind == "serial" and not f.accs and not f.colliding


def wastes(n: int, width: int) -> bool:
    """Do rows of this length leave much of their vectors idle?"""
    return n < width or -n % width * WASTE > n


def as_one(loops: Sequence[For]) -> For | None:
    """Loops as one, unless something else than elements in their order depends on them."""
    found = accesses(loops[-1].body, {f.name for f in loops})
    if found is None or not all(in_order(a, loops) for a in found):
        return None
    total = loops[0].extent
    for f in loops[1:]:
        total = ex("mul", total, f.extent)
    v = var(loops[0].name, total)
    new: dict[Expr, Expr] = {}
    left: Expr = v
    for f in reversed(loops[1:]):
        new[f.var] = ex("mod", left, f.extent)
        left = ex("floordiv", left, f.extent)
    new[loops[0].var] = left
    memo: dict[Expr, Expr] = {}

    def fix(e: Expr) -> Expr:
        return rewrite(e, new.get, memo)

    body = map_exprs(loops[-1].body, fix)
    return For(v, body) if lies_in_order(body, v.attr[0]) else None


def divides(at: Expr, name: str) -> bool:
    """Are quotients or remainders of a loop variable left in an address?"""
    return any(e.op in ("floordiv", "mod") and name in e.names for e in walk(at, set()))


def accesses(body: Body, names: set[str]) -> list[Access] | None:
    """What is read and written at places that depend on the loops; None when they are used
    otherwise."""
    out: list[Access] = []
    for s in body:
        todo = list(own_exprs(s))
        if isinstance(s, Store):
            if names.isdisjoint(n for i in s.idx for n in i.names):
                return None
            out.append((s.buf, s.idx))
            todo = todo[len(s.idx) :]
        seen: set[Expr] = set()
        for access in reads(todo, names, seen):
            if access is None:
                return None
            out.append(access)
    return out


def reads(roots: Sequence[Expr], names: set[str], seen: set[Expr]) -> Iterator[Access | None]:
    """The reads below expressions that depend on names; None for a name in another place."""
    todo = list(roots)
    while todo:
        e = todo.pop()
        if e in seen or names.isdisjoint(e.names):
            continue
        seen.add(e)
        if e.op == "var":
            yield None
        elif e.op == "load":
            idx, guard = index_and_guard(e)
            if not all(names.isdisjoint(i.names) for i in idx):  # or the guard alone depends
                yield e.attr, tuple(idx)
            todo += [guard] if guard is not None else []
        else:
            todo += e.args


def in_order(access: Access, loops: Sequence[For]) -> bool:
    """Do the loops stand beside each other along whole axes, the first one perhaps farther on (in
    a slice)?"""
    b, idx = access
    names = {f.name for f in loops}
    where = [k for k, i in enumerate(idx) if not names.isdisjoint(i.names)]
    first = where[0]
    return (
        where == list(range(first, first + len(loops)))
        and names.isdisjoint(ex("sub", idx[first], loops[0].var).names)
        and all(idx[k] is f.var for k, f in zip(where[1:], loops[1:]))
        and all(b.shape[k] is f.extent for k, f in zip(where[1:], loops[1:]))
    )
