"""Prefix results of an associative operation for users: associative_scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from calque.core import pytrees
from calque.core.dims import Dim
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.tracebacks import boundary
from calque.ops.common import move
from calque.ops.sizes import places
from calque.transforms.engines.trees import arrays, name_of
from calque.transforms.functions.loops import scan
from calque.transforms.primitives.flow import type_text

if TYPE_CHECKING:
    from calque.core.generics import X

ROUNDS: Final = 5  # of pairs, where the size is free
BLOCK: Final = 1 << ROUNDS
Combine = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


@overload
def associative_scan(
    fn: Callable[[X, X], X], elems: X, reverse: bool = False, axis: int = 0
) -> X: ...


@overload
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: X, reverse: bool = False, axis: int = 0
) -> X: ...


@boundary
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Gives all partial results of an associative operation along an axis, in logarithmic depth.

    Args:
        fn: An associative function of two trees like `elems`; it works on whole slices, element by
            element.
        elems: A tree of arrays.
        reverse: Whether to start from the end.
        axis: The axis.

    Returns:
        A tree of arrays of the same shapes.

    >>> lax.associative_scan(jnp.add, jnp.arange(4.0))
    Array([0., 1., 3., 6.], dtype=float32)"""
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = pytrees.flatten(elems)
    leaves = arrays(leaves, "associative_scan", fn, (elems,), {})
    if not leaves:
        return elems
    axis = int(axis)
    sizes = {typeof(x).shape[axis] for x in leaves}
    if len(sizes) > 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. (saw:"
            f" {[typeof(x).shape for x in leaves]})"
        )
    ndims = [axis % typeof(x).ndim for x in leaves]
    if reverse:
        leaves = [do.rev(x, dimensions=(a,)) for x, a in zip(leaves, ndims)]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out = fn(pytrees.unflatten(tree, a), pytrees.unflatten(tree, b))
        found, out_tree = pytrees.flatten(out)
        if out_tree != tree:
            raise TypeError(
                f"associative_scan: {name_of(fn)} must return the structure of its operands,"
                f" {tree}, got {out_tree}"
            )
        for given, x in zip(a, found, strict=True):
            if typeof(x).shape != typeof(given).shape:
                raise TypeError(
                    f"associative_scan: {name_of(fn)} must return the shapes of its operands, got"
                    f" {type_text(typeof(x))} for an operand of type {type_text(typeof(given))}: it"
                    " works on whole slices, element by element"
                )
        return found

    outs = _prefixes(combine, leaves, ndims)
    if reverse:
        outs = [do.rev(x, dimensions=(a,)) for x, a in zip(outs, ndims)]
    return pytrees.unflatten(tree, outs)


