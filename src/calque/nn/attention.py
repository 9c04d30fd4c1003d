"""Scaled dot-product attention. Letters of shapes as in JAX: B batch, T queries, S keys, N heads, H
features, K heads of keys."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from calque.core.arrays import to_array
from calque.core.dtypes import finfo
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.nn.normalisation import logsumexp, softmax
from calque.numpy.promotion import broadcast_to, check_arraylike, convert
from calque.numpy.shaping import moveaxis, reshape, transpose, where
from calque.ops.sizes import places

if TYPE_CHECKING:
    from calque.core.arrays import Array

_F32 = np.dtype("float32")


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any: ...


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Gives softmax(query key^T * scale + bias) value, for each head.

    Args:
        query: An array of shape (B, T, N, H): batch, positions, heads, features. B may be left out.
        key: An array of shape (B, S, K, H). K divides N: N / K heads of the query share one of the
            key.
        value: An array of shape (B, S, K, H).
        bias: What is added to the logits; it broadcasts to (B, N, T, S). None means nothing.
        mask: Which logits count: booleans that broadcast to (B, N, T, S). None means all.
        scale: The factor of the logits; None means 1 / sqrt(H).
        is_causal: Whether a position sees no later ones.
        query_seq_lengths: How many positions of the query count, for each example; None means all.
        key_value_seq_lengths: How many positions of key and value count, for each example; None
            means all.
        local_window_size: How many positions before and after are seen: an int for both, or a pair;
            None means all.
        implementation: None or "xla"; both are the same here.
        return_residual: Whether to give the logsumexp of the logits as well.

    Returns:
        An array of shape (B, T, N, H); with `return_residual` a pair of it and one of shape (B, T,
        N).

    >>> q, k = jnp.ones((2, 1, 3)), jnp.ones((5, 1, 3))
    >>> jax.nn.dot_product_attention(q, k, k).shape
    (2, 1, 3)"""
    name = "dot_product_attention"
    check_arraylike(name, query, key, value)
    if implementation == "cudnn":
        raise RuntimeError(
            "dot_product_attention: cuDNN is not used here: leave implementation out, or pass 'xla'"
        )
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    query, key, value = (to_array(x) for x in (query, key, value))
    shape = typeof(query).shape
    _check_ranks(name, query, key, value)
    query, key, value = (x if typeof(x).ndim == 4 else x[None] for x in (query, key, value))
    b, t, n, h = typeof(query).shape
    s, k = typeof(key).shape[1:3]
    _check_shapes(name, query, key, value)
    bias, mask = (
        _four(name, what, x, (b, n, t, s)) for what, x in (("bias", bias), ("mask", mask))
    )
    if mask is not None and typeof(mask).dtype != np.dtype(bool):
        raise ValueError(f"Mask must be boolean dtype, but got {typeof(mask).dtype}.")
    logits = _logits(query, key, 1 / math.sqrt(h) if scale is None else scale)
    if bias is not None:
        logits = logits + bias
    allowed = _allowed(
        mask, is_causal, local_window_size, query_seq_lengths, key_value_seq_lengths, (b, t, s)
    )
    if allowed is not None:
        logits = where(allowed, logits, np.float32(-0.7 * float(finfo(_F32).max)))
    wide = _wide(query)
    weights = convert(softmax(convert(logits, wide)), typeof(key).dtype)
    out = _combine(weights, value, k)
    if query_seq_lengths is not None:
        rows = places(t)[None, :, None, None] < reshape(query_seq_lengths, (-1, 1, 1, 1))
        out = out * convert(rows, typeof(out).dtype)
    out = reshape(out, (*shape[:-1], typeof(value).shape[-1]))
    if not return_residual:
        return out
    residual = convert(logsumexp(convert(logits, wide), axis=-1), typeof(query).dtype)
    return out, reshape(do.stop_gradient(moveaxis(residual, 1, 2)), shape[:-1])


def _check_ranks(name: str, *arrays: Any) -> None:
    ranks = {typeof(x).ndim for x in arrays}
    if len(ranks) > 1 or not ranks <= {3, 4}:
        shapes = ", ".join(str(typeof(x).shape) for x in arrays)
        raise ValueError(
            f"{name}: query, key and value must all have 3 or all have 4 dimensions, got shapes"
            f" {shapes}"
        )


