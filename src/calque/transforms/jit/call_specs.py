"""How the machine code of a call recognises arguments and builds results: descriptions made from
one call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.trace import typeof


class Inexpressible(Exception):
    """The call has a shape that the machine code does not know; it stays with Python."""


def argument_spec(a: Any, counter: Any, any_size: bool = False) -> tuple[Any, ...]:
    """How the call path recognises this argument and where its arrays go; with `any_size` theirs
    does not matter."""
    t = type(a)
    if t is ArrayImpl:
        return ("kind" if any_size else "array", a.aval, next(counter))
    if t in _SCALAR_SPECS:
        return (_SCALAR_SPECS[t], typeof(a).dtype, next(counter))
    if a is None:
        return ("none",)
    if t is tuple or t is list:
        return (t.__name__, [argument_spec(v, counter, any_size) for v in a])
    if t is dict:
        specs = {k: argument_spec(a[k], counter, any_size) for k in sorted_keys(a)}
        return ("dict", {k: specs[k] for k in a})
    if (
        t is np.ndarray
        and typeof(a).dtype == a.dtype
        and a.dtype.isnative
        and a.dtype.fields is None
    ):
        if any_size:
            return ("ndarray_kind", a.dtype, a.ndim, next(counter))
        return ("ndarray", a.dtype, a.shape, next(counter))
    raise Inexpressible


def call_specs(
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static: Sequence[int],
    static_names: Sequence[str],
    any_size: bool,
) -> list[tuple[Any, ...]]:
    """How the call path recognises the arguments of a call: positional ones, then keywords in the
    order given. Static ones have the value of this call."""
    counter = itertools.count()
    specs = [
        static_spec(a) if i in static else argument_spec(a, counter, any_size)
        for i, a in enumerate(args)
    ]
    named = {
        k: argument_spec(kwargs[k], counter, any_size)
        for k in sorted(kwargs)
        if k not in static_names
    }
    return specs + [static_spec(v) if k in static_names else named[k] for k, v in kwargs.items()]


def static_spec(a: Any) -> tuple[Any, ...]:
    """How the call path recognises a static argument."""
    return ("eq" if type(a) in (int, str, bool) else "is", a)


_SCALAR_SPECS = {float: "pyfloat", int: "pyint", bool: "pybool", complex: "pycomplex"}


def sorted_keys(d: dict[Any, Any]) -> list[Any]:
    """The order in which a dict's values are flattened."""
    try:
        return sorted(d)
    except TypeError:
        raise Inexpressible from None


def result_spec(tree: Any) -> tuple[Any, ...]:
    """How the call path rebuilds the result around its outputs, which are ("out", k) pairs."""
    t = type(tree)
    if t is tuple and len(tree) == 2 and tree[0] == "out" and type(tree[1]) is int:
        return tree
    if tree is None:
        return ("none",)
    if t is tuple or t is list:
        return (t.__name__, [result_spec(v) for v in tree])
    if t is dict:
        return ("dict", {k: result_spec(v) for k, v in tree.items()})
    raise Inexpressible
