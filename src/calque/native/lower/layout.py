"""Layout operations as changes of the index."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from calque.core.dims import hint_of, surely_equal
from calque.core.dtypes import is_extended
from calque.machine.caches import memo
from calque.native.lower.graph import REAL_PART, Node
from calque.native.lower.rules import RULES, ElementSteps, Index, Lower, Request, Value
from calque.native.lower.sizes import Sizes
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import (
    TRUE,
    ZERO,
    Expr,
    both,
    cast,
    const,
    ex,
    index_and_guard,
    load,
    rewrite,
    select,
)


def broadcast_in_dim(_: Lower, n: Node, idx: Index) -> ElementSteps:
    """Element i of the operand, i picked out of the index of the result."""
    x, *_rest = n.args
    dims = n.params["broadcast_dimensions"]
    at = tuple(ZERO if x.shape[k] == 1 and n.shape[d] != 1 else idx[d] for k, d in enumerate(dims))
    at += (
        idx[len(idx) - (len(x.shape) - len(dims)) :] if len(x.shape) > len(dims) else ()
    )  # the inside of a random key
    return (yield x, at)


def transpose(_: Lower, n: Node, idx: Index) -> ElementSteps:
    x, perm = n.args[0], n.params["permutation"]
    at: list[Expr] = [ZERO] * len(x.shape)
    for i, p in enumerate(perm):
        at[p] = idx[i]
    at[len(perm) :] = idx[len(perm) :]
    return (yield x, tuple(at))


def squeeze(low: Lower, n: Node, idx: Index) -> ElementSteps:
    x = n.args[0]
    dropped = {d % x.aval.ndim for d in n.params["dimensions"]}
    rest = iter(idx)
    return (yield x, tuple(ZERO if d in dropped else next(rest) for d in range(len(x.shape))))


def reshape(low: Lower, n: Node, idx: Index) -> ElementSteps:
    x = n.args[0]
    return (yield x, reindex(low.sizes, idx, n.shape, x.shape))


def reindex(sizes: Sizes, idx: Index, new: Sequence[int], old: Sequence[int]) -> Index:
    """The index into shape `old` of element `idx` of shape `new`: the same place in row-major
    order.

    Both shapes are cut into the shortest groups of equal size, so that a dimension that survives is
    not touched.
    """
    if 0 in new:  # there are no elements
        return (ZERO,) * len(old)
    out: list[Expr] = []
    for (gi, i), (gj, j) in groups(tuple(new), tuple(old)):
        out += regroup(sizes, idx[gi:i], new[gi:i], old[gj:j])
    return tuple(out[: len(old)])


Group = tuple[tuple[int, int], tuple[int, int]]  # of the dimensions of two shapes: from, to


def groups(new: tuple[int, ...], old: tuple[int, ...]) -> Sequence[Group]:
    """The shortest groups of dimensions of equal size. Of shapes with free sizes they are found
    anew, since asking whether sizes are equal may pin them."""
    known = all([type(d) is int for d in new]) and all([type(d) is int for d in old])
    return (known_groups if known else found_groups)(new, old)


def found_groups(new: tuple[int, ...], old: tuple[int, ...]) -> Sequence[Group]:
    """The groups of two shapes."""
    out: list[Group] = []
    i = j = 0
    while i < len(new) or j < len(old):
        gi, gj = i, j
        a, b = (new[i] if i < len(new) else 1), (old[j] if j < len(old) else 1)
        i, j = i + 1, j + 1
        while not surely_equal(a, b) and (i < len(new) or j < len(old)):
            if (hint_of(a) < hint_of(b) or j >= len(old)) and i < len(new):
                a *= new[i]
                i += 1
            else:
                b *= old[j]
                j += 1
        out.append(((gi, i), (gj, j)))
    return out


known_groups = memo("groups of reshaped dimensions", 1 << 10)(found_groups)


def regroup(sizes: Sizes, idx: Index, new: Sequence[int], old: Sequence[int]) -> list[Expr]:
    """One group of `reindex`."""
    if not old:
        return []
    if len(new) == len(old) == 1:
        return [ZERO if new[0] == 1 else idx[0]]
    big = [(i, d) for i, d in zip(idx, new) if d != 1]
    wide = [k for k, d in enumerate(old) if d != 1]
    out: list[Expr] = [ZERO] * len(old)
    if len(big) == 1 and len(wide) == 1:
        out[wide[0]] = big[0][0]
        return out
    at = ZERO
    for i, d in big:
        at = ex("add", ex("mul", at, sizes.dim(d)), i)
    for k in reversed(wide):
        if k == wide[0]:
            out[k] = at
        else:
            size = sizes.dim(old[k])
            out[k] = ex("mod", at, size)
            at = ex("floordiv", at, size)
    return out


def slice_(low: Lower, n: Node, idx: Index) -> ElementSteps:
    x, starts, strides = (
        n.args[0],
        n.params["start_indices"],
        n.params["strides"] or (1,) * len(idx),
    )
    at = []
    for i, s, k in zip(idx, starts, strides):
        i = i if k == 1 else ex("mul", i, const(int(k)))
        at.append(i if surely_equal(s, 0) else ex("add", i, low.sizes.dim(s)))
    return (yield x, tuple(at) + idx[len(starts) :])


def rev(low: Lower, n: Node, idx: Index) -> ElementSteps:
    x, dims = n.args[0], n.params["dimensions"]
    at = (
        ex("sub", low.sizes.dim(x.shape[d] - 1), i) if d in dims else i for d, i in enumerate(idx)
    )
    return (yield x, tuple(at))


def iota(low: Lower, n: Node, idx: Index) -> ElementSteps:
    e = idx[n.params["dimension"]]
    if n.dtype in REAL_PART:
        part = REAL_PART[n.dtype]
        return Cx(cast(e, part), const(0, part))
    return low.number(e, n.dtype)
    yield


def in_bounds(low: Lower, i: Expr, extent: Expr) -> Expr:
    """The condition 0 <= i < extent; what is certain is left out."""
    ok = TRUE
    for op, limit in (("ge", ZERO), ("lt", extent)):
        known = low.sizes.decide(op, i, limit)
        if known is None:
            ok = both(ok, ex(op, i, limit))
        elif not known:
            return const(False, "i1")
    return ok


def guarded(value: Value, ok: Expr) -> Value:
    """`value`, reading memory only where `ok` holds."""
    if ok is TRUE:
        return value
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr | None:
        if e.op != "load":
            return None
        idx, old = index_and_guard(e)
        both_hold = (
            ok if old is None else both(rewrite(old, rule, memo), ok)
        )  # what guards a load may load as well
        return load(e.attr, [rewrite(i, rule, memo) for i in idx], both_hold)

    if isinstance(value, Cx):
        return Cx(rewrite(value.re, rule, memo), rewrite(value.im, rule, memo))
    return rewrite(value, rule, memo)


def choose(ok: Expr, a: Value, b: Value) -> Value:
    """`a` where `ok`, else `b`, for real and complex elements."""
    if isinstance(a, Cx):
        return Cx(select(ok, a.re, b.re), select(ok, a.im, b.im))
    return select(ok, a, b)


def pad(low: Lower, n: Node, idx: Index) -> ElementSteps:
    x, fill = n.args
    ok = TRUE
    at: list[Expr] = []
    for i, d, (low_pad, _, between) in zip(idx, x.shape, n.params["padding_config"]):
        inner = int(between)
        i = ex("sub", i, low.sizes.dim(low_pad))
        if inner:
            # the floor division of a negative index is not an index: ask first whether it lies
            # inside at all
            span = low.sizes.dim((d - 1) * (inner + 1) + 1) if d else ZERO
            inside = in_bounds(low, i, span)
            safe = ex("max", i, ZERO)
            step = const(inner + 1)
            ok = both(ok, both(inside, ex("eq", ex("mod", safe, step), ZERO)))
            i = ex("floordiv", safe, step)
        else:
            ok = both(ok, in_bounds(low, i, low.sizes.dim(d)))
        at.append(i)
    at += idx[len(at) :]
    other = yield fill, idx[len(n.params["padding_config"]) :]
    if ok.op == "const" and not ok.attr:
        return other
    value = yield x, tuple(at)
    return value if ok is TRUE else choose(ok, guarded(value, ok), other)


def concatenate(low: Lower, n: Node, idx: Index) -> ElementSteps:
    d = n.params["dimension"]
    out: Value = None
    end = sum(a.shape[d] for a in n.args)
    for a in reversed(n.args):
        size = a.shape[d]
        end -= size
        if not size:
            continue
        i = idx[d] if not end else ex("sub", idx[d], low.sizes.dim(end))
        below, inside = (
            low.sizes.decide("lt", i, ZERO),
            low.sizes.decide("lt", i, low.sizes.dim(size)),
        )
        if below or inside is False:
            continue
        value = yield a, (*idx[:d], i, *idx[d + 1 :])
        value = guarded(value, in_bounds(low, i, low.sizes.dim(size)))
        # pieces are met from the last to the first: behind this one lie the later ones
        out = (
            value if out is None or inside else choose(ex("lt", i, low.sizes.dim(size)), value, out)
        )
    if out is None:  # there are no elements
        return low.constant(
            np.zeros((), np.uint32 if is_extended(n.aval.dtype) else n.aval.dtype), n.dtype
        )
    return out


def dynamic_starts(
    low: Lower, x: Node, sizes: Sequence[int], scalars: Sequence[Node]
) -> Generator[Request, Value, list[Expr]]:
    """The clamped starts of a box of `sizes` in `x`."""
    out = []
    for d, n, s in zip(x.shape, sizes, scalars):
        if d == n:
            out.append(ZERO)
            continue
        v = yield s, ()
        out.append(clamped(low, v, low.sizes.dim(d - n)))
    return out


def clamped(low: Lower, v: Expr, top: Expr) -> Expr:
    """An index of the user's program, of any integer type, clamped to [0, top]; as narrow as it
    came while that is safe."""
    if v.op == "const":
        if top.op == "const":
            return const(min(max(v.attr, 0), top.attr))
        return ex("min", const(max(v.attr, 0)), top)
    if v.dtype == "u64":  # the upper half would look negative
        v = ex("min", v, const((1 << 62), "u64"))
    w = cast(v, "i64")
    if not low.sizes.decide("lt", w, ex("add", top, const(1))):
        w = ex("min", w, top)
    return w if low.sizes.decide("ge", w, ZERO) else ex("max", w, ZERO)


def dynamic_slice(low: Lower, n: Node, idx: Index) -> ElementSteps:
    x = n.args[0]
    starts = yield from dynamic_starts(low, x, n.params["slice_sizes"], n.args[1:])
    return (yield x, tuple(ex("add", i, s) for i, s in zip(idx, starts)) + idx[len(starts) :])


def dynamic_update_slice(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """As an expression: inside the box the update, outside the operand. (As a stage it is written
    in place.)"""
    x, u = n.args[:2]
    starts = yield from dynamic_starts(low, x, u.shape, n.args[2:])
    ok, at = TRUE, []
    for i, s, d, du in zip(idx, starts, x.shape, u.shape):
        j = ex("sub", i, s)
        ok = both(ok, in_bounds(low, j, low.sizes.dim(du)) if d != du else TRUE)
        at.append(j)
    new = yield u, tuple(at)
    if ok is TRUE:
        return new
    old = yield x, idx
    return choose(ok, guarded(new, ok), old)


RULES.update(
    broadcast_in_dim=broadcast_in_dim,
    transpose=transpose,
    squeeze=squeeze,
    expand_dims=reshape,
    reshape=reshape,
    slice=slice_,
    rev=rev,
    iota=iota,
    pad=pad,
    concatenate=concatenate,
    dynamic_slice=dynamic_slice,
    dynamic_update_slice=dynamic_update_slice,
)
