"""Taylor mode: a trace whose values carry the coefficients of a power series in one parameter.

Most primitives need no rule of their own. If y = p(x) then y' is what the jvp rule of p makes of x
and x'. Run on series whose coefficients are computed when they are asked for, that rule is a
recurrence: coefficient n of y is coefficient n - 1 of y', divided by n, and reads only lower ones.
Where a rule meets the same operation again (y' = y x' for exp, sine within cosine) it finds the
series that is being computed, so the work grows with the square of the order."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import leaks, trace_state
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import Primitive, Zero, do
from calque.core.trace import check_alive, jaxpr_as_fun, leaked, trace_to_jaxpr, typeof
from calque.core.trace_state import OwnTracer, Trace, Tracer
from calque.machine.state import process
from calque.ops.common import const, scalar_of
from calque.transforms.engines.zeros import has_tangent, tangent_aval, zero_like, zeros

Mask = tuple[bool, ...]
Term = Callable[[int], Any]


class ZeroTerm:
    """A coefficient that is zero, among those that a rule gives.

    >>> from calque.experimental import jet
    >>> type(jet.zero_term) is jet.ZeroTerm
    True"""


class ZeroSeries:
    """A series that is zero altogether, as a rule gives it.

    >>> from calque.experimental import jet
    >>> type(jet.zero_series) is jet.ZeroSeries
    True"""


GivenRule = Callable[..., tuple[Any, Any]]
# rule(primals, series, **parameters) -> (results, series of the results)
given_rules: Final[dict[Primitive, GivenRule]] = process.container("rules of series of users", {})


class JetTracer(OwnTracer):
    """A value with a power series in one parameter, while a function is run along a curve.

    >>> from calque.experimental import jet
    >>> hasattr(jet.JetTracer, "coefficient")
    True"""

    __slots__ = ("_derivative", "_rule", "_terms")

    _terms: list[Any]
    _rule: Term
    _derivative: "JetTracer | Zero | None"

    @property
    def primal(self) -> Any:
        return self._terms[0]

    def coefficient(self, n: int) -> Any:
        """Gives a coefficient of the series.

        Args:
            n: Its order.

        Returns:
            An array, or None where it is known to be zero."""
        while len(self._terms) <= n:
            self._terms.append(self._rule(len(self._terms)))
        return self._terms[n]


class JetTrace(Trace):
    """Computes the series of results from the series of operands.

    Args:
        order: The highest order.
        builtin: A primitive whose own rule is asked for, also where somebody gave another one; or
            None.

    >>> from calque.experimental import jet
    >>> jet.JetTrace(2).order
    2"""

    function = ""

    def __init__(self, order: int, builtin: Primitive | None = None):
        self.order, self.builtin = order, builtin
        self.known: dict[Any, tuple[Any, Any]] | None = (
            None  # what the running rule has computed; None outside of rules
        )

    def tracer(self, primal: Any, rule: Term) -> JetTracer:
        """Makes a value with a series.

        Args:
            primal: The value.
            rule: Gives the coefficient of an order.

        Returns:
            A JetTracer."""
        t = JetTracer()
        t._trace, t.aval, t._terms, t._rule, t._derivative = (
            self,
            typeof(primal),
            [primal],
            rule,
            None,
        )
        return t

    def given(self, primal: Any, series: Sequence[Any]) -> JetTracer:
        """Makes a value whose coefficients are given.

        Args:
            primal: The value.
            series: The coefficients of order 1, 2, ...

        Returns:
            A JetTracer."""
        return self.tracer(primal, lambda n: series[n - 1] if n <= self.order else None)

    def owns(self, x: Any) -> bool:
        """Tells whether a value has a series of this trace.

        Args:
            x: The value.

        Returns:
            A bool."""
        return type(x) is JetTracer and x._trace is self

    def primal(self, x: Any) -> Any:
        """Gives a value without its series.

        Args:
            x: The value.

        Returns:
            A value."""
        if self.owns(x):
            return x.primal
        if isinstance(x, Tracer):
            check_alive(x)
        return x

    def coefficient(self, x: Any, n: int) -> Any:
        """Gives a coefficient of any value.

        Args:
            x: The value.
            n: The order.

        Returns:
            An array, or None where it is zero."""
        if self.owns(x):
            return x.coefficient(n)
        return x if n == 0 else None

    def derivative(self, x: Any) -> Any:
        """Gives the derivative of a value with respect to the parameter.

        Args:
            x: The value.

        Returns:
            A value with a series, or Zero."""
        if not self.owns(x):
            return zero_like(x)
        if x._derivative is None:
            first = x.coefficient(1)
            first = zeros(tangent_aval(x.aval)) if first is None else first
            x._derivative = self.tracer(first, lambda n: scaled(x.coefficient(n + 1), n + 1))
        return x._derivative

    def settled(self, x: Any) -> Any:
        """Computes all coefficients of a value.

        Args:
            x: The value.

        Returns:
            The value; without a series if all coefficients are zero."""
        if not self.owns(x):
            return x
        x.coefficient(self.order)
        return x if any(c is not None for c in x._terms[1 : self.order + 1]) else x.primal

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Gives the results of an operation, with their series.

        Args:
            primitive: The operation.
            args: The operands.
            params: The parameters.

        Returns:
            A value, or a list of values."""
        if self.done:
            raise leaked(next((a for a in args if isinstance(a, Tracer)), None), self)
        if self.known is not None:
            return self.result(primitive, args, params)
        self.known = {}
        own = self.given_rule(primitive)
        try:
            outs = (
                self.result(primitive, args, params)
                if own is None
                else self.ruled(own, primitive, args, params)
            )
            return (
                [self.settled(o) for o in outs]
                if primitive.multiple_results
                else self.settled(outs)
            )
        finally:
            self.known = None

    def result(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Gives the results of an operation, which the running rule may have computed before.

        Args:
            primitive: The operation.
            args: The operands.
            params: The parameters.

        Returns:
            A value, or a list of values."""
        key = _key(primitive, args, params)
        if key is None:
            return self.evaluated(primitive, args, params)
        assert self.known is not None
        if key not in self.known:
            self.known[key] = (
                self.evaluated(primitive, args, params),
                args,
            )  # the arguments live as long as their ids
        return self.known[key][0]

    def evaluated(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Computes the results of an operation, with their series.

        Args:
            primitive: The operation.
            args: The operands.
            params: The parameters.

        Returns:
            A value, or a list of values."""
        if not any([self.owns(a) for a in args]):
            return primitive.bind(*[self.primal(a) for a in args], **params)
        own = self.given_rule(primitive)
        program = program_rules.get(primitive.name)
        if program is not None and own is None:
            return program(self, primitive, args, **params)
        outs = primitive.bind(*[self.primal(a) for a in args], **params)
        rule = rules.get(primitive.name)
        terms: Term | None = None
        if own is not None:

            def terms_by_own_rule(n: int) -> Any:
                return _last(primitive, self.by_rule(own, primitive, args, params, n)[1])

            terms = terms_by_own_rule
        elif rule is not None:
            terms = rule(self, primitive, outs, args, params)
        if terms is None:
            terms = _integrated(self, primitive, args, params)
        if primitive.multiple_results:
            return [self.with_terms(o, _component(terms, i)) for i, o in enumerate(outs)]
        return self.with_terms(outs, terms)

    def given_rule(self, primitive: Primitive) -> GivenRule | None:
        """Gives the rule that somebody gave for an operation.

        Args:
            primitive: The operation.

        Returns:
            The rule, or None."""
        return given_rules.get(primitive) if primitive is not self.builtin else None

    def ruled(
        self, rule: GivenRule, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """Gives the results of a rule that somebody gave, with all their coefficients at once.

        Args:
            rule: The rule.
            primitive: The operation.
            args: The operands.
            params: The parameters.

        Returns:
            A value, or a list of values."""
        if not any([self.owns(a) for a in args]):
            return primitive.bind(*args, **params)
        outs, series = self.by_rule(rule, primitive, args, params, self.order)

        def with_series(out: Any, s: Any) -> Any:
            return self.given(out, s) if has_tangent(typeof(out)) else out

        return (
            list(map(with_series, outs, series))
            if primitive.multiple_results
            else with_series(outs, series)
        )

    def by_rule(
        self,
        rule: GivenRule,
        primitive: Primitive,
        args: Sequence[Any],
        params: dict[str, Any],
        order: int,
    ) -> tuple[Any, Any]:
        """Gives what a rule that somebody gave makes of the operands, up to an order.

        Args:
            rule: The rule.
            primitive: The operation.
            args: The operands.
            params: The parameters.
            order: The order.

        Returns:
            A pair: the results and their series."""
        primals, orders = [self.primal(a) for a in args], range(1, order + 1)
        series = [[self.coefficient(a, n) for n in orders] for a in args]
        filled = [
            [zeros(typeof(p)) if c is None else c for c in s] if None in s else s
            for p, s in zip(primals, series)
        ]
        outs, found = rule(primals, filled, **params)
        if not primitive.multiple_results:
            return outs, _checked(primitive, outs, found, order)
        found = [found] * len(outs) if isinstance(found, ZeroSeries) else list(found)
        return list(outs), [
            _checked(primitive, o, s, order) for o, s in zip(outs, found, strict=True)
        ]

    def with_terms(self, out: Any, terms: Term) -> Any:
        """Gives a result its series, where it has a derivative.

        Args:
            out: The result.
            terms: Gives the coefficient of an order.

        Returns:
            A value."""
        return self.tracer(out, terms) if has_tangent(typeof(out)) else out


def _checked(primitive: Primitive, out: Any, series: Any, order: int) -> list[Any]:
    """The coefficients that a given rule found for one result; None where they are zero."""
    if isinstance(series, ZeroSeries) or series is None:
        return [None] * order
    terms = [None if isinstance(t, ZeroTerm) else t for t in series]
    if len(terms) != order:
        raise ValueError(
            f"the jet rule of {primitive.name} gave {len(terms)} terms where {order} are expected"
        )
    shape = typeof(out).shape
    for n, t in enumerate(terms):
        if t is not None and typeof(t).shape != shape:
            raise ValueError(
                f"the jet rule of {primitive.name} gave term {n} with shape {typeof(t).shape}; the"
                f" result has {shape}"
            )
    return terms


def _last(primitive: Primitive, series: Any) -> Any:
    return [s[-1] for s in series] if primitive.multiple_results else series[-1]


def _component(terms: Term, i: int) -> Term:
    """The coefficients of one of several results, all of which `terms` computes at once."""

    def term(n: int) -> Any:
        found = terms(n)
        return None if found is None else found[i]

    return term


def _key(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """What makes two applications the same; None if that cannot be told."""
    key = (primitive.name, tuple([id(a) for a in args]), tuple(params.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def scaled(x: Any, factor: int) -> Any:
    """`factor` times a coefficient."""
    return x if x is None or factor == 1 else do.mul(x, const(x, factor))


def _integrated(
    trace: JetTrace, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> Term:
    """The coefficients of any primitive that has a jvp rule."""
    found: list[Any] = []

    def terms(n: int) -> Any:
        if not found:
            _, tangents = primitive.jvp(list(args), [trace.derivative(a) for a in args], **params)
            found.append(tangents)
        if primitive.multiple_results:
            return [_divided(_term_of(trace, t, n - 1), n) for t in found[0]]
        return _divided(_term_of(trace, found[0], n - 1), n)

    return terms


def _term_of(trace: JetTrace, t: Any, n: int) -> Any:
    return None if type(t) is Zero else trace.coefficient(t, n)


def _divided(x: Any, n: int) -> Any:
    return x if x is None or n == 1 else do.div(x, const(x, n))


# ---------------------------------------------------------------- rules
#
# rule(trace, primitive, results, arguments, parameters) -> (n -> coefficient n of the results), or
# None where it does not apply. A program rule does all of it: rule(trace, primitive, arguments,
# **parameters) -> results with their series.

Rule = Callable[[JetTrace, Primitive, Any, Sequence[Any], dict[str, Any]], Term | None]
rules: Final[dict[str, Rule]] = process.container("rules of series", {})
program_rules: Final[dict[str, Callable[..., list[Any]]]] = process.container(
    "rules of series through programs", {}
)


# ---------------------------------------------------------------- functions and programs


def jet(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any] | None],
    order: int,
    builtin: Primitive | None = None,
) -> tuple[list[Any], list[list[Any] | None]]:
    """Results of `fun`, a function of flat arguments with a flat list of results, and the
    coefficients 1 .. order of each.

    An argument or result without a series has None; a coefficient that is None is zero. `builtin`
    keeps its own rule though another was given."""
    trace = JetTrace(order, builtin)
    with trace_state.entered(trace):
        args = [x if s is None else trace.given(x, s) for x, s in zip(primals, series, strict=True)]
        outs = [trace.settled(o) for o in fun(*[trace.settled(a) for a in args])]
        found = [o._terms[1 : order + 1] if trace.owns(o) else None for o in outs]
        values = [trace.primal(o) for o in outs]
    del args, outs
    leaks.check([trace])
    return values, found


def jet_jaxpr(
    closed: ClosedJaxpr, active: Mask, order: int, wanted: Mask | bool = False
) -> tuple[ClosedJaxpr, Mask]:
    """The program of (arguments, coefficients of the active ones) -> (results, coefficients of
    those that have a series).

    Coefficients come argument by argument, `order` of each. The results in `wanted` have them
    though they be zero.
    """
    if isinstance(wanted, tuple):
        found = jet_jaxpr(closed, active, order)
        if all(m or not w for m, w in zip(found[1], wanted, strict=True)):
            return found
    key = ("jet", active, order, wanted, tuple(given_rules.items()))
    if key not in closed.cache:
        closed.cache[key] = _jet_jaxpr(closed, active, order, wanted)
    return closed.cache[key]


def _jet_jaxpr(
    closed: ClosedJaxpr, active: Mask, order: int, wanted: Mask | bool
) -> tuple[ClosedJaxpr, Mask]:
    avals = closed.in_avals
    forced = (wanted,) * len(closed.jaxpr.outvars) if isinstance(wanted, bool) else wanted
    mask: Mask = ()

    def whole(*args: Any) -> list[Any]:
        nonlocal mask
        outs, found = jet(
            jaxpr_as_fun(closed),
            args[: len(avals)],
            by_argument(args[len(avals) :], active, order),
            order,
        )
        found = [
            [None] * order if s is None and w and has_tangent(typeof(o)) else s
            for o, s, w in zip(outs, found, forced)
        ]
        mask = tuple([s is not None for s in found])
        return outs + coefficients(outs, found)

    extra = [tangent_aval(a) for a, m in zip(avals, active, strict=True) if m for _ in range(order)]
    return trace_to_jaxpr(whole, avals + extra, "jet"), mask


def by_argument(flat: Sequence[Any], mask: Sequence[bool], order: int) -> list[list[Any] | None]:
    """Coefficients in a row as one list for each value that has a series."""
    rest = iter(flat)
    return [[next(rest) for _ in range(order)] if m else None for m in mask]


def coefficients(values: Sequence[Any], series: Sequence[Sequence[Any] | None]) -> list[Any]:
    """The inverse of `by_argument`, with arrays of zeros where a coefficient is None."""
    return [
        zeros(tangent_aval(typeof(v))) if c is None else c
        for v, s in zip(values, series, strict=True)
        if s is not None
        for c in s
    ]


def factorials(order: int) -> list[int]:
    """1!, 2!, ..., order!"""
    out = [1]
    for n in range(2, order + 1):
        out.append(out[-1] * n)
    return out[:order]


def times(x: Any, factor: float) -> Any:
    """A coefficient times a number, in its own dtype."""
    return x if x is None or factor == 1 else do.mul(x, scalar_of(typeof(x).dtype, factor))
