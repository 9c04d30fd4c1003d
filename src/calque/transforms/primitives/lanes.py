"""Lanes one after the other: what vmap makes of a `cond` or `while` that goes another way in each
lane.

The lanes become the rounds of a `scan` without a carry, whose body is the equation as it was
written for one lane. So each lane does its own work only, and every transformation knows the result
already: it is a loop over the lanes with the program of one lane inside. Lanes that must step
together (they speak to each other, or are called for as a batch) cannot be parted so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Var, subjaxprs
from calque.core.primitives import Primitive
from calque.core.trace import typeof
from calque.machine.state import process
from calque.ops.common import move
from calque.transforms.engines.axes import Axis, Collective
from calque.transforms.primitives.scan import scan_p

Dim = int | None

# primitive name -> rule(parameters): must a batch of such equations run as one?
together_rules: Final[dict[str, Callable[[dict[str, Any]], bool]]] = process.container(
    "rules of lanes together", {}
)

CHEAP = 2000  # operations that cost less than parting the lanes
DEAR = 20  # what an operation with a name in here costs beside an addition
# fmt: off
DEAR_NAMES = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "digamma",
    "drawn_erf", "drawn_exp", "drawn_log", "drawn_log1p", "drawn_pow", "drawn_tan",
    "erf", "erf_inv", "erfc", "exp",
    "exp2", "expm1", "lgamma", "log", "log1p", "logistic", "normal_erf_inv", "pow",
    "sin", "sinh", "sqrt", "rsqrt",
    "tan", "tanh",
))
# fmt: on


def together(axis: Axis, programs: Sequence[ClosedJaxpr]) -> bool:
    """Whether anything in these programs needs all lanes of the axis at the same time."""
    return axis.checked or axis.together or any(_speaks(axis, p.jaxpr) for p in programs)


def _speaks(axis: Axis, jaxpr: Jaxpr) -> bool:
    for e in jaxpr.eqns:
        p = e.primitive
        if isinstance(p, Collective) and axis.name is not None and axis.name in p.axes_of(e.params):
            return True
        rule = together_rules.get(p.name)
        if rule is not None and rule(e.params):
            return True
        if any(_speaks(axis, j) for j in subjaxprs(e.params)):
            return True
    return False


def cheap(programs: Sequence[ClosedJaxpr]) -> bool:
    """Whether running all of these programs, and choosing afterwards, is quicker than a choice for
    each lane."""
    return sum(_work(p.jaxpr) for p in programs) <= CHEAP


def _work(jaxpr: Jaxpr) -> float:
    """Operations of a program, roughly; without bound where it may loop for ever or has effects."""
    total = 0.0
    for e in jaxpr.eqns:
        name = e.primitive.name
        if name == "while" or e.primitive.effect:
            return float("inf")
        inner = [_work(j) for j in subjaxprs(e.params)]
        sizes = [v.aval.size for v in (*e.invars, *e.outvars)]
        if inner:
            total += sum(inner) * e.params.get("length", 1)
        elif name == "dot_general":
            (contracted, _), _ = e.params["dimension_numbers"]
            shape = e.invars[0].aval.shape
            total += 2 * sizes[-1] * _product([shape[d] for d in contracted])
        else:
            total += max(sizes, default=0) * (DEAR if name in DEAR_NAMES else 1)
    return total


def _product(xs: Sequence[int]) -> int:
    n = 1
    for x in xs:
        n *= x
    return n


def one_by_one(
    primitive: Primitive,
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    params: dict[str, Any],
) -> tuple[list[Any], list[Dim]]:
    """The results of an equation for each lane in turn: `primitive[params]` of the lanes of
    `args`."""
    fixed = [i for i, d in enumerate(dims) if d is None]
    mapped = [i for i, d in enumerate(dims) if d is not None]
    body = _body(
        primitive, [_lane_aval(x, d) for x, d in zip(args, dims)], [*fixed, *mapped], params
    )
    xs = [move(args[i], d, 0) for i in mapped if (d := dims[i]) is not None]
    outs = scan_p.bind(
        *[args[i] for i in fixed],
        *xs,
        jaxpr=body,
        length=axis.size,
        num_carry=0,
        num_consts=len(fixed),
        reverse=False,
        unroll=1,
    )
    return outs, [0] * len(outs)


def _lane_aval(x: Any, dim: Dim) -> ShapedArray:
    aval = typeof(x)
    return (
        aval
        if dim is None
        else ShapedArray(aval.shape[:dim] + aval.shape[dim + 1 :], aval.dtype, aval.weak_type)
    )


def _body(
    primitive: Primitive, avals: Sequence[ShapedArray], order: Sequence[int], params: dict[str, Any]
) -> ClosedJaxpr:
    """One equation as a program, with its operands as arguments in this order. The same program for
    an equation with the same programs inside."""
    programs = [
        p
        for v in params.values()
        for p in (v if isinstance(v, tuple) else (v,))
        if isinstance(p, ClosedJaxpr)
    ]
    if not programs:
        return _equation(primitive, avals, order, params)
    key = ("lane", primitive.name, tuple(avals), tuple(order), tuple(programs))
    cache = programs[0].cache
    if key not in cache:
        cache[key] = _equation(primitive, avals, order, params)
    return cache[key]


def _equation(
    primitive: Primitive, avals: Sequence[ShapedArray], order: Sequence[int], params: dict[str, Any]
) -> ClosedJaxpr:
    operands = [Var(a) for a in avals]
    results = [Var(a) for a in primitive.shape(*avals, **params)]
    jaxpr = Jaxpr(
        [], [operands[i] for i in order], results, [Eqn(primitive, operands, results, params)]
    )
    return ClosedJaxpr(jaxpr)
