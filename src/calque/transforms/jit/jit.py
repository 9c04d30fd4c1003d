"""jit: trace once, compile once, then call machine code.

The object that `jit` returns is a C callable. On a hit no Python runs; on a miss `_Function.miss`
finds or makes the program and teaches the callable how to recognise such a call."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from calque.core import backends, key_use, lazy, pytrees, trace_state
from calque.core.arrays import ArrayImpl, to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import PYTHON_SCALARS
from calque.core.jaxprs import ClosedJaxpr, found_symbols
from calque.core.pause import no_collection
from calque.core.trace import drop_unused, eval_jaxpr, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.core.tracebacks import boundary
from calque.machine.call import functions as callpath
from calque.transforms.devices.mesh import consult_mesh, consultations, current_mesh
from calque.transforms.devices.sharding_arrays import placed
from calque.transforms.devices.sharding_constraint import (
    JitShardings,
    has_constraints,
    jit_shardings,
)
from calque.transforms.devices.sharding_propagation import is_placed, result_shardings
from calque.transforms.engines import axes
from calque.transforms.engines.signatures import (
    ArgumentNames,
    describe_function,
    hashable_static,
    reference,
    resolve,
)
from calque.transforms.engines.specialiser import CallCounts
from calque.transforms.functions import debug_nans, nan_checks
from calque.transforms.jit import captures, donation, identity, retraces
from calque.transforms.jit import dynamic as dynamic_sizes
from calque.transforms.jit import refs as refs_jit
from calque.transforms.jit.call_specs import Inexpressible, call_specs, result_spec
from calque.transforms.jit.control_flow import converted
from calque.transforms.primitives.call import close_over_tracers, jit_p
from calque.transforms.primitives.refs import RefTouched, any_alive


class Traced:
    """A function traced for one kind of arguments: its program and the structures around it."""

    __slots__ = (
        "ambient",
        "captures",
        "closed",
        "donated",
        "executable",
        "finds",
        "hoisted",
        "in_tree",
        "key_uses",
        "name",
        "out_tree",
        "owner",
        "params",
        "unusable",
    )

    def __init__(
        self,
        closed: ClosedJaxpr,
        hoisted: list[Any],
        in_tree: pytrees.PyTreeDef,
        out_tree: pytrees.PyTreeDef,
        name: str,
    ):
        self.closed, self.hoisted = closed, hoisted
        self.in_tree, self.out_tree, self.name = in_tree, out_tree, name
        self.executable: backends.Executable | None = None
        self.key_uses: list[
            tuple[int, key_use.Use]
        ] = []  # arguments that are random keys and are used up
        self.captures = captures.NOTHING  # what the function read that is no argument
        self.owner: Callable[[], Any] = lambda: None  # the function that was traced
        self.finds = (
            found_symbols(closed.jaxpr) is not None
        )  # sizes that are known only while running
        self.ambient = False  # did it ask for the current mesh?
        self.params = {"jaxpr": closed, "name": name}
        self.donated: tuple[int, ...] = ()  # flat inputs whose memory the program may take
        self.unusable: list[ShapedArray] = []

    def compiled(self) -> backends.Executable:
        if self.executable is None:
            donation.warn_unusable(self.unusable, self.name)
            options = backends.Options(self.name, config.exact, self.donated)
            with no_collection():
                self.executable = backends.compile_program(
                    nan_checks.checked(self.closed, self.name), options
                )
            _log(f"Finished compiling {self.name}")
        return self.executable

    def run(self, leaves: Sequence[Any]) -> tuple[list[Any], bool]:
        """The results for these arguments, and whether anything says where they live."""
        executable = self.compiled()
        arrays = [to_array(x) for x in leaves]
        is_somewhere = is_placed(leaves) or has_constraints(self.closed)
        where = result_shardings(self.closed, leaves, self.name) if is_somewhere else []
        out = executable.call(arrays)
        if executable.program is None:
            donation.delete_donated(arrays, self.donated)
        return (
            [placed(x, s) for x, s in zip(out, where, strict=True)] if is_somewhere else out
        ), is_somewhere


class Stats:
    """How often functions were traced in this process, and how often called through Python."""

    traces = asked = 0


stats = Stats()


def _log(message: str) -> None:
    if config.log_compiles:
        _warn(message)


def _warn(message: str) -> None:
    import logging

    logging.getLogger("calque").warning(message)


class Options:
    """What `jit` was asked for."""

    __slots__ = (
        "donate_argnames",
        "donate_argnums",
        "dynamic",
        "inline",
        "keep_unused",
        "on_stale",
        "shardings",
        "static_argnames",
        "static_argnums",
    )

    def __init__(
        self,
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
        keep_unused: bool,
        inline: bool,
        shardings: JitShardings | None = None,
        dynamic: Any = "auto",
        on_stale: str | None = None,
    ):
        self.shardings, self.dynamic, self.on_stale = shardings, dynamic, on_stale
        self.static_argnums, self.static_argnames = static_argnums, static_argnames
        self.donate_argnums, self.donate_argnames = donate_argnums, donate_argnames
        self.keep_unused, self.inline = keep_unused, inline

    def key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, n) for n in self.__slots__)


class _Function:
    """The Python side of a jitted function."""

    def __init__(self, fun: Callable[..., Any], options: Options):
        self.fun, self.options = fun, options
        name = getattr(fun, "__name__", None) or getattr(
            getattr(fun, "func", None), "__name__", None
        )
        self.name = str(name or type(fun).__name__)
        self._cache: identity.FunctionCache | None = None
        self.callable: Any = None
        self.changed: list[str] = []  # captured values because of which the next trace is made
        self.call_counts = CallCounts(dynamic_sizes.HOT_AFTER)
        self.with_values: dict[
            Any, Any
        ] = {}  # for calls that touch Refs: the same function of values

    log = staticmethod(_log)

    @property
    def cache(self) -> identity.FunctionCache:
        if self._cache is None:
            self._cache = identity.cache_of(self.fun, self.options.key())
        return self._cache

    # ------------------------------------------------------------ arguments

    def split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], tuple[Any, ...]]:
        """(dynamic arguments with statics blanked, dynamic keywords, key of the statics)."""
        o = self.options
        if not o.static_argnums and not o.static_argnames:
            return list(args), kwargs, ()
        dynamic, statics = list(args), []
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
    ) -> tuple[Callable[..., list[Any]], list[pytrees.PyTreeDef]]:
        """`fun` as a function of flat leaves, and a cell that receives the structure of its
        result."""
        out_tree: list[pytrees.PyTreeDef] = []
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
                check_result(x, self.name)
            return flat_out if o.shardings is None else o.shardings.leave(out, flat_out)

        return flat, out_tree

    def placeable(
        self, dynamic: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments that `in_shardings` speaks of: all but the static ones."""
        return [a for i, a in enumerate(dynamic) if i not in self.options.static_argnums], named

    # ------------------------------------------------------------ tracing

    def trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, list[Any]]:
        given = Given(self, args, kwargs)
        return self.trace_given(given), given.leaves

    def trace_given(self, given: Given) -> Traced:
        traced = self.cache.programs.get(given.key)
        if traced is None or (traced.captures.reads and self.is_stale(traced)):
            traced = self.trace_new(given, given.avals)
            if not traced.hoisted:
                self.cache.programs[given.key] = traced
        if traced.ambient:
            consult_mesh()
        return traced

    def argument_names(self, given: Given) -> ArgumentNames:
        """What the flat arguments are called."""
        return ArgumentNames(self.fun, given.dynamic, given.named, self.options.static_argnums)

    def is_stale(self, traced: Traced) -> bool:
        """Must the function be traced anew, because of what it captured? A function made anew sees
        new values without a word."""
        changed = traced.captures.changed()
        if not changed:
            return False
        anew = traced.owner() is not self.fun or captures.report(changed, self.on_stale, self.name)
        self.changed = [r.name for r in changed] if anew else []
        return anew

    def trace_new(self, given: Given, avals: Sequence[ShapedArray]) -> Traced:
        names = self.argument_names(given)
        flat, out_tree = self.flat_function(given.args, given.kwargs, given.in_tree, names)
        stats.traces += 1
        event = retraces.Event(self.name, avals, given.rest, names)
        event.captured, self.changed = self.changed, []
        retraces.record(self.cache.history, event)
        if config.no_tracing:
            raise RuntimeError(
                f"re-tracing function {describe_function(self.fun, self.name)} for `jit`, but"
                " 'no_tracing' is set"
            )
        if config.explain_cache_misses:
            _warn(
                f"TRACING CACHE MISS of {self.name}: no program for"
                f" {', '.join(a.str_short() for a in avals)}"
            )
        consulted = consultations()
        watched = captures.captured(self.fun)
        uses: list[tuple[int, key_use.Use]] = []

        def noting(*leaves: Any) -> list[Any]:
            out = flat(*leaves)
            if config.debug_key_reuse:
                uses.extend(
                    (i, u) for i, x in enumerate(leaves) if (u := key_use.use_of(x)) is not None
                )
            return out

        with no_collection():
            closed = trace_to_jaxpr(noting, avals, describe_function(self.fun, self.name), names)
        closed, hoisted = close_over_tracers(closed)
        closed = ClosedJaxpr(drop_unused(closed.jaxpr), closed.consts)
        traced = Traced(closed, hoisted, given.in_tree, out_tree[0], self.name)
        traced.ambient = consultations() != consulted
        watched.settle()
        traced.captures, traced.owner, traced.key_uses = watched, reference(self.fun), uses
        o = self.options
        if (o.donate_argnums or o.donate_argnames) and not hoisted and not debug_nans.active():
            places = donation.positions(
                given.dynamic, given.named, o.donate_argnums, o.donate_argnames
            )
            traced.donated, traced.unusable = donation.usable(closed, places, o.keep_unused)
        return traced

    # ------------------------------------------------------------ calling

    @boundary
    def miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            return self.fun(*args, **kwargs)
        stats.asked += 1
        if any_alive():
            out = refs_jit.call_with_arguments(self, jit, args, kwargs)
            if out is not NotImplemented:
                return out
        given = Given(self, args, kwargs)
        if given.key in self.with_values:
            return refs_jit.call_closing_over(self, jit, given)
        try:
            return self.served(given)
        except RefTouched as e:
            error = e
        return refs_jit.call_closing_over(self, jit, given, error)

    def served(self, given: Given) -> Any:
        """The results, after tracing and compiling what has to be."""
        if given.key not in self.cache.programs and dynamic_sizes.allowed(self, given):
            out = dynamic_sizes.call(self, given)
            if out is not NotImplemented:
                return out
        traced, leaves = self.trace_given(given), given.leaves
        key_use.consume_again(traced.key_uses, leaves, self.name)
        if (
            traced.hoisted
            or not trace_state.is_evaluating()
            or any(isinstance(x, Tracer) for x in leaves)
        ):
            if traced.finds:  # the sizes belong to the enclosing program, anew for each call
                return self.fun(*given.args, **given.kwargs)
            return pytrees.unflatten(traced.out_tree, self.stage(traced, leaves))
        if config.no_execution:
            raise RuntimeError(
                f"tried to execute function {self.name}, but the no_execution config option is set"
            )
        executable = traced.compiled()
        if self.options.shardings is not None:
            self.options.shardings.check(
                leaves, *self.placeable(*self.split(given.args, given.kwargs)[:2])
            )
        out, is_somewhere = traced.run(leaves)
        if not is_somewhere and not traced.ambient:
            self.learn(given.args, given.kwargs, traced, executable)
        return pytrees.unflatten(traced.out_tree, out)

    def stage(self, traced: Traced, leaves: Sequence[Any]) -> list[Any]:
        """Called while another program is traced, or on values of a transformation."""
        if self.options.inline:
            return eval_jaxpr(traced.closed.jaxpr, traced.closed.consts, *traced.hoisted, *leaves)
        return jit_p.bind(*traced.hoisted, *leaves, **traced.params)

    def watches(self, traced: Traced) -> bool:
        """Can the machine code see whether a captured value has changed?"""
        return self.on_stale == "ignore" or traced.captures.watchable()

    def guards(self, traced: Traced) -> list[tuple[Any, ...]]:
        return [] if self.on_stale == "ignore" else traced.captures.words()

    @property
    def on_stale(self) -> str:
        return str(self.options.on_stale or config.on_stale)

    def learn(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        traced: Traced,
        executable: backends.Executable,
        choose: Callable[..., Any] | None = None,
    ) -> None:
        """Teach the C callable to serve such calls alone; those of all sizes, with a function that
        chooses the program."""
        keys = (
            config.debug_key_reuse and traced.key_uses
        )  # which ones are used up is known to Python
        if executable.program is None or not programs_enabled() or not self.watches(traced) or keys:
            return
        o = self.options
        try:
            specs = call_specs(
                args, kwargs, o.static_argnums, o.static_argnames, choose is not None
            )
            out = result_spec(
                pytrees.unflatten(
                    traced.out_tree, [("out", k) for k in range(traced.out_tree.num_leaves)]
                )
            )
        except Inexpressible:
            return
        guards = self.guards(traced)
        entry = callpath.Entry(
            specs, tuple(kwargs), executable.program, out, epoch(), guards, choose
        )
        callpath.add_entry(self.callable, entry)


