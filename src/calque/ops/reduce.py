"""Reduction with any associative function of the user's, `reduce`, written as a small program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.arrays import all_concrete
from calque.core.avals import ShapedArray
from calque.core.dims import whole
from calque.core.jaxprs import ClosedJaxpr, Literal, Var
from calque.core.primitives import REGISTRY, Primitive, Zero, do
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops.associative import axes_in_front, fold
from calque.ops.common import (
    batch_size,
    check_initial_values,
    filled,
    front,
    initial_value,
    instantiate,
    tangent_aval,
    zero_like,
)
from calque.ops.common import operand as as_operand
from calque.ops.kinds import not_linear
from calque.ops.reductions import check_axes, is_identity, shifted_axes

if TYPE_CHECKING:
    from calque.core.generics import Asked

# ---------------------------------------------------------------- meaning


def _meaning(*args: np.ndarray, jaxpr: Any, dimensions: tuple[int, ...]) -> list[np.ndarray]:
    """Element by element in row-major order, from the initial values."""
    n = len(args) // 2
    xs, inits = args[:n], args[n:]
    rows = [np.moveaxis(x, dimensions, range(len(dimensions))) for x in xs]
    count = math.prod(xs[0].shape[d] for d in dimensions)
    rows = [r.reshape((count, *r.shape[len(dimensions) :])) for r in rows]
    out = [np.full(r.shape[1:], i, r.dtype) for r, i in zip(rows, inits)]
    for place in product(*(range(d) for d in out[0].shape)):
        state: list[Any] = [o[place] for o in out]
        for i in range(len(rows[0])):
            state = _run(jaxpr, [*state, *(r[(i, *place)] for r in rows)])
        for o, s in zip(out, state):
            o[place] = s
    return out


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[np.ndarray]:
    env: dict[Var, Any] = dict(zip(closed.jaxpr.constvars, map(np.asarray, closed.consts)))
    env.update(zip(closed.jaxpr.invars, map(np.asarray, args)))

    def read(a: Var | Literal) -> Any:
        return env[a] if isinstance(a, Var) else np.asarray(a.val)

    for e in closed.jaxpr.eqns:
        out = e.primitive.meaning(*[read(a) for a in e.invars], **e.params)
        for v, x in zip(e.outvars, out if e.primitive.multiple_results else (out,)):
            env[v] = np.asarray(x)
    return [read(a) for a in closed.jaxpr.outvars]


# ---------------------------------------------------------------- rules


def _shape(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]
) -> list[ShapedArray]:
    n = len(avals) // 2
    for x, init in zip(avals[:n], avals[n:]):
        if x.shape != avals[0].shape:
            raise TypeError(
                f"reduce: operands must have equal shapes, got {[a.shape for a in avals[:n]]}"
            )
        if init.shape or init.dtype != x.dtype:
            raise TypeError(
                "reduce: the initial value must be a scalar of the operand's dtype, got"
                f" {init.str_short()} for {x.str_short()}"
            )
        check_axes("reduce", dimensions, x)
    if [(v.shape, v.dtype) for v in jaxpr.out_avals] != [((), x.dtype) for x in avals[:n]]:
        got = ", ".join(v.str_short() for v in jaxpr.out_avals)
        raise TypeError(
            f"reduce: the function must give scalars of the operands' dtypes, got {got}"
        )
    kept = tuple(d for i, d in enumerate(avals[0].shape) if i not in dimensions)
    return [ShapedArray(kept, x.dtype, x.weak_type) for x in avals[:n]]


def over_arrays(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """A program of scalars applied elementwise to arrays of one shape, by the batching rules of its
    equations."""
    shape = typeof(args[0]).shape

    def flat(x: Any, s: tuple[Any, ...]) -> Any:
        return do.reshape(x, new_sizes=s)

    size = typeof(args[0]).size
    env: dict[Var, tuple[Any, int | None]] = {
        v: (c, None) for v, c in zip(closed.jaxpr.constvars, closed.consts)
    }
    env.update((v, (flat(x, (size,)), 0)) for v, x in zip(closed.jaxpr.invars, args))

    def read(a: Var | Literal) -> Any:
        return env[a] if isinstance(a, Var) else (a.val, None)

    for e in closed.jaxpr.eqns:
        pairs = [read(a) for a in e.invars]
        values, dims = [x for x, _ in pairs], [d for _, d in pairs]
        if all(d is None for d in dims):
            out = e.primitive.bind(*values, **e.params)
            dims_out: Any = [None] * len(e.outvars)
        else:
            out, dims_out = e.primitive.batch(values, dims, **e.params)
            dims_out = dims_out if e.primitive.multiple_results else [dims_out]
        env.update(zip(e.outvars, zip(out if e.primitive.multiple_results else [out], dims_out)))
    outs = [read(a) for a in closed.jaxpr.outvars]
    return [flat(front(x, d, size), shape) for x, d in outs]


def tangent_program(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program of (a, b, tangent of a, tangent of b) that gives the results and their tangents,
    all instantiated."""
    found = closed.cache.get("reduce tangents")
    if found is None:
        avals = closed.in_avals
        found = trace_to_jaxpr(
            lambda *xs: _forward(closed, xs[: len(avals)], xs[len(avals) :]), [*avals, *avals]
        )
        closed.cache["reduce tangents"] = found
    return found


