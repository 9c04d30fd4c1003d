"""Programs equation by equation; the functions of a module that calls go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import to_numpy
from calque.core.dtypes import ExtendedDType
from calque.core.jaxprs import (
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    all_equations,
    subjaxprs,
)
from calque.core.source import written as scopes_as_text
from calque.core.trace import trace_to_jaxpr
from calque.transforms.primitives.lowerings import ArrayRule, rule_for
from calque.xla.lower.callbacks import host_call, native_call
from calque.xla.lower.foreign import by_rule
from calque.xla.lower.found_bodies import finds_inside
from calque.xla.lower.keys import COMPARED, at_words, compared, words_of
from calque.xla.lower.rules import EQUATION_RULES, RULES, Builder, listed
from calque.xla.lower.sizes import check_free
from calque.xla.text.tree import Function, Location, Region, Value
from calque.xla.text.types import TOKEN, signature, type_of


def lower_program(
    b: Builder, closed: ClosedJaxpr, args: Sequence[Value], consts: Sequence[Value] | None = None
) -> list[Value]:
    """Append the operations of a program; gives its results."""
    if consts is None:
        consts = [constant_of(b, c) for c in closed.consts]
    env: dict[Var, Value] = dict(zip(closed.jaxpr.constvars, consts, strict=True))
    env.update(zip(closed.jaxpr.invars, args, strict=True))
    outer = b.location

    def read(atom: Any) -> Value:
        return literal(b, atom) if isinstance(atom, Literal) else env[atom]

    for e in closed.jaxpr.eqns:
        b.location = location_of(b, e)
        b.scopes = e.source.scopes if e.source is not None else ()
        env.update(zip(e.outvars, lower_equation(b, e, [read(a) for a in e.invars]), strict=True))
    b.location = outer
    return [read(a) for a in closed.jaxpr.outvars]


def lower_equation(b: Builder, e: Eqn, args: list[Value]) -> list[Value]:
    """The results of one equation."""
    name = e.primitive.name
    if b.state.sizes:
        check_free(e, RULES.get(name))
    outs = [type_of(v.aval) for v in e.outvars]
    if finds_inside(e):
        ordered = any(map(ordered_inside, subjaxprs(e.params)))
        return native_call(b, e, outs, args, ordered=ordered)
    of_user = b.state.rules.get(e.primitive) or rule_for(e.primitive, b.state.platform)
    if isinstance(of_user, ArrayRule):
        program = of_user.program(e.primitive.multiple_results)
        return lower_function(b, e, program, args)
    if of_user is not None:
        return by_rule(b, e, of_user, outs, args)
    whole = EQUATION_RULES.get(name)
    if whole is not None:
        return list(whole(b, e, outs, args))
    written = RULES.get(name)
    if written is None:
        if e.primitive.program is not None:
            return lower_function(b, e, e.primitive.program, args)
        return host_call(b, e, outs, args)
    params = e.params
    if any(isinstance(v.aval.dtype, ExtendedDType) for v in (*e.invars, *e.outvars)):
        if name in COMPARED:
            return [compared(b, name, len(words_of(e)), *args)]
        params = at_words(e)
    found = written(b, outs if e.primitive.multiple_results else outs[0], *args, **params)
    return list(found) if e.primitive.multiple_results else [found]


def lower_function(
    b: Builder, e: Eqn, function: Callable[..., Any], args: Sequence[Value]
) -> list[Value]:
    """The operations of a function of arrays in the place of an equation."""

    def listed_results(*xs: Any) -> list[Any]:
        out = function(*xs, **e.params)
        return list(out) if e.primitive.multiple_results else [out]

    closed = trace_to_jaxpr(listed_results, [a.aval for a in e.invars], e.primitive.name)
    return lower_program(b, closed, args)


def literal(b: Builder, a: Literal) -> Value:
    return b.constant(host_data(a.val).astype(type_of(a.aval).dtype))


def constant_of(b: Builder, x: Any) -> Value:
    """A constant of a program: an Array, a NumPy array or a number."""
    return b.constant(host_data(x))


def host_data(x: Any) -> np.ndarray:
    """The elements of an array as NumPy has them; of keys their words, of float0 booleans."""
    data = to_numpy(x) if hasattr(x, "aval") else np.asarray(x)
    names = data.dtype.names
    if not names:
        return data
    if names[0] == "float0":
        return np.zeros(data.shape, bool)
    return np.asarray(data[names[0]])  # records of words


def location_of(b: Builder, e: Eqn) -> Location:
    """Where an equation comes from. A function's own path begins where it is called: XLA puts that
    of the call ahead of it."""
    source, name = e.source, e.primitive.name
    if name == "jit":
        name = f"jit({e.params['name']})"
    if source is None:
        return Location("/".join((*b.path, name)))
    scopes, n = source.scopes, len(b.around)
    stack = scopes_as_text(scopes[n:] if scopes[:n] == b.around else scopes)
    path = "/".join((*b.path, *([stack] if stack else []), name))
    return Location(path, source.file, source.line, source.function)


# ---------------------------------------------------------------- effects and calls


def keeps_order(e: Eqn) -> bool:
    """Whether an equation by itself has an effect that comes after those before it."""
    return bool(e.params.get("ordered")) or e.params.get("effect") == "OrderedDebug"


def ordered_inside(jaxpr: Jaxpr) -> bool:
    """Whether a program, at any depth, has effects that keep their order."""
    return any(e.primitive.effect and keeps_order(e) for e in all_equations(jaxpr))


def function_of(b: Builder, name: str, closed: ClosedJaxpr) -> Function:
    """The private function of the module that is this program, which is written when it is asked
    for first."""
    key = (id(closed.jaxpr), name, b.state.manual, b.state.platform)
    function = b.state.functions.get(key)
    if function is None:
        b.state.kept.append(closed)
        body = Region([Value(type_of(a)) for a in closed.in_avals])
        results = [type_of(a) for a in closed.out_avals]
        function = Function(b.state.unique_name(name), body, results)
        b.state.functions[key] = function
        b.state.module.functions.append(function)
        write_function(b, function, closed, ordered_inside(closed.jaxpr))
    return function


def call_function(b: Builder, name: str, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
    """A call of a private function of the module. Free sizes, and which platform it is, are known
    to the main one alone."""
    if b.state.sizes or (b.state.platform_index is not None and asks_for_platform(closed.jaxpr)):
        return lower_program(b, closed, args)
    function = function_of(b, name, closed)
    orders = len(function.results) > len(closed.jaxpr.outvars)
    xs = [*([b.ordered()] if orders else []), *args]
    call = "func.call" if b.nested else "call"
    ending = f") : {signature([x.type for x in xs], function.results)}"
    found = b.emit(function.results, f"{call} @{function.name}(", *listed(xs), ending)
    if orders:
        b.token = found.pop(0)
    return found


def asks_for_platform(jaxpr: Jaxpr) -> bool:
    """Whether a program depends on the platform that it runs on."""
    return any(
        e.primitive.name in ("platform_index", "call_exported")
        or any(map(asks_for_platform, subjaxprs(e.params)))
        for e in jaxpr.eqns
    )


def write_function(b: Builder, f: Function, closed: ClosedJaxpr, orders: bool) -> None:
    """The body of a private function."""
    inner = Builder(b.state, f.body)
    inner.around, inner.location = b.scopes, b.location
    args = list(f.body.args)
    if orders:
        inner.token = Value(TOKEN)
        f.body.args.insert(0, inner.token)
        f.results = [TOKEN, *f.results]
    found = lower_program(inner, closed, args)
    inner.returns(*([inner.ordered()] if orders else []), *found)
