"""Functions of which the backward pass computes again what it needs, for users: `checkpoint`, names
that policies speak of, and what is kept (`saved_residuals`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr, Eqn
from calque.core.trace import JaxprTrace, JaxprTracer, trace_to_jaxpr, typeof, typing
from calque.core.trace_state import is_evaluating, recording
from calque.core.tracebacks import boundary
from calque.machine.caches import Entries, Tables
from calque.transforms.engines import axes
from calque.transforms.engines.linear import linearize
from calque.transforms.engines.signatures import (
    ArgumentNames,
    captured_values,
    check_callable,
    resolve,
)
from calque.transforms.engines.trees import FlatFunction, arrays, name_of, wrapping
from calque.transforms.engines.zeros import has_tangent
from calque.transforms.primitives.call import close_over_tracers
from calque.transforms.primitives.refs_arguments import discharged_call
from calque.transforms.primitives.remat import name_p, remat_p
from calque.transforms.primitives.remat_policies import Policy

if TYPE_CHECKING:
    from calque.core.generics import P, R, X


class _Staged(NamedTuple):
    """A function as a program, and what it read besides its arguments."""

    closed: ClosedJaxpr
    out_tree: pytrees.PyTreeDef
    captured: Any


_KEPT: Final[Tables[Any, _Staged]] = Tables("rematerialised functions", 64, programs=True)


class _User(NamedTuple):
    """The function of the user, of which some arguments are fixed, and its programs."""

    fun: Callable[..., Any]
    fixed: dict[int, Any]
    named: dict[str, Any]
    kept: Entries[Any, _Staged]

    def key(self, in_tree: pytrees.PyTreeDef, avals: Sequence[ShapedArray]) -> Any:
        """What the program depends on; None inside a program that is being recorded, which asks
        for it once."""
        if not is_evaluating():
            return None
        statics = [(k, type(x), x) for k, x in (*self.fixed.items(), *self.named.items())]
        around = (config.trace_key(), axes.in_scope(), typing.value.ambient())
        key = (in_tree, *avals, *statics, around)
        try:
            hash(key)
        except TypeError:
            return None
        return key


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: Any = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] | None = None,
    concrete: bool = False,
) -> Callable[P, R]: ...


@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: Any = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] | None = None,
    concrete: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: Any = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] | None = None,
    concrete: bool = False,
) -> Callable[..., Any]:
    """Makes a function whose backward pass computes again what it needs instead of keeping it.

    It spends time to save memory; values are the same. `remat` is another name for it.

    Args:
        fun: The function. Left out, a decorator with the other arguments is returned.
        prevent_cse: Whether the second computation is kept apart from the first, so that no pass
            unites them again; or a tuple that says so of each argument that is not static, a prefix
            of their trees (with arguments by name, of the pair of those by position and by name).
        policy: Says which values may be kept, one of `checkpoint_policies`; None keeps nothing but
            the arguments.
        static_argnums: Positions of arguments that stay Python values; they must be hashable.
        static_argnames: Names of such arguments.
        concrete: Must be False: make arguments static instead.

    Returns:
        A function of the same arguments and results.

    >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> jax.grad(f)(2.0)
    Array(-0.2556391, dtype=float32, weak_type=True)"""
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
    check_callable(fun)
    prevent_cse = _each(prevent_cse)
    nums, names = resolve(
        fun, None if static_argnums == () else static_argnums, static_argnames, "static"
    )

    kept = _KEPT.new()

    @boundary
    def fun_remat(*args: Any, **kwargs: Any) -> Any:
        fixed = {i: args[i] for i in nums if i < len(args)}
        named = {k: kwargs[k] for k in names if k in kwargs}
        dynamic = tuple(None if i in fixed else a for i, a in enumerate(args))
        rest = {k: v for k, v in kwargs.items() if k not in named}

        def call(*values: Any, **others: Any) -> Any:
            return fun(*[fixed.get(i, v) for i, v in enumerate(values)], **others, **named)

        call.__name__ = name_of(fun)
        user = _User(fun, fixed, named, kept)
        apart = prevent_cse
        if apart is not True and apart is not False:
            given = tuple(a for i, a in enumerate(args) if i not in fixed)
            apart = tuple(pytrees.prefix_broadcast(apart, (given, rest) if rest else given))
        return _checkpointed(call, dynamic, rest, user, policy, apart)

    return wrapping(fun_remat, fun)


def _each(prevent_cse: Any) -> bool | tuple[Any, ...]:
    if isinstance(prevent_cse, bool):
        return prevent_cse
    if not isinstance(prevent_cse, (tuple, list)):
        raise TypeError(
            "checkpoint: prevent_cse must be a bool, or a tuple that has one for each argument, got"
            f" {prevent_cse!r}"
        )
    wrong = [x for x in pytrees.leaves(prevent_cse) if not isinstance(x, bool)]
    if wrong:
        raise TypeError(f"checkpoint: prevent_cse must hold bools, got {wrong[0]!r} in it")
    return tuple(prevent_cse)


@discharged_call
def _checkpointed(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    user: _User,
    policy: Policy | None,
    prevent_cse: bool | tuple[bool, ...],
) -> Any:
    """Stage a function and bind `remat2`; messages speak of the function of the user."""
    leaves, in_tree = pytrees.flatten((args, kwargs))
    leaves = arrays(leaves, "checkpoint", user.fun, args, kwargs)
    avals = [typeof(x) for x in leaves]
    key = user.key(in_tree, avals)
    known = None if key is None else user.kept.find(key)
    consts: list[Any] = []
    if known is None or (known.captured is not None and known.captured.changed()):
        captured = None if key is None else captured_values.call(user.fun)
        flat = FlatFunction(call, in_tree, "checkpoint")
        traced = trace_to_jaxpr(
            flat, avals, name_of(user.fun), ArgumentNames(user.fun, args, kwargs, user.fixed)
        )
        closed, consts = close_over_tracers(traced)
        known = _Staged(closed, flat.out_tree, captured)
        if key is not None and captured is not None and not consts:
            captured.settle()
            user.kept[key] = known
    if isinstance(prevent_cse, tuple):
        prevent_cse = (*(False,) * len(consts), *prevent_cse)
    outs = remat_p.bind(
        *consts,
        *leaves,
        jaxpr=known.closed,
        policy=policy,
        prevent_cse=prevent_cse,
        differentiated=False,
    )
    return pytrees.unflatten(known.out_tree, outs)


remat = checkpoint


def checkpoint_name(x: X, name: str) -> X:
    """Gives values a name that policies of `checkpoint` can speak of.

    Args:
        x: A tree of arrays.
        name: The name.

    Returns:
        The same values.

    >>> from calque.ad_checkpoint import checkpoint_name
    >>> policy = jax.checkpoint_policies.save_only_these_names("kept")
    >>> f = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "kept")), policy=policy)
    >>> jax.grad(f)(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    return pytrees.tree_map(lambda v: name_p.bind(v, name=name), x)


# ---------------------------------------------------------------- what is kept


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The type of each value that the backward pass of `f` keeps, and where it comes from:
    constants first, then arguments, then what equations made, in their order."""
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
        consts = sorted(tape.consts, key=_order(record))
        return [(typeof(c), _whence(c, record, names)) for c in consts]


def _order(record: JaxprTrace) -> Callable[[Any], tuple[int, int]]:
    """Where values stand among those that are recorded: constants before all."""
    places = {v: (1, i) for i, v in enumerate(record.invars)}
    made = (v for e in record.eqns for v in e.outvars)
    places |= {v: (2, i) for i, v in enumerate(made)}

    def order(c: Any) -> tuple[int, int]:
        mine = isinstance(c, JaxprTracer) and c._trace is record
        return places.get(c._var, (0, 0)) if mine else (0, 0)

    return order


def _whence(c: Any, record: JaxprTrace, names: Sequence[str]) -> str:
    if not isinstance(c, JaxprTracer) or c._trace is not record:
        return "from a constant"
    v, e = _maker(c._var, record.eqns)
    if v in record.invars:
        return f"from the argument {names[record.invars.index(v)]}"
    if e is None:
        return "from a constant"
    where = None if e.source is None else e.source.exact
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
    """Prints what the backward pass of a function keeps, and where it comes from.

    Args:
        f: The function.
        *args: Its arguments.
        **kwargs: Its arguments by name.

    >>> jax.ad_checkpoint.print_saved_residuals(lambda x: jnp.sin(x), 1.0)
    f32[] output of cos from ..."""
    for aval, whence in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short()} {whence}")
