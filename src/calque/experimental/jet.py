"""Taylor mode: derivatives of high order along a curve, all at once.

`jet(f, (x,), ((1.0, 0.0, 0.0),))` gives `f(x)` and its first three derivatives at x. Every
primitive that can be differentiated has a series; loops, branches, calls and custom rules work as
well. `jet_rules` is the table of their rules: a primitive of one's own, or one whose series one
knows better, is entered there."""

import math
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from calque.core import guards as _guards
from calque.core import pytrees
from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize, float0
from calque.core.primitives import REGISTRY, NotApplicable, Primitive, do
from calque.core.trace import typeof
from calque.core.tracebacks import boundary
from calque.ops.common import const, zeros
from calque.ops.math import logistic
from calque.transforms.engines.trees import FlatFunction, name_of
from calque.transforms.engines.zeros import has_tangent
from calque.transforms.functions import jet_rules as _installed  # noqa: F401 - installs the rules
from calque.transforms.functions.jet import (
    JetTrace,
    JetTracer,
    ZeroSeries,
    ZeroTerm,
    factorials,
    given_rules,
    program_rules,
    rules,
    times,
)
from calque.transforms.functions.jet import jet as flat_jet
from calque.transforms.primitives.flow import convert, type_text

__all__ = [
    "JetTrace",
    "JetTracer",
    "ZeroSeries",
    "ZeroTerm",
    "def_comp",
    "def_deriv",
    "deflinear",
    "defzero",
    "deriv_prop",
    "fact",
    "jet",
    "jet2",
    "jet_rules",
    "linear_prop",
    "zero_prop",
    "zero_series",
    "zero_term",
]

zero_term, zero_series = ZeroTerm(), ZeroSeries()


@boundary
def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """Gives the derivatives of a function along a curve.

    Args:
        fun: The function, of arrays.
        primals: Where the curve begins: a tuple with an array for each argument.
        series: The derivatives of the curve: for each argument a list with those of order 1, 2, ...
        factorial_scaled: Whether both series are derivatives; otherwise they are Taylor
            coefficients, derivatives divided by the factorials of their orders.

    Returns:
        A pair: the value, and in place of each of its leaves the list of its derivatives along the
        curve.

    >>> from calque.experimental.jet import jet
    >>> value, derivatives = jet(jnp.sin, (0.0,), ((1.0, 0.0),))
    >>> [float(d) for d in derivatives]
    [1.0, 0.0]"""
    name, order = name_of(fun), _order(fun, primals, series)
    values = [_value(x, i, name) for i, x in enumerate(primals)]
    factors = [float(f) if factorial_scaled else 1.0 for f in factorials(order)]
    terms = [_terms(x, s, i, factors, name) for i, (x, s) in enumerate(zip(values, series))]
    flat = FlatFunction(fun, pytrees.structure((tuple(primals), {})), "jet")
    outs, found = flat_jet(flat, values, terms, order)
    rows = [_result(o, s, factors) for o, s in zip(outs, found)]
    values_out = [to_array(o) for o in outs]
    return pytrees.unflatten(flat.out_tree, values_out), pytrees.unflatten(flat.out_tree, rows)


def _order(fun: Any, primals: Any, series: Any) -> int:
    """The number of terms, which all arguments have in common."""
    for what, x in (("primals", primals), ("series", series)):
        if not isinstance(x, (tuple, list)):
            raise TypeError(
                f"jet: {what} must be a tuple or list with one entry for each argument of"
                f" {name_of(fun)}, got {x!r}"
            )
    if len(primals) != len(series):
        raise ValueError(
            f"jet: {name_of(fun)} is given {len(primals)} primals but {len(series)} series: one is"
            " needed for each"
        )
    for i, s in enumerate(series):
        if not isinstance(s, (tuple, list)):
            raise TypeError(f"jet: series[{i}] must be a tuple or list of terms, got {s!r}")
    lengths = [len(s) for s in series]
    if len(set(lengths)) != 1:
        known = ", ".join(f"series[{i}] has {n}" for i, n in enumerate(lengths))
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments of"
            f" {name_of(fun)}: {known or 'there are no arguments'}"
        )
    return lengths[0]


def _logistic_taylor(primals: Sequence[Any], series: Sequence[Any]) -> Any:
    """The series of the logistic function, under the name by which JAX's tests ask for it."""
    return jet(logistic, primals, series)


