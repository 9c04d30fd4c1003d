"""Updates that a choice takes or leaves: the choice is made for what is written, not for the whole
array. Loops under vmap, whose lanes end one by one, are full of them, and arrays that are only
updated are updated where they lie."""

from __future__ import annotations

from typing import Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import hint_of, surely_equal
from calque.core.jaxprs import Atom, Eqn, Jaxpr, Literal
from calque.native.passes.sweep import Rule, Sweep, rewrite
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.scatter import window_sizes

SMALLEST: Final = 64  # elements of an array that is worth a thought
SHARE: Final = 2  # what is written may be one part in so many of it
_BOOL: Final = np.dtype(bool)
_SCATTERS: Final = frozenset(
    ["scatter", *[f"scatter-{k}" for k in ("add", "sub", "mul", "min", "max")]]
)
_UPDATES: Final = _SCATTERS | {"dynamic_update_slice"}


class Choice:
    """What an element becomes: the new value where `which` is `taken`, else the old one. `which`
    is for all elements, or is `spread` from these dimensions."""

    __slots__ = ("spread", "taken", "which")

    def __init__(self, which: Atom, taken: bool, spread: tuple[int, ...] | None) -> None:
        self.which, self.taken, self.spread = which, taken, spread

    def ordered(self, old: Atom, new: Atom) -> list[Atom]:
        return [old, new] if self.taken else [new, old]


def chosen_updates(jaxpr: Jaxpr) -> Jaxpr:
    """before: y = dynamic_update_slice x u i; z = select_n p x y
    after:  v = dynamic_slice x i; w = select_n p v u; z = dynamic_update_slice x w i

    A scatter of which whole lanes are left is told positions outside for them. Runs once copies
    are gone and equal things have one name; the update that nobody reads any more is dead code."""
    names = {e.primitive.name for e in jaxpr.eqns}
    if "select_n" not in names or names.isdisjoint(_UPDATES):
        return jaxpr
    return rewrite(jaxpr, _RULES)


def chosen_update(s: Sweep, e: Eqn) -> Eqn | None:
    """select_n p x (update x) -> update x, if it is little that is written and no one else reads
    the update."""
    which, *cases = e.invars
    if len(cases) != 2 or which.aval.dtype != _BOOL:
        return None
    for taken in (True, False):
        old, new = cases if taken else reversed(cases)
        made = None if isinstance(new, Literal) else s.maker.get(new)
        if made is None or made.primitive.name not in _UPDATES or made.invars[0] is not old:
            continue
        if not s.read_once(made.outvars[0]) or not writes_little(made):
            continue
        choice = choice_of(s, which, taken)
        if made.primitive.name == "dynamic_update_slice":
            return slice_chosen(s, e, made, choice)
        return lanes_left_out(s, e, made, choice) or windows_chosen(s, e, made, choice)
    return None


def writes_little(made: Eqn) -> bool:
    x, *_ = made.invars
    updates = made.invars[1 if made.primitive.name == "dynamic_update_slice" else 2]
    whole = hint_of(x.aval.size)
    return whole >= SMALLEST and SHARE * hint_of(updates.aval.size) <= whole


def choice_of(s: Sweep, which: Atom, taken: bool) -> Choice:
    made = s.made_by(which, "broadcast_in_dim")
    if made is None or len(made.invars) != 1:
        return Choice(which, taken, None if which.aval.shape else ())
    (small,), dims = made.invars, made.params["broadcast_dimensions"]
    if all(surely_equal(n, which.aval.shape[d]) for n, d in zip(small.aval.shape, dims)):
        return Choice(small, taken, tuple(dims))
    return Choice(which, taken, None)


def slice_chosen(s: Sweep, e: Eqn, made: Eqn, choice: Choice) -> Eqn:
    """The choice of what stands where the slice is written."""
    x, u, *at = made.invars
    sizes = u.aval.shape

    def there(a: Atom) -> Atom:
        aval = ShapedArray(sizes, a.aval.dtype)
        return s.emit("dynamic_slice", [a, *at], aval, e, slice_sizes=sizes)

    which = choice.which if choice.spread == () else there(e.invars[0])
    chosen = s.emit("select_n", [which, *choice.ordered(there(x), u)], u.aval, e)
    return s.new("dynamic_update_slice", [x, chosen, *at], e.outvars[0], e)


def lanes_left_out(s: Sweep, e: Eqn, made: Eqn, choice: Choice) -> Eqn | None:
    """A choice for whole lanes, or for all that is written: what is left gets a position outside,
    where nothing is written. Windows that would be moved inside have no such position."""
    x, indices, u = made.invars
    numbers: ScatterDimensionNumbers = made.params["dimension_numbers"]
    lanes = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims))
    if choice.spread is None or not lanes.keys() >= set(choice.spread):
        return None
    where = tuple([lanes[d] for d in choice.spread])
    fits = where == tuple(sorted(where)) and indices.aval.dtype.kind == "i"
    moved = made.params["mode"] is GatherScatterMode.CLIP
    if not fits or moved or not numbers.scatter_dims_to_operand_dims:
        return None
    shape, dtype = indices.aval.shape, indices.aval.dtype
    outside = Literal(np.asarray(-1, dtype), ShapedArray((), dtype))
    nowhere = spread(s, e, outside, (), shape)
    which = spread(s, e, choice.which, where, shape)
    at = s.emit("select_n", [which, *choice.ordered(nowhere, indices)], indices.aval, e)
    params = made.params | {"mode": GatherScatterMode.FILL_OR_DROP, "indices_are_sorted": False}
    return s.new(made.primitive.name, [x, at, u], e.outvars[0], e, **params)


def windows_chosen(s: Sweep, e: Eqn, made: Eqn, choice: Choice) -> Eqn | None:
    """The choice of what stands where values are written. Where several are written to one place
    all of them are taken or none."""
    x, indices, u = made.invars
    if made.primitive.name != "scatter" or made.params["update_jaxpr"] is not None:
        return None
    numbers: ScatterDimensionNumbers = made.params["dimension_numbers"]
    window, inserted, index_map, batching, indices_batching = numbers
    read = {
        "dimension_numbers": GatherDimensionNumbers(
            window, inserted, index_map, batching, indices_batching
        ),
        "slice_sizes": tuple(window_sizes(x.aval, u.aval, numbers)),
        "fill_value": None,
        **{k: made.params[k] for k in ("mode", "unique_indices", "indices_are_sorted")},
    }

    def there(a: Atom) -> Atom:
        return s.emit("gather", [a, indices], ShapedArray(u.aval.shape, a.aval.dtype), e, **read)

    which = choice.which if choice.spread == () else there(e.invars[0])
    chosen = s.emit("select_n", [which, *choice.ordered(there(x), u)], u.aval, e)
    return s.new("scatter", [x, indices, chosen], e.outvars[0], e, **made.params)


def spread(s: Sweep, e: Eqn, a: Atom, dims: tuple[int, ...], shape: tuple[int, ...]) -> Atom:
    aval = ShapedArray(shape, a.aval.dtype)
    return s.emit(
        "broadcast_in_dim", [a], aval, e, shape=shape, broadcast_dimensions=dims, sharding=None
    )


_RULES: Final[dict[str, tuple[Rule, ...]]] = {"select_n": (chosen_update,)}
