"""Accumulators: serial, in lanes, and running."""

from __future__ import annotations

from calque.native.emit.convert import splat_text
from calque.native.emit.tiles import Tiles
from calque.native.emit.types import VALUE, const_text, vector
from calque.native.loops.tree import LANES, Accumulator, Fold, as_fold
from calque.native.scalars.expr import Expr

Lanes = list[str]  # the SSA values of a fold's parts


class Folds(Tiles):
    """How values are folded. ``width`` says over how many lanes a fold's parts are vectors (0:
    scalars)."""

    def combine(
        self, f: Fold, width: int, left: Lanes, right: Lanes, vec: bool | None = None
    ) -> Lanes:
        """What two parts make; each at ``width`` lanes."""
        saved, names = self.width, self.vecnames
        parts = [r.attr[0] for r in (*f.left, *f.right)]
        if width:
            self.width, self.vecnames = width, names | set(parts)
        scope = self.open(self.scopes[-1].block, lazy=True)  # the parts' names are known here only
        for name, ssa in zip(parts, (*left, *right), strict=True):
            self.bind(name, ssa)
        out = [self.operand(e, width > 0) for e in f.combine]
        self.scopes.pop()
        parent = self.scopes[-1]
        parent.lines += scope.lines
        parent.block = scope.block
        self.width, self.vecnames = saved, names
        return out

    def fold_types(self, f: Fold, width: int) -> list[str]:
        return [vector(VALUE[v.dtype], width) for v in f.values]

    def starts(self, f: Fold, width: int) -> Lanes:
        return [self.start(e, width) for e in f.init]

    def start(self, e: Expr, width: int) -> str:
        if e.op == "const":
            return splat_text(VALUE[e.dtype], const_text(e), width)
        return self.operand(e, width > 0)

    def masked(self, f: Fold, values: Lanes, width: int) -> Lanes:
        """Values of lanes that do not exist are the identity."""
        if self.mask is None:
            return values
        out = []
        for v, e in zip(values, f.init, strict=True):
            t = vector(VALUE[e.dtype], width)
            out.append(
                self.new(f"select <{width} x i1> {self.mask}, {t} {v}, {t} {self.start(e, width)}")
            )
        return out

    def halves(self, f: Fold, values: Lanes, width: int, until: int) -> Lanes:
        """Fold the upper half of the lanes onto the lower one, down to ``until`` lanes."""
        while width > until:
            half = width // 2
            low, high = [
                [
                    self.shuffle(VALUE[e.dtype], width, v, lanes)
                    for v, e in zip(values, f.values, strict=True)
                ]
                for lanes in (list(range(half)), list(range(half, width)))
            ]
            values, width = self.combine(f, half, low, high), half
        return values

    def last(self, f: Fold, values: Lanes, width: int, lane: int = 0) -> Lanes:
        return [
            self.new(f"extractelement <{width} x {VALUE[e.dtype]}> {v}, i64 {lane}")
            for v, e in zip(values, f.values, strict=True)
        ]

    def prefix(self, f: Fold, values: Lanes, width: int) -> Lanes:
        """Inclusive running fold inside a vector: in each step the last element of every lower half
        joins its upper half."""
        d = 1
        while d < width:
            if f.neutral:
                joins = [i // d * d - 1 if i & d else width for i in range(width)]
                left = [
                    self.shuffle(VALUE[e.dtype], width, v, joins, self.start(e, width))
                    for v, e in zip(values, f.neutral, strict=True)
                ]
                values = self.combine(f, width, left, values)
                d *= 2
                continue
            before = [i // d * d - 1 if i & d else i for i in range(width)]
            upper = (
                "<" + ", ".join([f"i1 {'true' if i & d else 'false'}" for i in range(width)]) + ">"
            )
            left = [
                self.shuffle(VALUE[e.dtype], width, v, before)
                for v, e in zip(values, f.values, strict=True)
            ]
            joined = self.combine(f, width, left, values)
            values = [
                self.new(f"select <{width} x i1> {upper}, {t} {j}, {t} {v}")
                for j, v, t in zip(joined, values, self.fold_types(f, width), strict=True)
            ]
            d *= 2
        return values


def prepare(accs: tuple[Accumulator, ...]) -> list[Fold]:
    return [as_fold(a) for a in accs]


def lanes_of(width: int) -> int:
    """How many partial results a vector loop keeps."""
    return min(LANES, width)