class Given:
    """The arguments of one call, and under which key its program is found."""

    __slots__ = (
        "args",
        "avals",
        "dynamic",
        "in_tree",
        "key",
        "kwargs",
        "leaves",
        "named",
        "rest",
        "statics",
    )

    def __init__(self, function: _Function, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.args, self.kwargs = args, kwargs
        self.dynamic, self.named, self.statics = function.split(args, kwargs)
        self.leaves, self.in_tree = pytrees.flatten((self.dynamic, self.named))
        self.avals = tuple([leaf_aval(x, function, self.dynamic, self.named) for x in self.leaves])
        self.rest = (
            self.in_tree,
            self.statics,
            config.trace_key(),
            axes.in_scope(),
            current_mesh(),
        )
        self.key = (self.avals, self.rest)

    @property
    def family_key(self) -> tuple[Any, ...]:
        """All but the sizes."""
        return (self.rest, *[(a.ndim, a.dtype, a.weak_type) for a in self.avals])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([n for a in self.avals for n in a.shape])


# ---------------------------------------------------------------- epochs: when entries are valid

_epochs: dict[Any, int] = {}
_epoch_numbers = itertools.count(1)  # two threads never draw the same
_tracing = False


def epoch() -> int:
    """The number of the present configuration; entries made under another one do not match."""
    key = config.trace_key()
    number = _epochs.get(key) or _epochs.setdefault(key, next(_epoch_numbers))
    return number + callpath.CHECKED if checks() else number


def checks() -> bool:
    """Are single operations looked at? Jitted programs look at themselves."""
    return config.debug_index or config.debug_key_reuse or debug_nans.active()


def programs_enabled() -> bool:
    """May machine code serve calls of jitted functions?"""
    return callpath.LEARNS and not (_tracing or config.disable_jit)


def callpath_enabled() -> bool:
    """May machine code serve calls of single operations?"""
    return programs_enabled() and not checks()


def _refresh_epoch() -> None:
    callpath.set_epoch(epoch() if programs_enabled() else 0)


def _on_tracing(active: bool) -> None:
    global _tracing
    _tracing = active
    _refresh_epoch()


config.on_change(_refresh_epoch)
trace_state.on_tracing(_on_tracing)
_refresh_epoch()


# ---------------------------------------------------------------- checks


def leaf_aval(
    x: Any, function: _Function, dynamic: Sequence[Any], named: dict[str, Any]
) -> ShapedArray:
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    try:
        return typeof(x)
    except TypeError:
        leaves = pytrees.leaves((dynamic, named))
        where = ArgumentNames(function.fun, dynamic, named)[
            next(i for i, v in enumerate(leaves) if v is x)
        ]
        raise TypeError(
            f"Error interpreting argument {where} of {function.name} as an array: its value is"
            f" {x!r} of type {type(x)}. Pass an array or a number, or make the argument static with"
            " static_argnums or static_argnames."
        ) from None


def check_result(x: Any, name: str) -> None:
    if isinstance(x, (ArrayImpl, Tracer, np.ndarray, np.generic, *PYTHON_SCALARS)) or hasattr(
        x, "aval"
    ):
        return
    try:
        typeof(x)
    except TypeError:
        raise TypeError(
            f"function {name} returned a value of type {type(x)}, which is not a valid calque type:"
            " a jitted function returns arrays, numbers, and containers of them."
        ) from None


# ---------------------------------------------------------------- the user's function


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Any = None,
    dynamic: Any = "auto",
    on_stale: str | None = None,
    control_flow: str | None = None,
) -> Any:
    """Compile a function: it is traced on its first call with arguments of new types, and runs as
    machine code from then on.

    >>> import calque, calque.numpy as jnp
    >>> f = calque.jit(lambda x: 2 * x + 1)
    >>> f(jnp.arange(3.0))
    Array([1., 3., 5.], dtype=float32)

    `static_argnums` and `static_argnames` name arguments that are Python values while tracing: each
    value has its own program.

    Arrays of `donate_argnums` and `donate_argnames` are given away: results take their memory where
    they fit, and the arrays are deleted. `inline` leaves no call in an enclosing program.

    A second size of a dimension makes one program for every size. `dynamic` says so at once (`{"x":
    0}` or `{0: (0, 1)}`: argument, axes) or forbids it ("never"). What the function reads besides
    its arguments is a constant of the program; when it has changed, a call warns, and with
    `on_stale` "retrace" traces again, "error" raises, "ignore" does nothing.

    With `control_flow="convert"`, `if`, `while`, `for` and their kin work on traced values, as
    `convert` describes.
    """
    if compiler_options:
        raise NotImplementedError(
            f"jit: the native compiler has no options, got {compiler_options!r}"
        )
    if fun is None:
        return functools.partial(
            jit,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            dynamic=dynamic,
            on_stale=on_stale,
            control_flow=control_flow,
        )
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    fun = converted(fun, control_flow)
    static, static_names = resolve(fun, static_argnums, static_argnames, "static")
    donate, donate_names = resolve(fun, donate_argnums, donate_argnames, "donate")
    if set(static) & set(donate) or set(static_names) & set(donate_names):
        raise ValueError(
            f"static_argnums {static} and donate_argnums {donate} cannot intersect: a static value"
            " has no memory"
        )
    shardings = jit_shardings(in_shardings, out_shardings, device, backend)
    options = Options(
        static,
        static_names,
        donate,
        donate_names,
        keep_unused,
        inline,
        shardings,
        dynamic_sizes.checked(dynamic),
        captures.checked_policy(on_stale),
    )
    return _wrapped(fun, options)


