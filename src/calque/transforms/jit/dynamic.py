"""No recompiling of jitted functions for a new shape: they are traced with free sizes when a second
size arrives in a dimension, or when `dynamic=` says so (see `engines.specialiser`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from calque.core import backends, pytrees, trace_state
from calque.core.arrays import to_array
from calque.core.at_sizes import program_at
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr, Eqn, all_equations
from calque.core.lazy import LazyModule
from calque.core.pause import no_collection
from calque.core.trace_state import Tracer
from calque.machine.room import with_room
from calque.machine.spans import span
from calque.transforms.devices import transfers
from calque.transforms.devices.sharding_constraint import has_constraints
from calque.transforms.devices.sharding_propagation import is_placed
from calque.transforms.engines.signatures import ArgumentNames, as_tuple, signature_of
from calque.transforms.engines.specialiser import GenericProgram, SizedCall, Sizes, Specialiser
from calque.transforms.functions import debug_nans
from calque.transforms.functions.key_signatures import NOTHING
from calque.transforms.jit.traced import Ran, TracedFunction

# used with their flags alone
key_reuse: Any = LazyModule("calque.transforms.functions.key_reuse")
nan_checks: Any = LazyModule("calque.transforms.functions.nan_checks")


MOST_TAUGHT: Final = 32  # times that machine code learns to serve all sizes of one function
HOT_AFTER: Final = 6  # calls with the same sizes after which they get an entry of their own
LONG: Final = 5e-5  # seconds of a call that may be worth a program of its own
# parameters that name axes along which elements depend on each other
AXES: Final = frozenset(
    ("axis", "axes", "dimension", "dimensions", "dimension_numbers", "permutation")
)


class JittedCall(SizedCall):
    """A call of a jitted function."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Any, arguments: Any) -> None:
        super().__init__(
            function.cache.families.of(arguments.family_key), arguments.avals, arguments.sizes
        )
        self.function, self.arguments = function, arguments


def traced(call: JittedCall, program: GenericProgram) -> Any:
    """The function with free sizes, unless its program depends on more than its arguments."""
    with trace_state.with_symbols(program.symbols):
        out = call.function.trace_new(call.arguments, program.avals(call.avals))
    program.is_outdated = out.captures.changed
    return None if out.hoisted or out.ambient or has_constraints(out.closed) else out


def compiled(call: JittedCall, program: GenericProgram) -> Any:
    closed, options = to_compile(call.function.name, program)
    return with_room(backends.compile_symbolic, closed, options, program.symbols)


def to_compile(name: str, program: GenericProgram) -> tuple[ClosedJaxpr, backends.Options]:
    """The program with free sizes, with the checks that are asked for."""
    closed = program.traced.closed
    if debug_nans.active():
        closed = nan_checks.checked(closed, name)
    return closed, backends.Options(name, config.exact, ())


def compiled_at(name: str, program: GenericProgram, values: Sizes) -> Any:
    """The program compiled for these sizes alone. It is the trace for all sizes, with numbers in
    their place: the function is not called."""
    closed, options = to_compile(name, program)
    with span("compile", name), no_collection():
        fixed = program_at(closed, program.symbols, values)
        return with_room(backends.compile_program, fixed, options)


def learn(call: JittedCall, program: GenericProgram, choose: Callable[..., Any]) -> None:
    call.function.learn(call.arguments, program.traced, program.executable, choose)


def report(call: JittedCall, failure: str) -> None:
    call.function.log(f"Sizes of {call.function.name} stay static, {failure}")


# sizes of 2 or 3 are special cases now and then: what fails with them is tried with others
SPECIALISER: Final = Specialiser(
    traced, compiled, learn, report=report, tries_again=True, pins_again=True
)


# ---------------------------------------------------------------- calls


def allowed(function: Any, arguments: Any) -> bool:
    """Whether this call may be served by a program with free sizes."""
    o = function.options
    return (
        o.dynamic != "never"
        and trace_state.is_evaluating()
        and o.shardings is None
        and not (o.donate_argnums or o.donate_argnames)
        and backends.has_symbolic()
        and not any(isinstance(x, Tracer) for x in arguments.leaves)
        and not is_placed(arguments.leaves)
    )


