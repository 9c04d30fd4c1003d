"""What machine code is taught of calls: how it recognises the arguments, what it runs, and how it
builds the result. Lessons are made from one call that Python has served.

Descriptions are those of `machine.call.entries`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.trace import typeof
from calque.machine.call import functions as callpath
from calque.transforms.jit.epochs import epoch

SCALARS: Final = {float: "pyfloat", int: "pyint", bool: "pybool", complex: "pycomplex"}
Description = tuple[Any, ...]


class Inexpressible(Exception):
    """The call has a shape that the machine code does not know; it stays with Python."""


class Lesson(NamedTuple):
    """Calls with such arguments (positional ones, then those with these names) run this program;
    `result` says what is made of its outputs. With `choose` the arguments may be of any size, and
    the function gives the program for theirs; `guards` are captured values that must be as they
    were."""

    arguments: Sequence[Description]
    program: Any
    result: Description
    names: Sequence[str] = ()
    guards: Sequence[Description] = ()
    choose: Callable[..., Any] | None = None
    # of a program of another engine: where each input, if it is an Array, says it lives
    places: Sequence[Any] | None = None


def teach(function: Any, lesson: Lesson, number: int | None = None) -> None:
    """Let a callable of the call path serve such calls alone, in the present epoch or in the one of
    this number."""
    try:
        entry = entry_of(lesson, epoch() if number is None else number)
    except RecursionError:  # containers in containers: such calls stay with Python
        return
    callpath.add_entry(function, entry)


def entry_of(lesson: Lesson, number: int) -> Any:
    """What machine code reads of a lesson."""
    arguments, program, result, names, guards, choose, places = lesson
    if choose is not None:
        arguments = [with_leaves(a, of_any_size) for a in arguments]
    if places is not None:
        arguments = [with_leaves(a, elsewhere(places)) for a in arguments]
    return callpath.Entry(list(arguments), tuple(names), program, result, number, guards, choose)


# ---------------------------------------------------------------- arguments


def call_arguments(
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static: Sequence[int],
    static_names: Sequence[str],
    made_anew: bool = False,
) -> list[Description]:
    """The arguments of a call: positional ones, then keywords in the order given. Static ones have
    the value of this call, or equal it where they are made anew for each."""
    inputs = itertools.count()
    static_argument = equal_argument if made_anew else same_argument
    found = [static_argument(a) if i in static else argument(a, inputs) for i, a in enumerate(args)]
    named = {k: argument(kwargs[k], inputs) for k in sorted(kwargs) if k not in static_names}
    return found + [
        static_argument(v) if k in static_names else named[k] for k, v in kwargs.items()
    ]


def argument(a: Any, inputs: Iterator[int]) -> Description:
    """How the call path recognises an argument and which inputs its arrays are."""
    t = type(a)
    if t is ArrayImpl:
        return ("array", a.aval, next(inputs))
    if t in SCALARS:
        return (SCALARS[t], typeof(a).dtype, next(inputs))
    if a is None:
        return ("none",)
    if t is tuple or t is list:
        return (t.__name__, [argument(v, inputs) for v in a])
    if _is_named_tuple(t):
        return ("namedtuple", t, [argument(v, inputs) for v in a])
    if t is dict:
        items = {k: argument(a[k], inputs) for k in sorted_keys(a)}
        return ("dict", {k: items[k] for k in a})
    if (
        t is np.ndarray
        and typeof(a).dtype == a.dtype
        and a.dtype.isnative
        and a.dtype.fields is None
    ):
        return ("ndarray", a.dtype, a.shape, next(inputs))
    raise Inexpressible


def same_argument(a: Any) -> Description:
    """A static argument is this very value."""
    return ("eq" if type(a) in (int, str, bool, float) else "is", a)


def equal_argument(a: Any) -> Description:
    """A static argument equals this value, and so do its parts, which have the same types: (1,) is
    equal to (1.0,)."""
    if type(a) in (int, str, bool, float, type(None)):
        return same_argument(a)
    if isinstance(a, (tuple, frozenset)):
        parts = [equal_argument(v) for v in a]
        if type(a) is not tuple or any(p[0] == "equals" for p in parts):
            raise Inexpressible
        return ("tuple", parts)
    return ("is" if isinstance(a, (FunctionType, type)) else "equals", a)


def sorted_keys(d: dict[Any, Any]) -> list[Any]:
    """The order in which a dict's values are flattened."""
    try:
        return sorted(d)
    except TypeError:
        raise Inexpressible from None


def with_leaves(a: Description, leaf: Callable[[Description], Description]) -> Description:
    """An argument as this one, but for its arrays."""
    if a[0] in ("tuple", "list"):
        return (a[0], [with_leaves(item, leaf) for item in a[1]])
    if a[0] == "namedtuple":
        return ("namedtuple", a[1], [with_leaves(item, leaf) for item in a[2]])
    if a[0] == "dict":
        return ("dict", {k: with_leaves(item, leaf) for k, item in a[1].items()})
    return leaf(a)


def of_any_size(a: Description) -> Description:
    """An array as this one, but for its sizes."""
    if a[0] == "array":
        return ("kind", *a[1:])
    if a[0] == "ndarray":
        _, dtype, shape, i = a
        return ("ndarray_kind", dtype, len(shape), i)
    return a


def elsewhere(places: Sequence[Any]) -> Callable[[Description], Description]:
    """Arrays for a program of another engine: of this type, and placed as these inputs are."""

    def leaf(a: Description) -> Description:
        if a[0] != "array":
            return a
        _, aval, i = a
        return ("elsewhere", aval, places[i], i)

    return leaf


# ---------------------------------------------------------------- results


def result_of(tree: pytrees.PyTreeDef) -> Description:
    """How the call path builds a result of this structure out of the outputs of a program:
    containers that it does not know are built by Python."""
    leaves = [("out", k) for k in range(tree.num_leaves)]
    try:
        return result(pytrees.unflatten(tree, leaves))
    except Exception:  # not for machine code, or a container of the user's that takes arrays alone
        return ("call", lambda *outs: pytrees.unflatten(tree, outs), leaves)


def result(tree: Any) -> Description:
    """The same for a tree whose leaves are ("out", k)."""
    t = type(tree)
    if t is tuple and len(tree) == 2 and tree[0] == "out" and type(tree[1]) is int:
        return tree
    if tree is None:
        return ("none",)
    if t is tuple or t is list:
        return (t.__name__, [result(v) for v in tree])
    if _is_named_tuple(t):
        return ("namedtuple", t, [result(v) for v in tree])
    if t is dict:
        return ("dict", {k: result(v) for k, v in tree.items()})
    raise Inexpressible


def _is_named_tuple(t: type) -> bool:
    """A named tuple is a container of its elements, unless its class says otherwise."""
    return issubclass(t, tuple) and hasattr(t, "_fields") and not pytrees.is_registered(t)
