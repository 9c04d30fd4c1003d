"""Ordered sums along a loop inside a vector loop: each lane keeps its partial sums beside each
other, in the order that a vector along the sum would take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import (
    BLOCK,
    LANES,
    Acc,
    Accumulator,
    For,
    Let,
    Statement,
    Store,
    identity,
    map_acc,
)
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    ZERO,
    Buffer,
    Expr,
    const,
    ex,
    is_const,
    load,
    ref,
    rewrite,
    var,
)

FEW: Final = 5  # blocks of a sum in lanes
Parts = Sequence[tuple[Acc, Buffer]]  # folds, each with its partial sums


def keeps_blocks(a: Accumulator) -> bool:
    """Is this a fold whose result tells in which blocks it was taken?"""
    return a.ordered and a.order == "blocked"


def in_lanes(f: For, sizes: Sizes, number: int, streaming: bool = False) -> list[Statement]:
    """An ordered sum along a loop inside a vector loop: 16 partial sums per lane, in the order
    that a vector along k would take.

    before: for k: s = sum(x[k, lane])
    after:  for q: for j < 16: p[j] += (x[64q+j] + x[64q+32+j]) + (x[64q+16+j] + x[64q+48+j]);
    the rest guarded; p folded by halves

    With `streaming` the rows are read in the order of memory, however few there are.
    """
    kept = kept_values(f)
    memo: dict[Expr, Expr] = {}
    mine = [map_acc(a, lambda e: rewrite(e, kept.get, memo)) for a in f.accs if keeps_blocks(a)]
    others = tuple(a for a in f.accs if not keeps_blocks(a))
    out: list[Statement] = [replace(f, accs=others)] if others or f.body else []
    parts: list[tuple[Acc, Buffer]] = []
    for n, a in enumerate(mine):
        assert isinstance(a, Acc)
        parts.append((a, Buffer(f"p{number}.{n}", (LANES,), a.value.dtype, "lane")))
    j = var(f"j{number}", LANES)
    q = var(f"q{number}", ex("floordiv", f.extent, const(BLOCK)))
    out += blocks(f, parts, j, q, sizes, streaming)
    out += rest(f, parts, q.attr[1], j, sizes)
    i = var(f"h{number}", 4)

    def at(p: Buffer, n: int) -> Expr:
        return load(p, (ex("add", i, const(n)),))

    halves = [
        (p, add(a, add(a, at(p, 0), at(p, 8)), add(a, at(p, 4), at(p, 12)))) for a, p in parts
    ]
    out.append(For(i, tuple(Store(p, (i,), e) for p, e in halves)))
    for a, p in parts:
        x = [load(p, (const(n),)) for n in range(4)]
        out.append(Let(a.name, add(a, add(a, x[0], x[2]), add(a, x[1], x[3]))))
    return out


def as_expressions(f: For, most: int) -> list[Statement] | None:
    """Sums of at most so many elements, in the order of `in_lanes`, written out; None if they are
    longer.

    before: for k < 3: s = sum(x[k])        after: let s = ((0 + x[0]) + (0 + x[2])) + (0 + x[1])"""
    if f.body or not is_const(f.extent) or f.extent.attr > min(most, LANES):
        return None
    if not all(isinstance(a, Acc) and keeps_blocks(a) and a.init is None for a in f.accs):
        return None
    return [Let(a.name, written(f, a)) for a in f.accs if isinstance(a, Acc)]


def written(f: For, a: Acc) -> Expr:
    """A short sum, halves upon halves; what is not there is left out."""
    start = identity(a.op, a.value.dtype)
    terms: list[Expr | None] = [None] * LANES
    for k in range(f.extent.attr):
        terms[k] = add(a, start, rewrite(a.value, {f.var: const(k)}.get, {}))
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [both_of(a, x, y) for x, y in zip(terms[:half], terms[half:], strict=True)]
    return start if terms[0] is None else terms[0]


def both_of(a: Acc, x: Expr | None, y: Expr | None) -> Expr | None:
    return x if y is None else y if x is None else add(a, x, y)


def blocks(
    f: For, parts: Parts, j: Expr, q: Expr, sizes: Sizes, streaming: bool
) -> list[Statement]:
    """The whole blocks. Where there are few, the partial sums stay in registers; many are read
    in the order of memory."""
    start = tuple(Store(p, (j,), identity(a.op, a.value.dtype)) for a, p in parts)
    base = ex("mul", q, const(BLOCK))
    most = sizes.interval(f.extent)[1]
    if sizes.known and most < BLOCK:
        return [For(j, start)]
    if sizes.known and most < FEW * BLOCK and len(parts) == 1 and not streaming:
        sums = tuple(
            replace(
                a,
                name=f"{a.name}.{j.attr[0]}",
                value=block_of(a, f, base, j),
                order="sequential",
            )
            for a, _ in parts
        )
        stores = tuple(Store(p, (j,), ref(s.name, s.value.dtype)) for s, (_, p) in zip(sums, parts))
        return [For(j, (For(q, (), sums), *stores))]
    step = tuple(block(a, p, f, base, j) for a, p in parts)
    return [For(j, start), For(q, (For(j, step),))]


def rest(f: For, parts: Parts, blocks: Expr, j: Expr, sizes: Sizes) -> list[Statement]:
    """The last, incomplete block: missing elements are the identity, which changes nothing, and
    are left out.

    Where the size is known it is known how many of the four 16s are there: the first `left`
    sums take one element more than the others.
    """
    low, high = sizes.interval(f.extent)
    base = ex("mul", blocks, const(BLOCK))
    if low != high or not sizes.known:
        return any_rest(f, parts, base, j)
    some, extra = divmod(low % BLOCK, LANES)
    left = ex("sub", ex("sub", f.extent, base), const(some * LANES))
    out: list[Statement] = []
    if extra:
        i = var(f"{j.attr[0]}.a", left)
        out.append(For(i, tuple(block(a, p, f, base, i, some + 1) for a, p in parts)))
    if some and extra < LANES:
        i = var(f"{j.attr[0]}.b", ex("sub", const(LANES), left))
        at = ex("add", i, left)
        out.append(For(i, tuple(block(a, p, f, base, at, some) for a, p in parts)))
    return out


def any_rest(f: For, parts: Parts, base: Expr, j: Expr) -> list[Statement]:
    """The same for any size: a loop for the sums that take one more element, one for those that
    take two, three, four."""
    left = ex("sub", f.extent, base)

    def reach(n: int) -> Expr:
        return ex("min", ex("max", ex("sub", left, const(LANES * (n - 1))), ZERO), const(LANES))

    out: list[Statement] = []
    for count in (1, 2, 3, 4):
        more = reach(count + 1) if count < 4 else ZERO
        i = var(f"{j.attr[0]}.{count}", ex("sub", reach(count), more))
        at = ex("add", i, more)
        out.append(For(i, tuple(block(a, p, f, base, at, count) for a, p in parts)))
    return out


def block(a: Acc, p: Buffer, f: For, base: Expr, j: Expr, count: int = 4) -> Store:
    """One block of 64 elements, or the first `count` times 16 of them, added to the partial
    sums."""
    return Store(p, (j,), add(a, load(p, (j,)), block_of(a, f, base, j, count)))


def block_of(a: Acc, f: For, base: Expr, j: Expr, count: int = 4) -> Expr:
    """What a block adds to partial sum `j`."""

    def element(offset: int) -> Expr:
        k = ex("add", ex("add", base, j), const(offset))
        memo: dict[Expr, Expr] = {}
        return rewrite(a.value, lambda e: k if e is f.var else None, memo)

    total = element(0)
    if count > 2:
        total = add(a, total, element(32))
    if count > 1:
        other = element(16)
        total = add(a, total, add(a, other, element(48)) if count > 3 else other)
    return total


def short_block(f: For, sizes: Sizes) -> For:
    """A sum of less than a block, but of whole parts of it, as one of sixteen elements: those that
    the block would add to each partial sum. A block that is not there in full is read lane by lane,
    or under masks.

    before: for k < 32: s = sum(x[k])        after: for j < 16: s = sum(x[j] + x[j + 16])"""
    low, high = sizes.interval(f.extent)
    if not sizes.known or low != high or f.body or not LANES < low < BLOCK or low % LANES:
        return f
    if not all(isinstance(a, Acc) and keeps_blocks(a) and not a.running for a in f.accs):
        return f
    j = var(f"{f.name}.part", LANES)
    accs = [
        replace(a, value=block_of(a, f, ZERO, j, low // LANES))
        for a in f.accs
        if isinstance(a, Acc)
    ]
    return replace(f, var=j, accs=tuple(accs))


def kept_values(f: For) -> dict[Expr, Expr]:
    """What the body of a loop computes and stores, for each turn in a place of its own: it can be
    read again."""
    stores = [s for s in f.body if isinstance(s, Store)]
    out: dict[Expr, Expr] = {}
    for s in stores:
        alone = (
            sum(t.buf is s.buf for t in stores) == 1
            and s.guard is None
            and any(i is f.var for i in s.idx)
        )
        if alone and s.value.args and s.value.op != "load" and s.value.dtype == s.buf.dtype:
            out[s.value] = load(s.buf, s.idx)
    return out


def add(a: Acc, x: Expr, y: Expr) -> Expr:
    return ex("add" if a.op == "sum" else "mul", x, y)
