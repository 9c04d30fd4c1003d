"""Running folds along an axis that is not the last: the lanes of the vector lie beside each other
in memory, the fold goes from row to row.

The order of a running fold is part of its meaning: blocks of `SCAN_BLOCK` elements, each folded by
doubling steps, and what came before joined last. What came before is carried in a wider float
(`carries.py`). Lane by lane the same steps are taken between rows
as a vector along the axis takes between its lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calque.native.loops.carries import carry_of
from calque.native.loops.tree import (
    SCAN_BLOCK,
    Fold,
    For,
    Let,
    LoopValue,
    Recurrence,
    Statement,
    Store,
    as_fold,
)
from calque.native.scalars.expr import Buffer, Expr, cast, const, ex, load, ref, rewrite, var

Values = list[Expr]  # one for each name of a fold


@dataclass
class RowBlocks:
    """A nest `for f: for inner: running folds, stores`, to be taken a block of rows at a time.
    `heavy`: what is folded is computed in a loop of its own instead of once for each row of a
    block."""

    inner: For
    extent: int
    heavy: bool

    def body(self) -> list[Statement]:
        """before: for k: s = running sum(x[k, i]); y[k, i] = s
        after:  loop q with c = 0: x0 = x[16q, i], ..., x15 = ...; y[16q, i] = c + x0; y[16q+1, i] =
        c + (x0 + x1); ...; the rest likewise
        """
        self.folds = [as_fold(a) for a in self.inner.accs]
        blocks, left = divmod(self.extent, SCAN_BLOCK)
        carried = [carry_of(f) for f in self.folds]
        start = [list(c.init) for c in carried]
        if not blocks:
            return self.block(const(0), left, start, "")[0]
        name = self.folds[0].names[0]
        q = var(f"{name}.q", ex("floordiv", self.inner.extent, const(SCAN_BLOCK)))
        carry = [[ref(f"{n}.c", v.dtype) for n, v in zip(c.names, c.values)] for c in carried]
        body, last = self.block(ex("mul", q, const(SCAN_BLOCK)), SCAN_BLOCK, carry, "")
        states = [
            LoopValue(str(c.attr[0]), first, then)
            for cs, firsts, thens in zip(carry, start, last)
            for c, first, then in zip(cs, firsts, thens)
        ]
        out: list[Statement] = [Recurrence(tuple(states), tuple(body), q)]
        if left:
            done = ex("sub", self.inner.extent, const(left))
            out += self.block(done, left, carry, ".l")[0]
        return out

    def block(
        self, base: Expr, count: int, carry: Sequence[Values], tag: str
    ) -> tuple[list[Statement], Sequence[Values]]:
        """The statements of `count` rows from `base` on, and the folds after the last."""
        out: list[Statement] = []
        known: list[dict[Expr, Expr]] = [{} for _ in range(count)]
        last: list[Values] = []
        for f, before in zip(self.folds, carry, strict=True):
            inside = prefixes(f, self.rows(f, base, known, tag, out))
            narrow = [cast(c, v.dtype) for c, v in zip(before, f.values)]
            for i, v in enumerate(inside):
                after = named(out, f, f"{tag}.{i}", combined(f, narrow, v))
                known[i] |= {ref(n, e.dtype): e for n, e in zip(f.names, after)}
            last.append(named(out, f, f"{tag}.n", combined(carry_of(f), before, inside[-1])))
        for i, values_of in enumerate(known):
            out += [self.stored(s, values_of, ex("add", base, const(i))) for s in self.inner.body]
        return out, last

    def rows(
        self, f: Fold, base: Expr, known: Sequence[dict[Expr, Expr]], tag: str, out: list[Statement]
    ) -> list[Values]:
        """What is folded, row by row; it is read before anything is stored. `known`: the folds
        before this one, which it may read."""
        earlier = {e.attr[0] for e in known[0]} if known else set()
        if not self.heavy or any(not earlier.isdisjoint(v.names) for v in f.values):
            for i, folded in enumerate(known):
                at = ex("add", base, const(i))
                out += [
                    Let(f"{n}{tag}.x{i}", self.moved(v, at, folded)) for n, v in named_values(f)
                ]
            return [
                [ref(f"{n}{tag}.x{i}", v.dtype) for n, v in named_values(f)]
                for i in range(len(known))
            ]
        count = len(known)
        j = var(f"{f.names[0]}{tag}.j", count)
        kept = [Buffer(f"{n}{tag}.x", (count,), v.dtype, "lane") for n, v in named_values(f)]
        at = ex("add", base, j)
        out.append(
            For(j, tuple(Store(b, (j,), self.moved(v, at, {})) for b, v in zip(kept, f.values)))
        )
        return [[load(b, (const(i),)) for b in kept] for i in range(count)]

    def moved(self, e: Expr, at: Expr, known: dict[Expr, Expr]) -> Expr:
        """An expression of another turn, in which these values are known."""
        return rewrite(e, lambda x: at if x is self.inner.var else known.get(x), {})

    def stored(self, s: Statement, known: dict[Expr, Expr], at: Expr) -> Store:
        assert isinstance(s, Store)

        return Store(
            s.buf,
            tuple([self.moved(i, at, known) for i in s.idx]),
            self.moved(s.value, at, known),
            self.moved(s.guard, at, known) if s.guard is not None else None,
        )


def named_values(f: Fold) -> list[tuple[str, Expr]]:
    return list(zip(f.names, f.values, strict=True))


def named(out: list[Statement], f: Fold, tag: str, values: Values) -> Values:
    """The values under the names of the fold and a tag."""
    out += [Let(f"{n}{tag}", e) for n, e in zip(f.names, values)]
    return [ref(f"{n}{tag}", e.dtype) for n, e in zip(f.names, values)]


def combined(f: Fold, left: Values, right: Values) -> Values:
    """What two parts make."""
    parts = {**dict(zip(f.left, left, strict=True)), **dict(zip(f.right, right, strict=True))}
    memo: dict[Expr, Expr] = {}
    return [rewrite(e, parts.get, memo) for e in f.combine]


def prefixes(f: Fold, rows: Sequence[Values]) -> list[Values]:
    """Inclusive running folds of a block: in each step the last of every lower half joins its upper
    half."""
    out = list(rows)
    d = 1
    while d < len(out):
        out = [combined(f, out[i // d * d - 1], v) if i & d else v for i, v in enumerate(out)]
        d *= 2
    return out
