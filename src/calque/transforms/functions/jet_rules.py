"""The series of the primitives that are linear, bilinear or quotients, and of those that hold
programs.

All others follow from their jvp rules."""

from collections.abc import Callable, Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import Primitive, do
from calque.core.trace import typeof
from calque.ops.common import const, spread
from calque.transforms.engines.zeros import tangent_aval, zeros
from calque.transforms.functions.jet import (
    JetTrace,
    Mask,
    Rule,
    Term,
    by_argument,
    coefficients,
    jet_jaxpr,
    program_rules,
    rules,
    scaled,
)
from calque.transforms.primitives.call import CallPrimitive
from calque.transforms.primitives.cond import bind_cond
from calque.transforms.primitives.flow import rearranged, split, with_inputs
from calque.transforms.primitives.scan import bind_scan
from calque.transforms.primitives.while_loop import bind_while, carry_fixpoint

# ---------------------------------------------------------------- linear and bilinear


def _sum(parts: Sequence[Any]) -> Any:
    """The sum of the coefficients that are not None."""
    total = None
    for p in parts:
        if p is not None:
            total = p if total is None else do.add_any(total, p)
    return total


def _linear(positions: Callable[[int], Sequence[int]]) -> Rule:
    """Linear in the operands at `positions(number of operands)` together: coefficient by
    coefficient."""

    def rule(
        trace: JetTrace, p: Primitive, outs: Any, args: Sequence[Any], params: dict[str, Any]
    ) -> Term | None:
        where = set(positions(len(args)))
        if any([trace.owns(a) and i not in where for i, a in enumerate(args)]):
            return None

        def terms(n: int) -> Any:
            found = [trace.coefficient(a, n) if i in where else a for i, a in enumerate(args)]
            if all([found[i] is None for i in where]):
                return None
            return p.bind(
                *[zeros(tangent_aval(typeof(a))) if c is None else c for a, c in zip(args, found)],
                **params,
            )

        return terms

    return rule


def _additive(
    trace: JetTrace, p: Primitive, out: Any, args: Sequence[Any], params: dict[str, Any]
) -> Term:
    shape = typeof(out).shape

    def terms(n: int) -> Any:
        a, b = [trace.coefficient(x, n) for x in args]
        if b is not None and p.name == "sub":
            b = do.neg(b)
        return _sum([None if c is None else spread(c, shape) for c in (a, b)])

    return terms


def _products(
    trace: JetTrace, x: Any, y: Any, n: int, first: int, product: Callable[[Any, Any], Any]
) -> Any:
    """The sum of x[i] y[n - i] for i from `first` to n."""
    parts = []
    for i in range(first, n + 1):
        a, b = trace.coefficient(x, i), trace.coefficient(y, n - i)
        parts.append(None if a is None or b is None else product(a, b))
    return _sum(parts)


def _bilinear(
    trace: JetTrace, p: Primitive, out: Any, args: Sequence[Any], params: dict[str, Any]
) -> Term:
    x, y, *rest = args
    return lambda n: _products(trace, x, y, n, 0, lambda a, b: p.bind(a, b, *rest, **params))


def _square(
    trace: JetTrace, p: Primitive, out: Any, args: Sequence[Any], params: dict[str, Any]
) -> Term:
    (x,) = args

    def terms(n: int) -> Any:
        half = (n + 1) // 2
        parts = [(trace.coefficient(x, i), trace.coefficient(x, n - i)) for i in range(half)]
        total = scaled(
            _sum([None if a is None or b is None else do.mul(a, b) for a, b in parts]), 2
        )
        middle = trace.coefficient(x, half) if n % 2 == 0 else None
        return _sum([total, None if middle is None else do.square(middle)])

    return terms


def _div(
    trace: JetTrace, p: Primitive, out: Any, args: Sequence[Any], params: dict[str, Any]
) -> Term:
    """From y b = a: y[n] = (a[n] - the sum of b[i] y[n - i] for i from 1) / b[0]."""
    a, b = args
    shape, bottom = typeof(out).shape, trace.primal(b)
    known = [out]

    def terms(n: int) -> Any:
        y = trace.tracer(known[0], lambda i: known[i])
        lower = _products(trace, b, y, n, 1, do.mul)
        top = trace.coefficient(a, n)
        parts = [
            None if top is None else spread(top, shape),
            None if lower is None else do.neg(lower),
        ]
        total = _sum(parts)
        known.append(None if total is None else do.div(total, bottom))
        return known[n]

    return terms