def _check_shapes(name: str, query: Any, key: Any, value: Any) -> None:
    (b, _, n, h), (b2, s, k, h2), (b3, s3, k3, _) = (typeof(x).shape for x in (query, key, value))
    if (b, h) != (b2, h2) or (b3, s3, k3) != (b2, s, k):
        shapes = ", ".join(str(typeof(x).shape) for x in (query, key, value))
        raise ValueError(
            f"{name}: query (B, T, N, H), key and value (B, S, K, H) do not fit: got {shapes}"
        )
    if n % k:
        raise ValueError(
            f"{name}: the number of query heads {n} must be a multiple of that of key/value"
            f" heads {k}"
        )
    dtypes = {typeof(x).dtype for x in (query, key, value)}
    if len(dtypes) > 1:
        raise ValueError(
            f"{name}: query, key and value must have one dtype, got"
            f" {sorted(d.name for d in dtypes)}"
        )


def _four(name: str, what: str, x: Any, target: tuple[int, ...]) -> Any:
    if x is None:
        return None
    check_arraylike(name, x)
    x = to_array(x)
    shape = typeof(x).shape
    shape = (1,) * (4 - len(shape)) + shape
    if len(shape) != 4 or any(a not in (1, c) for a, c in zip(shape, target)):
        raise ValueError(
            f"{name}: {what} of shape {typeof(x).shape} does not broadcast to (B, N, T, S) ="
            f" {target}"
        )
    return reshape(x, shape)


def _wide(query: Any) -> np.dtype[Any]:
    """The dtype of logits and of their softmax: float32, float64 for queries in float64."""
    float64 = np.dtype("float64")
    return float64 if typeof(query).dtype == float64 else _F32


def _logits(query: Any, key: Any, scale: Any) -> Any:
    """Products of queries and keys, BNTS; each head of keys serves a group of heads of
    queries."""
    b, t, n, h = typeof(query).shape
    s, k = typeof(key).shape[1:3]
    q = reshape(query, (b, t, k, n // k, h))
    numbers = (((4,), (3,)), ((0, 2), (0, 2)))
    out = do.dot_general(
        q,
        key,
        dimension_numbers=numbers,
        preferred_element_type=_wide(query),
    )
    out = out * scale  # B K T G S
    return reshape(transpose(out, (0, 1, 3, 2, 4)), (b, n, t, s))


def _combine(weights: Any, value: Any, k: int) -> Any:
    """Sums of values by weights, BTNH."""
    b, n, t, s = typeof(weights).shape
    w = reshape(weights, (b, k, n // k, t, s))
    numbers = (((4,), (1,)), ((0, 1), (0, 2)))
    out = do.dot_general(
        w,
        value,
        dimension_numbers=numbers,
        preferred_element_type=typeof(value).dtype,
    )  # B K G T H
    return reshape(transpose(out, (0, 3, 1, 2, 4)), (b, t, n, typeof(value).shape[-1]))


def _allowed(
    mask: Any,
    is_causal: bool,
    window: Any,
    query_lengths: Any,
    key_lengths: Any,
    sizes: tuple[int, int, int],
) -> Any:
    """Which queries see which keys: all conditions together; None where there are none."""
    _, t, s = sizes
    rows, columns = places(t)[:, None], places(s)[None, :]
    parts = [] if mask is None else [mask]
    if is_causal:
        parts.append((rows >= columns)[None, None])
    if window is not None:
        left, right = window if isinstance(window, (tuple, list)) else (window, window)
        parts.append(((rows <= columns + left) & (rows >= columns - right))[None, None])
    for lengths, at in ((query_lengths, rows), (key_lengths, columns)):
        if lengths is not None:
            check_arraylike("dot_product_attention", lengths)
            parts.append(at[None, None] < reshape(lengths, (-1, 1, 1, 1)))
    if not parts:
        return None
    out = parts[0]
    for p in parts[1:]:
        out = out & p
    return out if typeof(out).ndim == 4 else broadcast_to(out, (1, 1, t, s))
