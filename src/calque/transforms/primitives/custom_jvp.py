"""Functions with a derivative of their own: `custom_jvp` and the primitive `custom_jvp_call`.

While a program is recorded the function becomes an equation that holds its program and the Python
rule. Otherwise the function (or its rule) is simply called, so that Python control flow on concrete
values works inside it."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from calque.core import pytrees, reference, trace_state
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import JaxprTrace, eval_jaxpr, trace_to_jaxpr, typeof
from calque.core.tracebacks import boundary
from calque.ops.common import front
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch
from calque.transforms.engines.transpose import transpose_jaxpr
from calque.transforms.engines.trees import arrays, check_results, handed, name_of
from calque.transforms.engines.zeros import (
    add_tangents,
    instantiate,
    nonzero,
    only_nonzero,
    tangent_aval,
    zero_like,
)
from calque.transforms.primitives.call import close_over_tracers
from calque.transforms.primitives.flow import split, type_text
from calque.transforms.primitives.refs_arguments import without_refs

FlatCall = Callable[..., list[Any]]


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, as a custom rule with `symbolic_zeros=True`
    sees it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value, as rules with `symbolic_zeros` see it or as an array:
    `zero_from_primal(2.0) == 0.0`"""
    aval = tangent_aval(typeof(val))
    return SymbolicZero(aval) if symbolic_zeros else instantiate(Zero(aval))


