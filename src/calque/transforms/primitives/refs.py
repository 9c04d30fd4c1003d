"""Mutable arrays: a Ref holds a value that reading and writing replace.

Where operations run, or are recorded, at the level at which a Ref was made, that is all. A function
that is staged (by jit or as a body of control flow) and touches a Ref from outside is rewritten to
take the value as one more argument and to give it back as one more result (`jit/refs.py` for jit,
`discharged_scan` and its kin here for control flow). A trial finds which Refs it touches.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from calque.core import pytrees, trace_state
from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_extended
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.machine.state import Inside, PerThread, process
from calque.ops.common import zeros
from calque.transforms.engines.trees import FlatFunction, name_of
from calque.transforms.primitives.ref_views import Mutable, Step


class AbstractRef:
    """The type of a Ref: that of its value.

    Args:
        inner_aval: The type of the value.
        memory_space: None: there is one memory.
        kind: A word that has no effect.

    >>> jax.ref.AbstractRef(jax.typeof(jnp.ones(3)))
    Ref{float32[3]}"""

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None):
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.inner_aval, self.memory_space, self.kind))

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.inner_aval.shape))
        return f"Ref{{{getattr(self.dtype, 'name', self.dtype)}[{dims}]}}"


class Level(NamedTuple):
    """Where a value of a Ref lives: the trace that records there, and how deep transformations are
    nested."""

    trace: Any
    depth: int


def here() -> Level:
    """The level at which operations run now."""
    return Level(trace_state.dynamic_trace(), trace_state.depth())


def outermost() -> Level:
    """The level at which operations on arrays run at once."""
    return Level(trace_state.base_trace(), 0)


class RefTouched(ValueError):
    """A function that is being staged touches a Ref from outside."""


class _Trials(PerThread, name="trials of functions with Refs"):
    """For each trial that runs in this thread, the Refs from outside that it touched, with what
    they held."""

    def __init__(self) -> None:
        self.stack: list[dict[Ref, tuple[Any, Level]]] = []


class _Given(PerThread, name="Refs that are given to functions that run with values for them"):
    """The Refs whose values a function has been given, each with the name of that function and the
    names of the arguments, where they are known, and its place among them."""

    to: Mapping[Ref, tuple[str, Sequence[str], int]] = MappingProxyType({})


_trials = _Trials()
_given = _Given()
_alive: Final[weakref.WeakSet[Ref]] = process.container("Refs that live", weakref.WeakSet())


class Ref(Mutable):
    """A mutable array, made by `new_ref`.

    `ref[i]` reads and `ref[i] = x` writes a value of the same dtype; `ref.at[i]` is a view.

    Args:
        aval: Its type.
        refs: What it holds.

    >>> r = jax.new_ref(jnp.zeros(3))
    >>> r[1] = 5.0
    >>> r[...]
    Array([0., 5., 0.], dtype=float32)"""

    __slots__ = ("__weakref__", "_aval", "_freed", "_lanes", "_place", "_value")

    def __init__(self, aval: AbstractRef, refs: Any):
        self._aval, self._value, self._freed = aval, refs, False
        self._place = here()
        self._lanes = trace_state.lanes()
        _alive.add(self)

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)
    ndim = property(lambda self: self._aval.ndim)
    size = property(lambda self: self._aval.size)

    def unsafe_buffer_pointer(self) -> int:
        """Gives the address of the first element of what it holds now.

        Returns:
            An int. Writing the Ref may put its value elsewhere.

        Raises:
            ValueError: A function that is traced holds it, or it was freed.

        >>> jax.new_ref(jnp.arange(3)).unsafe_buffer_pointer() % 4
        0"""
        value = value_of(self)
        if isinstance(value, Tracer):
            raise ValueError(
                f"unsafe_buffer_pointer: a Ref of type {self._aval} that a traced function holds"
                " has no address; ask outside of the function"
            )
        return int(value.unsafe_buffer_pointer())

    def __typeof__(self) -> AbstractRef:
        """What `jax.typeof` says of it."""
        return self._aval

    def _base(self) -> tuple[Ref, tuple[Step, ...]]:
        return self, ()

    def _held(self) -> Any:
        return value_of(self)

    def _store(self, value: Any, what: str) -> None:
        store(self, _same_type(self, value), what)

    def __repr__(self) -> str:
        if self._freed:
            return "Ref(freed)"
        text = repr(self._value)
        return "Ref" + text[text.index("(") :] if text.startswith("Array(") else f"Ref({text})"


def made_at(level: Level, value: Any) -> Ref:
    """A Ref of a value that lives at another level."""
    value = to_array(value)
    ref = Ref(AbstractRef(typeof(value).strip_weak_type()), value)
    ref._place = level
    return ref


def value_of(ref: Ref) -> Any:
    """What a Ref holds, if operations here may touch it."""
    _touch(ref)
    return ref._value


def _touch(ref: Ref) -> None:
    if ref._freed:
        raise ValueError("this Ref was freed by free_ref and holds nothing")
    if _given.to and ref in _given.to:
        raise _reached_twice(ref, *_given.to[ref])
    now = here()
    if ref._place.trace is now.trace:
        return
    if not _trials.stack:
        raise RefTouched(
            f"a function that is traced closes over a mutable array reference of type {ref._aval}."
            " Transformations other than jit, checkpoint and control flow (rules that run later,"
            " callbacks) take its value: pass ref[...] and return what is to be written."
        )
    _trials.stack[-1].setdefault(ref, (ref._value, ref._place))
    if (
        isinstance(ref._value, Tracer)
        and getattr(ref._value._trace, "done", False)
        and not is_extended(ref.dtype)
    ):
        ref._value = zeros(
            ref._aval.inner_aval
        )  # what a function left that was staged within the trial
    ref._place = now


def store(ref: Ref, value: Any, what: str = "swap") -> None:
    """Replace the whole value."""
    _touch(ref)
    if trace_state.lanes() > ref._lanes:
        raise ValueError(
            f"performing {what} within vmap on a mutable array reference of type"
            f" {ref._aval} from outside: every lane would write to it. Make it an argument that"
            " vmap maps, or inside of the function."
        )
    if isinstance(value, Tracer) and value._trace.level > ref._place.depth:
        raise ValueError(
            f"performing a {what} operation with a differentiated or batched value on a mutable"
            f" array reference of type {ref._aval} from outside. Make the Ref inside of the"
            " transformed function."
        )
    ref._value = value


def given_to(
    name: str, refs: Sequence[Ref], places: Sequence[int] = (), names: Sequence[str] = ()
) -> Inside[Any]:
    """A `with` block in which a function runs with values for these Refs: if it reached one of them
    otherwise, too, it would be told what that held before. `places` are theirs among the arguments,
    which have these names."""
    found = {r: (name, names, places[k] if names else 0) for k, r in enumerate(refs)}
    return _given.inside(to={**_given.to, **found})


def _reached_twice(ref: Ref, name: str, names: Sequence[str], place: int) -> ValueError:
    argument = f"the argument {names[place]}" if names else "an argument"
    return ValueError(
        f"when tracing {name}, a mutable array reference of type {ref._aval} was both closed over"
        f" and passed as {argument}: use the argument only"
    )


def _same_type(ref: Ref, value: Any) -> Any:
    """Of the dtype that the Ref has, and not weak: what is written has been made."""
    return value.astype(ref.dtype) if typeof(value).weak_type else value


def free(ref: Ref) -> Any:
    value = value_of(ref)
    ref._value, ref._freed = None, True
    return value


# ---------------------------------------------------------------- staged functions that touch Refs


def any_alive() -> bool:
    return len(_alive) > 0


def touched(funs: Sequence[tuple[Callable[..., Any], Sequence[ShapedArray]]]) -> list[Ref]:
    """The Refs from outside that functions of flat arguments of these types touch. An error in one
    ends the trial: it comes again when the function is staged, and is reported then."""
    _trials.stack.append({})
    try:
        for fun, avals in funs:
            trace_to_jaxpr(fun, avals)
    except Exception:
        pass
    finally:
        found = _trials.stack.pop()
        for ref, (value, place) in found.items():
            ref._value, ref._place = value, place
    return list(found)


@contextmanager
def _holding(refs: Sequence[Ref], values: Sequence[Any]) -> Iterator[None]:
    """Inside, the Refs hold these values, which live here."""
    saved = [(r._value, r._place) for r in refs]
    for r, v in zip(refs, values, strict=True):
        r._value, r._place = v, here()
    try:
        yield
    finally:
        for r, (value, place) in zip(refs, saved, strict=True):
            r._value, r._place = value, place


class Written:
    """Which of its Refs a staged function writes; before it was traced, maybe all."""

    def __init__(self) -> None:
        self._places: set[int] | None = None

    def note(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """What one trace has written."""
        changed = {k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a is not b}
        self._places = changed | (self._places or set())

    def may_hold(self, place: int) -> bool:
        return self._places is None or place in self._places


def threaded(fun: Callable[..., Any], refs: Sequence[Ref]) -> Callable[..., Any]:
    """`fun` with the values of the Refs as a first argument and, in their last state, as a first
    result."""

    def with_values(values: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        with _holding(refs, [to_array(v) for v in values]):
            before = [r._value for r in refs]
            out = fun(*args, **kwargs)
            after = [r._value for r in refs]
            written.note(before, after)
            return after, out

    written = Written()
    with_values.written = written  # type: ignore[attr-defined]
    with_values.__name__ = name_of(fun)
    with_values.refs = refs  # type: ignore[attr-defined]
    return with_values


def values_of(refs: Sequence[Ref]) -> list[Any]:
    return [_same_type(r, value_of(r)) for r in refs]


def store_all(
    refs: Sequence[Ref], values: Sequence[Any], staged: Callable[..., Any] | None = None
) -> None:
    """What Refs hold now, after all or what a `threaded` function has written."""
    for k, (r, v) in enumerate(zip(refs, values, strict=True)):
        if staged is None or staged.written.may_hold(k):  # type: ignore[attr-defined]
            store(r, v)


def _first_rows(xs: Any) -> Any:
    return pytrees.tree_map(
        lambda x: ShapedArray(typeof(x).shape[1:], typeof(x).dtype, typeof(x).weak_type), xs
    )


def _retried(function: Callable[..., Any], discharge: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, or where that meets a Ref from outside, what `discharge` makes of the same
    arguments."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RefTouched as e:
            error = e
        return discharge(error, *args, **kwargs)

    return wrapped


def touched_by(
    error: RefTouched, funs: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]
) -> list[Ref]:
    """The Refs from outside that these functions touch when they are called with values like
    these."""
    flat = []
    for fun, args in funs:
        leaves, tree = pytrees.flatten((args, {}))
        flat.append(
            (
                FlatFunction(fun, tree),
                [x if isinstance(x, ShapedArray) else typeof(x) for x in leaves],
            )
        )
    refs = touched(flat)
    if not refs:
        raise error
    return refs


def discharged_scan(scan: Callable[..., Any]) -> Callable[..., Any]:
    """A scan whose function may touch Refs from outside: they are carried along."""

    def discharge(
        error: RefTouched, f: Any, init: Any, xs: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        refs = touched_by(error, [(f, (init, _first_rows(xs)))])
        inner = threaded(f, refs)

        def step(carry: Any, x: Any) -> Any:
            values, (following, y) = inner(carry[0], carry[1], x)
            return (values, following), y

        step.__name__ = name_of(f)
        (values, carry), ys = scan(step, (values_of(refs), init), xs, *args, **kwargs)
        store_all(refs, values, inner)
        return carry, ys

    return _retried(scan, discharge)


def discharged_while(while_loop: Callable[..., Any]) -> Callable[..., Any]:
    """A while_loop whose functions may touch Refs from outside; what the condition writes is
    lost."""

    def discharge(error: RefTouched, cond_fun: Any, body_fun: Any, init_val: Any) -> Any:
        refs = touched_by(error, [(cond_fun, (init_val,)), (body_fun, (init_val,))])
        cond, body = threaded(cond_fun, refs), threaded(body_fun, refs)
        values, out = while_loop(
            lambda s: cond(*s)[1], lambda s: body(*s), (values_of(refs), init_val)
        )
        store_all(refs, values, body)
        return out

    return _retried(while_loop, discharge)


def discharged_branches(choose: Callable[..., Any]) -> Callable[..., Any]:
    """A choice (what, index, branches, names, operands) among branches that may touch Refs from
    outside."""

    def discharge(
        error: RefTouched, what: str, index: Any, branches: Any, names: Any, operands: Any
    ) -> Any:
        refs = touched_by(error, [(b, tuple(operands)) for b in branches])
        with_values = [threaded(b, refs) for b in branches]
        values, out = choose(what, index, with_values, names, (values_of(refs), *operands))
        for branch in with_values:
            store_all(refs, values, branch)
        return out

    return _retried(choose, discharge)


def refs_among(leaves: Sequence[Any], name: str, names: Sequence[str] = ()) -> list[int]:
    """The places of the Refs among arguments, which have these names; the same one twice is
    refused."""
    places = [i for i, x in enumerate(leaves) if isinstance(x, Ref)]
    first: dict[Ref, int] = {}
    for i in places:
        k = first.setdefault(leaves[i], i)
        if k != i:
            where = f", as both {names[k]} and {names[i]}" if names else ""
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function,"
                f" but {name} was given the same Ref twice{where}"
            )
    return places


def with_values_for_refs(
    fun: Callable[..., Any], tree: pytrees.PyTreeDef, places: Sequence[int]
) -> Callable[..., Any]:
    """`fun` for arguments with plain values in the place of Refs, giving (their last values,
    result)."""

    @functools.wraps(fun)
    def discharged(*args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        leaves = tree.flatten_up_to((args, kwargs))
        made, given = [], [to_array(leaves[i]) for i in places]
        for i, value in zip(places, given):
            leaves[i] = Ref(AbstractRef(typeof(value)), value)
            made.append(leaves[i])
        args, kwargs = pytrees.unflatten(tree, leaves)
        out = fun(*args, **kwargs)
        for x in pytrees.leaves(out):
            if isinstance(x, Ref):
                raise ValueError(
                    f"function {name_of(fun)} returned a mutable array reference of type {x._aval},"
                    " but mutable array references cannot be returned."
                )
        after = [r._value for r in made]
        written.note(given, after)
        return after, out

    written = Written()
    discharged.written = written  # type: ignore[attr-defined]
    return discharged
