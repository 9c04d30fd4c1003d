"""Entries of library functions for arguments of any size: with the second shape of its arguments a
function is traced with free sizes.

Its steps are kernels and copies that serve every shape (`native.eager_sizes`), so nothing is
compiled; a new shape changes words only. What cannot be had so (a size that decides how much Python
does) stays with an entry for each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.lazy import LazyModule
from calque.core.pause import no_collection
from calque.core.trace import trace_to_jaxpr
from calque.machine.call import functions as callpath
from calque.transforms.jit.call_specs import result_spec
from calque.transforms.jit.dynamic import MET, Entry, Family, Met, free_avals
from calque.transforms.jit.epochs import epoch

eager_sizes = LazyModule("calque.native.eager.sizes")

MOST_KINDS = 1000
# calls with the same sizes after which they get an entry of their own: to trace a function takes as
# long
TURNS = 20
MOST_FAILURES = 2  # then the sizes of such arguments stay fixed
Flat = Callable[
    [], tuple[Callable[..., list[Any]], list[Any]]
]  # a function of arrays, a cell for the structure of its result


class Kind:
    """Calls of a function that differ in sizes alone."""

    __slots__ = ("failures", "family", "met")

    def __init__(self) -> None:
        self.family, self.met, self.failures = Family(), Met(TURNS), 0


class Kinds:
    """The kinds of arguments that a library function was called with."""

    def __init__(self) -> None:
        self.known: dict[Any, Kind] = {}

    def is_often(self, key: Sequence[Any], sizes: tuple[int, ...]) -> bool:
        """Did an entry for all sizes serve these ones so often that they shall have one of their
        own? It is asked once."""
        kind = self.known.get(key_of(key))
        for e in () if kind is None else kind.family.entries:
            values = e.values(sizes)
            if values is not None and kind is not None and kind.met.often(e, values):
                kind.met.count(e, values)
                return True
        return False

    def teach(
        self, function: Any, flat: Flat, given: Any, names: Iterable[str], key: Sequence[Any]
    ) -> bool:
        """Add an entry for all sizes, if it is time for that and can be done."""
        if len(self.known) >= MOST_KINDS:
            self.known.clear()
        kind, sizes = self.known.setdefault(key_of(key), Kind()), given.sizes
        if kind.failures >= MOST_FAILURES:
            return False
        entry = next(
            (e for e in kind.family.entries if e.values(sizes) is not None), None
        )  # the function has lost it
        if entry is None:
            plan = kind.family.next(sizes, frozenset())
            kind.family.remember(sizes)
            entry = None if plan is None else self.entry(kind, flat, given.avals, plan)
        if entry is None or entry.values(sizes) is None:
            return False
        specs, choose = [of_kind(s) for s in given.specs], entry.chooser(kind.family, kind.met)
        program, out = entry.executable.program, entry.traced
        callpath.add_entry(
            function, callpath.Entry(specs, tuple(names), program, out, epoch(), choose=choose)
        )
        return True

    def entry(
        self, kind: Kind, flat: Flat, avals: Sequence[ShapedArray], plan: Any
    ) -> Entry | None:
        """The function traced with free sizes."""
        entry, free = Entry(*plan), {i for g in plan[0] for i in g}
        entry.symbols.pins = True
        try:
            with no_collection():
                fun, tree = flat()
                closed = trace_to_jaxpr(fun, free_avals(entry, avals))
                entry.symbols.lenient = True
                patient = len(kind.family.met) < MET
                entry.executable = eager_sizes.executable(closed, entry.symbols, patient)
                leaves = [("out", k) for k in range(tree[0].num_leaves)]
                entry.traced = result_spec(pytrees.unflatten(tree[0], leaves))
        except eager_sizes.NotYet:
            return None
        except Exception:  # the function with fixed sizes says what is wrong, if anything is
            kind.failures += 1
            return None
        kind.family.static |= entry.pinned()
        if entry.pinned() >= free:
            kind.failures += 1
            return None
        entry.close()
        kind.family.entries.append(entry)
        return entry


def key_of(key: Sequence[Any]) -> Any:
    """The key of a call, without the sizes."""
    return tuple([x.kind if type(x) is ShapedArray else x for x in key])


def of_kind(spec: Any) -> Any:
    """How the call path recognises an argument of any size."""
    if spec[0] == "array":
        return ("kind", *spec[1:])
    if spec[0] in ("tuple", "list"):
        return (spec[0], [of_kind(s) for s in spec[1]])
    return spec
