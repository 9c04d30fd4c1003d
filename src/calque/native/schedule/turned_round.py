"""Nests that only move or map elements, and read along another loop than they write along: in
tiles, which are turned in registers, or with the turns of a very short loop written out.

before: for i: for j: y[i, j] = f(x[j, i])
after:  for i @tile: for j @vector(16): y[i, j] = f(x[j, i])"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from calque.machine.records import record, replace
from calque.native.loops.moves import moved_pairs
from calque.native.loops.rows import turn
from calque.native.loops.tree import NEAR, For, Store, map_exprs, nodes, own_exprs
from calque.native.lower.cost import body_weight, step_along, turns
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Expr, const, ex, index_and_guard, rewrite, walk
from calque.native.schedule.elements import memory_bytes
from calque.native.schedule.flat import divided, is_plain, joined, nest_of, nested
from calque.native.schedule.unroll import has_few_turns

ROWS: Final = 120  # weight of the elements of a row that are written together
SMALL_TILE: Final = 8  # elements of the sides of a tile at least, ...
MOST_TILE: Final = 16  # ... and at most


@record
class Turned:
    """A nest with a vector, and why."""

    nest: For
    reason: str


def turned_round(f: For, sizes: Sizes, vector_bytes: int) -> Turned | None:
    """A nest whose loops only move or map elements, in an order in which the loop along which
    something is read stands around the one along which it is written, next to it: in tiles;
    where the latter is very short, its turns are written out in the former. None for others."""
    return _Turner(sizes, vector_bytes).turned(f)


def facing(chain: Sequence[For]) -> Sequence[For]:
    """A nest whose outer loops go the other way where something is read backwards along them."""
    *around, leaf = chain
    there = {
        f.var: ex("sub", ex("sub", f.extent, const(1)), f.var)
        for f in around
        if reads_backwards(leaf, f.name)
    }
    if not there:
        return chain
    memo: dict[Expr, Expr] = {}
    body = map_exprs(leaf.body, lambda e: rewrite(e, there.get, memo))
    return [*around, replace(leaf, body=body)]


def reads_backwards(leaf: For, name: str) -> bool:
    """Is something read backwards along a loop, and otherwise not along the leaf?"""
    unit = moved_pairs(leaf.body)
    for e in nodes(leaf.body):
        if e.op == "load" and name in e.names:
            idx, guard = index_and_guard(e)
            along = step_along(e.attr.shape, idx, name)
            if along == -unit and guard is None:
                return step_along(e.attr.shape, idx, leaf.name) not in (-unit, 0, unit)
    return False


@record(eq=False)
class _Turner:
    """Looks at the forms of one nest."""

    sizes: Sizes
    vector_bytes: int

    def turned(self, f: For) -> Turned | None:
        """A nest in tiles, or with rows that are written whole; None for other statements."""
        chain = nest_of(f)
        names = {x.name for x in chain}
        if not all(map(is_plain, chain)):
            return None
        if any(not names.isdisjoint(x.extent.names) for x in chain):
            return None
        leaf = chain[-1]
        if not all(isinstance(s, Store) for s in leaf.body):
            return None
        if not (has_few_turns(leaf) or self.jumps(leaf)):
            return None
        found = self.in_tiles(chain)
        if found is None and (other := facing(chain)) is not chain:
            found = self.in_tiles(other)
        return found or self.woven(chain)

    def in_tiles(self, chain: Sequence[For]) -> Turned | None:
        """A nest in tiles, in the first form that has a place for them."""
        for loops in self.forms(chain):
            *around, leaf = loops
            for k in reversed(range(len(around))):
                if self.suits_tile(around[k], leaf):
                    made = self.tile(around[k], leaf)
                    nest = nested([*around[:k], *around[k + 1 :], made])
                    why = f"tiles of {made.width}: read along it, written along {leaf.name}"
                    return Turned(nest, f"{made.name}: {why}")
        return None

    def forms(self, chain: Sequence[For]) -> Iterator[Sequence[For]]:
        """A nest in the forms that may have a place for tiles, each made when it is asked for; in
        the last one rows are written out."""
        yield chain
        yield joined(chain)
        yield self.written_rows(chain)
        parts = divided(chain, self.sizes)
        if parts is not chain:
            yield parts
            yield joined(parts)
            yield self.written_rows(parts)

    def jumps(self, leaf: For) -> bool:
        """Is anything read at places that do not follow each other along a loop?"""
        return any(
            e.op == "load"
            and leaf.name in e.names
            and step_along(e.attr.shape, index_and_guard(e)[0], leaf.name) not in (0, 1)
            for e in nodes(leaf.body)
        )

    def written_rows(self, chain: Sequence[For]) -> Sequence[For]:
        """A nest whose innermost loop has very few turns, which fill a row each time: with these
        written out in the loop around it."""
        if len(chain) < 2:
            return chain
        *around, row, leaf = chain
        if not has_few_turns(leaf):
            return chain
        body = tuple(x for i in range(leaf.extent.attr) for x in turn(leaf, leaf.body, i))
        found = all(
            isinstance(s, Store) and step_along(s.buf.shape, s.idx, row.name) == len(body)
            for s in body
        )
        return [*around, replace(row, body=body)] if found else chain

    def suits_weaving(self, f: For) -> bool:
        """Can each turn write a row, from what vectors along the loop read well?"""
        size = self.vector_bytes // memory_bytes(f)
        unit = moved_pairs(f.body)
        if len(f.body) in (1, unit) or turns(f.extent, self.sizes) < size:
            return False
        if body_weight((f,)) > ROWS or any(isinstance(s, Store) and s.guard for s in f.body):
            return False
        for e in nodes(f.body):
            if e.op == "load":
                idx, guard = index_and_guard(e)
                step = step_along(e.attr.shape, idx, f.name)
                if guard is not None or step is None or not 0 <= step <= max(unit, NEAR):
                    return False
        return True

    def woven(self, chain: Sequence[For]) -> Turned | None:
        """A vector loop over rows whose elements are written out, if that suits them."""
        *_, (*around, row) = self.forms(chain)
        if not self.suits_weaving(row):
            return None
        size = self.vector_bytes // memory_bytes(row)
        made = replace(row, kind="vector", width=size)
        why = f"vector: read along it, rows of {len(row.body)} elements are written, {size} wide"
        return Turned(nested([*around, made]), f"{row.name}: {why}")

    def suits_tile(self, f: For, inner: For) -> bool:
        """Do elements that are written one after the other along a loop come from places that
        follow each other along another one: a transposition?"""
        if f.accs or inner.accs or any(not isinstance(s, Store) for s in inner.body):
            return False
        if f.colliding or inner.colliding or f.name in inner.extent.names:
            return False
        if self.fewest_turns(f, inner) < self.tile_size(f, inner):
            return False
        unit = moved_pairs(inner.body)
        turned = False
        seen: set[Expr] = set()
        for s in inner.body:
            assert isinstance(s, Store)
            if step_along(s.buf.shape, s.idx, inner.name) not in (unit, len(inner.body)):
                return False
            for e in own_exprs(s):
                for x in walk(e, seen):
                    if x.op == "load":
                        idx, guard = index_and_guard(x)
                        along, across = (step_along(x.attr.shape, idx, g.name) for g in (f, inner))
                        turned |= guard is None and along == unit and across not in (0, unit)
        return turned

    def fewest_turns(self, f: For, inner: For) -> float:
        return min(turns(x.extent, self.sizes) for x in (f, inner))

    def tile_size(self, f: For, inner: For) -> int:
        """How many elements of two loops a tile has: less where one of them is short."""
        word = memory_bytes(inner) * moved_pairs(inner.body)
        size = min(max(self.vector_bytes // word, SMALL_TILE), MOST_TILE)
        return size if self.fewest_turns(f, inner) >= size else SMALL_TILE

    def tile(self, f: For, inner: For) -> For:
        """Square tiles, transposed in registers."""
        width = self.tile_size(f, inner)
        body = replace(inner, kind="vector", width=width)
        return replace(f, kind="tile", width=width, body=(body,))