def _forward(closed: ClosedJaxpr, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    env: dict[Var, tuple[Any, Any]] = {
        v: (c, zero_like(c)) for v, c in zip(closed.jaxpr.constvars, closed.consts)
    }
    env.update(zip(closed.jaxpr.invars, zip(primals, tangents)))

    def read(a: Var | Literal) -> Any:
        return env[a] if isinstance(a, Var) else (a.val, zero_like(a.val))

    for e in closed.jaxpr.eqns:
        pairs = [read(a) for a in e.invars]
        out, t = e.primitive.jvp([p for p, _ in pairs], [t for _, t in pairs], **e.params)
        env.update(zip(e.outvars, zip(out, t) if e.primitive.multiple_results else [(out, t)]))
    outs = [read(a) for a in closed.jaxpr.outvars]
    return [x for x, _ in outs] + [instantiate(t) for _, t in outs]


def by_pairs(
    closed: ClosedJaxpr, xs: Sequence[Any], starts: Sequence[Any], axes: tuple[int, ...]
) -> list[Any]:
    """The reduction written out: pairs are combined over whole arrays, `starts`, of the shape of
    the result, first."""

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        return over_arrays(closed, [*a, *b])

    rows = [axes_in_front(x, axes) for x in xs]
    if not typeof(rows[0]).shape[0]:
        return list(starts)
    return combine(list(starts), fold(combine, rows))


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    dimensions: tuple[int, ...],
) -> tuple[list[Any], list[Any]]:
    n = len(primals) // 2
    if all(type(t) is Zero for t in tangents):
        out = do.reduce(*primals, jaxpr=jaxpr, dimensions=dimensions)
        return out, [Zero(tangent_aval(typeof(o))) for o in out]
    ts = [instantiate(t) for t in tangents]
    pairs = _paired(tangent_program(jaxpr), n)
    shape = tuple(d for i, d in enumerate(typeof(primals[0]).shape) if i not in dimensions)
    starts = [filled(shape, i) for i in (*primals[n:], *ts[n:])]
    outs = by_pairs(pairs, [*primals[:n], *ts[:n]], starts, dimensions)
    return outs[:n], outs[n:]


def _paired(program: ClosedJaxpr, n: int) -> ClosedJaxpr:
    """From (a, b, ta, tb) to (a, ta, b, tb): the order in which elements of pairs come."""
    v = program.jaxpr.invars
    order = [*v[:n], *v[2 * n : 3 * n], *v[n : 2 * n], *v[3 * n :]]
    return ClosedJaxpr(program.jaxpr.replace(invars=order), program.consts)