def as_seen(t: Any, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent as the user's rule gets it."""
    if type(t) is Zero and symbolic_zeros:
        return SymbolicZero(t.aval)
    return handed(instantiate(t))


def as_meant(t: Any) -> Any:
    """What the user's rule returned, as rules inside calque know it."""
    return Zero(t.aval) if isinstance(t, SymbolicZero) else t


# ---------------------------------------------------------------- the primitive


class CustomCallPrimitive(AxisPrimitive):
    """A call whose parameter `call_jaxpr` is a program, or a Python function as long as nothing
    records it."""

    __slots__ = ()

    def bind(self, *args: Any, call_jaxpr: ClosedJaxpr | FlatCall, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        if trace.level == 0:
            return run_call(call_jaxpr, args)
        if isinstance(trace, JaxprTrace) and not isinstance(call_jaxpr, ClosedJaxpr):
            closed, consts = close_over_tracers(
                trace_to_jaxpr(call_jaxpr, [typeof(a) for a in args], params["name"])
            )
            params = {**params, "num_consts": params["num_consts"] + len(consts)}
            return trace.process(self, [*consts, *args], {"call_jaxpr": closed, **params})
        return trace.process(self, args, {"call_jaxpr": call_jaxpr, **params})


def run_call(call: ClosedJaxpr | FlatCall, args: Sequence[Any]) -> list[Any]:
    return (
        eval_jaxpr(call.jaxpr, call.consts, *args)
        if isinstance(call, ClosedJaxpr)
        else list(call(*args))
    )


def as_function(call: ClosedJaxpr | FlatCall) -> FlatCall:
    return lambda *args: run_call(call, args)


def call_meaning(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return reference.run(call_jaxpr, *args)


def call_shape(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call_jaxpr.out_avals


def call_transpose(cts: Sequence[Any], *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    """A custom rule says nothing of transposes: that of the program itself."""
    linear = tuple([type(x) is UndefinedPrimal for x in args])
    back, mask = transpose_jaxpr(call_jaxpr, linear, nonzero(cts))
    known = [x for x in args if type(x) is not UndefinedPrimal]
    outs = iter(eval_jaxpr(back.jaxpr, back.consts, *known, *only_nonzero(cts)))
    which = iter(mask)
    return [
        (next(outs) if next(which) else Zero(x.aval)) if lin else None
        for x, lin in zip(args, linear)
    ]


def batched_call(axis: Axis, call: ClosedJaxpr | FlatCall, dims: Sequence[Dim]) -> FlatCall:
    """The call over whole batches, with the batch dimension of every result first."""

    def batched(*args: Any) -> list[Any]:
        outs, found = batch(as_function(call), axis, args, dims)
        return [front(o, d, axis.size) for o, d in zip(outs, found)]

    return batched


def refuse_closures(name: str, tangents: Sequence[Any], kind: str) -> None:
    if any(type(t) is not Zero for t in tangents):
        raise TypeError(
            f"Detected differentiation of the {kind} function {name} with respect to a closed-over"
            " value, which its rule says nothing of. Pass the value as an argument, or use"
            " closure_convert."
        )


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call_jaxpr: Any,
    jvp: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    if not any(nonzero(tangents)):
        params = {
            "jvp": jvp,
            "num_consts": num_consts,
            "name": name,
            "symbolic_zeros": symbolic_zeros,
        }
        outs = custom_jvp_call_p.bind(*primals, call_jaxpr=call_jaxpr, **params)
        return outs, [zero_like(o) for o in outs]
    refuse_closures(name, tangents[:num_consts], "custom_jvp")
    return jvp(primals[num_consts:], tangents[num_consts:])


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    call_jaxpr: Any,
    jvp: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    outs = custom_jvp_call_p.bind(
        *args,
        call_jaxpr=batched_call(axis, call_jaxpr, dims),
        jvp=_BatchedRule(axis, jvp, tuple(dims[num_consts:])),
        num_consts=num_consts,
        name=name,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, [0] * len(outs)


class _BatchedRule:
    """A jvp rule over whole batches."""

    def __init__(self, axis: Axis, rule: Any, dims: tuple[Dim, ...]):
        self.axis, self.rule, self.dims = axis, rule, dims
        self.__name__ = name_of(rule)

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        n, size = len(primals), self.axis.size
        mask = nonzero(tangents)
        zeros: list[Any] = []

        def both(*args: Any) -> list[Any]:
            given = iter(args[n:])
            ts = [next(given) if m else zero_like(x) for m, x in zip(mask, args)]
            outs, out_tangents = self.rule(args[:n], ts)
            zeros[:] = [type(t) is Zero for t in out_tangents]
            return [*outs, *only_nonzero(out_tangents)]

        dims = [*self.dims, *(d for d, m in zip(self.dims, mask) if m)]
        found, found_dims = batch(both, self.axis, [*primals, *only_nonzero(tangents)], dims)
        found = [front(x, d, size) for x, d in zip(found, found_dims)]
        outs, rest = split(found, len(zeros))
        ts = iter(rest)
        return outs, [zero_like(o) if z else next(ts) for o, z in zip(outs, zeros)]


custom_jvp_call_p = CustomCallPrimitive(
    "custom_jvp_call",
    meaning=call_meaning,
    shape=call_shape,
    jvp=_jvp,
    transpose=call_transpose,
    batch=_batch,
    multiple_results=True,
    hidden=("num_consts",),
)


# ---------------------------------------------------------------- arguments


def positional(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments by position, defaults included: rules take them by position."""
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        if kwargs:
            raise TypeError(
                f"{name_of(fun)} has no signature: call it with positional arguments only"
            ) from None
        return tuple(args)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"The following keyword arguments of {name_of(fun)} could not be resolved to positions:"
            f" {', '.join(bound.kwargs)}"
        )
    return bound.args


def nondiff_positions(
    fun: Callable[..., Any], argnums: Sequence[int] | int, argnames: Sequence[str] | str
) -> tuple[int, ...]:
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if names:
        order = list(inspect.signature(fun).parameters)
        nums += tuple(order.index(n) for n in names)
    return tuple(sorted(set(nums)))


class Arguments:
    """The arguments of one call of a custom function: fixed ones, and the leaves of the others."""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff: Sequence[int],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ):
        self.fun = fun
        full = positional(fun, args, kwargs)
        n = len(full)
        where = {i % n for i in nondiff if -n <= i < n}
        self.fixed = {i: full[i] for i in sorted(where)}
        self.size = n
        dynamic = tuple(a for i, a in enumerate(full) if i not in where)
        self.dynamic, self._restore = without_refs(dynamic, name_of(fun))
        leaves, self.tree = pytrees.flatten(self.dynamic)
        self.leaves = arrays(leaves, f"the custom function {name_of(fun)}", fun, self.dynamic, {})
        self.out_tree = pytrees.LEAF

    def merged(self, dynamic: Sequence[Any]) -> list[Any]:
        """All arguments in order."""
        rest = iter(dynamic if self._restore is None else self._restore(tuple(dynamic)))
        return [self.fixed[i] if i in self.fixed else next(rest) for i in range(self.size)]

    def call(self, *leaves: Any) -> list[Any]:
        """The function itself, of leaves."""
        out = self.fun(*self.merged(pytrees.unflatten(self.tree, leaves)))
        flat, self.out_tree = pytrees.flatten(out)
        return check_results(flat, out, self.fun)


# ---------------------------------------------------------------- for users


class custom_jvp:
    """A function whose derivative is given by a rule.

    >>> @calque.custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), jnp.cos(x) * t

    Reverse mode follows from the rule, which must be linear in the tangents."""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """The rule: `jvp(*nondiff_args, primals, tangents)` gives (out, tangent_out)."""
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """One rule for each argument: `jvps[i](t, out, *primals)` is the part of the tangent that
        comes from argument i."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = self(*primals)
            parts = [j(t, out, *primals) for j, t in zip(jvps, tangents) if j is not None]
            if not parts:
                return out, pytrees.tree_map(lambda o: instantiate(zero_like(o)), out)
            return out, functools.reduce(lambda a, b: pytrees.tree_map(_added, a, b), parts)

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name_of(self.fun)} using defjvp."
            )
        given = Arguments(self.fun, self.nondiff_argnums, args, kwargs)
        rule = _Rule(given, self.jvp, self.symbolic_zeros)
        outs = custom_jvp_call_p.bind(
            *given.leaves,
            call_jaxpr=given.call,
            jvp=rule,
            num_consts=0,
            name=name_of(self.fun),
            symbolic_zeros=self.symbolic_zeros,
        )
        return pytrees.unflatten(given.out_tree, outs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _added(a: Any, b: Any) -> Any:
    if typeof(a).shape != typeof(b).shape:
        raise TypeError(
            "the rules given to defjvps return tangents of different types:"
            f" {typeof(a).str_short()} and {typeof(b).str_short()}"
        )
    return add_tangents(a, b)


class _Rule:
    """The user's jvp rule as a function of leaves."""

    def __init__(self, given: Arguments, rule: Callable[..., Any], symbolic_zeros: bool):
        self.given, self.rule, self.symbolic_zeros = given, rule, symbolic_zeros
        self.__name__ = name_of(rule)

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        given = self.given
        ts = [as_seen(t, self.symbolic_zeros) for t in tangents]

        def unflat(leaves: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(pytrees.unflatten(given.tree, leaves))

        pair = self.rule(*given.fixed.values(), unflat(list(map(handed, primals))), unflat(ts))
        name = name_of(given.fun)
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {name} must produce a pair (list or"
                f" tuple of length two) representing primal and tangent outputs, but got {pair}."
            )
        outs, out_tree = pytrees.flatten(pair[0])
        out_ts, ts_tree = pytrees.flatten(pair[1])
        found = check_results([*outs, *map(as_meant, out_ts)], pair, self.rule)
        if out_tree != ts_tree:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {name} must produce primal and"
                f" tangent outputs with equal container (pytree) structures, but got {out_tree} and"
                f" {ts_tree} respectively."
            )
        given.out_tree = out_tree
        outs, tangents_out = split(found, len(outs))
        return outs, [self.checked(o, t, i) for i, (o, t) in enumerate(zip(outs, tangents_out))]

    def checked(self, out: Any, t: Any, i: int) -> Any:
        aval = typeof(out)
        expected, got = tangent_aval(aval), t.aval if type(t) is Zero else typeof(t)
        if got.shape != expected.shape or got.dtype != expected.dtype:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {name_of(self.given.fun)} must"
                " produce primal and tangent outputs with corresponding shapes and dtypes."
                f" Expected {type_text(expected)} (tangent type of {type_text(aval)}) but got"
                f" {type_text(got)} at output {i}."
            )
        return Zero(expected) if expected is not aval else t
