"""Rematerialisation: `checkpoint` keeps little of a function for the backward pass and computes the
rest again.

The primitive is JAX's `remat2`. When it is linearised, the known part runs in place and keeps what
the policy allows; the tape gets one equation that holds the recomputation and the linear program
together."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

from calque.core import pytrees
from calque.core.jaxprs import ClosedJaxpr, Eqn, Var
from calque.core.primitives import Primitive, Zero
from calque.core.source import Source
from calque.core.trace import JaxprTrace, JaxprTracer, eval_jaxpr, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer, recording
from calque.core.tracebacks import boundary
from calque.ops.found_sizes import let_size_p
from calque.transforms.engines.linear import Linearized, linearize, linearize_jaxpr
from calque.transforms.engines.signatures import ArgumentNames, resolve
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.trees import FlatFunction, arrays, name_of
from calque.transforms.engines.zeros import has_tangent, nonzero, only_nonzero, with_zeros
from calque.transforms.primitives.call import CallPrimitive, close_over_tracers, inline_calls
from calque.transforms.primitives.flow import split
from calque.transforms.primitives.refs_arguments import discharged_call

Policy = Callable[..., Any]

# -------------------------------------------------------------- policies: which results may be kept


class _Answer:
    """What a policy may return in place of True and False."""

    def __init__(self, name: str, keep: bool):
        self.name, self.keep = name, keep

    def __bool__(self) -> bool:
        return self.keep

    def __repr__(self) -> str:
        return self.name


Saveable, Recompute = _Answer("Saveable", True), _Answer("Recompute", False)


class Offloadable(NamedTuple):
    """The answer of a policy that keeps a value in another memory. There is one memory: the value
    is kept."""

    src: str
    dst: str


def everything_saveable(prim: Any, *avals: Any, **params: Any) -> bool:
    """Keep every value: as if there were no checkpoint."""
    return True


def nothing_saveable(prim: Any, *avals: Any, **params: Any) -> bool:
    """Keep nothing but the arguments. The default."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Keep the results of matrix products."""

    only_if_no_batch_dims: bool

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        if prim.name != "dot_general":
            return prim.name == "conv_general_dilated" and not self.only_if_no_batch_dims
        _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not self.only_if_no_batch_dims or not (lhs_batch or rhs_batch)


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Keep the values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return prim.name == "name" and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Keep the values that `checkpoint_name` named, except for these names."""

    names_not_to_save: frozenset[str]

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return prim.name == "name" and params["name"] not in self.names_not_to_save


@dataclass(frozen=True)
class SaveAnythingExceptTheseNames:
    """Keep every value except for those with these names."""

    names_not_to_save: frozenset[str]

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return not (prim.name == "name" and params["name"] in self.names_not_to_save)


@dataclass(frozen=True)
class SaveFromBothPolicies:
    """Keep what either policy keeps."""

    policy1: Policy
    policy2: Policy

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return bool(self.policy1(prim, *avals, **params) or self.policy2(prim, *avals, **params))


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    return SaveAnyNamesButThese(frozenset(names_not_to_save))


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    return SaveAnythingExceptTheseNames(frozenset(names_not_to_save))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep values with these names. There is one memory here, so what may be offloaded is kept as
    well."""
    return SaveOnlyTheseNames(
        frozenset(names_which_can_be_saved) | frozenset(names_which_can_be_offloaded)
    )


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep matrix products without batch dimensions. There is one memory here: nothing is moved."""
    return DotsSaveable(True)


checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=DotsSaveable(False),
    checkpoint_dots=DotsSaveable(False),
    dots_with_no_batch_dims_saveable=DotsSaveable(True),
    checkpoint_dots_with_no_batch_dims=DotsSaveable(True),
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=SaveFromBothPolicies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)


# ---------------------------------------------------------------- names


def _name_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> Any:
    (t,) = tangents
    return name_p.bind(*primals, name=name), (t if type(t) is Zero else name_p.bind(t, name=name))


name_p: Primitive = Primitive(
    "name",
    meaning=lambda x, *, name: x,
    shape=lambda x, *, name: x,
    jvp=_name_jvp,
    transpose=lambda ct, x, *, name: [ct],
    batch=lambda args, dims, *, name: (name_p.bind(args[0], name=name), dims[0]),
)


def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, under a name that policies of `checkpoint` can speak of."""
    return pytrees.tree_map(lambda v: name_p.bind(v, name=name), x)


# ---------------------------------------------------------------- the primitive