def _prefixes(combine: Combine, elems: list[Any], axes: Sequence[int]) -> list[Any]:
    """Prefix results: those of pairs, taken recursively, give the odd ones; one more step gives the
    even ones."""
    n: Any = typeof(elems[0]).shape[axes[0]]
    if type(n) is Dim:
        return _prefixes_of_any_size(combine, elems, axes, n)
    if n < 2:
        return elems

    def cut(xs: Sequence[Any], start: Any, stop: Any, step: int) -> list[Any]:
        return [_cut(x, a, start, stop, step) for x, a in zip(xs, axes)]

    pairs = combine(cut(elems, 0, n - 1, 2), cut(elems, 1, n, 2))
    odd = _prefixes(combine, pairs, axes)
    before = cut(odd, 0, (n - 1) // 2, 1) if n % 2 == 0 else odd
    even = combine(before, cut(elems, 2, n, 2)) if n > 2 else []
    first = cut(elems, 0, 1, 1)
    evens = (
        [do.concatenate(f, e, dimension=a) for f, e, a in zip(first, even, axes)]
        if n > 2
        else first
    )
    return [_interleaved(e, o, a) for e, o, a in zip(evens, odd, axes)]


# ---------------------------------------------------------------- for every size in one trace


def _prefixes_of_any_size(
    combine: Combine, elems: list[Any], axes: Sequence[int], n: Any
) -> list[Any]:
    """A fixed number of rounds of pairs, and what is left one after the other.

    The last element is repeated up to a whole number of blocks; what is behind an element does not
    change its result. There are two blocks at least, and two elements to add, so that no size is a
    special one."""
    more = BLOCK * ((n + 1) // BLOCK + 2) - n
    filled = []
    for x, a in zip(elems, axes):
        shape = tuple(more if i == a else d for i, d in enumerate(typeof(x).shape))
        last = _cut(x, a, n - 1, n, 1)
        spread = do.broadcast_in_dim(
            last, shape=shape, broadcast_dimensions=tuple(range(len(shape)))
        )
        filled.append(do.concatenate(x, spread, dimension=a))
    outs = _by_rounds(combine, filled, axes, ROUNDS)
    return [_cut(x, a, 0, n, 1) for x, a in zip(outs, axes)]


def _by_rounds(combine: Combine, elems: list[Any], axes: Sequence[int], rounds: int) -> list[Any]:
    """Of a multiple of `2**rounds` elements: as `_prefixes`, with no part that might be empty."""
    n = typeof(elems[0]).shape[axes[0]]
    if not rounds:
        return _one_by_one(combine, elems, axes, n)
    evens, odds = ([_cut(x, a, i, n, 2) for x, a in zip(elems, axes)] for i in (0, 1))
    odd = _by_rounds(combine, combine(evens, odds), axes, rounds - 1)
    before = []
    for x, a in zip(odd, axes):
        moved = do.concatenate(
            _cut(x, a, 0, 1, 1), x, dimension=a
        )  # what stands before the first is not used
        before.append(_cut(moved, a, 0, n // 2, 1))
    even = [_with_first_of(x, y, a) for x, y, a in zip(evens, combine(before, evens), axes)]
    return [_interleaved(e, o, a) for e, o, a in zip(even, odd, axes)]


def _with_first_of(x: Any, y: Any, axis: int) -> Any:
    """`y` with the first element of `x` along `axis`."""
    place = do.iota(dtype=np.dtype(np.int32), shape=typeof(y).shape, dimension=axis)
    return do.select_n(do.eq(place, np.zeros((), np.int32)), y, x)


def _one_by_one(combine: Combine, elems: list[Any], axes: Sequence[int], n: Any) -> list[Any]:
    """Each result from the one before."""

    def step(before: list[Any], now: tuple[Any, list[Any]]) -> tuple[list[Any], list[Any]]:
        i, rows = now
        here = [
            do.broadcast_in_dim(r, shape=typeof(b).shape, broadcast_dimensions=_others(b, a))
            for r, b, a in zip(rows, before, axes)
        ]
        first = do.eq(i, np.zeros((), np.int32))
        out = [do.select_n(first, y, x) for x, y in zip(here, combine(before, here))]
        return out, [do.squeeze(y, dimensions=(a,)) for y, a in zip(out, axes)]

    first = [_cut(x, a, 0, 1, 1) for x, a in zip(elems, axes)]
    _, outs = scan(step, first, (places(n), [move(x, a, 0) for x, a in zip(elems, axes)]))
    return [move(y, 0, a) for y, a in zip(outs, axes)]


def _others(x: Any, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(typeof(x).ndim) if i != axis)


# ---------------------------------------------------------------- parts


def _cut(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    shape = typeof(x).shape
    lo, hi, by = [0] * len(shape), list(shape), [1] * len(shape)
    lo[axis], hi[axis], by[axis] = start, stop, step
    return do.slice(x, start_indices=tuple(lo), limit_indices=tuple(hi), strides=tuple(by))


def _interleaved(a: Any, b: Any, axis: int) -> Any:
    """Elements of `a` and `b` in turn along `axis`; `a` begins and may have one more."""
    na, nb = typeof(a).shape[axis], typeof(b).shape[axis]
    if na == nb:
        shape = typeof(a).shape
        pair = (*shape[: axis + 1], 1, *shape[axis + 1 :])
        kept = tuple(i for i in range(len(pair)) if i != axis + 1)
        rows = [do.broadcast_in_dim(x, shape=pair, broadcast_dimensions=kept) for x in (a, b)]
        whole = (*shape[:axis], 2 * na, *shape[axis + 1 :])
        return do.reshape(do.concatenate(*rows, dimension=axis + 1), new_sizes=whole)
    last = _cut(a, axis, nb, na, 1)
    if not nb:
        return last
    return do.concatenate(_interleaved(_cut(a, axis, 0, nb, 1), b, axis), last, dimension=axis)
