"""Named axes: which names are in scope, how large they are, and which trace maps over them."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from calque.core import trace_state
from calque.core.jaxprs import Jaxpr, subjaxprs
from calque.core.primitives import Primitive
from calque.machine.caches import WeakTable
from calque.machine.state import Inside, PerThread


class Axis(NamedTuple):
    """A mapped axis. The name is None when nobody can refer to it.

    On a checked axis (`shard_map`) it is known of each value whether it varies along the axis, and
    gradients in values that do not vary are sums over it."""

    name: Hashable
    size: int
    checked: bool = False
    devices: bool = False  # are its members devices, of `pmap` and `shard_map`
    together: bool = False  # do its members take every step at the same time
    spmd: tuple[
        Hashable, ...
    ] = ()  # mesh axes over which the mapped dimension of placed values is split
    explicit: bool = False  # are these axes those that the types of the arguments name
    mesh: Any = None  # of an axis of a `shard_map`: the mesh inside, of which it is a manual axis


class BoundAxis(NamedTuple):
    axis: Axis
    trace: trace_state.Trace | None


class _Scope(PerThread, name="axes in scope"):
    frames: tuple[BoundAxis, ...] = ()


_scope = _Scope()


def bound(axes: Sequence[Axis], trace: trace_state.Trace | None = None) -> Inside[_Scope]:
    """These axes can be named inside; `trace` is the one that maps over them, if they are mapped by
    a trace."""
    named = tuple([BoundAxis(a, trace) for a in axes if a.name is not None or a.spmd])
    return _scope.inside(frames=_scope.frames + named)


def in_scope() -> tuple[Axis, ...]:
    """The axes that can be named here: part of the key of every cached trace."""
    frames = _scope.frames
    return tuple([f.axis for f in frames]) if frames else ()


def find(name: Hashable, what: str = "the collective") -> BoundAxis:
    for f in reversed(_scope.frames):
        if f.axis.name == name:
            return f
    known = ", ".join(repr(f.axis.name) for f in _scope.frames if f.axis.name is not None)
    known = known or "none"
    raise NameError(
        f"Found an unbound axis name: {name}. To fix this, please call {what} under"
        f" `jax.shard_map`. The axis names in scope are: {known}. "
        f"Give the name to the map around this code, as in vmap(f, axis_name={name!r})."
    )


def names_in_scope() -> set[Hashable]:
    """The names of the axes that can be named here."""
    return {f.axis.name for f in _scope.frames}


def splits(name: Hashable, explicit: bool = False) -> bool:
    """Whether a vmap around splits its dimension over this mesh axis, as it was told or, if
    `explicit`, as types say: it is used up inside."""
    return any(
        name in f.axis.spmd and not f.axis.devices and f.axis.explicit == explicit
        for f in _scope.frames
    )


def checked_below(level: int) -> tuple[Hashable, ...]:
    """The checked axes around a trace of this level."""
    return tuple(
        [
            f.axis.name
            for f in _scope.frames
            if f.axis.checked and (f.trace is None or f.trace.level < level)
        ]
    )


def lowest_checked() -> int:
    """The level of the outermost trace that maps over a checked axis, 0 where a program is recorded
    for one; very high if there is none."""
    return min(
        [0 if f.trace is None else f.trace.level for f in _scope.frames if f.axis.checked],
        default=1 << 30,
    )


@contextlib.contextmanager
def without(trace: trace_state.Trace) -> Iterator[None]:
    """The axes of `trace` cannot be named inside: its rules speak of what lies below it."""
    before = _scope.frames
    _scope.frames = tuple([f for f in before if f.trace is not trace])
    try:
        yield
    finally:
        _scope.frames = before


def names_of(axis_name: Any) -> tuple[Hashable, ...]:
    """One axis name or several, as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def size_of(axis_name: Any) -> int:
    """The number of members of the axis, or of the product of several."""
    size = 1
    for name in names_of(axis_name):
        size *= find(name).axis.size
    return size


_spoken: Final[WeakTable[Jaxpr, frozenset[Hashable]]] = WeakTable("axes that programs speak of")


def spoken_of(jaxpr: Jaxpr) -> frozenset[Hashable]:
    """The names of axes that a program speaks of, at any depth."""
    known = _spoken.find(jaxpr)
    if known is None:
        names: set[Hashable] = set()
        for e in jaxpr.eqns:
            if isinstance(e.primitive, Collective):
                names.update(e.primitive.axes_of(e.params))
            for inner in subjaxprs(e.params):
                names |= spoken_of(inner)
        known = _spoken[jaxpr] = frozenset(names)
    return known


class AxisPrimitive(Primitive):
    """A primitive whose batching rule needs to know the axis: `batch(axis, args, dims,
    **params)`. Where its programs speak of a named axis, the trace that maps over it receives it,
    whatever the operands are."""

    __slots__ = ()

    def bind(self, /, *args: Any, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        if _scope.frames:
            names = frozenset[Hashable]().union(*map(spoken_of, subjaxprs(params)))
            for f in _scope.frames:
                if f.axis.name in names and f.trace is not None and f.trace.level > trace.level:
                    trace = f.trace
        return trace.process(self, args, params)


class PlacingPrimitive(Primitive):
    """A primitive that says where a value lives: `batch(args, dims, spmd=names, **params)` is told
    over which mesh axes the mapped dimension is split."""

    __slots__ = ()


class Collective(AxisPrimitive):
    """A primitive that speaks of named axes: a trace that maps over one of them receives it,
    whatever the operands are."""

    __slots__ = ("axes_of", "becomes", "precise")

    def __init__(
        self,
        name: str,
        axes_of: Any,
        varies: bool = False,
        precise: bool = False,
        becomes: str | None = None,
        **rules: Any,
    ):
        super().__init__(name, **rules)
        # how its result relates to a checked axis that it speaks of; None: it is the same for all
        self.becomes = "varying" if varies else becomes
        self.precise = precise  # must operands that vary have a batch dimension
        self.axes_of = axes_of  # params -> the names that the equation speaks of

    def kind_after(self, params: dict[str, Any]) -> str | None:
        """How the result relates to a checked axis. That of a reduction varies from group to
        group."""
        return "varying" if params.get("axis_index_groups") is not None else self.becomes

    def manual_type(self, mat: Any, params: dict[str, Any]) -> Any:
        """The manual axis type of the result, from that of the operand."""
        names = frozenset(
            n for n in self.axes_of(params) if not isinstance(n, int) and find(n).axis.checked
        )
        kinds = {k: getattr(mat, k) - names for k in ("varying", "unreduced", "reduced")}
        after = self.kind_after(params)
        if after is not None:
            kinds[after] = kinds[after] | names
        return mat.update(**kinds)

    def bind(self, /, *args: Any, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        for name in self.axes_of(params):
            own = (
                find(name).trace
                if isinstance(name, Hashable) and not isinstance(name, int)
                else None
            )
            if own is not None and own.level > trace.level:
                trace = own
        return trace.process(self, args, params)