def _integer_pow(
    trace: JetTrace, p: Primitive, out: Any, args: Sequence[Any], params: dict[str, Any]
) -> Term:
    """By repeated squaring."""
    n: int = params["y"]
    base = args[0]
    if n == 0:
        return lambda _: None
    if n < 0:
        inverse: Any = do.div(const(base, 1), base if n == -1 else do.integer_pow(base, y=-n))
        return inverse.coefficient  # type: ignore[no-any-return]
    whole: Any = None
    while n:
        if n & 1:
            whole = base if whole is None else do.mul(whole, base)
        n >>= 1
        base = do.square(base) if n else base
    return whole.coefficient  # type: ignore[no-any-return]


def _FIRST(n: int) -> Sequence[int]:
    return (0,)


def _ALL(n: int) -> Sequence[int]:
    return range(n)


for _name in (
    "all_gather",
    "all_to_all",
    "broadcast_in_dim",
    "conj",
    "convert_element_type",
    "copy",
    "cumsum",
    "dynamic_slice",
    "fft",
    "gather",
    "imag",
    "name",
    "neg",
    "ppermute",
    "psum",
    "psum_invariant",
    "pvary",
    "real",
    "reduce_precision",
    "reduce_scatter",
    "reduce_sum",
    "reduce_window_sum",
    "reshape",
    "rev",
    "select_and_scatter_add",
    "sharding_constraint",
    "device_put",
    "slice",
    "split",
    "squeeze",
    "tile",
    "transpose",
    "unstack",
):
    rules[_name] = _linear(_FIRST)
for _name in ("complex", "concatenate", "optimization_barrier", "pad", "stack"):
    rules[_name] = _linear(_ALL)
rules["dynamic_update_slice"] = _linear(lambda n: (0, 1))
rules["scatter-add"] = rules["scatter-sub"] = _linear(lambda n: (0, 2))
rules["select_n"] = _linear(lambda n: range(1, n))
rules["triangular_solve"] = _linear(lambda n: (1,))
for _name in ("add", "add_any", "sub"):
    rules[_name] = _additive
for _name in ("mul", "dot_general", "conv_general_dilated", "ragged_dot_general"):
    rules[_name] = _bilinear
rules.update(square=_square, div=_div, integer_pow=_integer_pow)

# ---------------------------------------------------------------- programs


def _series(trace: JetTrace, args: Sequence[Any], mask: Sequence[bool]) -> list[list[Any] | None]:
    """The coefficients 1 .. order of the arguments in `mask`."""
    orders = range(1, trace.order + 1)
    return [[trace.coefficient(a, n) for n in orders] if m else None for a, m in zip(args, mask)]


def _active(trace: JetTrace, args: Sequence[Any]) -> Mask:
    return tuple([trace.owns(a) for a in args])


def _tracers(
    trace: JetTrace, outs: Sequence[Any], mask: Sequence[bool], flat: Sequence[Any]
) -> list[Any]:
    """Results with their coefficients, which come in a row."""
    return [
        o if s is None else trace.given(o, s)
        for o, s in zip(outs, by_argument(flat, mask, trace.order))
    ]