def _value(x: Any, i: int, name: str) -> Any:
    try:
        return to_array(x)
    except TypeError:
        raise ValueError(
            f"primal value at position {i} is not an array: jet of {name} takes arrays and numbers."
            f" Give {name} the leaves of containers as separate arguments"
        ) from None


def _terms(
    x: Any, terms: Sequence[Any], i: int, factors: Sequence[float], name: str
) -> list[Any] | None:
    aval = typeof(x)
    if not has_tangent(aval):
        for n, t in enumerate(terms):
            if getattr(t, "dtype", None) != float0 and not (
                isinstance(t, (int, float, np.ndarray)) and not np.any(t)
            ):
                raise TypeError(
                    f"jet: primals[{i}] of {name} has type {type_text(aval)}, which is constant"
                    f" along every curve: series[{i}][{n}] must be 0. Convert the argument to a"
                    " float to differentiate in it"
                )
        return None
    return [
        times(_term(t, aval, i, n, name), 1 / f) for n, (t, f) in enumerate(zip(terms, factors))
    ]


def _term(t: Any, aval: ShapedArray, i: int, n: int, name: str) -> Any:
    t = to_array(t)
    got = typeof(t)
    if got.shape != aval.shape:
        raise ValueError(
            f"jet: series[{i}][{n}] of {name} must have the shape of primals[{i}]: expected"
            f" {aval.shape}, got {got.shape}"
        )
    return convert(t, aval)


def _result(out: Any, terms: Sequence[Any] | None, factors: Sequence[float]) -> list[Any]:
    """The terms of one result as arrays; those of integers and booleans are zeros too."""
    aval = typeof(out)
    zero = zeros(aval if has_tangent(aval) else ShapedArray(aval.shape, canonicalize(float)))
    given = terms if terms is not None else [None] * len(factors)
    return [to_array(zero if t is None else times(t, f)) for t, f in zip(given, factors)]


jet2 = partial(jet, factorial_scaled=False)


def fact(n: Any) -> float:
    """Gives the factorial of a number.

    Args:
        n: The number.

    Returns:
        A float.

    >>> from calque.experimental.jet import fact
    >>> fact(4)
    24.0"""
    return float(math.factorial(n))


# ---------------------------------------------------------------- the table of rules


class _Rules(MutableMapping[Primitive, Callable[..., Any]]):
    """The rule of each primitive: rule(primals, series, **parameters) gives the results and their
    series, all of them Taylor coefficients without factorials. Rules that are set here go before
    those of calque, which come back when they are deleted.
    """

    def __getitem__(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive in given_rules:
            return given_rules[primitive]
        if not _has_series(primitive):
            raise KeyError(primitive)
        return partial(_series_of, primitive)

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        if not isinstance(primitive, Primitive):
            raise TypeError(f"jet_rules: a rule belongs to a primitive, got {primitive!r}")
        if not callable(rule):
            raise TypeError(f"jet_rules: the rule of {primitive} must be callable, got {rule!r}")
        given_rules[primitive] = rule

    def __delitem__(self, primitive: Primitive) -> None:
        del given_rules[primitive]

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in list(REGISTRY.values()) if p in given_rules or _has_series(p))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _has_series(p: Any) -> bool:
    if not isinstance(p, Primitive):
        return False
    return p.name in rules or p.name in program_rules or not isinstance(p.jvp, NotApplicable)


jet_rules = _Rules()


def _series_of(
    primitive: Primitive, primals: Sequence[Any], series: Sequence[Any], **params: Any
) -> tuple[Any, Any]:
    """What calque's own rule makes of primals and their series."""
    terms = [None if isinstance(s, ZeroSeries) else s for s in series]
    order = max((len(s) for s in terms if s is not None), default=0)

    def bound(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **params)
        return list(out) if primitive.multiple_results else [out]

    active = [s if has_tangent(typeof(x)) else None for x, s in zip(primals, terms)]
    outs, found = flat_jet(bound, list(primals), active, order, primitive)
    rows = [
        zero_series if s is None else [zeros(typeof(o)) if t is None else t for t in s]
        for o, s in zip(outs, found)
    ]
    return (outs, rows) if primitive.multiple_results else (outs[0], rows[0])