def call(function: Any, arguments: Any) -> Any:
    """The result of a program with free sizes, or NotImplemented where this call gets one of its
    own."""
    request = JittedCall(function, arguments)
    family = request.family
    found = family.find(request.sizes)
    if found is None:
        declared = declared_positions(function, arguments)
        found = SPECIALISER.new_program(request, declared)
        stay = sorted((family.fixed | family.pinned) & declared)
        if stay:
            raise ValueError(why_static(function, arguments, stay[0], family.failure))
        if found is None:
            return NotImplemented
    program, values = found
    if program.traced.captures.reads and function.is_stale(program.traced):
        family.programs.remove(program)
        return call(function, arguments)
    keys, consts = program.traced.keys, program.traced.closed.consts
    if keys is not NOTHING:
        key_reuse.consume_arguments(keys, [*arguments.leaves, *consts], function.name)
    counts = function.call_counts
    if counts.is_paid(program, values):
        program.specialised[values] = compiled_at(function.name, program, values)
        counts.settle(program, values)
    executable, start = program.at(values), time.perf_counter()
    transfers.check_arguments(arguments.leaves, executable)
    out = executable.call([to_array(x) for x in arguments.leaves])
    seconds = time.perf_counter() - start
    if executable.program is None:  # of another engine, which has a program for each size
        if counts.count(program, values) == counts.hot_after:
            ran = Ran(out, False, executable, [None] * len(arguments.leaves))
            function.learn_elsewhere(arguments, program.traced, ran)
    else:
        often = counts.count(program, values) > counts.hot_after or counts.taught >= MOST_TAUGHT
        is_auto = function.options.dynamic == "auto"
        waits = is_auto and seconds > LONG and not counts.is_settled(program, values)
        if waits and gains_by_sizes(program.traced):
            counts.postpone(program, values, seconds)
        elif often:
            function.learn(arguments, program.traced, executable)
        if not often:  # perhaps anew: captured values may have changed
            counts.taught += 1
            SPECIALISER.teach(request, program, counts)
    return pytrees.unflatten(program.traced.out_tree, out)


def gains_by_sizes(traced: TracedFunction) -> bool:
    """Whether machine code is better where the sizes are known: blocks and vectors follow from
    them, unless each element is all by itself, or others are found by the program."""
    closed = traced.closed
    known: bool | None = closed.cache.get("gains by sizes")
    if known is None:
        equations = () if traced.finds else all_equations(closed.jaxpr)
        known = not all(map(is_by_elements, equations))
        closed.cache["gains by sizes"] = known
    return known


def is_by_elements(e: Eqn) -> bool:
    """Does an equation the same for each element, whatever is beside it?"""
    shapes = {v.aval.shape for v in (*e.invars, *e.outvars)} - {()}
    return len(shapes) <= 1 and AXES.isdisjoint(e.params)


def checked(dynamic: Any) -> Any:
    """The `dynamic` argument of `jit` as part of a key."""
    if dynamic in ("auto", "never"):
        return dynamic
    if not isinstance(dynamic, dict) or not all(isinstance(k, (int, str)) for k in dynamic):
        raise ValueError(
            'jit: dynamic must be "auto", "never", or a dict of argument (name or position) to'
            f" axes, got {dynamic!r}"
        )
    return tuple((k, as_tuple(v, int, f"dynamic[{k!r}]")) for k, v in dynamic.items())


def declared_positions(function: Any, arguments: Any) -> frozenset[int]:
    """The sizes that `dynamic={argument: axes}` makes free, as positions in the call's `sizes`."""
    declared = function.options.dynamic
    if isinstance(declared, str):
        return frozenset()
    starts, at = [], 0
    for a in arguments.avals:
        starts.append(at)
        at += a.ndim
    out: set[int] = set()
    for argument, axes in declared:
        for leaf in leaves_of(function, arguments, argument):
            rank = arguments.avals[leaf].ndim
            for axis in axes:
                if not -rank <= axis < rank:
                    raise ValueError(
                        f"jit: dynamic={{{argument!r}: {axes}}} of {function.name}: the argument is"
                        f" {arguments.avals[leaf].str_short()} and has no axis {axis}"
                    )
                out.add(starts[leaf] + axis % rank)
    return frozenset(out)


def leaves_of(function: Any, arguments: Any, argument: int | str) -> range:
    """The flat arguments that an argument, by position or name, consists of."""
    signature = signature_of(function.fun)
    names = list(signature.parameters) if signature is not None else []
    if isinstance(argument, str) and argument in arguments.named:
        before = [v for k, v in sorted(arguments.named.items()) if k < argument]
        first = len(pytrees.leaves((arguments.dynamic, before)))
        return range(first, first + len(pytrees.leaves(arguments.named[argument])))
    place = names.index(argument) if isinstance(argument, str) and argument in names else argument
    if not isinstance(place, int) or not -len(arguments.dynamic) <= place < len(arguments.dynamic):
        if argument in names:  # not there in this call
            return range(0)
        raise ValueError(
            f"jit: dynamic names the argument {argument!r}, which {function.name} does not have"
        )
    place %= len(arguments.dynamic)
    if place in function.options.static_argnums:
        raise ValueError(
            f"jit: dynamic names the argument {argument!r} of {function.name}, which is static"
        )
    first = len(pytrees.leaves(arguments.dynamic[:place]))
    return range(first, first + len(pytrees.leaves(arguments.dynamic[place])))


def why_static(function: Any, arguments: Any, position: int, reason: str) -> str:
    names = ArgumentNames(
        function.fun, arguments.dynamic, arguments.named, function.options.static_argnums
    )
    for name, a in zip(names, arguments.avals):
        if position < a.ndim:
            return (
                f"jit: dynamic declares axis {position} of the argument {name} of {function.name},"
                f" but {reason or 'tracing needs the size as a number'}. Leave the declaration out"
                " (sizes then become static where they must be), or compute with the size instead"
                " of looping over it."
            )
        position -= a.ndim
    return reason
