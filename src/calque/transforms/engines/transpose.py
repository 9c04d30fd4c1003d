"""Transposition of linear programs: from cotangents of the results to cotangents of the linear
arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import source
from calque.core.dtypes import is_inexact
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Var, all_equations, subjaxprs
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import literal_value, trace_to_jaxpr, typing
from calque.transforms.engines.slices import split_equation
from calque.transforms.engines.zeros import (
    add_tangents,
    instantiate,
    nonzero,
    only_nonzero,
    tangent_aval,
    with_zeros,
)


def backward_pass(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Cotangents of the arguments that are UndefinedPrimal (Zero where nothing arrives, or where
    they are not among the `wanted`), None for the others.

    Equations that depend on no linear argument are evaluated first; the others are transposed, last
    to first, each once: those that a cotangent arrives at, and rules of the user also without one.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Any] = set()
    for v, x in zip(jaxpr.invars, args, strict=True):
        if type(x) is UndefinedPrimal:
            linear.add(v)
        else:
            env[v] = x
    eqns = _evaluate_known(jaxpr, env, linear)
    reached = linear
    if wanted is not None:
        reached, eqns = _leading_to(jaxpr, eqns, wanted, linear)
    found: dict[Var, Any] = {}
    for a, ct in zip(jaxpr.outvars, cotangents, strict=True):
        if a in reached:
            _accumulate(found, a, ct)
    used = _Used(jaxpr, eqns)
    with typing.value.lenient(), source.at(None) as place:
        for e in reversed(eqns):
            place.source = source.in_scopes(e.source)
            _transpose_eqn(e, env, linear, reached, found, used)
    return [
        _cotangent(v, found) if type(x) is UndefinedPrimal else None
        for v, x in zip(jaxpr.invars, args)
    ]


def _leading_to(
    jaxpr: Jaxpr, eqns: Sequence[Eqn], wanted: Sequence[bool], linear: set[Any]
) -> tuple[set[Any], list[Eqn]]:
    """The variables through which cotangents reach the wanted arguments, and their equations."""
    reached = {v for v, w in zip(jaxpr.invars, wanted, strict=True) if w and v in linear}
    kept = []
    for e in eqns:
        if any(a in reached for a in e.invars):
            kept.append(e)
            reached.update(e.outvars)
    return reached, kept


class _Used:
    """Which equations the results of a linear program depend on, worked out when first asked."""

    def __init__(self, jaxpr: Jaxpr, eqns: Sequence[Eqn]):
        self._jaxpr, self._eqns = jaxpr, eqns
        self._variables: set[Any] | None = None

    def __call__(self, e: Eqn) -> bool:
        if self._variables is None:
            self._variables = set(self._jaxpr.outvars)
            for other in reversed(self._eqns):
                if not self._variables.isdisjoint(other.outvars):
                    self._variables.update(other.invars)
        return not self._variables.isdisjoint(e.outvars)


def _has_rules(e: Eqn) -> bool:
    """Whether rules of the user run where this is transposed. Their cotangents need not be linear:
    they may give some of their own (the state of a quantisation) though none arrives."""
    return e.primitive.name == "custom_lin" or any(
        inner.primitive.name == "custom_lin"
        for program in subjaxprs(e.params)
        for inner in all_equations(program)
    )


def _cotangent(v: Var, found: dict[Var, Any]) -> Any:
    """What has arrived at a linear argument, where cotangents of its type are."""
    if v not in found:
        aval = tangent_aval(v.aval)
        return Zero(aval if getattr(aval, "place", None) is None else aval.to_ct_aval())
    return _of_type(found[v], v)


def _of_type(ct: Any, v: Var) -> Any:
    """A cotangent of a variable, where its type says."""
    if type(ct) is Zero or getattr(v.aval, "place", None) is None:
        return ct
    return typing.value.retyped(ct, v.aval.to_ct_aval())


# These hand a cotangent on whatever its precision is: rules of the user may give one of another
# precision than the value has. For all others it is converted.
_OF_ANY_PRECISION: Final = frozenset(
    ("custom_lin", "gather", "convert_element_type", "reshape", "squeeze", "transpose", "copy")
)


def of_precision(ct: Any, aval: Any) -> Any:
    """A cotangent as operations take it that compute with it: of the dtype of the value."""
    dtype = None if type(ct) is Zero else getattr(ct, "dtype", None)
    if dtype is None or dtype == aval.dtype or not (is_inexact(dtype) and is_inexact(aval.dtype)):
        return ct
    return do.convert_element_type(ct, new_dtype=aval.dtype, weak_type=False)


def _evaluate_known(jaxpr: Jaxpr, env: dict[Var, Any], linear: set[Any]) -> list[Eqn]:
    """Run the equations that depend on no linear variable; give back the others."""
    eqns = []
    with source.at(None) as place:
        for e in jaxpr.eqns:
            mask = [a in linear for a in e.invars]
            known, rest = split_equation(e, mask) if any(mask) else (e, None)
            if known is not None:
                place.source = source.in_scopes(e.source)
                out = known.primitive.bind(
                    *[env[a] if isinstance(a, Var) else literal_value(a) for a in known.invars],
                    **known.params,
                )
                env.update(zip(known.outvars, out if known.primitive.multiple_results else (out,)))
            if rest is not None:
                eqns.append(rest)
                linear.update(rest.outvars)
    return eqns


def _transpose_eqn(
    e: Eqn,
    env: dict[Var, Any],
    linear: set[Any],
    reached: set[Any],
    found: dict[Var, Any],
    used: Callable[[Eqn], bool],
) -> None:
    cts = [found.pop(v, None) for v in e.outvars]
    if all(ct is None for ct in cts) and not (_has_rules(e) and used(e)):
        return
    cts = [
        Zero(tangent_aval(v.aval)) if ct is None else _of_type(ct, v)
        for v, ct in zip(e.outvars, cts)
    ]
    args = [
        (
            UndefinedPrimal(a.aval)
            if a in linear
            else env[a]
            if isinstance(a, Var)
            else literal_value(a)
        )
        for a in e.invars
    ]
    primitive = e.primitive
    if primitive.name not in _OF_ANY_PRECISION:
        cts = [of_precision(ct, v.aval) for ct, v in zip(cts, e.outvars)]
    try:
        outs = primitive.transpose(cts if primitive.multiple_results else cts[0], *args, **e.params)
    except NotImplementedError as error:
        if e.source is None or getattr(error, "placed", False):
            raise
        raise _placed(error, e) from None
    for a, ct in zip(e.invars, outs, strict=True):
        if ct is not None and a in reached:
            _accumulate(found, a, ct)


def _placed(error: NotImplementedError, e: Eqn) -> NotImplementedError:
    """The error with the place of the equation."""
    found = NotImplementedError(
        f"{error}\nThe operation {e.primitive.name} stands at {e.source}, where a derivative in"
        " reverse mode, or linear_transpose, needs a function that is linear. A rule given to"
        " defjvp must be linear in its tangents."
    )
    found.placed = True  # type: ignore[attr-defined]
    return found


def _accumulate(found: dict[Var, Any], v: Any, ct: Any) -> None:
    if type(ct) is Zero:
        return
    if v in found:
        ct = add_tangents(of_precision(found[v], v.aval), of_precision(ct, v.aval))
    found[v] = ct


def transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzeros: tuple[bool, ...],
    instantiated: bool | tuple[bool, ...] = False,
    any_precision: bool = False,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program of (arguments not linear, cotangents not zero) -> cotangents, not zero, of the
    linear arguments.

    Also says which of the linear arguments these belong to. `instantiated` asks, for all linear
    arguments or for each, for cotangents though they be zero. With `any_precision` cotangents may
    be of another precision than the arguments, if rules of the user make them so."""
    if isinstance(instantiated, tuple):
        found = transpose_jaxpr(closed, linear, nonzeros, False, any_precision)
        if all(n or not w for n, w in zip(found[1], instantiated, strict=True)):
            return found
    key = ("transpose", linear, nonzeros, instantiated, any_precision)
    if key not in closed.cache:
        closed.cache[key] = _transpose_jaxpr(closed, linear, nonzeros, instantiated, any_precision)
    return closed.cache[key]