def _batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    jaxpr: ClosedJaxpr,
    dimensions: tuple[int, ...],
) -> tuple[list[Any], list[int]]:
    n = len(args) // 2
    size = batch_size(args, dims)
    xs = [front(x, d, size) for x, d in zip(args[:n], dims[:n])]
    axes, _ = shifted_axes(dimensions, 0)
    if all(d is None for d in dims[n:]):
        return do.reduce(*xs, *args[n:], jaxpr=jaxpr, dimensions=axes), [0] * n
    shape = tuple(d for i, d in enumerate(typeof(xs[0]).shape) if i not in axes)
    inits = [front(x, d, size) for x, d in zip(args[n:], dims[n:])]
    starts = [do.broadcast_in_dim(i, shape=shape, broadcast_dimensions=(0,)) for i in inits]
    return by_pairs(jaxpr, xs, starts, axes), [0] * n


reduce_p = Primitive(
    "reduce",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=not_linear("reduce"),
    batch=_batch,
    multiple_results=True,
)

# ---------------------------------------------------------------- public function

_KNOWN: Final = {
    "add": "reduce_sum",
    "mul": "reduce_prod",
    "max": "reduce_max",
    "min": "reduce_min",
    "and": "reduce_and",
    "or": "reduce_or",
    "xor": "reduce_xor",
}


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Asked:  # type: ignore[type-var]
    """Combines the elements over dimensions with a function of your own.

    Args:
        operands: An array, or a tree of arrays of one shape.
        init_values: The value that the function leaves others as they are with, for each array.
        computation: An associative function of two scalars, or of two trees of them.
        dimensions: The dimensions to fold; the result does not have them.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array, or a tree of them.

    >>> lax.reduce(jnp.array([1.0, 2.0, 3.0]), 0.0, lax.add, (0,))
    Array(6., dtype=float32)"""
    leaves, tree = pytrees.flatten(operands)
    starts, start_tree = pytrees.flatten(init_values)
    if tree != start_tree:
        raise ValueError(
            f"reduce: Operands must have the same tree structure as init_values: got {tree} and"
            f" {start_tree}"
        )
    xs = [as_operand(x) for x in leaves]
    for i in starts:
        if typeof(i).shape:
            raise ValueError(
                "reduce found non-scalar initial value: init_values must be scalars, got"
                f" {typeof(i).str_short()}"
            )
    inits = [initial_value(i, typeof(x)) for i, x in zip(starts, xs)]
    axes = tuple(whole(d, "dimensions") for d in dimensions)
    avals = [ShapedArray((), typeof(x).dtype) for x in xs]

    def flat(*args: Any) -> list[Any]:
        out = computation(tree.unflatten(args[: len(xs)]), tree.unflatten(args[len(xs) :]))
        return pytrees.flatten(out)[0]

    program = trace_to_jaxpr(
        flat, [*avals, *avals], getattr(computation, "__name__", "computation")
    )
    if not all_concrete(program.consts):
        raise NotImplementedError(
            "reduce: the function uses a traced value from outside. Its result may depend on its"
            " two arguments only."
        )
    name = _known(program) if len(xs) == 1 else None
    if name is None or not is_identity(name, inits[0]):
        check_initial_values("reduce", xs, inits)
    if name is not None:
        return tree.unflatten([_by_name(name, xs[0], inits[0], axes, out_sharding)])
    return tree.unflatten(reduce_p.bind(*xs, *inits, jaxpr=program, dimensions=axes))


def _known(program: ClosedJaxpr) -> str | None:
    """The name of the one operation that the program consists of, if it has a reduction of its
    own."""
    if len(program.eqns) != 1:
        return None
    (e,) = program.eqns
    plain = list(e.invars) in ([*program.jaxpr.invars], [*program.jaxpr.invars[::-1]])
    return (
        e.primitive.name
        if plain and list(e.outvars) == program.jaxpr.outvars and e.primitive.name in _KNOWN
        else None
    )


def _by_name(name: str, x: Any, init: Any, axes: tuple[int, ...], out_sharding: Any) -> Any:
    params = {"axes": axes, **({"out_sharding": out_sharding} if name == "add" else {})}
    out = REGISTRY[_KNOWN[name]].bind(x, **params)
    return out if is_identity(name, init) else REGISTRY[name].bind(init, out)
