"""How the machine code of a call recognises arguments and builds results: descriptions made from one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.trace import typeof


class Inexpressible(Exception):
    """The call has a shape that the machine code does not know; it stays with Python."""


def argument_spec(a: Any, counter: Any) -> tuple[Any, ...]:
    """How the call path recognises this argument and where its arrays go."""
    t = type(a)
    if t is ArrayImpl:
        return ("array", a.aval, next(counter))
    if t in _SCALAR_SPECS:
        return (_SCALAR_SPECS[t], typeof(a).dtype, next(counter))
    if a is None:
        return ("none",)
    if t is tuple or t is list:
        return (t.__name__, [argument_spec(v, counter) for v in a])
    if t is dict:
        specs = {k: argument_spec(a[k], counter) for k in sorted_keys(a)}
        return ("dict", {k: specs[k] for k in a})
    if t is np.ndarray and typeof(a).dtype == a.dtype and a.dtype.isnative and a.dtype.fields is None:
        return ("ndarray", a.dtype, a.shape, next(counter))
    raise Inexpressible


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
