"""The outermost loop of a kernel shared out among threads."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.machine.records import replace
from calque.native.loops.tree import Body, For, If, Recurrence, map_acc, map_exprs, statements
from calque.native.lower.cost import turns
from calque.native.lower.sizes import Sizes, is_size
from calque.native.scalars.expr import ZERO, Expr, const, ex, rewrite, var
from calque.native.schedule.columns import columns_of, over_columns

PARALLEL_NS: Final = 35_000  # a kernel shorter than this is run by one thread
AWAKE_NS: Final = 12_000  # the same where threads need not be woken
AGAIN: Final = 4  # so much longer where each thread reads again which rows are added up
GRAIN_NS: Final = 2_000  # no thread gets less at a time: what is left over at the end is small then
SPLIT: Final = 4096  # elements of a parallel block of a one-dimensional loop
TILES: Final = 64  # rows of a parallel block of a transposition
LONGEST: Final = 1 << 40  # a loop that nobody knows more of is not cut into pieces


class Shared(NamedTuple):
    """A loop that threads share: it, how many of its turns are worth a thread, and why."""

    loop: For
    grain: int | Expr
    reason: str


def shared_out(f: For, ns: float, sizes: Sizes, worth: float = PARALLEL_NS) -> Shared | None:
    """The outermost loop of a kernel that takes `ns`, in pieces of at least `GRAIN_NS`; None where
    one thread runs it, since that is not longer than `worth`."""
    grows = sizes.may_grow(f.extent)
    if (ns <= worth and not grows) or f.accs or not sizes.known:
        return None
    if f.colliding:
        return shared_columns(f, ns, sizes) if ns > AGAIN * worth else None
    found = not is_size(f.extent)  # its elements say how long the loop is
    if found and sizes.interval(f.extent)[1] > LONGEST:
        return None
    n = sizes.hinted.interval(f.extent)[1]
    per, inner = ns / max(n, 1), growing_turns(f.body, sizes) if grows else None
    if f.kind in ("vector", "tile"):
        size = block_size(f, sizes)
        while size > f.width and n < 4 * size and per * size > 2 * GRAIN_NS:
            size //= 2  # few elements with much to do
        if n < (4 if size == SPLIT else 2) * size and not grows:
            return None
        f, per = split(f, size, sizes), per * size
        n = -(-n // size)
    elif found:
        f = split(f, 1, sizes)
    if n < 2 and not grows:
        return None
    least = max(1, int((PARALLEL_NS / 2 if grows else GRAIN_NS) / max(per, 1e-3)))
    told = least if grows else -(-n // max(n // least, 1))  # pieces of one size
    grain: int | Expr = told
    if inner is not None:  # less of a loop whose turns have become longer
        work = const(least * int(turns(inner, sizes)))
        grain = ex("add", ex("floordiv", work, ex("max", inner, const(1))), const(1))
    why = f"{f.name}: threads: about {ns / 1000:.0f} us of work, {told} iterations at a time"
    return Shared(replace(f, kind="parallel"), grain, why)


def shared_columns(f: For, ns: float, sizes: Sizes) -> Shared | None:
    """Rows of which several go to one place, with blocks of columns for threads."""
    found = columns_of(f, sizes)
    if found is None:
        return None
    inner, size = found
    narrow = replace(inner, width=min(inner.width, 1 << (size.bit_length() - 1)))
    made = over_columns(f, inner, split(narrow, size, sizes))
    why = f"{f.name}: threads: about {ns / 1000:.0f} us of work, {size} columns at a time"
    return Shared(replace(made, kind="parallel"), 1, why)


def block_size(f: For, sizes: Sizes) -> int:
    """How many elements of a loop go to a thread at a time: fewer when loops inside take long."""
    if f.kind == "tile":
        return TILES
    if any(isinstance(s, (Recurrence, If)) for s in statements(f.body)):
        return f.width
    inside = sum(turns(s.extent, sizes) for s in statements(f.body) if isinstance(s, For))
    size = SPLIT
    while size > f.width and size * inside > 4 * SPLIT:
        size //= 2
    return max(size, f.width)


def growing_turns(body: Body, sizes: Sizes) -> Expr | None:
    """The free extents inside, multiplied: of the nest that runs longest."""
    found: list[Expr] = []
    for s in body:
        if isinstance(s, For):
            inside = growing_turns(s.body, sizes)
            known = is_size(s.extent) and s.extent.names <= sizes.values.keys()
            if sizes.may_grow(s.extent) and known:
                inside = s.extent if inside is None else ex("mul", s.extent, inside)
            found += [inside] if inside is not None else []
    return max(found, key=lambda e: turns(e, sizes), default=None)


def split(f: For, size: int, sizes: Sizes) -> For:
    """before: for i < n @vector        after: for b < ceil(n / 4096): for i < min(4096, n -
    4096 b) @vector, at 4096 b + i

    Of a loop whose extent only its kernel finds there are as many pieces as there may be at most;
    those that lie beyond the end are empty."""
    low, high = sizes.interval(f.extent)
    most = f.extent if is_size(f.extent) else sizes.dim(high)
    b = var("b", ex("floordiv", ex("add", most, const(size - 1)), const(size)))
    base = ex("mul", b, const(size))
    left = ex("sub", f.extent, base)
    if most is not f.extent:
        left = ex("max", left, ZERO)
    whole = low == high and high % size == 0
    i = var(f"{f.name}.in", const(size) if whole else ex("min", const(size), left))
    at = ex("add", base, i)
    memo: dict[Expr, Expr] = {}

    def fix(e: Expr) -> Expr:
        return rewrite(e, lambda x: at if x is f.var else None, memo)

    body = map_exprs(f.body, fix)
    accs = tuple(map_acc(a, fix) for a in f.accs)
    return For(b, (replace(f, var=i, body=body, accs=accs),))
