"""Reductions over axes: sum, product, maximum, minimum, and the logical ones; the index of the
largest and smallest."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from functools import reduce as fold_left
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import surely_less, whole
from calque.core.dtypes import (
    asked,
    bfloat16,
    finfo,
    iinfo,
    is_complex,
    is_extended,
    is_integer,
    is_signed,
)
from calque.core.primitives import REGISTRY, Primitive, Zero, do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.ops.arithmetic import lexicographic
from calque.ops.associative import axes_in_front, fold
from calque.ops.common import (
    NUMBER,
    ORDERED,
    PLAIN,
    Accepts,
    check_places,
    operand,
    refuse_dtype,
    scalar_of,
    tangent_aval,
)
from calque.ops.conversions import wide
from calque.ops.kinds import linear_unary, not_linear

# ---------------------------------------------------------------- identities


def smallest(dtype: Any) -> Any:
    """What maximum leaves as it is: -inf, the smallest integer, False."""
    if dtype.kind == "b":
        return False
    if is_integer(dtype):
        return int(iinfo(dtype).min)
    return (
        -np.inf
        if is_complex(dtype) or np.isinf(wide(np.asarray(-np.inf).astype(dtype)))
        else finfo(dtype).min
    )


def largest(dtype: Any) -> Any:
    """What minimum leaves as it is: inf, the largest integer, True."""
    if dtype.kind == "b":
        return True
    if is_integer(dtype):
        return int(iinfo(dtype).max)
    return (
        np.inf
        if is_complex(dtype) or np.isinf(wide(np.asarray(np.inf).astype(dtype)))
        else finfo(dtype).max
    )


def all_ones(dtype: Any) -> Any:
    return True if dtype.kind == "b" else -1 if is_signed(dtype) else int(iinfo(dtype).max)


def _number(n: int) -> Callable[[Any], Any]:
    return lambda dtype: n


IDENTITY: Final[dict[str, Callable[[Any], Any]]] = {
    "add": _number(0),
    "mul": _number(1),
    "max": smallest,
    "min": largest,
    "and": all_ones,
    "or": _number(0),
    "xor": _number(0),
}


def is_identity(op: str, init: Any) -> bool:
    """Whether a value is known and leaves others as they are. It may be of another dtype than they
    (0 of float64 for float32): it is asked in its own."""
    if isinstance(init, Tracer) or is_extended(typeof(init).dtype):
        return False
    known = np.asarray(init)
    if op == "and" and not (known.dtype.kind == "b" or is_integer(known.dtype)):
        return False  # no float has all bits
    return bool(known == np.asarray(IDENTITY[op](known.dtype)).astype(known.dtype))


# ---------------------------------------------------------------- meaning

_UFUNCS: Final = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reducing(op: str) -> Callable[..., np.ndarray]:
    """The meaning of a reduction: NumPy's, in float64 for floats, from the identity."""
    ufunc = _UFUNCS[op]

    def meaning(x: np.ndarray, *, axes: tuple[int, ...], **params: Any) -> np.ndarray:
        if not axes:
            return x.copy()
        identity = IDENTITY[op](x.dtype)
        if is_complex(x.dtype) and op in ("max", "min"):
            return _fold_complex(op, x, axes, identity)
        w = x.astype(np.int64) if is_integer(x.dtype) and x.dtype.kind == "V" else wide(x)
        start = np.asarray(identity).astype(w.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(ufunc.reduce(w, axis=axes, dtype=w.dtype, initial=start)).astype(
                x.dtype
            )

    return meaning


def _fold_complex(op: str, x: np.ndarray, axes: tuple[int, ...], identity: Any) -> np.ndarray:
    choose = {
        "max": lexicographic(np.greater, np.maximum),
        "min": lexicographic(np.less, np.minimum),
    }[op]
    rows = np.moveaxis(x, axes, range(len(axes)))
    rows = rows.reshape(math.prod(rows.shape[: len(axes)]), *rows.shape[len(axes) :])
    return fold_left(choose, rows, np.full(rows.shape[1:], identity, x.dtype))


# ---------------------------------------------------------------- shape and batching


def check_axes(name: str, axes: Sequence[int], x: ShapedArray) -> None:
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {tuple(axes)}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(
            f"reduction axes {tuple(axes)} contains out-of-bounds indices for {x.str_short()}:"
            f" {name} takes dimensions from 0 to {x.ndim - 1}"
        )


def _reduction_shape(name: str, accepts: Accepts) -> Callable[..., ShapedArray]:
    def shape(x: ShapedArray, *, axes: tuple[int, ...], **params: Any) -> ShapedArray:
        if x.dtype not in accepts.dtypes:
            raise refuse_dtype(name, x.dtype, accepts)
        check_axes(name, axes, x)
        kept = tuple(d for i, d in enumerate(x.shape) if i not in axes)
        return ShapedArray(kept, x.dtype, x.weak_type)

    return shape


def shifted_axes(axes: Sequence[int], d: int) -> tuple[tuple[int, ...], int]:
    """Axes of a batched operand with batch dimension `d`, and the batch dimension of the reduced
    result."""
    moved = tuple(a + (a >= d) for a in axes)
    return moved, d - builtins.sum(a < d for a in moved)


def _reduction_batch(name: str) -> Callable[..., Any]:
    def batch(
        args: Sequence[Any], dims: Sequence[int], *, axes: tuple[int, ...], **params: Any
    ) -> tuple[Any, int]:
        axes, out_dim = shifted_axes(axes, dims[0])
        return REGISTRY[name].bind(args[0], axes=axes, **params), out_dim

    return batch


# ---------------------------------------------------------------- derivatives


def put_back(x: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Any:
    """A reduced value repeated over the axes that were reduced."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return do.broadcast_in_dim(x, shape=shape, broadcast_dimensions=kept)


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    return do.reduce_sum(x, axes=axes)


def _sum_tangent(
    t: Any, x: Any, out: Any, *, axes: tuple[int, ...], out_sharding: Any = None
) -> Any:
    return _sum(t, axes)


def _choice_tangent(t: Any, x: Any, out: Any, *, axes: tuple[int, ...]) -> Any:
    """The tangent of what was chosen; equal shares where several elements are equal to it."""
    aval = typeof(t)
    chosen = do.eq(x, put_back(out, aval.shape, axes))
    mask = do.convert_element_type(chosen, new_dtype=aval.dtype)
    return do.div(_sum(do.mul(t, mask), axes), _sum(mask, axes))


def _prod_tangent(t: Any, x: Any, out: Any, *, axes: tuple[int, ...]) -> Any:
    """Each tangent times the product of all other factors, which zeros do no harm: by pairs
    (product, tangent), the quicker way, or for a free size by the products of those before and
    those behind, which is one program for every size.
    """
    if not axes:
        return t
    x, t = axes_in_front(x, axes), axes_in_front(t, axes)
    factors = typeof(x).shape[0]
    if isinstance(factors, int) and factors:

        def rule(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
            return [do.mul(a[0], b[0]), do.add_any(do.mul(a[1], b[0]), do.mul(a[0], b[1]))]

        return fold(rule, [x, t])[1]
    others = do.mul(_product_of_earlier(x, False), _product_of_earlier(x, True))
    return _sum(do.mul(t, others), (0,))


def _product_of_earlier(x: Any, reverse: bool) -> Any:
    """For each place along the first axis the product of what comes before it (behind it with
    `reverse`)."""
    aval = typeof(x)
    shift = (-1, 1, 0) if reverse else (1, -1, 0)
    running = do.cumprod(x, axis=0, reverse=reverse)
    return do.pad(
        running, scalar_of(aval.dtype, 1), padding_config=(shift, *[(0, 0, 0)] * (aval.ndim - 1))
    )


def _reduction_jvp(name: str, tangent: Callable[..., Any] | None) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = REGISTRY[name].bind(x, **params)
        if tangent is None or type(t) is Zero:
            return out, Zero(tangent_aval(typeof(out)))
        return out, tangent(t, x, out, **params)

    return jvp


def _sum_cotangent(
    ct: Any, aval: ShapedArray, *, axes: tuple[int, ...], out_sharding: Any = None
) -> Any:
    return put_back(ct, aval.shape, axes)


def _reduction(
    name: str,
    op: str,
    accepts: Accepts,
    tangent: Callable[..., Any] | None,
    transpose: Callable[..., Any] | None = None,
    defaults: dict[str, Any] | None = None,
) -> Primitive:
    return Primitive(
        name,
        meaning=reducing(op),
        shape=_reduction_shape(name, accepts),
        jvp=_reduction_jvp(name, tangent),
        transpose=transpose or not_linear(name),
        batch=_reduction_batch(name),
        defaults=defaults,
    )


LOGICAL = Accepts("integer, bool", tuple(d for d in PLAIN.dtypes if d.kind == "b" or is_integer(d)))

reduce_sum_p = _reduction(
    "reduce_sum",
    "add",
    NUMBER,
    _sum_tangent,
    linear_unary(_sum_cotangent),
    {"out_sharding": None},
)
reduce_prod_p = _reduction("reduce_prod", "mul", NUMBER, _prod_tangent)
reduce_max_p = _reduction("reduce_max", "max", PLAIN, _choice_tangent)
reduce_min_p = _reduction("reduce_min", "min", PLAIN, _choice_tangent)
reduce_and_p = _reduction("reduce_and", "and", LOGICAL, None)
reduce_or_p = _reduction("reduce_or", "or", LOGICAL, None)
reduce_xor_p = _reduction("reduce_xor", "xor", LOGICAL, None)

# ---------------------------------------------------------------- argmax and argmin


def _arg_meaning(fn: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """The first place of the extreme; NaN counts as the extreme."""
    return lambda x, *, axes, index_dtype: np.asarray(fn(wide(x), axis=axes[0])).astype(index_dtype)


def _arg_shape(name: str) -> Callable[..., ShapedArray]:
    def shape(x: ShapedArray, *, axes: tuple[int, ...], index_dtype: Any) -> ShapedArray:
        if x.dtype not in ORDERED:
            raise refuse_dtype(name, x.dtype, ORDERED)
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(f"Invalid axis {axis} for operand shape {x.shape} of {name}")
        if not is_integer(index_dtype):
            raise TypeError(f"index_dtype must be an integer type, but got {index_dtype.name}")
        check_places(name, x.shape[axis], index_dtype)
        if surely_less(x.shape[axis], 1):
            raise ValueError(
                f"argmin and argmax require non-empty reduced dimension. operand.shape={x.shape}"
                f" axis={axis}"
            )
        return ShapedArray(x.shape[:axis] + x.shape[axis + 1 :], index_dtype)

    return shape


def _arg_reduction(name: str, fn: Callable[..., Any]) -> Primitive:
    return Primitive(
        name,
        meaning=_arg_meaning(fn),
        shape=_arg_shape(name),
        jvp=_reduction_jvp(name, None),
        transpose=not_linear(name),
        batch=_reduction_batch(name),
    )


argmax_p = _arg_reduction("argmax", np.argmax)
argmin_p = _arg_reduction("argmin", np.argmin)

# ---------------------------------------------------------------- public functions


def _apply(prim: Primitive, x: Any, axes: Sequence[int], **params: Any) -> Any:
    return prim.bind(operand(x), axes=tuple(whole(a, "axes") for a in axes), **params)


_SHORT_FLOATS = (np.dtype("float16"), bfloat16)


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Sums over axes; 0 where there is nothing.

    Args:
        operand: An array.
        axes: The axes to fold; the result does not have them.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of the other axes.

    >>> lax.reduce_sum(jnp.ones((2, 3)), (1,))
    Array([3., 3.], dtype=float32)"""
    aval = typeof(operand)
    if (
        not config.allow_f16_reductions
        and aval.dtype in _SHORT_FLOATS
        and any(aval.shape[a] != 1 for a in axes)
    ):
        raise ValueError(
            f"reduce_sum on operand {aval.str_short()} is not allowed when"
            " calque_allow_f16_reductions=False."
        )
    return _apply(reduce_sum_p, operand, axes, out_sharding=out_sharding)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Multiplies over axes; 1 where there is nothing.

    Args:
        operand: An array.
        axes: The axes to fold; the result does not have them.

    Returns:
        An array of the other axes.

    >>> lax.reduce_prod(jnp.array([2.0, 3.0]), (0,))
    Array(6., dtype=float32)"""
    return _apply(reduce_prod_p, operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Gives the largest element over axes; NaN if there is one, -inf where there is nothing.

    Args:
        operand: An array.
        axes: The axes to fold; the result does not have them.

    Returns:
        An array of the other axes.

    >>> lax.reduce_max(jnp.array([1.0, 3.0, 2.0]), (0,))
    Array(3., dtype=float32)"""
    return _apply(reduce_max_p, operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Gives the smallest element over axes; NaN if there is one, inf where there is nothing.

    Args:
        operand: An array.
        axes: The axes to fold; the result does not have them.

    Returns:
        An array of the other axes.

    >>> lax.reduce_min(jnp.array([1.0, 3.0, 2.0]), (0,))
    Array(1., dtype=float32)"""
    return _apply(reduce_min_p, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Folds axes by bitwise and; of booleans, whether all are True.

    Args:
        operand: An array.
        axes: The axes to fold; the result does not have them.

    Returns:
        An array of the other axes.

    >>> lax.reduce_and(jnp.array([True, False]), (0,))
    Array(False, dtype=bool)"""
    return _apply(reduce_and_p, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Folds axes by bitwise or; of booleans, whether any is True.

    Args:
        operand: An array.
        axes: The axes to fold; the result does not have them.

    Returns:
        An array of the other axes.

    >>> lax.reduce_or(jnp.array([True, False]), (0,))
    Array(True, dtype=bool)"""
    return _apply(reduce_or_p, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Folds axes by bitwise exclusive or; of booleans, whether an odd number is True.

    Args:
        operand: An array.
        axes: The axes to fold; the result does not have them.

    Returns:
        An array of the other axes.

    >>> lax.reduce_xor(jnp.array([6, 3]), (0,))
    Array(5, dtype=int32)"""
    return _apply(reduce_xor_p, operand, axes)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Gives the first position of the largest element along an axis, or of the first NaN.

    Args:
        operand: An array.
        axis: The axis.
        index_dtype: The integer dtype of the result.

    Returns:
        An array of the other axes.

    >>> lax.argmax(jnp.array([1.0, 3.0, 3.0]), 0, jnp.int32)
    Array(1, dtype=int32)"""
    return _apply(argmax_p, operand, (axis,), index_dtype=asked(index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Gives the first position of the smallest element along an axis, or of the first NaN.

    Args:
        operand: An array.
        axis: The axis.
        index_dtype: The integer dtype of the result.

    Returns:
        An array of the other axes.

    >>> lax.argmin(jnp.array([3.0, 1.0, 1.0]), 0, jnp.int32)
    Array(1, dtype=int32)"""
    return _apply(argmin_p, operand, (axis,), index_dtype=asked(index_dtype))
