"""Cumulative sums, products, maxima, minima and log-sum-exps along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_complex, is_integer
from calque.core.primitives import REGISTRY, Primitive, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.arithmetic import lexicographic, share_of
from calque.ops.associative import Combine, prefixes
from calque.ops.common import (
    FLOAT,
    NUMBER,
    PLAIN,
    Accepts,
    filled_like,
    operand,
    refuse_dtype,
    tangent_aval,
)
from calque.ops.conversions import wide
from calque.ops.kinds import linear_unary, not_linear

# ---------------------------------------------------------------- meaning


def _accumulated(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    """`ufunc.accumulate` along the axis, from the end with `reverse`, in float64 for floats."""

    def meaning(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        w = x.astype(np.int64) if is_integer(x.dtype) and x.dtype.kind == "V" else wide(x)
        w = np.flip(w, axis) if reverse else w
        out = ufunc.accumulate(w, axis=axis, dtype=w.dtype)
        return np.asarray(np.flip(out, axis) if reverse else out).astype(x.dtype)

    return meaning


def _extreme(choose: Callable[..., Any], ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    plain, pick = _accumulated(ufunc), lexicographic(choose, ufunc)

    def meaning(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        if not is_complex(x.dtype):
            return plain(x, axis=axis, reverse=reverse)
        out = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0).copy()
        for i in range(1, len(out)):
            out[i] = pick(out[i - 1], out[i])
        out = np.moveaxis(out, 0, axis)
        return np.flip(out, axis) if reverse else out

    return meaning


# ---------------------------------------------------------------- rules


def _shape(name: str, accepts: Accepts) -> Callable[..., ShapedArray]:
    def shape(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        if x.dtype not in accepts.dtypes:
            raise refuse_dtype(name, x.dtype, accepts)
        if not 0 <= axis < x.ndim:
            raise ValueError(
                f"{name}: axis {axis} is out of bounds for {x.str_short()}; it counts from 0, not"
                " from the end"
            )
        return x

    return shape


def _batch(name: str) -> Callable[..., Any]:
    def batch(
        args: Sequence[Any], dims: Sequence[int], *, axis: int, reverse: bool
    ) -> tuple[Any, int]:
        (x,), (d,) = args, dims
        return REGISTRY[name].bind(x, axis=axis + (axis >= d), reverse=reverse), d

    return batch


def _jvp_by_pairs(name: str, combine: Combine) -> Callable[..., Any]:
    """The tangent as an associative scan over pairs (value, tangent)."""

    def jvp(
        primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = REGISTRY[name].bind(x, axis=axis, reverse=reverse)
        if type(t) is Zero:
            return out, Zero(tangent_aval(typeof(out)))
        return out, prefixes(combine, [x, t], axis, reverse)[1]

    return jvp


def _cumsum_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return do.cumsum(x, **params), t if type(t) is Zero else do.cumsum(t, **params)


def _product_pair(a: list[Any], b: list[Any]) -> list[Any]:
    return [do.mul(a[0], b[0]), do.add_any(do.mul(a[1], b[0]), do.mul(a[0], b[1]))]


def _choice_pair(which: str) -> Combine:
    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        out = REGISTRY[which].bind(a[0], b[0])
        ta, tb = do.mul(a[1], share_of(a[0], out, b[0])), do.mul(b[1], share_of(b[0], out, a[0]))
        return [out, do.add_any(ta, tb)]

    return combine


def _logsumexp_pair(a: list[Any], b: list[Any]) -> list[Any]:
    out = _logaddexp(a[0], b[0])
    # where both are -inf the weights are exp(nan): 0 instead
    dead = do.eq(out, filled_like(out, -np.inf))
    base = do.select_n(dead, out, filled_like(out, 0))
    ta = do.mul(a[1], do.exp(do.sub(a[0], base)))
    tb = do.mul(b[1], do.exp(do.sub(b[0], base)))
    return [out, do.add_any(ta, tb)]


def _logaddexp(a: Any, b: Any) -> Any:
    top = do.max(a, b)
    gap = do.sub(a, b)
    usual = do.add(top, do.log1p(do.exp(do.neg(do.abs(gap)))))
    return do.select_n(do.ne(gap, gap), usual, do.add(a, b))  # equal infinities, or NaN


def _cumulative(
    name: str,
    accepts: Accepts,
    meaning: Callable[..., Any],
    jvp: Callable[..., Any],
    transpose: Callable[..., Any] | None = None,
) -> Primitive:
    return Primitive(
        name,
        meaning=meaning,
        shape=_shape(name, accepts),
        jvp=jvp,
        transpose=transpose or not_linear(name),
        batch=_batch(name),
    )


def _cumsum_cotangent(ct: Any, aval: ShapedArray, *, axis: int, reverse: bool) -> Any:
    return do.cumsum(ct, axis=axis, reverse=not reverse)


cumsum_p = _cumulative(
    "cumsum", NUMBER, _accumulated(np.add), _cumsum_jvp, linear_unary(_cumsum_cotangent)
)
cumprod_p = _cumulative(
    "cumprod", NUMBER, _accumulated(np.multiply), _jvp_by_pairs("cumprod", _product_pair)
)
cummax_p = _cumulative(
    "cummax", PLAIN, _extreme(np.greater, np.maximum), _jvp_by_pairs("cummax", _choice_pair("max"))
)
cummin_p = _cumulative(
    "cummin", PLAIN, _extreme(np.less, np.minimum), _jvp_by_pairs("cummin", _choice_pair("min"))
)
cumlogsumexp_p = _cumulative(
    "cumlogsumexp",
    FLOAT,
    _accumulated(np.logaddexp),
    _jvp_by_pairs("cumlogsumexp", _logsumexp_pair),
)

# ---------------------------------------------------------------- public functions


def _apply(prim: Primitive, x: Any, axis: int, reverse: bool) -> Any:
    return prim.bind(operand(x), axis=int(axis), reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running sums along an axis.

    Args:
        operand: An array.
        axis: The axis along which to go.
        reverse: Whether to start from the end.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> lax.cumsum(jnp.array([1.0, 2.0, 3.0]))
    Array([1., 3., 6.], dtype=float32)
    >>> lax.cumsum(jnp.array([1.0, 2.0, 3.0]), reverse=True)
    Array([6., 5., 3.], dtype=float32)"""
    return _apply(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running products along an axis.

    Args:
        operand: An array.
        axis: The axis along which to go.
        reverse: Whether to start from the end.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> lax.cumprod(jnp.array([1.0, 2.0, 3.0]))
    Array([1., 2., 6.], dtype=float32)"""
    return _apply(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running maxima along an axis; NaN from the first NaN on.

    Args:
        operand: An array.
        axis: The axis along which to go.
        reverse: Whether to start from the end.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> lax.cummax(jnp.array([1.0, 3.0, 2.0]))
    Array([1., 3., 3.], dtype=float32)"""
    return _apply(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running minima along an axis; NaN from the first NaN on.

    Args:
        operand: An array.
        axis: The axis along which to go.
        reverse: Whether to start from the end.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> lax.cummin(jnp.array([2.0, 3.0, 1.0]))
    Array([2., 2., 1.], dtype=float32)"""
    return _apply(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running values of log(sum(exp(x))) along an axis, without overflow.

    Args:
        operand: An array.
        axis: The axis along which to go.
        reverse: Whether to start from the end.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> lax.cumlogsumexp(jnp.zeros(3))
    Array([0.       , 0.69314..., 1.09861...], dtype=float32)"""
    return _apply(cumlogsumexp_p, operand, axis, reverse)