class _Split(NamedTuple):
    """A function split for rematerialisation."""

    known: ClosedJaxpr  # arguments -> results, saved values
    again: ClosedJaxpr  # the arguments and saved values in `reads`, tangents -> tangents of results
    reads: tuple[bool, ...]
    nonzeros: tuple[bool, ...]


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    policy: Policy | None,
    **params: Any,
) -> Any:
    parts = _split(jaxpr, nonzero(tangents), policy)
    params = {**params, "policy": policy}
    if any(
        isinstance(x, Tracer) for x in primals
    ):  # a derivative of this derivative shall keep as little
        found = remat_p.call(parts.known, primals, params)
    else:
        found = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *primals)
    outs, saved = split(found, len(parts.nonzeros))
    return outs, _tangents_again(
        remat_p, parts, [*primals, *saved], tangents, jaxpr, {**params, "differentiated": True}
    )


def recomputed_tangents(
    primitive: CallPrimitive, primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr
) -> list[Any]:
    """Tangents of the results of a call, by a call of this primitive that reads its operands alone
    and computes the rest again."""
    return _tangents_again(
        primitive, _split(jaxpr, nonzero(tangents), None), primals, tangents, jaxpr, {}
    )


def _tangents_again(
    primitive: CallPrimitive,
    parts: _Split,
    known: Sequence[Any],
    tangents: Sequence[Any],
    jaxpr: ClosedJaxpr,
    params: dict[str, Any],
) -> list[Any]:
    if not any(parts.nonzeros):
        return with_zeros([], parts.nonzeros, jaxpr.out_avals)
    given = [x for x, r in zip(known, parts.reads, strict=True) if r]
    found = primitive.call(parts.again, [*given, *only_nonzero(tangents)], params)
    return with_zeros(found, parts.nonzeros, jaxpr.out_avals)


def _split(closed: ClosedJaxpr, active: tuple[bool, ...], policy: Policy | None) -> _Split:
    key = ("remat", active, policy)
    if key not in closed.cache:
        closed.cache[key] = _splitted(closed, active, policy or nothing_saveable)
    return closed.cache[key]


def _splitted(closed: ClosedJaxpr, active: tuple[bool, ...], policy: Policy) -> _Split:
    lin = linearize_jaxpr(inline_calls(closed), active)
    n = len(lin.nonzeros)
    j = lin.primal.jaxpr
    places: dict[str, Sequence[Any]] = {"in": j.invars, "out": j.outvars, "new": j.outvars[n:]}
    residuals = [places[kind][i] for kind, i in lin.sources]
    eqns, saved = _recomputed(j.eqns, residuals, j.invars, policy)
    known = ClosedJaxpr(
        without_dead_code(j.replace(outvars=[*j.outvars[:n], *saved])), lin.primal.consts
    )
    again = j.replace(invars=[*j.invars, *saved], eqns=eqns, outvars=residuals)
    body = _with_recomputation(ClosedJaxpr(again, lin.primal.consts), lin)
    n_first = len(again.invars)
    reads = used_inputs(body.jaxpr)[:n_first]
    kept = [v for v, r in zip(body.jaxpr.invars, reads) if r] + body.jaxpr.invars[n_first:]
    return _Split(
        known, ClosedJaxpr(body.jaxpr.replace(invars=kept), body.consts), tuple(reads), lin.nonzeros
    )


def _recomputed(
    eqns: Sequence[Eqn], residuals: Sequence[Any], invars: Sequence[Var], policy: Policy
) -> tuple[list[Eqn], list[Var]]:
    """The equations to run again for the residuals, and the values that are kept instead."""
    live = {a for a in residuals if isinstance(a, Var)}
    kept: list[Eqn] = []
    saved: list[Var] = []
    for e in reversed(eqns):
        wanted = [v for v in e.outvars if v in live]
        if e.primitive is let_size_p and kept:  # sizes in the types of what follows
            kept.append(e)
            live.update(a for a in e.invars if isinstance(a, Var))
        if not wanted:
            continue
        if policy(e.primitive, *(a.aval for a in e.invars), **e.params):
            saved += [v for v in wanted if v not in saved]
        else:
            kept.append(e)
            live.update(a for a in e.invars if isinstance(a, Var))
    kept.reverse()
    saved.reverse()
    return kept, saved


def _with_recomputation(again: ClosedJaxpr, lin: Linearized) -> ClosedJaxpr:
    n = len(again.jaxpr.invars)

    def body(*args: Any) -> list[Any]:
        residuals = eval_jaxpr(again.jaxpr, again.consts, *args[:n])
        return eval_jaxpr(lin.linear.jaxpr, lin.linear.consts, *residuals, *args[n:])

    tangents = lin.linear.in_avals[len(lin.sources) :]
    return trace_to_jaxpr(body, [*again.in_avals, *tangents], "remat")