def _wrapped(fun: Callable[..., Any], options: Options) -> Any:
    function = _Function(fun, options)
    wrapped = callpath.Jitted(function.miss)
    function.callable = wrapped
    functools.update_wrapper(wrapped, fun, updated=())
    wrapped.__wrapped__ = fun
    wrapped._function = function
    wrapped._options_key = function.options.key()
    return wrapped


def rewrapped(jitted: Any, fun: Callable[..., Any]) -> Any:
    """Another function, jitted as `jitted` is."""
    return _wrapped(fun, function_of(jitted).options)


def function_of(jitted: Any) -> _Function:
    """The Python side of what `jit` returned."""
    found = getattr(jitted, "_function", None)
    if not isinstance(found, _Function):
        raise TypeError(f"{jitted!r} is not a jitted function")
    return found


def clear_cache(jitted: Any) -> None:
    cache = function_of(jitted).cache
    cache.programs.clear()
    cache.families.clear()
    callpath.clear_entries(jitted)


_SAME = ("trace", "lower", "eval_shape")
_STAGES = {n: n for n in _SAME} | {"_cache_size": "cache_size", "__repr__": "jitted_repr"}
for _name, _stage in _STAGES.items():  # methods that few programs call
    setattr(callpath.Jitted, _name, lazy.function("calque.transforms.jit.stages", _stage))
callpath.Jitted.clear_cache = clear_cache


def clear_caches() -> None:
    """Forget every traced and compiled program of this process; the next call of each function
    traces again."""
    identity.clear()
    _epochs.clear()
    _generation[0] += 1
    _refresh_epoch_after_clear()


_generation = [0]


def _refresh_epoch_after_clear() -> None:
    """Entries that machine code still holds belong to older numbers, which are never used again."""
    _epochs[config.trace_key()] = _generation[0] * 1_000_000 + 1
    _refresh_epoch()