def _transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzeros: tuple[bool, ...],
    instantiated: bool | tuple[bool, ...],
    any_precision: bool,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    mask: tuple[bool, ...] = ()
    known = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
    linear_avals = [a for a, lin in zip(closed.in_avals, linear) if lin]

    def backward(*args: Any) -> list[Any]:
        nonlocal mask
        values = iter(args[: len(known)])
        full = [
            UndefinedPrimal(a) if lin else next(values) for a, lin in zip(closed.in_avals, linear)
        ]
        cts = with_zeros(args[len(known) :], nonzeros, closed.out_avals)
        outs = backward_pass(closed.jaxpr, closed.consts, full, cts)
        linear_outs = [o for o, lin in zip(outs, linear) if lin]
        if not any_precision:
            linear_outs = [of_precision(o, a) for o, a in zip(linear_outs, linear_avals)]
        if instantiated:
            wanted = (True,) * len(linear_outs) if isinstance(instantiated, bool) else instantiated
            linear_outs = [
                instantiate(o) if w else o for o, w in zip(linear_outs, wanted, strict=True)
            ]
        mask = nonzero(linear_outs)
        return only_nonzero(linear_outs)

    ct_avals = [tangent_aval(a) for a, nz in zip(closed.out_avals, nonzeros, strict=True) if nz]
    return trace_to_jaxpr(backward, known + ct_avals, "transpose"), mask
