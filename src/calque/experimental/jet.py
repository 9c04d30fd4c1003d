"""Taylor mode: derivatives of high order along a curve, all at once.

`jet(f, (x,), ((1.0, 0.0, 0.0),))` gives `f(x)` and its first three derivatives at x. Every primitive that can be differentiated
has a series; loops, branches, calls and custom rules work as well."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize, float0
from calque.core.trace import typeof
from calque.core.tracebacks import boundary
from calque.ops.common import zeros
from calque.transforms import jet_rules  # noqa: F401 - installs the rules
from calque.transforms.flow import convert, type_text
from calque.transforms.jet import JetTrace, JetTracer, factorials, times
from calque.transforms.jet import jet as flat_jet
from calque.transforms.trees import FlatFunction, name_of
from calque.transforms.zeros import has_tangent

__all__ = ["JetTrace", "JetTracer", "jet"]


@boundary
def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """`fun` along a curve whose value is `primals` and whose derivatives of order 1, 2, ... are `series`.

    Returns `fun(*primals)` and, in place of each of its leaves, the list of its derivatives along the curve. Without
    `factorial_scaled` both series are Taylor coefficients: derivatives divided by the factorials of their orders.

    >>> from calque.experimental.jet import jet
    >>> value, (first, second) = jet(jnp.sin, (0.0,), ((1.0, 0.0),))
    >>> float(first), float(second)
    (1.0, 0.0)"""
    name, order = name_of(fun), _order(fun, primals, series)
    values = [_value(x, i, name) for i, x in enumerate(primals)]
    factors = [float(f) if factorial_scaled else 1.0 for f in factorials(order)]
    terms = [_terms(x, s, i, factors, name) for i, (x, s) in enumerate(zip(values, series))]
    flat = FlatFunction(fun, pytrees.structure((tuple(primals), {})), "jet")
    outs, found = flat_jet(flat, values, terms, order)
    rows = [_result(o, s, factors) for o, s in zip(outs, found)]
    values_out = [_as_array(o) for o in outs]
    return pytrees.unflatten(flat.out_tree, values_out), pytrees.unflatten(flat.out_tree, rows)


def _order(fun: Any, primals: Any, series: Any) -> int:
    """The number of terms, which all arguments have in common."""
    for what, x in (("primals", primals), ("series", series)):
        if not isinstance(x, (tuple, list)):
            raise TypeError(
                f"jet: {what} must be a tuple or list with one entry for each argument of {name_of(fun)}, got {x!r}"
            )
    if len(primals) != len(series):
        raise ValueError(
            f"jet: {name_of(fun)} is given {len(primals)} primals but {len(series)} series: one is needed for each"
        )
    for i, s in enumerate(series):
        if not isinstance(s, (tuple, list)):
            raise TypeError(f"jet: series[{i}] must be a tuple or list of terms, got {s!r}")
    lengths = [len(s) for s in series]
    if len(set(lengths)) != 1:
        raise ValueError(
            f"jet terms have inconsistent lengths for different arguments of {name_of(fun)}: "
            f"{', '.join(f'series[{i}] has {n}' for i, n in enumerate(lengths)) or 'there are no arguments'}"
        )
    return lengths[0]


def _value(x: Any, i: int, name: str) -> Any:
    try:
        return _as_array(x)
    except TypeError:
        raise ValueError(
            f"primal value at position {i} is not an array: jet of {name} takes arrays and numbers. Give {name} the leaves of "
            "containers as separate arguments"
        ) from None


def _terms(x: Any, terms: Sequence[Any], i: int, factors: Sequence[float], name: str) -> list[Any] | None:
    aval = typeof(x)
    if not has_tangent(aval):
        for n, t in enumerate(terms):
            if getattr(t, "dtype", None) != float0 and not (isinstance(t, (int, float, np.ndarray)) and not np.any(t)):
                raise TypeError(
                    f"jet: primals[{i}] of {name} has type {type_text(aval)}, which is constant along every curve: series[{i}][{n}] "
                    "must be 0. Convert the argument to a float to differentiate in it"
                )
        return None
    return [times(_term(t, aval, i, n, name), 1 / f) for n, (t, f) in enumerate(zip(terms, factors))]


def _term(t: Any, aval: ShapedArray, i: int, n: int, name: str) -> Any:
    t = _as_array(t)
    got = typeof(t)
    if got.shape != aval.shape:
        raise ValueError(
            f"jet: series[{i}][{n}] of {name} must have the shape of primals[{i}]: expected {aval.shape}, got {got.shape}"
        )
    return convert(t, aval)


def _result(out: Any, terms: Sequence[Any] | None, factors: Sequence[float]) -> list[Any]:
    """The terms of one result as arrays; those of integers and booleans are zeros too."""
    aval = typeof(out)
    zero = zeros(aval if has_tangent(aval) else ShapedArray(aval.shape, canonicalize(float)))
    given = terms if terms is not None else [None] * len(factors)
    return [_as_array(zero if t is None else times(t, f)) for t, f in zip(given, factors)]


def _as_array(x: Any) -> Any:
    return x if hasattr(x, "aval") else to_array(x)
