"""Parameters, types and programs at given sizes: numbers in the place of free sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from calque.core.avals import ShapedArray
from calque.core.dims import Dim, is_symbolic
from calque.core.jaxprs import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal
from calque.core.symbols import Symbols

Number = Callable[[Dim], Any]


def free_in(x: Any) -> Iterator[Dim]:
    """The free sizes that a parameter, a type or a program mentions."""
    if type(x) is Dim:
        yield x
    elif isinstance(x, ShapedArray):
        yield from free_in(x.shape)
    elif isinstance(x, (tuple, list)):
        for v in x:
            yield from free_in(v)
    elif isinstance(x, dict):
        yield from free_in(list(x.values()))
    elif isinstance(x, ClosedJaxpr):
        yield from free_in(x.jaxpr)
    elif isinstance(x, Jaxpr):
        yield from free_in([*x.in_avals, *x.out_avals])
        for e in x.eqns:
            yield from free_in([e.params, *[v.aval for v in e.outvars]])


def at_sizes(x: Any, number: Number) -> Any:
    """The same with numbers: `f32[n,4]` at n = 3 is `f32[3,4]`."""
    if type(x) is Dim:
        return number(x)
    if isinstance(x, ShapedArray):
        return (
            ShapedArray(at_sizes(x.shape, number), x.dtype, x.weak_type)
            if is_symbolic(x.shape)
            else x
        )
    if isinstance(x, (tuple, list)):
        items = [at_sizes(v, number) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if type(x) is dict:
        return {k: at_sizes(v, number) for k, v in x.items()}
    if isinstance(x, ClosedJaxpr):
        return (
            ClosedJaxpr(of_program(x.jaxpr, number), x.consts)
            if next(free_in(x), None) is not None
            else x
        )
    return of_program(x, number) if isinstance(x, Jaxpr) else x


def program_at(closed: ClosedJaxpr, symbols: Symbols, sizes: Sequence[int]) -> ClosedJaxpr:
    """A program at these values of its free sizes."""
    dims = list(dict.fromkeys(free_in(closed)))
    numbers = symbols.program([("value", d.poly) for d in dims])(*sizes)
    fixed: ClosedJaxpr = at_sizes(closed, dict(zip(dims, numbers)).__getitem__)
    return fixed


def settled(d: Dim) -> Any:
    """A size that the program has found, as a number; any other as it is."""
    value = d.symbols.value(d.poly) if d.symbols.is_found(d.poly) else None
    return d if value is None else value


def of_program(jaxpr: Jaxpr, number: Number) -> Jaxpr:
    """A program with variables of fixed types."""
    fresh: dict[Any, Any] = {}

    def variable(v: Any) -> Any:
        if v not in fresh:
            fresh[v] = type(v)(at_sizes(v.aval, number))
        return fresh[v]

    def atom(a: Atom) -> Atom:
        return a if isinstance(a, Literal) else variable(a)

    def equation(e: Eqn) -> Eqn:
        params = {k: at_sizes(v, number) for k, v in e.params.items()}
        return e.replace(
            invars=[atom(a) for a in e.invars],
            outvars=[variable(v) for v in e.outvars],
            params=params,
        )

    return jaxpr.replace(
        constvars=[variable(v) for v in jaxpr.constvars],
        invars=[variable(v) for v in jaxpr.invars],
        eqns=[equation(e) for e in jaxpr.eqns],
        outvars=[atom(a) for a in jaxpr.outvars],
    )
