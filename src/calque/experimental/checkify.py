"""Checks inside compiled programs: `checkify` turns failures into values that come out beside the
result.

The program is interpreted equation by equation. Every check becomes a flag with the values of its
message; calls, branches and loops become ones that return the flags of their programs as well."""

from __future__ import annotations

import functools
import itertools
import string
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

import calque.numpy as jnp
from calque.core import guards as _guards
from calque.core import pytrees
from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_inexact
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Var, subjaxprs
from calque.core.primitives import Primitive
from calque.core.source import at as source_at
from calque.core.trace import literal_value, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.experimental.failures import (
    DivisionByZeroError,
    Error,
    ErrorCategory,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    Kinds,
    NaNError,
    OOBError,
    Out,
    Outcome,
    Site,
    all_checks,
    automatic_checks,
    check_error,
    check_p,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    payload_at_failure,
    user_checks,
)
from calque.transforms.devices.shard_map_equation import call as shard_map_call
from calque.transforms.devices.shard_map_equation import manual_names, region
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.engines.axes import PlacingPrimitive
from calque.transforms.engines.trees import FlatFunction, name_of, wrapping
from calque.transforms.engines.zeros import zero_like
from calque.transforms.functions.callbacks import is_value
from calque.transforms.primitives.custom_vjp import ForwardResult
from calque.transforms.primitives.flow import split

if TYPE_CHECKING:
    from calque.core.generics import P, R

