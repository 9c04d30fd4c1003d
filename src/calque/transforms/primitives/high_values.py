"""Values whose type stands above arrays: each stands for several arrays, and some change.

An operation on such values (`experimental.hijax.HiPrimitive`) runs at once as operations on the
arrays in them, which belong to whatever is traced; programs hold these alone. Where a function is
traced by itself, such values among its arguments and results are opened into their arrays
(`Opening`). A changing value from outside that a traced function touches is kept in Refs from then
on, so that control flow and jit carry it as they carry Refs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import pytrees
from calque.core.arrays import to_array
from calque.core.trace import HIGH_TYPES, high_type_of, typeof
from calque.core.trace_state import Tracer
from calque.machine.state import PerThread, process
from calque.transforms.primitives.refs import (
    Level,
    Ref,
    here,
    made_at,
    outermost,
    store,
    value_of,
)


class HighValues(Exception):
    """There are values above arrays among the arguments or results of a call."""


def any_among(leaves: Sequence[Any]) -> bool:
    """Whether there are values above arrays among these."""
    return bool(HIGH_TYPES) and any(high_type_of(x) is not None for x in leaves)


# ---------------------------------------------------------------- values that change


class _Known:
    """Where a changing value was made and, once a function that is traced has touched it from
    outside, the Refs that hold its arrays."""

    __slots__ = ("level", "refs", "value")

    def __init__(self, value: Any, level: Level):
        self.value, self.level = value, level
        self.refs: list[Any] | None = None


# The classes allow neither weak references nor further attributes: what nobody else holds is swept
# out when there are many. A value that is not among these was made outermost.
_known: Final[dict[int, _Known]] = process.container("changing values above arrays", {})
_MANY: Final = 64


class _State(PerThread, name="changing values that are being read or written"):
    busy: bool = False


_state = _State()


def changes(x: Any) -> bool:
    """Whether a value above arrays is one that changes."""
    return bool(getattr(type(x), "cur_qdd", None)) and bool(_type_of(x).has_qdd)


def _type_of(x: Any) -> Any:
    of = high_type_of(x)
    assert of is not None
    return of(x)


def note_made(x: Any) -> None:
    """A changing value was made here."""
    level = here()
    if level.depth and high_type_of(x) is not None and changes(x):
        _remember(x, level)


def _find(x: Any) -> _Known | None:
    found = _known.get(id(x))
    return found if found is not None and found.value is x else None


def _remember(x: Any, level: Level) -> _Known:
    if len(_known) >= _MANY:
        _sweep()
    known = _known[id(x)] = _Known(x, level)
    return known


def _sweep() -> None:
    """Forget the values that are held here alone, and those of traces that have ended."""
    for at, known in list(_known.items()):
        held_here = 2  # by what is known, and as the argument, which no variable may lend
        if known.level.trace.done or sys.getrefcount(known.value) <= held_here:
            del _known[at]


def _arrays_of(x: Any) -> tuple[Any, list[Any]]:
    """What is known of a changing value now, and the arrays in it."""
    qdd = x.cur_qdd()
    return qdd, list(_type_of(x).read_loval(qdd, x))


def _refreshed(x: Any) -> _Known:
    """A changing value, with the arrays that it has here."""
    known = _find(x) or _Known(x, outermost())
    if known.refs is None:
        if known.level.trace is here().trace:
            return known
        known = _remember(x, known.level)
        values = _arrays_of(x)[1]
        known.refs = [v if isinstance(v, Ref) else made_at(known.level, v) for v in values]
    qdd, values = _arrays_of(x)
    now = [r if isinstance(v, Ref) else value_of(r) for r, v in zip(known.refs, values)]
    if any(a is not b for a, b in zip(now, values)):
        _type_of(x).update_from_loval(qdd, x, *now)
    return known


def cur_qdd(x: Any) -> Any:
    """Gives what is known of a changing value at this point of the program.

    Args:
        x: A value whose type stands above arrays and changes.

    Returns:
        What its own `cur_qdd()` gives.

    Raises:
        TypeError: It is another value.

    >>> from calque.experimental import hijax
    >>> hijax.cur_qdd(1.0)
    Traceback (most recent call last):
    TypeError: cur_qdd takes a value whose type stands above arrays, got 1.0"""
    if isinstance(x, Tracer) or high_type_of(x) is None:
        raise TypeError(f"cur_qdd takes a value whose type stands above arrays, got {x!r}")
    if not _state.busy and changes(x):
        with _state.inside(busy=True):
            _refreshed(x)
    return x.cur_qdd()


def applied(args: Sequence[Any], run: Callable[[], Any]) -> Any:
    """The results of an operation on these operands; what it writes into changing values is seen by
    whatever traces."""
    changing = [x for x in args if high_type_of(x) is not None and changes(x)]
    if _state.busy or not changing:
        out = run()
    else:
        with _state.inside(busy=True):
            known = [_refreshed(x) for x in changing]
            before = [_arrays_of(x) for x in changing]
            out = run()
            for x, k, b in zip(changing, known, before):
                _written(x, k, b)
    for x in out if isinstance(out, (list, tuple)) else [out]:
        note_made(x)
    return out


def _written(x: Any, known: _Known, before: tuple[Any, list[Any]]) -> None:
    (old, then), (qdd, now) = before, _arrays_of(x)
    if len(then) == len(now) and all(a is b for a, b in zip(then, now)):
        return
    inner = [v for v in now if isinstance(v, Tracer) and v._trace.level > known.level.depth]
    if known.refs is None:
        if inner:
            _type_of(x).update_from_loval(old, x, *then)
            raise ValueError(
                f"a differentiated or batched value is written into a {type(x).__name__} from"
                " outside. Make it inside of the transformed function, or use"
                " calque.lax.stop_gradient."
            )
        return
    types = [a if isinstance(a, Ref) else typeof(a).strip_weak_type() for a in now]
    if types != [r if isinstance(a, Ref) else r._aval.inner_aval for r, a in zip(known.refs, now)]:
        _type_of(x).update_from_loval(old, x, *then)
        raise ValueError(
            f"a {type(x).__name__} that a traced function closes over keeps the number and the"
            f" types of its arrays: it had {old}, {qdd} was written. Pass it to the function"
            " instead."
        )
    for r, v in zip(known.refs, now):
        if not isinstance(v, Ref):
            store(r, to_array(v))


# ---------------------------------------------------------------- functions that take them


class _Closing:
    """How the results of an opened function become those of the function: a part of the structure
    of its results."""

    __slots__ = ("outs", "states", "tree")

    def __init__(self, tree: Any, outs: list[Any], states: list[Any]):
        self.tree, self.outs, self.states = tree, outs, states


pytrees.register(_Closing, lambda c: ((), c), lambda c, _: c)


class Opening:
    """Arguments with their values above arrays opened into lists of arrays."""

    def __init__(self, tree: Any, leaves: Sequence[Any], name: str):
        self.tree, opened = tree, list(leaves)
        self.given: dict[int, Any] = {}
        for i, x in enumerate(leaves):
            if high_type_of(x) is None:
                continue
            if any(x is other for other in self.given.values()):
                raise ValueError(
                    f"{name} was given the same {type(x).__name__} twice: values above arrays may"
                    " be passed once"
                )
            self.given[i], opened[i] = x, _opened(x)[1]
        self.kinds = tuple((i, *_kind(x)) for i, x in self.given.items())
        self.args, self.kwargs = pytrees.unflatten(tree, opened)

    @property
    def key(self) -> Any:
        """What tells the opened function from others of the same function."""
        return self.tree, self.kinds

    def function(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """`fun` of opened arguments: (the arrays of changing ones at last, opened results, how
        these are closed)."""
        tree, kinds = self.tree, self.kinds

        @functools.wraps(fun)
        def of_arrays(*args: Any, **kwargs: Any) -> Any:
            leaves = tree.flatten_up_to((args, kwargs))
            made = {}
            for i, aval, qdd in kinds:
                made[i] = leaves[i] = _closed(aval, qdd, leaves[i])
            args, kwargs = pytrees.unflatten(tree, leaves)
            results, out_tree = pytrees.flatten(fun(*args, **kwargs))
            outs: list[Any] = []
            for k, x in enumerate(results):
                same = next((i for i, y in made.items() if y is x), None)
                if same is not None:
                    outs.append((True, same))
                    results[k] = ()
                elif high_type_of(x) is not None:
                    outs.append((False, *_kind(x)))
                    results[k] = _opened(x)[1]
                else:
                    outs.append(None)
            last = [_opened(made[i]) for i, aval, _ in kinds if aval.has_qdd]
            closing = _Closing(out_tree, outs, [qdd for qdd, _ in last])
            return [values for _, values in last], results, closing

        return of_arrays

    def close(self, results: Any, write: bool = True) -> Any:
        """The results of the function, from those of the opened one; changing arguments get what
        they hold at last."""
        last, outs, closing = results
        changing = [self.given[i] for i, aval, _ in self.kinds if aval.has_qdd]
        if write:
            with _state.inside(busy=True):
                for x, qdd, values in zip(changing, closing.states, last, strict=True):
                    known, before = _refreshed(x), _arrays_of(x)
                    _type_of(x).update_from_loval(qdd, x, *values)
                    _written(x, known, before)
        leaves = []
        for kind, x in zip(closing.outs, outs, strict=True):
            if kind is None:
                leaves.append(x)
            else:
                leaves.append(self.given[kind[1]] if kind[0] else _closed(kind[1], kind[2], x))
        return pytrees.unflatten(closing.tree, leaves)


def _kind(x: Any) -> tuple[Any, Any]:
    """The type of a value above arrays, and what is known of it now if it changes."""
    aval = _type_of(x)
    return aval, cur_qdd(x) if aval.has_qdd else None


def _opened(x: Any) -> tuple[Any, list[Any]]:
    """What is known of a value above arrays, and the arrays in it."""
    aval, qdd = _kind(x)
    with _state.inside(busy=True):
        return qdd, list(aval.read_loval(qdd, x) if aval.has_qdd else aval.lower_val(x))


def _closed(aval: Any, qdd: Any, values: Sequence[Any]) -> Any:
    """The value above arrays of a type, from its arrays."""
    with _state.inside(busy=True):
        made = aval.new_from_loval(qdd, *values) if aval.has_qdd else aval.raise_val(*values)
    note_made(made)
    return made
