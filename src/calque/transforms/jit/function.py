"""The Python side of a jitted function: what machine code does not know it finds or makes, and
teaches."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core import backends, pytrees, trace_state
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.errors import InvalidValueError
from calque.core.jaxprs import ClosedJaxpr, drop_unused
from calque.core.lazy import LazyModule
from calque.core.pause import no_collection
from calque.core.trace import eval_jaxpr, trace_to_jaxpr
from calque.core.trace_state import Tracer
from calque.core.tracebacks import boundary
from calque.machine.caches import Entries, Tables, memo
from calque.machine.call import functions as callpath
from calque.machine.room import with_room
from calque.machine.spans import span
from calque.transforms.devices.mesh import consult_mesh, consultations
from calque.transforms.devices.program_devices import IncompatibleDevicesError
from calque.transforms.devices.sharding_constraint import JitShardings
from calque.transforms.devices.sharding_propagation import CHOSEN
from calque.transforms.engines import axes
from calque.transforms.engines.signatures import (
    ArgumentNames,
    describe_function,
    hashable_static,
    reference,
    signature_of,
)
from calque.transforms.engines.specialiser import CallCounts
from calque.transforms.engines.trees import wrapping
from calque.transforms.functions import debug_nans
from calque.transforms.functions.key_signatures import NOTHING
from calque.transforms.jit import captures, donation, identity, retraces
from calque.transforms.jit import dynamic as dynamic_sizes
from calque.transforms.jit import refs as refs_jit
from calque.transforms.jit.arguments import CallArguments, check_result
from calque.transforms.jit.epochs import epoch_of, programs_enabled
from calque.transforms.jit.flat_calls import NOT_SERVED, FlatCalls
from calque.transforms.jit.teaching import Inexpressible, Lesson, call_arguments, result_of, teach
from calque.transforms.jit.traced import Ran, TracedFunction, is_logged, log, stats, warn
from calque.transforms.primitives import callbacks
from calque.transforms.primitives.call import close_over_tracers, jit_p
from calque.transforms.primitives.high_values import HighValues
from calque.transforms.primitives.refs import RefTouched, any_alive

key_reuse: Any = LazyModule("calque.transforms.functions.key_reuse")  # used with its flag alone


class JitOptions(NamedTuple):
    """What `jit` was asked for: functions that are the same share programs if this is, too."""

    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    donate_argnums: tuple[int, ...]
    donate_argnames: tuple[str, ...]
    keep_unused: bool
    inline: bool
    shardings: JitShardings | None = None
    dynamic: Any = "auto"
    on_stale: str | None = None
    compiler: tuple[tuple[str, Any], ...] = ()


_EQUAL_ENTRIES: Final = 4  # entries with static values that are compared one after the other
_STEADY: Final = frozenset(
    (int, str, bool, float, type(None))
)  # equal ones are told by their values
_EARLIER: Final = 4  # programs for captured values that were
_OF_VALUES: Final[Tables[Any, Any]] = Tables("functions of the values of Refs", 256, programs=True)


class JittedFunction:
    """The Python side of a jitted function."""

    def __init__(self, fun: Callable[..., Any], options: JitOptions):
        self.fun, self.options = fun, options
        name = getattr(fun, "__name__", None) or getattr(
            getattr(fun, "func", None), "__name__", None
        )
        self.name = str(name or type(fun).__name__)
        self._cache: identity.FunctionCache | None = None
        self.callable: Any = None
        self.changed: list[str] = []  # captured values because of which the next trace is made
        self.earlier: list[list[Any]] = []  # programs for earlier captured values
        self._call_counts: CallCounts | None = None
        # for calls that touch Refs: the same function of their values
        self.with_values: Entries[Any, Any] | None = None
        self.equal_entries = 0  # that machine code knows by what their static values equal
        self.flat_calls: FlatCalls | None = None  # for calls whose leaves alone can be told

    log = staticmethod(log)

    @property
    def cache(self) -> identity.FunctionCache:
        if self._cache is None:
            self._cache = identity.cache_of(self.fun, self.options)
        return self._cache

    @property
    def call_counts(self) -> CallCounts:
        """How often programs of any size served which sizes."""
        if self._call_counts is None:
            self._call_counts = CallCounts(dynamic_sizes.HOT_AFTER)
        return self._call_counts

    def values_table(self) -> Entries[Any, Any]:
        """Where the functions are kept that `of_values` makes."""
        if self.with_values is None:
            self.with_values = _OF_VALUES.new()
        return self.with_values

    def of_values(self, fun: Callable[..., Any], static_argnums: Sequence[int]) -> Any:
        """A function that takes the values of Refs in place of the Refs, jitted as this one is."""
        o = self.options
        return wrapped(
            fun, JitOptions(tuple(static_argnums), o.static_argnames, (), (), False, o.inline)
        )

    # ------------------------------------------------------------ arguments

    def split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], tuple[Any, ...]]:
        """(dynamic arguments with statics blanked, dynamic keywords, key of the statics)."""
        o = self.options
        if not o.static_argnums and not o.static_argnames:
            return list(args), kwargs, ()
        dynamic = list(args)
        statics: list[tuple[int | str, Any]] = []
        for i in o.static_argnums:
            if i < len(args):
                statics.append((i, hashable_static(args[i], i, self.name)))
                dynamic[i] = None
        named = dict(kwargs)
        for k in o.static_argnames:
            if k in named:
                statics.append((k, hashable_static(named.pop(k), k, self.name)))
        return dynamic, named, tuple(statics)

    def flat_function(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        in_tree: pytrees.PyTreeDef,
        names: Sequence[str],
    ) -> tuple[Callable[..., list[Any]], list[pytrees.PyTreeDef], list[bool]]:
        """`fun` as a function of flat leaves, a cell that receives the structure of its result, and
        a list that receives which results have a sharding that the caller chose."""
        out_tree: list[pytrees.PyTreeDef] = []
        chosen: list[bool] = []
        o = self.options

        def flat(*leaves: Any) -> list[Any]:
            if o.shardings is not None:
                leaves = tuple(
                    o.shardings.enter(
                        leaves, *self.placeable(*pytrees.unflatten(in_tree, leaves)), names
                    )
                )
            dynamic, named = pytrees.unflatten(in_tree, leaves)
            full = [args[i] if i in o.static_argnums else a for i, a in enumerate(dynamic)]
            out = self.fun(
                *full, **named, **{k: kwargs[k] for k in o.static_argnames if k in kwargs}
            )
            flat_out, tree = pytrees.flatten(out)
            out_tree[:] = [tree]
            for x in flat_out:
                check_result(x, self.fun, self.name, out)
            if o.shardings is None:
                return flat_out
            chosen[:] = [s is not None for s in o.shardings.of_results(out)]
            return o.shardings.leave(out, flat_out)

        return flat, out_tree, chosen

    def placeable(
        self, dynamic: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments that `in_shardings` speaks of: all but the static ones."""
        return [a for i, a in enumerate(dynamic) if i not in self.options.static_argnums], named

    # ------------------------------------------------------------ tracing

    def trace(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[TracedFunction, list[Any]]:
        arguments = CallArguments(self, args, kwargs)
        return self.trace_given(arguments), arguments.leaves

    def trace_given(self, arguments: CallArguments) -> TracedFunction:
        return self.current(self.known(arguments), arguments)

    def current(self, traced: TracedFunction | None, arguments: CallArguments) -> TracedFunction:
        """The program that is known for these arguments, or a new one if there is none, or what it
        captured has changed."""
        if traced is None or (traced.captures.reads and self.is_stale(traced)):
            if traced is not None:
                self.outdated(traced)
            traced = self.trace_new(arguments, arguments.avals)
            if not traced.hoisted and traced.settings is not None:
                self.cache.programs[arguments.key] = traced
        if traced.ambient:
            consult_mesh()
        return traced

    def argument_names(self, arguments: CallArguments) -> ArgumentNames:
        """What the flat arguments are called."""
        return ArgumentNames(
            self.fun, arguments.dynamic, arguments.named, self.options.static_argnums
        )

    def is_stale(self, traced: TracedFunction) -> bool:
        """Whether the function must be traced anew, because of what it captured. A function made
        anew sees new values without a word."""
        changed = traced.captures.changed()
        if not changed:
            return False
        anew = traced.owner() is not self.fun or captures.report(changed, self.on_stale, self.name)
        self.changed = [r.name for r in changed] if anew else []
        return anew

    def outdated(self, traced: TracedFunction) -> None:
        """What was captured is another value now. Machine code serves the old one, should it come
        back, for a few such changes; then its programs go, and what they captured."""
        executable = traced.executable
        own = [] if executable is None or executable.program is None else [executable.program]
        taught = [*own, *traced.served]
        if not taught:
            return
        self.earlier.append(taught)
        if len(self.earlier) > _EARLIER:
            for program in self.earlier.pop(0):
                callpath.drop_entries(self.callable, program)

    def trace_new(self, arguments: CallArguments, avals: Sequence[ShapedArray]) -> TracedFunction:
        names = self.argument_names(arguments)
        flat, out_tree, chosen = self.flat_function(
            arguments.args, arguments.kwargs, arguments.in_tree, names
        )
        stats.traces += 1
        event = retraces.Event(self.name, avals, arguments.rest, names)
        event.captured, self.changed = self.changed, []
        if config.explain_cache_misses:
            warn(f"TRACING CACHE MISS {event.explanation(list(self.cache.history))}")
        retraces.record(self.cache.history, event)
        if config.no_tracing:
            raise RuntimeError(
                f"re-tracing function {describe_function(self.fun, self.name)} for `jit`, but"
                " 'no_tracing' is set"
            )
        start = time.perf_counter()
        consulted, changes = consultations(), config.changes_elsewhere()
        statics = [x for _, (_, x) in arguments.rest[1]]
        watched = captures.captured(self.fun, statics)
        with span("trace", self.name), no_collection():
            described = describe_function(self.fun, self.name)
            closed = with_room(trace_to_jaxpr, flat, avals, described, names)
        if is_logged():
            log(f"Finished tracing {self.name} for jit in {time.perf_counter() - start:.9f} sec")
        closed, hoisted = close_over_tracers(closed)
        keys = key_reuse.of_closed(closed) if config.debug_key_reuse else NOTHING
        closed = ClosedJaxpr(drop_unused(closed.jaxpr), closed.consts)
        if any(chosen):
            closed.cache[CHOSEN] = tuple(chosen)
        traced = TracedFunction(closed, hoisted, arguments.in_tree, out_tree[0], self.name)
        traced.statics = tuple([at for at, _ in arguments.statics if type(at) is int])
        traced.ambient = consultations() != consulted
        if changes != config.changes_elsewhere() or arguments.settings != config.trace_key():
            traced.settings = None
        watched.settle()
        if watched.reads and (called := callbacks.codes_called(closed)):
            watched = watched.without(called, self.fun, statics)
        traced.compiler = self.options.compiler
        traced.captures, traced.owner, traced.keys = watched, reference(self.fun), keys
        identity.note_program(self.cache, closed.consts, statics)
        o = self.options
        if (o.donate_argnums or o.donate_argnames) and not hoisted and not debug_nans.active():
            places = donation.positions(
                arguments.dynamic, arguments.named, o.donate_argnums, o.donate_argnames
            )
            traced.donated, traced.unusable = donation.usable(closed, places, o.keep_unused)
        return traced

    # ------------------------------------------------------------ calling

    @boundary
    def miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            return self.fun(*args, **kwargs)
        if self.flat_calls is not None:
            out = self.flat_calls.call(self, args, kwargs)
            if out is not NOT_SERVED:
                return out
        stats.asked += 1
        if any_alive():
            out = refs_jit.call_with_arguments(self, args, kwargs)
            if out is not NotImplemented:
                return out
        try:
            arguments = CallArguments(self, args, kwargs)
            if self.with_values is not None and arguments.key in self.with_values:
                return refs_jit.call_closing_over(self, arguments)
            try:
                return self.served(arguments)
            except InvalidValueError as e:
                if debug_nans.MADE_NOWHERE not in str(e):
                    self.run_as_python(arguments)
                raise
            except RefTouched as e:
                error = e
            return refs_jit.call_closing_over(self, arguments, error)
        except HighValues:
            return refs_jit.call_opened(self, args, kwargs)

    def run_as_python(self, arguments: CallArguments) -> None:
        """The result holds what a flag forbids: run the function as it is written, so that what it
        raises comes with a traceback through it."""
        if trace_state.is_evaluating() and self.options.shardings is None:
            self.fun(*arguments.args, **arguments.kwargs)

    def known(self, arguments: CallArguments) -> TracedFunction | None:
        """The program for these arguments, if there is one."""
        try:
            return self.cache.programs.find(arguments.key)
        except Exception as e:
            if not arguments.statics:
                raise
            kinds = ", ".join(sorted({t.__name__ for _, (t, _) in arguments.statics}))
            raise ValueError(
                "static arguments should be comparable using __eq__: an error was raised when a"
                f" static argument of {self.name} was compared with that of an earlier call (the"
                f" types are {kinds}): {type(e).__name__}: {e}"
            ) from e

    def served(self, arguments: CallArguments) -> Any:
        """The results, after tracing and compiling what has to be."""
        traced, leaves = self.known(arguments), arguments.leaves
        if traced is None and dynamic_sizes.allowed(self, arguments):
            out = dynamic_sizes.call(self, arguments)
            if out is not NotImplemented:
                return out
        traced = self.current(traced, arguments)
        inside = bool(axes.in_scope()) and not any(isinstance(x, Tracer) for x in leaves)
        if inside and axes.spoken_of(traced.closed.jaxpr):
            out = eval_jaxpr(traced.closed.jaxpr, traced.closed.consts, *traced.hoisted, *leaves)
            return pytrees.unflatten(traced.out_tree, out)
        if (
            traced.hoisted
            or not trace_state.is_evaluating()
            or any(isinstance(x, Tracer) for x in leaves)
        ):
            if traced.finds:  # the sizes belong to the enclosing program, anew for each call
                return self.fun(*arguments.args, **arguments.kwargs)
            return pytrees.unflatten(traced.out_tree, self.stage(traced, leaves))
        if config.no_execution:
            raise RuntimeError(
                f"tried to execute function {self.name}, but the no_execution config option is set"
            )
        if traced.keys is not NOTHING:
            key_reuse.consume_arguments(traced.keys, [*leaves, *traced.closed.consts], self.name)
        if self.options.shardings is not None:
            leaves = self.options.shardings.brought(
                leaves, *self.placeable(*self.split(arguments.args, arguments.kwargs)[:2])
            )
        try:
            ran = traced.run(leaves)
        except IncompatibleDevicesError as error:
            raise error.named(self.argument_names(arguments)) from None
        lasts = traced.again is None and traced.keeps(ran.executable)  # for this configuration
        if lasts and not traced.ambient:
            if ran.executable.program is None:
                self.learn_elsewhere(arguments, traced, ran)
            elif not ran.is_somewhere:
                self.learn(arguments, traced, ran.executable)
        return pytrees.unflatten(traced.out_tree, ran.out)

    def stage(self, traced: TracedFunction, leaves: Sequence[Any]) -> list[Any]:
        """Called while another program is traced, or on values of a transformation."""
        if self.options.inline:
            return eval_jaxpr(traced.closed.jaxpr, traced.closed.consts, *traced.hoisted, *leaves)
        return jit_p.bind(*traced.hoisted, *leaves, **traced.params)

    def watches(self, traced: TracedFunction) -> bool:
        """Whether the machine code can see that a captured value has changed."""
        return self.on_stale == "ignore" or traced.captures.watchable()

    def guards(self, traced: TracedFunction) -> list[tuple[Any, ...]]:
        return [] if self.on_stale == "ignore" else traced.captures.words()

    @property
    def on_stale(self) -> str:
        return str(self.options.on_stale or config.on_stale)

    def learn(
        self,
        arguments: CallArguments,
        traced: TracedFunction,
        executable: backends.Executable,
        choose: Callable[..., Any] | None = None,
    ) -> None:
        """Teach the C callable to serve such calls alone; those of all sizes, with a function that
        chooses the program."""
        if executable.program is not None and self.may_learn(arguments, traced):
            self.teach(arguments, traced, executable.program, choose)

    def learn_elsewhere(self, arguments: CallArguments, traced: TracedFunction, ran: Ran) -> None:
        """Teach the C callable to match such calls and have them served by the function of Python
        that another engine has for them."""
        served = getattr(ran.executable, "served", None)
        if served is not None and self.may_learn(arguments, traced):
            program = served(ran.out)
            traced.served.append(program)
            self.teach(arguments, traced, program, places=ran.places)

    def may_learn(self, arguments: CallArguments, traced: TracedFunction) -> bool:
        """Whether machine code may recognise such calls."""
        keys = traced.keys.sinks  # which are used up is known to Python
        if not programs_enabled() or not self.watches(traced) or keys:
            return False
        # changed meanwhile: it is for neither configuration
        if traced.settings is None or arguments.settings != config.trace_key():
            return False
        return not axes.in_scope()  # machine code does not know the axes that can be named

    def teach(
        self,
        arguments: CallArguments,
        traced: TracedFunction,
        program: Any,
        choose: Callable[..., Any] | None = None,
        places: Sequence[Any] | None = None,
    ) -> None:
        """Teach the C callable what to run for such calls."""
        told = self.told(arguments, traced)
        names = () if told is None else tuple(arguments.kwargs)
        out, guards = result_of(traced.out_tree), self.guards(traced)
        lesson = Lesson(told or (), program, out, names, guards, choose, places)
        number = epoch_of(arguments.settings)
        if told is None:
            self.flat_calls = self.flat_calls or FlatCalls()
            self.flat_calls.learn(arguments, lesson, number)
        else:
            teach(self.callable, lesson, number)

    def told(self, arguments: CallArguments, traced: TracedFunction) -> list[Any] | None:
        """How machine code tells the arguments, None if it cannot. A static value is known by
        itself; one that has been taught and comes back as another object by what it equals, unless
        there are so many that a table finds them sooner."""
        o = self.options
        steady = not arguments.statics or all(type(x) in _STEADY for _, (_, x) in arguments.statics)
        made_anew = not steady and traced.times_taught > 0
        if made_anew and (traced.times_taught > 1 or self.equal_entries >= _EQUAL_ENTRIES):
            return None
        traced.times_taught += 1
        self.equal_entries += made_anew
        try:
            return call_arguments(
                arguments.args, arguments.kwargs, o.static_argnums, o.static_argnames, made_anew
            )
        except (Inexpressible, RecursionError):
            return None


def wrapped(fun: Callable[..., Any], options: JitOptions) -> Any:
    function = JittedFunction(fun, options)
    wrapped = callpath.Jitted(function.miss)
    function.callable = wrapped
    wrapping(wrapped, fun)
    for name in getattr(fun, "__dict__", ()):  # what has its stages hides not those of its jit
        if name[0] != "_" and hasattr(callpath.Jitted, name):
            wrapped.__dict__.pop(name, None)
    wrapped._function = function
    wrapped._options_key = options
    return wrapped


def rewrapped(jitted: Any, fun: Callable[..., Any]) -> Any:
    """Another function, jitted as `jitted` is."""
    return wrapped(fun, function_of(jitted).options)


def function_of(jitted: Any) -> JittedFunction:
    """The Python side of what `jit` returned, or would return for a function of the library."""
    found = getattr(jitted, "_function", None)
    if isinstance(found, JittedFunction):
        return found
    if isinstance(jitted, callpath.Jitted):
        return _of_library(jitted)
    raise TypeError(f"{jitted!r} is not a jitted function")


@memo("functions of the library whose stages were asked for", 256)
def _of_library(function: Callable[..., Any]) -> JittedFunction:
    """What takes no arrays, as the signature says, is static: axes, dtypes, modes."""
    found = signature_of(function)
    parameters = [] if found is None else list(found.parameters.values())
    static = [
        i
        for i, p in enumerate(parameters)
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.annotation is not p.empty
        and "Array" not in str(p.annotation)
    ]
    places = [i for i in static if parameters[i].kind is not inspect.Parameter.KEYWORD_ONLY]
    names = [parameters[i].name for i in static]
    options = JitOptions(tuple(places), tuple(names), (), (), False, False)
    made: JittedFunction = wrapped(function, options)._function
    return made