def _flattened(
    trace: JetTrace, args: Sequence[Any], mask: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    """The arguments without their series, and the coefficients of those in `mask` in a row."""
    primals = [trace.primal(a) for a in args]
    return primals, coefficients(primals, _series(trace, args, mask))


def _call(
    trace: JetTrace, p: CallPrimitive, args: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any
) -> list[Any]:
    active = _active(trace, args)
    whole, mask = jet_jaxpr(jaxpr, active, trace.order)
    primals, flat = _flattened(trace, args, active)
    outs, found = split(p.call(whole, [*primals, *flat], params), len(mask))
    return _tracers(trace, outs, mask, found)


def _cond(
    trace: JetTrace, p: Primitive, args: Sequence[Any], *, branches: Sequence[ClosedJaxpr]
) -> list[Any]:
    index, operands = trace.primal(args[0]), args[1:]
    active = _active(trace, operands)
    masks = [jet_jaxpr(b, active, trace.order)[1] for b in branches]
    some = tuple([any(m) for m in zip(*masks)])
    whole = tuple([jet_jaxpr(b, active, trace.order, some)[0] for b in branches])
    primals, flat = _flattened(trace, operands, active)
    outs, found = split(bind_cond(index, [*primals, *flat], whole), len(some))
    return _tracers(trace, outs, some, found)


def _scan(
    trace: JetTrace,
    p: Primitive,
    args: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> list[Any]:
    order, n_ys = trace.order, len(jaxpr.jaxpr.outvars) - num_carry
    rows = len(args) - num_consts - num_carry

    def outs_of(m: Sequence[bool]) -> Sequence[bool]:
        return jet_jaxpr(jaxpr, (*m, *_active(trace, args)[num_consts + num_carry :]), order)[1][
            :num_carry
        ]

    before = _active(trace, args)[: num_consts + num_carry]
    active = (
        *carry_fixpoint(before, num_consts, outs_of),
        *_active(trace, args)[num_consts + num_carry :],
    )
    wanted = active[num_consts : num_consts + num_carry] + (False,) * n_ys
    whole, mask = jet_jaxpr(jaxpr, active, order, wanted)
    # the program takes (values, coefficients) and gives the same: bring constants, carry and rows
    # together
    n, counts = len(active), [order * sum(m) for m in split(active, num_consts, num_carry)]
    values = split(range(n), num_consts, num_carry)
    slots = split(range(n, n + sum(counts)), *counts[:2])
    outs = split(range(len(mask) + order * sum(mask)), num_carry, n_ys, counts[1])
    body = rearranged(
        whole,
        [i for v, s in zip(values, slots) for i in (*v, *s)],
        [*outs[0], *outs[2], *outs[1], *outs[3]],
    )
    parts = [
        [x for part in _flattened(trace, a, m) for x in part]
        for a, m in zip(split(args, num_consts, num_carry), split(active, num_consts, num_carry))
    ]
    assert len(parts[2]) == rows + counts[2]
    carry, carry_s, ys, ys_s = split(
        bind_scan(*parts, jaxpr=body, **params), num_carry, counts[1], n_ys
    )
    return _tracers(trace, [*carry, *ys], mask, [*carry_s, *ys_s])


def _while(
    trace: JetTrace,
    p: Primitive,
    args: Sequence[Any],
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[Any]:
    order = trace.order
    cond_consts, body_consts, init = split(args, cond_nconsts, body_nconsts)
    active = carry_fixpoint(
        _active(trace, args)[cond_nconsts:],
        body_nconsts,
        lambda m: jet_jaxpr(body_jaxpr, m, order)[1],
    )
    c_on, carry_on = active[:body_nconsts], active[body_nconsts:]
    whole, mask = jet_jaxpr(body_jaxpr, active, order, carry_on)
    c, v, c_s, v_s = split(
        range(len(whole.jaxpr.invars)), body_nconsts, len(init), order * sum(c_on)
    )
    body = rearranged(whole, [*c, *c_s, *v, *v_s])
    consts, consts_s = _flattened(trace, body_consts, c_on)
    values, values_s = _flattened(trace, init, carry_on)
    cond = with_inputs(
        cond_jaxpr, [*range(len(cond_jaxpr.jaxpr.invars)), *(typeof(s) for s in values_s)]
    )
    found = bind_while(
        [trace.primal(x) for x in cond_consts],
        [*consts, *consts_s],
        [*values, *values_s],
        cond_jaxpr=cond,
        body_jaxpr=body,
    )
    outs, flat = split(found, len(init))
    return _tracers(trace, outs, mask, flat)


program_rules.update(
    {
        "jit": _call,
        "closed_call": _call,
        "call": _call,
        "remat2": _call,
        "cond": _cond,
        "scan": _scan,
        "while": _while,
    }
)
