"""Jitted functions that touch Refs or values above arrays, given as arguments or closed over: their
arrays go in, and come back changed."""

from __future__ import annotations

from typing import Any

from calque.core import pytrees
from calque.transforms.engines.signatures import ArgumentNames
from calque.transforms.primitives.high_values import Opening
from calque.transforms.primitives.refs import (
    RefTouched,
    given_to,
    refs_among,
    store_all,
    threaded,
    touched,
    values_of,
    with_values_for_refs,
)


def call_with_arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call with Refs among its arguments; NotImplemented if there are none."""
    leaves, tree = pytrees.flatten((args, kwargs))
    names = ArgumentNames(function.fun, args, kwargs)
    places = tuple(refs_among(leaves, function.name, names))
    if not places:
        return NotImplemented
    key = (tree, places)
    table = function.values_table()
    inner = table.find(key)
    if inner is None:
        fun = with_values_for_refs(function.fun, tree, places)
        inner = table[key] = function.of_values(fun, function.options.static_argnums)
    refs = [leaves[i] for i in places]
    for i, value in zip(places, values_of(refs), strict=True):
        leaves[i] = value
    args, kwargs = pytrees.unflatten(tree, leaves)
    with given_to(function.name, refs, places, names):
        values, out = inner(*args, **kwargs)
    store_all(refs, values, inner.__wrapped__)
    return out


def call_closing_over(function: Any, arguments: Any, error: RefTouched | None = None) -> Any:
    """The result of a call of a function that closes over Refs, of which the error tells when it is
    first called so."""
    o = function.options
    table = function.values_table()
    made = table.find(arguments.key)
    if made is None:
        flat, *_ = function.flat_function(arguments.args, arguments.kwargs, arguments.in_tree, ())
        refs = touched([(flat, arguments.avals)]) if o.shardings is None else []
        known = getattr(function.fun, "refs", ())
        if error is not None and all(any(r is k for k in known) for r in refs):
            # no Refs, or those that were taken out already: something inside stages them again
            raise error
        moved = tuple(i + 1 for i in o.static_argnums)
        inner = function.of_values(threaded(function.fun, refs), moved)
        made = table[arguments.key] = (refs, inner)
    refs, inner = made
    values, out = inner(values_of(refs), *arguments.args, **arguments.kwargs)
    store_all(refs, values, inner.__wrapped__)
    return out


def call_opened(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call with values above arrays among its arguments."""
    leaves, tree = pytrees.flatten((args, kwargs))
    opening = Opening(tree, leaves, function.name)
    table = function.values_table()
    inner = table.find(opening.key)
    if inner is None:
        fun = opening.function(function.fun)
        inner = table[opening.key] = function.of_values(fun, function.options.static_argnums)
    return opening.close(inner(*opening.args, **opening.kwargs))
