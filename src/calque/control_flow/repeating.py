"""Loops over traced values: which variables are carried from round to round, and in which types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.control_flow.values import (
    RESULTS,
    Recorded,
    Unbound,
    Variable,
    can_be_zero,
    chosen_outputs,
    common,
    described,
    is_value,
    record,
    same,
    tree_text,
    zeros,
)
from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_integer
from calque.core.errors import ControlFlowError
from calque.core.trace import typeof
from calque.transforms.primitives import flow
from calque.transforms.primitives.scan import bind_scan
from calque.transforms.primitives.while_loop import bind_while

_MISSING: Final = object()  # the first value of what every round sets before it is read


class Slot:
    """One leaf of a variable: carried in a type, or one value all the time."""

    def __init__(self, value: Any, aval: ShapedArray | None) -> None:
        self.value, self.aval = value, aval

    def first(self) -> Any:
        assert self.aval is not None
        return zeros(self.aval) if self.value is _MISSING else flow.convert(self.value, self.aval)


class Carried:
    """One variable."""

    def __init__(self, name: str, value: Any, surely: bool, where: str) -> None:
        self.name, self.where = name, where
        self.fills = surely or name in RESULTS
        self.unbound: Unbound | None = value if isinstance(value, Unbound) else None
        self.after = ""  # why it is unset after the loop
        self.dropped = False
        if self.unbound is None:
            leaves, self.tree = pytrees.flatten(value)
            self.slots = [
                Slot(x, typeof(x) if is_value(x) and not isinstance(x, bool) else None)
                for x in leaves
            ]

    @property
    def carried(self) -> list[Slot]:
        return [] if self.unbound is not None else [s for s in self.slots if s.aval is not None]

    def value(self, leaves: Any) -> Any:
        """The value at the start of a round, from an iterator over the carried leaves."""
        if self.unbound is not None:
            return self.unbound
        return pytrees.unflatten(
            self.tree, [s.value if s.aval is None else next(leaves) for s in self.slots]
        )

    def final(self, leaves: Any) -> Any:
        value = self.value(leaves)
        return Unbound(self.after) if isinstance(value, Unbound) and self.after else value

    def outs(self, v: Variable | Unbound) -> list[int | None]:
        if isinstance(v, Unbound) or self.unbound is not None:
            return []
        return [x.out for x, s in zip(v.leaves, self.slots) if s.aval is not None]

    def refine(self, v: Variable | Unbound, got: Recorded) -> bool:
        """Take note of the value at the end of a round. True if rounds have to be recorded anew."""
        if self.unbound is not None:
            return self.appears(v, got)
        if isinstance(v, Unbound):
            return self.drop(v.reason or f"the loop at {self.where} deletes it")
        if v.tree != self.tree:
            return self.drop(self.changes(self.text(), described(v, got)))
        changed = False
        for slot, leaf in zip(self.slots, v.leaves):
            if slot.aval is None and same(slot.value, leaf.value):
                continue
            if leaf.out is None or (slot.aval is None and not is_value(slot.value)):
                return self.drop(self.changes(repr(slot.value), described(v, got)))
            before = slot.aval or typeof(slot.value)
            aval = common(before, got.aval(leaf))
            if aval is None:
                return self.drop(
                    self.changes(flow.type_text(before), flow.type_text(got.aval(leaf)))
                )
            changed = changed or slot.aval is not aval
            slot.aval = aval
        return changed

    def appears(self, v: Variable | Unbound, got: Recorded) -> bool:
        """A variable that is not set before the loop."""
        if isinstance(v, Unbound) or self.dropped:
            self.after = self.after or (v.reason if isinstance(v, Unbound) else "")
            return False
        avals = [got.aval(x) for x in v.leaves if x.out is not None]
        if self.fills and all(map(can_be_zero, avals)):
            self.unbound, self.tree = None, v.tree
            self.slots = [
                Slot(x.value, None) if x.out is None else Slot(_MISSING, got.aval(x))
                for x in v.leaves
            ]
            return True
        self.after = (
            f"it is only set inside the loop at {self.where}, which may run no round: set it before"
            " the loop"
        )
        return False

    def text(self) -> str:
        return tree_text(
            self.tree,
            [flow.type_text(s.aval) if s.aval is not None else repr(s.value) for s in self.slots],
        )

    def changes(self, before: Any, after: str) -> str:
        return (
            f"the loop at {self.where} changes it from {before} to {after}: keep one structure and"
            " one shape"
        )

    def drop(self, reason: str) -> bool:
        if self.name in RESULTS:
            raise ControlFlowError(f"the value that is returned differs: {reason}.")
        self.unbound, self.after, self.dropped = Unbound(reason), reason, True
        return True


Body = Callable[..., Sequence[tuple[Any, bool]]]


def repeated(
    names: Sequence[str],
    values: Sequence[Any],
    body: Body,
    test: Callable[[list[Any]], Any] | None,
    rows: Any,
    where: str,
) -> tuple[list[Any], list[bool]]:
    """The variables after the loop, and which are still the containers they were.

    `body(values)` gives the values after a round. It runs while `test(values)` holds, or without
    test as `body(values, row)` for each of `rows`, of which there are some."""
    surely = test is None
    variables = [Carried(n, v, surely, where) for n, v in zip(names, values)]
    row = [] if rows is None else [_row_type(rows)]
    while True:
        avals = [s.aval for v in variables for s in v.carried if s.aval is not None]
        n = len(avals)
        got = record(
            lambda *leaves: body(_values(variables, leaves[:n]), *leaves[n:]),
            [*avals, *row],
            "body",
            "loop",
        )
        if not any([v.refine(x, got) for v, x in zip(variables, got.variables)]):
            break
    outs = [o for v, x in zip(variables, got.variables) for o in v.outs(x)]
    closed = chosen_outputs(got.part, outs, avals)
    first = [s.first() for v in variables for s in v.carried]
    if test is None:
        length = typeof(rows).shape[0]
        found = bind_scan(
            got.part.consts, first, [rows], jaxpr=closed, length=length, reverse=False, unroll=1
        )
    else:
        asked = test
        cond = record(
            lambda *leaves: [(asked(_values(variables, leaves)), False)], avals, "test", "loop"
        )
        found = bind_while(
            cond.part.consts, got.part.consts, first, cond_jaxpr=cond.part.closed, body_jaxpr=closed
        )
    rest = iter(found)
    kept = [isinstance(x, Variable) and x.kept for x in got.variables]
    return [v.final(rest) for v in variables], kept


def _values(variables: Sequence[Carried], leaves: Sequence[Any]) -> list[Any]:
    rest = iter(leaves)
    return [v.value(rest) for v in variables]


def _row_type(rows: Any) -> ShapedArray:
    aval = typeof(rows)
    return ShapedArray(aval.shape[1:], aval.dtype, aval.weak_type)


def counting(bounds: Sequence[Any]) -> list[Any]:
    """Bounds of a range in one dtype: a Python number takes that of the others."""
    avals = [typeof(x) for x in bounds]
    joined: ShapedArray | None = avals[0]
    for a in avals[1:]:
        joined = joined and common(joined, a)
    if joined is None or joined.shape or not is_integer(joined.dtype):
        raise TypeError(
            f"range() needs integer scalars, got {', '.join(map(flow.type_text, avals))}"
        )
    for x in bounds:
        if isinstance(x, int):
            must_fit(x, joined, f"the bound {x}")
    return [flow.convert(x, joined) for x in bounds]


def must_fit(x: int, aval: ShapedArray, what: str) -> None:
    info = np.iinfo(aval.dtype)
    if not info.min <= x <= info.max:
        raise ControlFlowError(
            f"{what} of range() does not fit the type {flow.type_text(aval)} of its traced bound:"
            " give that a wider one, n.astype(int)."
        )
