"""Folding and scanning with an associative function, written with slices: for derivatives and for
generic reductions.

`combine(a, b)` takes and gives lists of arrays, a before b."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calque.core.primitives import do
from calque.core.trace import typeof

Combine = Callable[[list[Any], list[Any]], list[Any]]


def part(x: Any, axis: int, start: int, stop: int, step: int = 1) -> Any:
    """`x[start:stop:step]` along `axis`."""
    shape = typeof(x).shape
    starts, stops, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return do.slice(
        x,
        start_indices=tuple(starts),
        limit_indices=tuple(stops),
        strides=None if step == 1 else tuple(steps),
    )


def fold(combine: Combine, xs: Sequence[Any], axis: int = 0) -> list[Any]:
    """All elements along `axis`, of which there must be one at least, combined in order, pairs
    first."""
    xs = list(xs)
    n = typeof(xs[0]).shape[axis]
    while n > 1:
        even = n - n % 2
        pairs = combine(
            [part(x, axis, 0, even, 2) for x in xs], [part(x, axis, 1, even, 2) for x in xs]
        )
        if n % 2:
            pairs = [
                do.concatenate(p, part(x, axis, n - 1, n), dimension=axis)
                for p, x in zip(pairs, xs)
            ]
        xs, n = pairs, even // 2 + n % 2
    return [do.squeeze(x, dimensions=(axis,)) for x in xs]


def prefixes(combine: Combine, xs: Sequence[Any], axis: int, reverse: bool = False) -> list[Any]:
    """The combinations of the first, the first two, ... elements along `axis`; from the end with
    `reverse`."""
    if not reverse:
        return _scan(combine, list(xs), axis)
    turned = [do.rev(x, dimensions=(axis,)) for x in xs]
    return [do.rev(x, dimensions=(axis,)) for x in _scan(combine, turned, axis)]


def _scan(combine: Combine, xs: list[Any], axis: int) -> list[Any]:
    """Combine pairs, scan those: that is every second result; the others need one more combination
    each."""
    n = typeof(xs[0]).shape[axis]
    if n < 2:
        return xs
    even = n - n % 2
    pairs = combine(
        [part(x, axis, 0, even, 2) for x in xs], [part(x, axis, 1, even, 2) for x in xs]
    )
    odd = _scan(combine, pairs, axis)
    first = [part(x, axis, 0, 1) for x in xs]
    if n == 2:
        return [do.concatenate(a, b, dimension=axis) for a, b in zip(first, odd)]
    used = [part(x, axis, 0, (n - 1) // 2) for x in odd]
    rest = combine(used, [part(x, axis, 2, n, 2) for x in xs])
    evens = [do.concatenate(a, b, dimension=axis) for a, b in zip(first, rest)]
    return [_interleaved(a, b, axis, n) for a, b in zip(evens, odd)]


def _interleaved(even: Any, odd: Any, axis: int, n: int) -> Any:
    """even[0], odd[0], even[1], ...: `n` elements along `axis`."""
    if n % 2:
        odd = do.concatenate(odd, part(even, axis, 0, 1), dimension=axis)
    shape = typeof(even).shape
    paired = shape[: axis + 1] + (1,) + shape[axis + 1 :]
    both = [do.reshape(x, new_sizes=paired) for x in (even, odd)]
    flat = shape[:axis] + (2 * shape[axis],) + shape[axis + 1 :]
    joined = do.reshape(do.concatenate(*both, dimension=axis + 1), new_sizes=flat)
    return part(joined, axis, 0, n) if n % 2 else joined


def axes_in_front(x: Any, axes: Sequence[int]) -> Any:
    """`x` with `axes` merged into one leading dimension."""
    shape = typeof(x).shape
    kept = [i for i in range(len(shape)) if i not in axes]
    order = (*axes, *kept)
    if order != tuple(range(len(shape))):
        x = do.transpose(x, permutation=order)
    merged = 1
    for i in axes:
        merged *= shape[i]
    return do.reshape(x, new_sizes=(merged, *(shape[i] for i in kept)))