__all__ = [
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxException",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "Out",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "check_p",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]


class _Formats(string.Formatter):
    """Looks for the values of a format, and does not print them."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fails when a condition is false: at once, or as an error of the `checkify` around.

    Args:
        pred: One boolean.
        msg: The message, a format string for the other arguments.
        *fmt_args: Values for its places: arrays and numbers.
        debug: Whether there is no check unless there is a `checkify` around.
        **fmt_kwargs: Values for its places, by name.

    >>> from calque.experimental import checkify
    >>> x = 1.0
    >>> checkify.check(x > 0, "x must be positive, got {x}", x=x)"""
    aval = typeof(pred)
    if aval.shape != () or aval.dtype != np.dtype(bool):
        name = "debug_check" if debug else "check"
        raise TypeError(
            f"{name} takes a scalar pred as argument, got {aval.str_short()}: use"
            " jnp.all(...) where all are to hold"
        )
    leaves, tree = pytrees.flatten((fmt_args, fmt_kwargs))
    try:
        payload = [to_array(x) if not isinstance(x, Tracer) else x for x in leaves]
    except TypeError as e:
        raise TypeError(
            f"Formatting arguments to checkify.check need to be arrays or trees of arrays: {e}"
        ) from None
    _Formats().vformat(msg, fmt_args, fmt_kwargs)  # a format without its values is refused now
    check_p.bind(
        to_array(pred) if isinstance(pred, (bool, np.generic)) else pred,
        *payload,
        site=Site(msg, tree, " (`check` failed)"),
        debug=bool(debug),
    )


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Fails as `check` does, inside a `checkify` only: without one it does nothing.

    Args:
        pred: One boolean.
        msg: The message, a format string for the other arguments.
        *fmt_args: Values for its places: arrays and numbers.
        **fmt_kwargs: Values for its places, by name.

    >>> from calque.experimental import checkify
    >>> checkify.debug_check(False, "nobody looks")
    >>> checkify.checkify(lambda: checkify.debug_check(False, "seen"))()[0].get()
    'seen (`check` failed)'"""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


# ---------------------------------------------------------------- automatic checks


def _no_payload(text: str) -> Site:
    return Site(text, pytrees.structure(((), {})))


def _index_found(columns: dict[int, Any], sizes: Sequence[int], shape: tuple[int, ...]) -> Outcome:
    """Whether any index is below zero or too large for a window of these sizes. `columns` are the
    indices of each axis; what is said is the first one of the first place."""
    axes = np.asarray(list(columns), np.int32)
    places = jnp.stack(jnp.broadcast_arrays(*columns.values()), -1).reshape(-1, len(columns))
    bounds = np.asarray([shape[a] - sizes[a] for a in columns], places.dtype)
    bad = jnp.ravel((places < 0) | (places > bounds))
    text = (
        f"out-of-bounds indexing for array of shape {shape}: index {{}} is out of bounds for axis"
        " {} with size {}. "
    )
    site = Site(text, pytrees.structure(((0, 0, 0), {})))
    if not typeof(bad).size:
        return Outcome(site, bad.any(), (jnp.zeros((), np.int32),) * 3)
    first = jnp.argmax(bad)
    axis = jnp.asarray(axes)[first % len(axes)]
    return Outcome(site, bad.any(), (places.ravel()[first], axis, jnp.asarray(shape)[axis]))


def _index_checks(e: Eqn, args: Sequence[Any]) -> list[Outcome]:
    name = e.primitive.name
    shape = typeof(args[0]).shape if args else ()
    if name in ("dynamic_slice", "dynamic_update_slice"):
        sizes = e.params["slice_sizes"] if name == "dynamic_slice" else typeof(args[1]).shape
        starts = args[1:] if name == "dynamic_slice" else args[2:]
        columns = dict(enumerate(starts))
    elif name == "gather" or name.startswith("scatter"):
        numbers = e.params["dimension_numbers"]
        axes = numbers.start_index_map if name == "gather" else numbers.scatter_dims_to_operand_dims
        sizes = (
            e.params["slice_sizes"]
            if name == "gather"
            else _window(numbers, shape, typeof(args[2]).shape)
        )
        columns = {axis: args[1][..., k] for k, axis in enumerate(axes)}
    else:
        return []
    return [_index_found(columns, sizes, shape)] if columns else []


def _window(numbers: Any, shape: tuple[int, ...], updates: tuple[int, ...]) -> list[int]:
    """The size of the window that a scatter writes, for each dimension of the operand."""
    single = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    given = iter(numbers.update_window_dims)
    return [1 if d in single else updates[next(given)] for d in range(len(shape))]


def _automatic(e: Eqn, args: Sequence[Any], outs: Sequence[Any], kinds: Kinds) -> list[Outcome]:
    found: list[Outcome] = []
    if OOBError in kinds:
        found += _index_checks(e, args)
    if DivisionByZeroError in kinds and e.primitive.name == "div":
        found.append(Outcome(_no_payload("division by zero"), jnp.any(args[1] == 0), ()))
    if NaNError in kinds and not isinstance(e.primitive, PlacingPrimitive):
        site = _no_payload(f"nan generated by primitive: {e.primitive.name}.")
        found += [Outcome(site, jnp.any(jnp.isnan(o)), ()) for o in outs if _may_be_nan(typeof(o))]
    return found


def _may_be_nan(aval: ShapedArray) -> bool:
    return isinstance(aval.dtype, np.dtype) and is_inexact(aval.dtype)


# ---------------------------------------------------------------- interpretation

Result = tuple[list[Any], list[Outcome]]


def _interpret(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], kinds: Kinds) -> Result:
    """The results of a program, and all its checks."""
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(a: Any) -> Any:
        return env[a] if isinstance(a, Var) else literal_value(a)

    found: list[Outcome] = []
    with source_at(None) as place:
        for e in jaxpr.eqns:
            place.source = e.source
            outs, new = _equation(e, [read(a) for a in e.invars], kinds)
            found += new
            env.update(zip(e.outvars, outs))
    return [read(a) for a in jaxpr.outvars], found


def _equation(e: Eqn, args: list[Any], kinds: Kinds) -> Result:
    if e.primitive is check_p:
        if FailedCheckError not in kinds:
            return [], []
        failed, payload = payload_at_failure(args[0], args[1:])
        return [], [Outcome(e.params["site"], failed, payload)]
    if any(True for _ in subjaxprs(e.params)) and _has_checks(e.params, kinds):
        rule = _RULES.get(e.primitive.name)
        if rule is not None:
            return rule(e.primitive, args, kinds, **e.params)
        if _has_checks(e.params, kinds & user_checks):
            raise NotImplementedError(
                f"checkify finds checks inside the primitive {e.primitive.name}, where it cannot"
                " look"
            )
    out = e.primitive.bind(*args, **e.params)
    outs = list(out) if e.primitive.multiple_results else [out]
    return outs, _automatic(e, args, outs, kinds)


def _has_checks(params: dict[str, Any], kinds: Kinds) -> bool:
    """Whether there is anything to look at in the programs of an equation."""
    todo = list(subjaxprs(params))
    while todo:
        for e in todo.pop().eqns:
            if (e.primitive is check_p and FailedCheckError in kinds) or kinds & automatic_checks:
                return True
            todo += subjaxprs(e.params)
    return False


class _Staged(NamedTuple):
    """A program that returns its flags and payloads after its results."""

    closed: ClosedJaxpr
    outs: int
    sites: list[tuple[Site, int]]

    def found(self, flat: Sequence[Any]) -> list[Outcome]:
        values = iter(flat)
        return [Outcome(s, next(values), tuple(itertools.islice(values, n))) for s, n in self.sites]

    def avals(self) -> list[ShapedArray]:
        return self.closed.out_avals[self.outs :]


def _flat(found: Sequence[Outcome]) -> list[Any]:
    return [x for f in found for x in (f.failed, *f.payload)]


def _stage(closed: ClosedJaxpr, kinds: Kinds) -> _Staged:
    sites: list[tuple[Site, int]] = []

    def fun(*args: Any) -> list[Any]:
        outs, found = _interpret(closed.jaxpr, closed.consts, args, kinds)
        sites[:] = [(f.site, len(f.payload)) for f in found]
        return [*outs, *_flat(found)]

    return _Staged(
        trace_to_jaxpr(fun, closed.in_avals, "checkify"), len(closed.jaxpr.outvars), sites
    )


def _jit(
    p: Primitive, args: Sequence[Any], kinds: Kinds, *, jaxpr: ClosedJaxpr, **params: Any
) -> Result:
    inner = _stage(jaxpr, kinds)
    params = {k: v for k, v in params.items() if k != "donated_invars"}
    outs = p.bind(*args, jaxpr=inner.closed, **params)
    return outs[: inner.outs], inner.found(outs[inner.outs :])


def _with_own_rule(option: str, wrapped: Any) -> Callable[..., Result]:
    """Of a function with a derivative of its own, which it keeps: what it computes is checked, and
    its rule, the parameter `option`, is not looked into."""

    def checked(
        p: Primitive, args: Sequence[Any], kinds: Kinds, *, call_jaxpr: ClosedJaxpr, **rest: Any
    ) -> Result:
        inner = _stage(call_jaxpr, kinds)
        rule = wrapped(rest.pop(option), inner.avals())
        outs = p.bind(*args, call_jaxpr=inner.closed, **{option: rule}, **rest)
        return outs[: inner.outs], [] if rule.was_asked else inner.found(outs[inner.outs :])

    return checked


class _JvpWithout:
    """A jvp rule that says of the checks of its function that none failed. Where it was asked, it
    gave the results, and nothing was checked."""

    def __init__(self, rule: Any, avals: Sequence[ShapedArray]) -> None:
        self.rule, self.avals = rule, avals
        self.__name__ = name_of(rule)
        self.was_asked = False

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        self.was_asked = True
        outs, found = self.rule(primals, tangents)
        flags = _zeros(self.avals)
        return [*outs, *flags], [*found, *map(zero_like, flags)]


class _ForwardWithout:
    """A forward rule that does as `_JvpWithout` does."""

    def __init__(self, rule: Any, avals: Sequence[ShapedArray]) -> None:
        self.rule, self.avals = rule, avals
        self.__name__ = name_of(rule)
        self.was_asked = False

    def __call__(self, primals: Sequence[Any], active: Sequence[bool]) -> ForwardResult:
        self.was_asked = True
        found: ForwardResult = self.rule(primals, active)
        n = len(found.outs)

        def backward(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return found.backward(residuals, cts[:n])

        return ForwardResult([*found.outs, *_zeros(self.avals)], found.residuals, backward)


def _inlined(p: Primitive, args: Sequence[Any], kinds: Kinds, **params: Any) -> Result:
    """Calls with rules of their own: their programs stand in their place, derivatives are those of
    the checked program."""
    program = next(params[k] for k in ("jaxpr", "call_jaxpr", "call") if k in params)
    if isinstance(program, ClosedJaxpr):
        return _interpret(program.jaxpr, program.consts, args, kinds)
    return _interpret(
        program, args[: len(program.constvars)], args[len(program.constvars) :], kinds
    )


def _zeros(avals: Sequence[ShapedArray]) -> list[Any]:
    return [jnp.zeros(a.shape, a.dtype) for a in avals]


def _cond(
    p: Primitive, args: Sequence[Any], kinds: Kinds, *, branches: Sequence[ClosedJaxpr]
) -> Result:
    inner = [_stage(b, kinds) for b in branches]
    widened = []
    for k, s in enumerate(inner):

        def fun(*xs: Any, k: int = k, s: _Staged = s) -> list[Any]:
            outs, flags = split(_run(s.closed, xs), s.outs)
            return [
                *outs,
                *(x for j, t in enumerate(inner) for x in (flags if j == k else _zeros(t.avals()))),
            ]

        widened.append(trace_to_jaxpr(fun, s.closed.in_avals, "checkify"))
    outs, flat = split(p.bind(*args, branches=tuple(widened)), inner[0].outs)
    parts = split(flat, *[len(s.avals()) for s in inner])
    return outs, [f for s, part in zip(inner, parts) for f in s.found(part)]


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return _interpret(closed.jaxpr, closed.consts, args, frozenset())[0]


def _any_failed(found: Sequence[Outcome]) -> Any:
    return functools.reduce(jnp.logical_or, [f.failed for f in found], jnp.zeros((), bool))


def _unless(before: Any, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Flags of a loop: those of the first round in which anything failed."""
    return [jnp.where(before, a, b) for a, b in zip(old, new, strict=True)]


def _scan(
    p: Primitive,
    args: Sequence[Any],
    kinds: Kinds,
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Result:
    inner = _stage(jaxpr, kinds)
    flags = _zeros(inner.avals())
    consts, init, xs = split(args, num_consts, num_carry)

    def body(*values: Any) -> list[Any]:
        consts, carry, old, row = split(values, num_consts, num_carry, len(flags))
        carry, ys, new = split(
            _run(inner.closed, [*consts, *carry, *row]), num_carry, inner.outs - num_carry
        )
        return [*carry, *_unless(_any_failed(inner.found(old)), old, new), *ys]

    a_consts, a_carry, a_rows = split(jaxpr.in_avals, num_consts, num_carry)
    closed = trace_to_jaxpr(body, [*a_consts, *a_carry, *inner.avals(), *a_rows], "checkify")
    outs = p.bind(
        *consts,
        *init,
        *flags,
        *xs,
        jaxpr=closed,
        num_carry=num_carry + len(flags),
        num_consts=num_consts,
        **params,
    )
    carry, found, ys = split(outs, num_carry, len(flags))
    return [*carry, *ys], inner.found(found)


def _while(
    p: Primitive,
    args: Sequence[Any],
    kinds: Kinds,
    *,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
) -> Result:
    if cond_jaxpr.out_avals[0].shape:
        raise NotImplementedError(
            "checkify of vmap of a while_loop whose lanes stop one by one: put the vmap outside,"
            " vmap(checkify(f))"
        )
    cond_consts, body_consts, init = split(args, cond_nconsts, body_nconsts)
    test, inner = _stage(cond_jaxpr, kinds), _stage(body_jaxpr, kinds)
    flags = _zeros(inner.avals())

    def cond(*values: Any) -> list[Any]:
        return [values[0]]

    def body(
        *values: Any,
    ) -> list[
        Any
    ]:  # the condition of the next round is part of the round: its checks have a place then
        tests, consts, _, carry, old, old_test = split(
            values, cond_nconsts, body_nconsts, 1, len(init), len(flags)
        )
        carry, new = split(_run(inner.closed, [*consts, *carry]), len(init))
        going, new_test = split(_run(test.closed, [*tests, *carry]), 1)
        before = _any_failed([*inner.found(old), *test.found(old_test)])
        kept = _unless(before, old, new)
        before = before | _any_failed(inner.found(kept))
        return [*going, *carry, *kept, *_unless(before, old_test, new_test)]

    first = _run(test.closed, [*cond_consts, *init])
    state = [first[0], *init, *flags, *first[1:]]
    avals = [typeof(x) for x in (*cond_consts, *body_consts)]
    carried = [*cond_jaxpr.out_avals, *body_jaxpr.out_avals, *inner.avals(), *test.avals()]
    outs = p.bind(
        *[*cond_consts, *body_consts, *state],
        cond_jaxpr=trace_to_jaxpr(cond, carried, "checkify"),
        cond_nconsts=0,
        body_jaxpr=trace_to_jaxpr(body, [*avals, *carried], "checkify"),
        body_nconsts=cond_nconsts + body_nconsts,
    )
    _, carry, found, found_test = split(outs, 1, len(init), len(flags))
    return carry, [*test.found(found_test), *inner.found(found)]


def _shard_map(
    p: Primitive,
    args: Sequence[Any],
    kinds: Kinds,
    *,
    jaxpr: ClosedJaxpr,
    out_specs: Sequence[PartitionSpec],
    **params: Any,
) -> Result:
    """Each member has flags of its own, which are joined along one dimension."""
    with region(params):
        inner = _stage(jaxpr, kinds)
        closed = trace_to_jaxpr(
            lambda *xs: _with_rows(_run(inner.closed, xs), inner.outs),
            inner.closed.in_avals,
            "checkify",
        )
    rows = PartitionSpec(manual_names(params))
    specs = (*out_specs, *[rows] * len(inner.avals()))
    given = params.pop("in_specs")
    outs = shard_map_call(closed, args, given, specs, params)
    return outs[: inner.outs], inner.found(outs[inner.outs :])


def _with_rows(values: Sequence[Any], outs: int) -> list[Any]:
    """The results of a program, and what was found with a dimension in front."""
    return [*values[:outs], *[jnp.expand_dims(x, 0) for x in values[outs:]]]


_RULES: Final[dict[str, Callable[..., Result]]] = {
    "jit": _jit,
    "cond": _cond,
    "scan": _scan,
    "while": _while,
    "shard_map": _shard_map,
    **dict.fromkeys(
        ("closed_call", "call", "remat2", "custom_vmap_call", "custom_partitioning"),
        _inlined,
    ),
    "custom_jvp_call": _with_own_rule("jvp", _JvpWithout),
    "custom_vjp_call": _with_own_rule("fwd", _ForwardWithout),
}

# ---------------------------------------------------------------- for users


def checkify(f: Callable[P, R], errors: Kinds = user_checks) -> Callable[P, tuple[Error, R]]:
    """Makes a function that returns what its checks have found beside its result.

    Args:
        f: The function.
        errors: Which checks are made: `user_checks`, `nan_checks`, `index_checks`, `div_checks`,
            `float_checks`, `automatic_checks`, `all_checks`, or a union of them.

    Returns:
        A function of the same arguments that returns (error, result).

    >>> from calque.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "x must be positive, got {x}", x=x)
    ...     return jnp.log(x)
    >>> error, y = jax.jit(checkify.checkify(f))(-1.0)
    >>> error.get()
    'x must be positive, got -1.0 (`check` failed)'"""
    if not callable(f):
        raise TypeError(f"checkify takes a function, got {f!r}")
    kinds = frozenset(errors)
    if kinds - all_checks:
        raise ValueError(
            f"checkify: errors must be a union of the sets of checks of this module, got {errors}"
        )

    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, tree = pytrees.flatten((args, kwargs))
        # truth values and what is no array are handed to the function as they are
        fixed = {i: x for i, x in enumerate(leaves) if isinstance(x, bool) or not is_value(x)}
        rest = [i for i in range(len(leaves)) if i not in fixed]

        def call(*given: Any) -> Any:
            full = fixed | dict(zip(rest, given))
            inner_args, inner_kwargs = pytrees.unflatten(tree, [full[i] for i in sorted(full)])
            return f(*inner_args, **inner_kwargs)

        values = [to_array(leaves[i]) for i in rest]
        flat = FlatFunction(call, pytrees.structure((tuple(rest), {})), "checkify")
        closed = trace_to_jaxpr(flat, [typeof(x) for x in values], name_of(f))
        outs, found = _interpret(closed.jaxpr, closed.consts, values, kinds)
        return Error(found), pytrees.unflatten(flat.out_tree, outs)

    return wrapping(checked, f)


_guards.guard_public(globals())
