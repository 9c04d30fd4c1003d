"""Comparisons, and choosing by their results: select_n and clamp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import bool_, is_float, is_integer
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.bits import and_p
from calque.ops.common import (
    ANY,
    ORDERED,
    aligned,
    front,
    instantiate,
    move,
    operand,
    refuse_dtype,
    same_dtypes,
    spread,
    tangent_aval,
    zeros,
)
from calque.ops.conversions import wide
from calque.ops.kinds import apply_nary, common_aval, nary, nary_jvp, not_linear, to_bool

# ---------------------------------------------------------------- comparisons


def _equal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.names:  # typed keys
        x, y = np.broadcast_arrays(x, y)
        return np.asarray(x == y).reshape(x.shape)
    return np.asarray(wide(x) == wide(y))


def _not_equal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ~_equal(x, y)


def _ordered(fn: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda x, y: np.asarray(fn(wide(x), wide(y)))


def total_order(x: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    if not is_float(x.dtype):
        return x
    x = wide(x) if x.dtype.itemsize == 1 else x  # some of these have padding bits above the sign
    bits = (
        np.ascontiguousarray(x)
        .view(np.dtype(f"i{x.dtype.itemsize}"))
        .reshape(x.shape)
        .astype(np.int64)
    )
    low = (1 << (8 * x.dtype.itemsize - 1)) - 1
    return np.where(bits < 0, bits ^ low, bits)


def _in_total_order(fn: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda x, y: np.asarray(fn(total_order(x), total_order(y)))


def _comparison(name: str, accepts: Any, meaning: Callable[..., Any]) -> Primitive:
    return nary(name, accepts, meaning, None, None, result=to_bool)


eq_p = _comparison("eq", ANY, _equal)
ne_p = _comparison("ne", ANY, _not_equal)
lt_p = _comparison("lt", ORDERED, _ordered(np.less))
le_p = _comparison("le", ORDERED, _ordered(np.less_equal))
gt_p = _comparison("gt", ORDERED, _ordered(np.greater))
ge_p = _comparison("ge", ORDERED, _ordered(np.greater_equal))
eq_to_p = _comparison("eq_to", ORDERED, _in_total_order(np.equal))
lt_to_p = _comparison("lt_to", ORDERED, _in_total_order(np.less))
le_to_p = _comparison("le_to", ORDERED, _in_total_order(np.less_equal))

# ---------------------------------------------------------------- select_n


def _select_meaning(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    index = np.clip(which.astype(np.int64), 0, len(cases) - 1)
    out = np.array(np.broadcast_to(cases[0], cases[0].shape))
    for i, case in enumerate(cases[1:], 1):
        out = np.where(index == i, case, out)
    return out


def _select_shape(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases:
        raise TypeError("select_n needs at least one case")
    if which.dtype is not bool_ and which.dtype != bool_ and not is_integer(which.dtype):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype.name}.")
    if len(cases) > 2 and which.dtype == bool_:
        raise TypeError(
            "select with boolean `which` cannot have > 2 cases: use an integer `which`."
        )
    first = cases[0]
    for c in cases[1:]:
        if c is not first:
            if c.shape != first.shape:
                raise TypeError(
                    f"select cases must have the same shapes, got {[a.shape for a in cases]}."
                )
            first = common_aval("select_n", cases)
    if which.shape and which.shape != first.shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape"
            f" {which.shape} but case shape {first.shape}."
        )
    return first


def _select_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    which, *cases = primals
    out = do.select_n(which, *cases)
    ts = tangents[1:]
    if all(type(t) is Zero for t in ts):
        return out, Zero(tangent_aval(typeof(out)))
    return out, do.select_n(which, *[instantiate(t) for t in ts])


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list[Any]:
    if type(which) is UndefinedPrimal:
        raise NotImplementedError(
            "select_n is not linear in its predicate, which cannot be transposed: transpose what"
            " chooses between the cases by a predicate that is known"
        )
    out: list[Any] = [None]
    for i, c in enumerate(cases):
        if type(c) is not UndefinedPrimal:
            out.append(None)
        elif type(ct) is Zero:
            out.append(Zero(c.aval))
        else:
            none = zeros(c.aval)
            out.append(do.select_n(which, *[ct if j == i else none for j in range(len(cases))]))
    return out


def _select_batch(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    """A scalar predicate that is batched is repeated over the shape of the cases; an unbatched one
    stays scalar."""
    which, *cases = args
    if dims[0] is None and typeof(which).ndim == 0:
        cases, dim = _align_cases(cases, dims[1:])
        return do.select_n(which, *cases), dim
    every, dim = aligned(args, dims)
    size = next(s for s in (typeof(x).shape for x in every) if s)
    every = [
        (
            x
            if typeof(x).shape == size
            else do.broadcast_in_dim(x, shape=size, broadcast_dimensions=())
        )
        for x in every
    ]
    return do.select_n(*every), dim


def _align_cases(cases: list[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    size = next(typeof(c).shape[d] for c, d in zip(cases, dims) if d is not None)
    dim = next(d for d in dims if d is not None)
    return [c if d == dim else move(front(c, d, size), 0, dim) for c, d in zip(cases, dims)], dim


select_n_p = Primitive(
    "select_n",
    meaning=_select_meaning,
    shape=_select_shape,
    jvp=_select_jvp,
    transpose=_select_transpose,
    batch=_select_batch,
)

# ---------------------------------------------------------------- clamp


def _clamp_meaning(low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.asarray(np.minimum(np.maximum(x, low), high)).astype(x.dtype)


def _clamp_shape(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    if x.dtype not in ORDERED:
        raise refuse_dtype("clamp", x.dtype, ORDERED, 1)
    for name, bound in (("min", low), ("max", high)):
        if bound.dtype != x.dtype:
            raise TypeError(
                f"clamp requires arguments to have the same dtypes, got {bound.dtype.name} for"
                f" {name} and {x.dtype.name}."
            )
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got"
                f" {name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    return x if not x.weak_type or (low.weak_type and high.weak_type) else x.strip_weak_type()


def _where(mask: Any, t: Any) -> Any:
    """`t` where the mask holds, 0 elsewhere, in the shape of the mask."""
    shape = typeof(mask).shape
    if typeof(t).shape != shape:
        t = do.broadcast_in_dim(t, shape=shape, broadcast_dimensions=())
    return do.select_n(mask, zeros(typeof(t)), t)


def _both(a: Any, b: Any) -> Any:
    return and_p.bind(a, b)


def _inside(t: Any, out: Any, low: Any, x: Any, high: Any) -> Any:
    return _where(_both(do.gt(x, low), do.lt(x, high)), t)


def _below(t: Any, out: Any, low: Any, x: Any, high: Any) -> Any:
    return _where(_both(do.lt(x, low), do.lt(low, high)), t)


def _above(t: Any, out: Any, low: Any, x: Any, high: Any) -> Any:
    return _where(do.gt(x, high), t)


def _clamp_batch(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    (low, x, high), dim = aligned(args, dims)
    shape = next(s for s in (typeof(v).shape for v in (x, low, high)) if s)
    return do.clamp(low, spread(x, shape), high), dim


clamp_p = Primitive(
    "clamp",
    meaning=_clamp_meaning,
    shape=_clamp_shape,
    jvp=nary_jvp("clamp", (_below, _inside, _above)),
    transpose=not_linear("clamp"),
    batch=_clamp_batch,
)

# ---------------------------------------------------------------- public functions


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether the elements of `x` and `y` are equal. NaN equals nothing.

    Args:
        x: Numbers of any dtype.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of booleans, of the shape of the operands.

    >>> lax.eq(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]))
    Array([ True, False], dtype=bool)"""
    return apply_nary(eq_p, x, y)


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether the elements of `x` and `y` differ. NaN differs from everything.

    Args:
        x: Numbers of any dtype.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of booleans, of the shape of the operands.

    >>> lax.ne(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]))
    Array([False,  True], dtype=bool)"""
    return apply_nary(ne_p, x, y)


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether the elements of `x` are less than those of `y`.

    Args:
        x: Numbers of any dtype.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of booleans, of the shape of the operands.

    >>> lax.lt(jnp.array([1.0, 2.0]), jnp.array([2.0, 2.0]))
    Array([ True, False], dtype=bool)"""
    return apply_nary(lt_p, x, y)


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether the elements of `x` are less than or equal to those of `y`.

    Args:
        x: Numbers of any dtype.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of booleans, of the shape of the operands.

    >>> lax.le(jnp.array([1.0, 2.0]), jnp.array([2.0, 2.0]))
    Array([ True,  True], dtype=bool)"""
    return apply_nary(le_p, x, y)


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether the elements of `x` are greater than those of `y`.

    Args:
        x: Numbers of any dtype.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of booleans, of the shape of the operands.

    >>> lax.gt(jnp.array([3.0, 2.0]), jnp.array([2.0, 2.0]))
    Array([ True, False], dtype=bool)"""
    return apply_nary(gt_p, x, y)


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether the elements of `x` are greater than or equal to those of `y`.

    Args:
        x: Numbers of any dtype.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of booleans, of the shape of the operands.

    >>> lax.ge(jnp.array([3.0, 2.0]), jnp.array([2.0, 2.0]))
    Array([ True,  True], dtype=bool)"""
    return apply_nary(ge_p, x, y)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Takes each element from one of several arrays; another array says from which.

    Args:
        which: Booleans for two cases (False is the first), or integers from 0 for any number of
            them; a scalar, or of the shape of the cases.
        *cases: Arrays of one shape and dtype, at least one.

    Returns:
        An array of the shape and dtype of the cases.

    >>> lax.select_n(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
    Array([10,  2], dtype=int32)"""
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(operand(which), *same_dtypes("select_n", [operand(c) for c in cases]))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Takes the elements of one array where a condition holds, and those of another elsewhere.

    Args:
        pred: Booleans: a scalar, or of the shape of the others.
        on_true: What is taken where `pred` is True.
        on_false: What is taken elsewhere, of the same shape and dtype.

    Returns:
        An array of that shape and dtype.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
    Array([ 1, 20], dtype=int32)"""
    return select_n(pred, on_false, on_true)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Brings each element between two limits.

    Args:
        min: The lower limit: a scalar, or of the shape of `x`.
        x: Numbers.
        max: The upper limit, likewise.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)"""
    return clamp_p.bind(*same_dtypes("clamp", [operand(min), operand(x), operand(max)]))
