"""Refs among the arguments of functions that are transformed: there they are closed over, or mapped
row by row.

A function that is given a Ref is made into one that closes over it, with None in its place among
the arguments. Where the function is staged, what it closes over is found and threaded through as
for any other Ref (`refs`). Under vmap and among the xs of a scan a Ref stands for its rows: the
function gets one of its own for each, and what these hold at last is written back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.arrays import to_array
from calque.core.trace import typeof
from calque.transforms.engines.batching import placed
from calque.transforms.engines.trees import name_of
from calque.transforms.primitives.refs import (
    AbstractRef,
    Ref,
    RefTouched,
    any_alive,
    given_to,
    refs_among,
    store_all,
    threaded,
    touched_by,
    values_of,
)

Restore = Callable[[Any], Any]


def without_refs(tree: Any, name: str) -> tuple[Any, Restore | None]:
    """A tree with None in the place of each Ref, and what puts them back into such trees; None if
    there are no Refs."""
    if not any_alive():
        return tree, None
    leaves, treedef = pytrees.flatten(tree)
    places = refs_among(leaves, name)
    if not places:
        return tree, None
    refs = {i: leaves[i] for i in places}

    def restore(other: Any) -> Any:
        parts = treedef.flatten_up_to(other)
        return pytrees.unflatten(treedef, [refs.get(i, p) for i, p in enumerate(parts)])

    return (
        pytrees.unflatten(treedef, [None if i in refs else x for i, x in enumerate(leaves)]),
        restore,
    )


def closing_over(fun: Callable[..., Any], restore: Restore) -> Callable[..., Any]:
    """`fun` with the Refs among its positional arguments put back."""

    @functools.wraps(fun)
    def closed(*args: Any) -> Any:
        return fun(*restore(args))

    return closed


def with_refs_among_operands(choose: Callable[..., Any]) -> Callable[..., Any]:
    """A choice (what, index, branches, names, operands) that may be given Refs."""

    @functools.wraps(choose)
    def wrapped(what: str, index: Any, branches: Any, names: Any, operands: Any) -> Any:
        operands, restore = without_refs(tuple(operands), what)
        if restore is not None:
            branches = [closing_over(b, restore) for b in branches]
        return choose(what, index, branches, names, operands)

    return wrapped


def discharged_call(call: Callable[..., Any]) -> Callable[..., Any]:
    """A way to call a function (fun, args, kwargs, ...) that stages it: Refs that it is given or
    closes over go through as values."""

    @functools.wraps(call)
    def wrapped(fun: Callable[..., Any], args: Any, kwargs: Any, *rest: Any) -> Any:
        (args, kwargs), restore = without_refs((args, kwargs), name_of(fun))
        inner = fun if restore is None else _with_refs(fun, restore)
        try:
            return call(inner, args, kwargs, *rest)
        except RefTouched as e:
            error = e
        refs = touched_by(error, [(lambda a, k: inner(*a, **k), (args, kwargs))])
        staged = threaded(inner, refs)
        values, out = call(staged, (values_of(refs), *args), kwargs, *rest)
        store_all(refs, values, staged)
        return out

    return wrapped


def _with_refs(fun: Callable[..., Any], restore: Restore) -> Callable[..., Any]:
    @functools.wraps(fun)
    def closed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = restore((args, kwargs))
        return fun(*args, **kwargs)

    return closed


# ---------------------------------------------------------------- rows of Refs


def fresh(tree: Any, places: Sequence[int]) -> tuple[Any, list[Ref]]:
    """A tree whose leaves at these places became Refs that hold them; and these Refs."""
    leaves, treedef = pytrees.flatten(tree)
    made = []
    for i in places:
        value = to_array(leaves[i])
        leaves[i] = Ref(AbstractRef(typeof(value)), value)
        made.append(leaves[i])
    return pytrees.unflatten(treedef, leaves), made


def with_values(tree: Any, name: str) -> tuple[Any, list[Ref], list[int]]:
    """A tree with the values of its Refs in their place; these Refs, and which leaves they were."""
    if not any_alive():
        return tree, [], []
    leaves, treedef = pytrees.flatten(tree)
    places = refs_among(leaves, name)
    refs = [leaves[i] for i in places]
    for i, value in zip(places, values_of(refs)):
        leaves[i] = value
    return pytrees.unflatten(treedef, leaves), refs, places


def discharged_rows(scan: Callable[..., Any]) -> Callable[..., Any]:
    """A scan that may be given Refs among its xs: its function gets a Ref for each row."""

    @functools.wraps(scan)
    def wrapped(f: Any, init: Any, xs: Any = None, *args: Any, **kwargs: Any) -> Any:
        xs, refs, places = with_values(xs, "scan")
        if not refs:
            return scan(f, init, xs, *args, **kwargs)

        @functools.wraps(f)
        def step(carry: Any, x: Any) -> Any:
            x, made = fresh(x, places)
            carry, y = f(carry, x)
            return carry, (y, values_of(made))

        with given_to(name_of(f), refs):
            carry, (ys, values) = scan(step, init, xs, *args, **kwargs)
        store_all(refs, values)
        return carry, ys

    return wrapped


class LaneRefs:
    """The Refs among the flat arguments of a vmap: those that are mapped stand for their lanes, the
    others are closed over."""

    def __init__(self, leaves: Sequence[Any], axes: Sequence[int | None], name: str):
        places = refs_among(leaves, name)
        self.name = name
        self.mapped = [i for i in places if axes[i] is not None]
        self.refs = [leaves[i] for i in self.mapped]
        self.shared = {i: leaves[i] for i in places if axes[i] is None}
        self.values = list(leaves)
        for i, value in zip(self.mapped, values_of(self.refs)):
            self.values[i] = value
        for i in self.shared:
            self.values[i] = 0  # unread

    def flat(self, fun: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        """`fun` of the flat arguments with the last values of the mapped Refs before its
        results."""

        def lane(*values: Any) -> list[Any]:
            leaves, made = fresh(list(values), self.mapped)
            for i, r in self.shared.items():
                leaves[i] = r
            with given_to(self.name, self.refs):
                outs = fun(*leaves)
            return [*values_of(made), *outs]

        return lane

    def stored(
        self, outs: list[Any], found: Sequence[Any], dims: Sequence[Any], size: int
    ) -> tuple[list[Any], list[Any]]:
        """What remains of the results once the Refs hold theirs."""
        n = len(self.refs)
        store_all(
            self.refs, [placed(x, d, dims[i], size) for x, d, i in zip(outs, found, self.mapped)]
        )
        return outs[n:], list(found[n:])


def lane_refs(
    leaves: Sequence[Any], axes: Callable[[], Sequence[int | None]], name: str
) -> LaneRefs | None:
    """The Refs among these leaves; None if there are none."""
    if not any_alive() or not any(isinstance(x, Ref) for x in leaves):
        return None
    return LaneRefs(leaves, axes(), name)