remat_p = CallPrimitive("remat2")
remat_p.linearize = _linearize
dead_code_rules["remat2"] = dead_code_rules["jit"]
dependence_rules["remat2"] = lambda e, unknown: dependent_results(e.params["jaxpr"], tuple(unknown))


# ---------------------------------------------------------------- for users


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] | None = None,
    concrete: bool = False,
) -> Callable[..., Any]:
    """`fun`, of which the backward pass computes again what it needs; `policy` says which values
    may be kept.

    >>> f = calque.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> calque.grad(f)(2.0) == calque.grad(lambda x: jnp.sin(jnp.sin(x)))(2.0)
    Array(True, dtype=bool, weak_type=True)"""
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    if concrete:
        raise NotImplementedError(
            "The 'concrete' option to checkpoint is deprecated: make arguments static with"
            " static_argnums instead."
        )
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    nums, names = resolve(fun, static_argnums or None, static_argnames, "static")

    @functools.wraps(fun)
    @boundary
    def fun_remat(*args: Any, **kwargs: Any) -> Any:
        fixed = {i: args[i] for i in nums if i < len(args)}
        named = {k: kwargs[k] for k in names if k in kwargs}
        dynamic = tuple(None if i in fixed else a for i, a in enumerate(args))
        rest = {k: v for k, v in kwargs.items() if k not in named}

        def call(*values: Any, **others: Any) -> Any:
            return fun(*[fixed.get(i, v) for i, v in enumerate(values)], **others, **named)

        call.__name__ = name_of(fun)
        return _checkpointed(call, dynamic, rest, (fun, fixed), policy, prevent_cse)

    return fun_remat


@discharged_call
def _checkpointed(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    user: tuple[Callable[..., Any], dict[int, Any]],
    policy: Policy | None,
    prevent_cse: bool,
) -> Any:
    """Stage a function and bind `remat2`; messages speak of the function of the user, of which some
    arguments are fixed."""
    fun, fixed = user
    leaves, in_tree = pytrees.flatten((args, kwargs))
    leaves = arrays(leaves, "checkpoint", fun, args, kwargs)
    flat = FlatFunction(call, in_tree, "checkpoint")
    traced = trace_to_jaxpr(
        flat, [typeof(x) for x in leaves], name_of(fun), ArgumentNames(fun, args, kwargs, fixed)
    )
    closed, consts = close_over_tracers(traced)
    outs = remat_p.bind(
        *consts, *leaves, jaxpr=closed, policy=policy, prevent_cse=prevent_cse, differentiated=False
    )
    return pytrees.unflatten(flat.out_tree, outs)


remat = checkpoint


# ---------------------------------------------------------------- what is kept


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The type of each value that the backward pass of `f` keeps, and where it comes from."""
    leaves, in_tree = pytrees.flatten((args, kwargs))
    leaves = arrays(leaves, "saved_residuals", f, args, kwargs)
    names = ArgumentNames(f, args, kwargs)
    record = JaxprTrace("saved_residuals")
    with recording(record):
        inputs = [record.new_argument(typeof(x)) for x in leaves]
        _, _, tape = linearize(
            FlatFunction(f, in_tree, "saved_residuals"),
            inputs,
            [has_tangent(typeof(x)) for x in leaves],
        )
        return [(typeof(c), _whence(c, record, names)) for c in tape.consts]


def _whence(c: Any, record: JaxprTrace, names: Sequence[str]) -> str:
    if not isinstance(c, JaxprTracer) or c._trace is not record:
        return "from a constant"
    v, e = _maker(c._var, record.eqns)
    if v in record.invars:
        return f"from the argument {names[record.invars.index(v)]}"
    if e is None:
        return "from a constant"
    where: Source | None = e.source
    if e.primitive is name_p:
        return f"named '{e.params['name']}' from {where}"
    return f"output of {e.primitive.name} from {where}"


def _maker(v: Any, eqns: Sequence[Eqn]) -> tuple[Any, Eqn | None]:
    """The variable that `v` is, and the equation that makes it, which may stand inside a
    checkpoint."""
    e = next((e for e in eqns if v in e.outvars), None)
    if e is None or e.primitive is not remat_p:
        return v, e
    inner: ClosedJaxpr = e.params["jaxpr"]
    v, made = _maker(inner.jaxpr.outvars[e.outvars.index(v)], inner.eqns)
    return (
        (v, made)
        if v not in inner.jaxpr.invars
        else _maker(e.invars[inner.jaxpr.invars.index(v)], eqns)
    )


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what the backward pass of `f` keeps, and where it comes from."""
    for aval, whence in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short()} {whence}")
