"""Primitives by kind: the factories that make elementwise primitives from a meaning and a
derivative.

`unary` and `nary` fill in the shape, jvp, transpose and batching rules that all elementwise
primitives have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import bool_
from calque.core.primitives import REGISTRY, NotApplicable, Primitive, UndefinedPrimal, Zero
from calque.core.trace import VALUES, typeof
from calque.ops.common import (
    Accepts,
    add_tangents,
    batch_elementwise,
    gathered,
    incompatible,
    operand,
    operands,
    quick_scalar,
    refuse_dtype,
    spread,
    tangent_aval,
)
from calque.ops.conversions import WIDE

Tangent = Callable[..., Any]

# ---------------------------------------------------------------- meaning


def widened(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` computed in float64 (complex128) and rounded once to the dtype of its first operand."""

    def meaning(*xs: np.ndarray, **params: Any) -> np.ndarray:
        wide = [x.astype(WIDE.get(x.dtype, x.dtype)) for x in xs]
        return np.asarray(fn(*wide, **params)).astype(xs[0].dtype)

    return meaning


def same_dtype(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, with its result in the dtype of its first operand."""
    return lambda *xs, **params: np.asarray(fn(*xs, **params)).astype(xs[0].dtype, copy=False)


# ---------------------------------------------------------------- shape


def unary_shape(
    name: str, accepts: Accepts, result: Callable[[Any], Any] | None = None
) -> Callable[..., ShapedArray]:
    dtypes = accepts.dtypes

    def shape(x: ShapedArray, **params: Any) -> ShapedArray:
        if x.dtype not in dtypes and x.dtype not in accepts:
            raise refuse_dtype(name, x.dtype, accepts)
        return x if result is None else ShapedArray(x.shape, result(x.dtype), x.weak_type)

    return shape


def nary_shape(
    name: str, accepts: Accepts, result: Callable[[Any], Any] | None = None
) -> Callable[..., ShapedArray]:
    dtypes = accepts.dtypes

    def shape(*avals: ShapedArray, **params: Any) -> ShapedArray:
        first = avals[0]
        if first.dtype not in dtypes and first.dtype not in accepts:
            raise refuse_dtype(name, first.dtype, accepts, 0)
        for a in avals:
            if a is not first:
                first = common_aval(name, avals)
                break
        return (
            first
            if result is None
            else ShapedArray(first.shape, result(first.dtype), first.weak_type)
        )

    return shape


def common_aval(name: str, avals: Sequence[ShapedArray]) -> ShapedArray:
    """The aval of an elementwise result: one dtype; one shape, or rank 0; weak when all operands
    are."""
    dtype = avals[0].dtype
    shape: tuple[int, ...] = ()
    weak = True
    for a in avals:
        if a.dtype is not dtype and a.dtype != dtype:
            raise dtypes_differ(name, avals)
        if a.shape and a.shape != shape:
            if shape:
                raise incompatible(name, [a.shape for a in avals])
            shape = a.shape
        weak = weak and a.weak_type
    return ShapedArray(shape, dtype, weak)


def dtypes_differ(name: str, avals: Sequence[ShapedArray]) -> TypeError:
    listed = ", ".join(str(getattr(a.dtype, "name", a.dtype)) for a in avals)
    return TypeError(
        f"{name} requires arguments to have the same dtypes, got {listed}. Convert one of them"
        " explicitly."
    )


def to_bool(dtype: Any) -> Any:
    return bool_


# ---------------------------------------------------------------- jvp


def unary_jvp(name: str, tangent: Tangent | None) -> Callable[..., Any]:
    """`tangent(t, x, out, **params)` is the tangent of the result; None means that it is zero
    everywhere."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = REGISTRY[name].bind(x, **params)
        if tangent is None or type(t) is Zero:
            return out, Zero(tangent_aval(typeof(out)))
        return out, tangent(t, x, out, **params)

    return jvp


def nary_jvp(name: str, tangents_of: Sequence[Tangent | None]) -> Callable[..., Any]:
    """`tangents_of[i](t, out, *primals, **params)` is the part of the tangent that comes from
    operand i."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = REGISTRY[name].bind(*primals, **params)
        aval = typeof(out)
        total: Any = Zero(tangent_aval(aval))
        for t, part in zip(tangents, tangents_of):
            if type(t) is not Zero and part is not None:
                total = add_tangents(total, spread(part(t, out, *primals, **params), aval.shape))
        return out, total

    return jvp


def refusing(why: str) -> Tangent:
    """The part of a tangent that cannot be computed: says why, but only when it is needed."""

    def part(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(why)

    return part


# ---------------------------------------------------------------- transpose


def not_linear(name: str) -> NotApplicable:
    return NotApplicable(f"{name} is not linear: it has no transpose")


def linear_unary(cotangent: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The transpose of a linear primitive of one operand: `cotangent(ct, aval of the operand,
    **params)`."""

    def transpose(ct: Any, x: Any, **params: Any) -> list[Any]:
        if type(ct) is Zero:
            return [Zero(x.aval)]
        return [cotangent(ct, x.aval, **params)]

    return transpose


def linear_nary(*cotangents: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The transpose of a primitive that is linear in its UndefinedPrimal operands:
    `cotangents[i](ct, *args)`."""

    def transpose(ct: Any, *args: Any, **params: Any) -> list[Any]:
        out: list[Any] = []
        for x, cotangent in zip(args, cotangents):
            if type(x) is not UndefinedPrimal:
                out.append(None)
            elif type(ct) is Zero:
                out.append(Zero(x.aval))
            else:
                out.append(gathered(cotangent(ct, *args), x.aval))
        return out

    return transpose


# ---------------------------------------------------------------- factories


def unary(
    name: str,
    accepts: Accepts,
    meaning: Callable[..., Any],
    tangent: Tangent | None,
    *,
    result: Callable[[Any], Any] | None = None,
    shape: Callable[..., Any] | None = None,
    transpose: Callable[..., Any] | None = None,
    hidden: Sequence[str] = (),
) -> Primitive:
    """An elementwise primitive of one operand."""
    return Primitive(
        name,
        hidden=hidden,
        meaning=meaning,
        shape=shape or unary_shape(name, accepts, result),
        jvp=unary_jvp(name, tangent),
        transpose=transpose or not_linear(name),
        batch=lambda args, dims, **params: (REGISTRY[name].bind(args[0], **params), dims[0]),
    )


def nary(
    name: str,
    accepts: Accepts,
    meaning: Callable[..., Any],
    *tangents: Tangent | None,
    result: Callable[[Any], Any] | None = None,
    transpose: Callable[..., Any] | None = None,
) -> Primitive:
    """An elementwise primitive of several operands of one dtype and one shape (or rank 0)."""
    return Primitive(
        name,
        meaning=meaning,
        shape=nary_shape(name, accepts, result),
        jvp=nary_jvp(name, tangents),
        transpose=transpose or not_linear(name),
        batch=batch_elementwise(name),
    )


# ---------------------------------------------------------------- public functions


def apply_unary(prim: Primitive, x: Any, **params: Any) -> Any:
    """Bind `prim` to one operand as users give it."""
    return prim.bind(operand(x), **params)


def apply_nary(prim: Primitive, *xs: Any) -> Any:
    """Bind `prim` to operands as users give them: converted to one dtype, size-1 dimensions
    repeated."""
    if isinstance(xs[0], VALUES):
        first = xs[0].aval
        if len(xs) == 2 and type(xs[1]) in (float, int):
            return prim.bind(xs[0], quick_scalar(prim.name, xs[1], first))
        for x in xs:
            if not isinstance(x, VALUES):
                break
            aval = x.aval
            if aval is not first and (aval.dtype != first.dtype or aval.shape != first.shape):
                break
        else:
            return prim.bind(*xs)
    return prim.bind(*operands(prim.name, *xs))