def zero_prop(
    prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any
) -> tuple[Any, Any]:
    """The rule of a primitive whose result is constant along curves.

    Args:
        prim: The primitive.
        primals_in: The operands.
        series_in: Their series.
        **params: The parameters of the primitive.

    Returns:
        A pair: the result, and no series.

    >>> from calque.experimental import jet
    >>> jet.zero_prop(lax.floor_p, (1.5,), ([1.0],))[0]
    Array(1., dtype=float32, weak_type=True)"""
    return prim.bind(*primals_in, **params), zero_series


def defzero(prim: Primitive) -> None:
    """Makes `zero_prop` the rule of a primitive.

    Args:
        prim: The primitive.

    >>> from calque.experimental import jet
    >>> p = jax.extend.core.Primitive("constant")
    >>> jet.defzero(p)"""
    jet_rules[prim] = partial(zero_prop, prim)


def linear_prop(
    prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any
) -> tuple[Any, Any]:
    """The rule of a primitive that is linear in all its operands together.

    Args:
        prim: The primitive.
        primals_in: The operands.
        series_in: Their series, of one length.
        **params: The parameters of the primitive.

    Returns:
        A pair: the result and its series.

    >>> from calque.experimental import jet
    >>> jet.linear_prop(lax.neg_p, (1.0,), ([2.0],))
    (Array(-1., dtype=float32, weak_type=True), [Array(-2., dtype=float32, weak_type=True)])"""
    terms = [prim.bind(*row, **params) for row in zip(*series_in)]
    return prim.bind(*primals_in, **params), list(zip(*terms)) if prim.multiple_results else terms


def deflinear(prim: Primitive) -> None:
    """Makes `linear_prop` the rule of a primitive.

    Args:
        prim: The primitive.

    >>> from calque.experimental import jet
    >>> p = jax.extend.core.Primitive("linear")
    >>> jet.deflinear(p)"""
    jet_rules[prim] = partial(linear_prop, prim)


def deriv_prop(
    prim: Primitive, deriv: Callable[..., Any], primals_in: Sequence[Any], series_in: Sequence[Any]
) -> tuple[Any, Any]:
    """The rule of a primitive of one operand whose derivative is known.

    Args:
        prim: The primitive.
        deriv: Its derivative, a function of arrays.
        primals_in: The operand, in a tuple.
        series_in: Its series, in a tuple.

    Returns:
        A pair: the result and its series.

    >>> from calque.experimental import jet
    >>> jet.deriv_prop(lax.sin_p, lax.cos, (0.0,), ([1.0],))
    (Array(0., dtype=float32, weak_type=True), [Array(1., dtype=float32, weak_type=True)])"""
    (x,), (series,) = primals_in, series_in
    slope, slopes = jet2(deriv, (x,), (series,))
    slopes, terms = [slope, *slopes], []
    for n in range(1, len(series) + 1):
        total = None
        for i in range(1, n + 1):
            part = do.mul(slopes[n - i], times(series[i - 1], i))
            total = part if total is None else do.add(total, part)
        terms.append(do.div(total, const(total, n)))
    return prim.bind(x), terms


def def_deriv(prim: Primitive, deriv: Callable[..., Any]) -> None:
    """Makes `deriv_prop` with this derivative the rule of a primitive.

    Args:
        prim: The primitive.
        deriv: Its derivative, a function of arrays.

    >>> from calque.experimental import jet
    >>> p = jax.extend.core.Primitive("sine")
    >>> jet.def_deriv(p, lax.cos)"""
    jet_rules[prim] = partial(deriv_prop, prim, deriv)


def def_comp(prim: Primitive, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Makes the series of a function the rule of a primitive that it computes.

    Args:
        prim: The primitive.
        comp: The function of arrays.
        **kwargs: Further arguments of `jet2`.

    >>> from calque.experimental.jet import def_comp, jet
    >>> cube_p = jax.extend.core.Primitive("cube")
    >>> _ = cube_p.def_impl(lambda x: x**3)
    >>> def_comp(cube_p, lambda x: x * x * x)
    >>> [float(t) for t in jet(cube_p.bind, (2.0,), ((1.0, 0.0),))[1]]
    [12.0, 12.0]"""
    jet_rules[prim] = partial(jet2, comp, **kwargs)


_guards.guard_public(globals())
