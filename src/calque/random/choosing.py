"""Permutations, choices, and positions by their weights."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dtypes import canonicalize
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import canonical_axis, check_arraylike, promote_inexact
from calque.numpy.signatures import OutSharding
from calque.ops.sorting import top_k
from calque.random.distributions import gumbel
from calque.random.keys import wrapped
from calque.random.uniform import pair, randint, random_bits, uniform_between


@placed
def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Puts the elements of an array in random order.

    Args:
        key: A random key.
        x: An array, or an int n for the integers below n.
        axis: The axis along which they change places.
        independent: Whether each vector along the axis has an order of its own.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.permutation(jax.random.key(0), 4)
    Array([0, 1, 3, 2], dtype=int32)"""
    typed, _ = wrapped(key, "permutation")
    check_arraylike("permutation", x)
    aval = typeof(x)
    if aval.ndim == 0:
        if aval.dtype.kind not in "iu":
            raise TypeError("x must be an integer or at least 1-dimensional")
        canonical_axis(axis, 1)
        return shuffle(typed, jnp.arange(x), 0)
    x = to_array(x)
    k = canonical_axis(axis, aval.ndim)
    if independent or aval.ndim == 1:
        return shuffle(typed, x, k)
    order = shuffle(typed, jnp.arange(aval.shape[k]), 0)
    return x[(slice(None),) * k + (order,)]


def shuffle(key: Array, x: Array, axis: int) -> Array:
    """Sort by random words, often enough that equal words do not matter."""
    size = typeof(x).size
    most = float(np.iinfo(np.uint32).max)
    rounds = 0
    while size > int(most ** (rounds / 3)):  # the cube root of the words for each round
        rounds += 1
    for _ in range(rounds):
        key, sub = pair(key)
        words = random_bits(sub, 32, typeof(x).shape)
        _, x = do.sort(words, x, dimension=axis, is_stable=True, num_keys=1)
    return x


def _how_many(a: Any) -> int:
    """The number of integers to choose from: JAX drops what is behind its point."""
    try:
        return int(a)
    except (ValueError, OverflowError):
        raise ValueError(f"choice: the number to choose from must be finite, got {a}") from None


@placed
def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws elements of an array.

    Args:
        key: A random key.
        a: An array, or an int n for the integers below n.
        shape: The shape of the draws, which takes the place of the axis.
        replace: Whether an element may be drawn more than once.
        p: The probability of each element along the axis; None means equal ones.
        axis: The axis.
        mode: How noise is drawn for weights without replacement, as of `gumbel`.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.choice(jax.random.key(0), 5, (3,))
    Array([4, 0, 2], dtype=int32)"""
    typed, _ = wrapped(key, "choice")
    check_arraylike("choice", a)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of calque.random.choice must be a sequence, got {shape!r}")
    shape = canonical_shape(shape)
    aval = typeof(a)
    if aval.ndim == 0:
        n, k = _how_many(a), 0
    else:
        k = canonical_axis(axis, aval.ndim)
        n = aval.shape[k]
    draws = math.prod(shape)
    if n <= 0 and draws:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > n:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {n}) when"
            " 'replace=False': each is taken once at most. replace=True takes them again"
        )
    if p is None:
        picked = _even(typed, a, n, shape, replace, k)
        if picked is not None:
            return picked
        places = randint(typed, shape, 0, n)
    else:
        places = _weighted(typed, p, n, shape, replace, mode)
    if aval.ndim == 0:
        return places
    return to_array(a)[(slice(None),) * k + (places,)]


def _even(key: Any, a: Any, n: int, shape: tuple[int, ...], replace: bool, axis: int) -> Any:
    if replace:
        return None
    mixed = permutation(key, n if typeof(a).ndim == 0 else to_array(a), axis)
    cut = mixed[(slice(None),) * axis + (slice(0, math.prod(shape)),)]
    return jnp.reshape(cut, (*mixed.shape[:axis], *shape, *mixed.shape[axis + 1 :]))


def _weighted(key: Any, p: Any, n: int, shape: tuple[int, ...], replace: bool, mode: Any) -> Any:
    check_arraylike("choice", p)
    p = to_array(promote_inexact(p)[0])
    if p.shape != (n,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. p has shape"
            f" {p.shape} and a.shape[axis] is {n}."
        )
    if not n:  # then nothing is drawn
        return jnp.zeros(shape, canonicalize(int))
    if replace:
        total = jnp.cumsum(p)
        r = total[-1] * (1 - uniform_between(key, shape, p.dtype, 0.0, 1.0))
        return jnp.searchsorted(total, r).astype(canonicalize(int))
    scores = gumbel(key, (n,), p.dtype, mode) + jnp.log(p)
    best = top_k(scores, math.prod(shape), axis=0)[1]
    return jnp.reshape(best, shape).astype(canonicalize(int))


@placed
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws positions along an axis, with the probabilities softmax(logits).

    Args:
        key: A random key.
        logits: The logarithms of weights.
        axis: The axis; the result does not have it.
        shape: The shape of the result; it ends with the other axes of `logits`. None takes these
            alone.
        replace: Whether a position may be drawn more than once, along the leading axes of `shape`.
        mode: None or "low"; or "high" or "highest", which take twice the bits, as of `gumbel`, for
            small probabilities.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of integers.

    >>> jax.random.categorical(jax.random.key(0), jnp.log(jnp.array([0.1, 0.9])), shape=(4,))
    Array([1, 1, 1, 1], dtype=int32)"""
    typed, _ = wrapped(key, "categorical")
    check_arraylike("categorical", logits)
    logits = to_array(promote_inexact(logits)[0])
    own = logits.shape
    k = canonical_axis(axis, len(own))
    batch = own[:k] + own[k + 1 :]
    shape = batch if shape is None else canonical_shape(shape)
    lead, tail = shape[: len(shape) - len(batch)], shape[len(shape) - len(batch) :]
    if len(tail) < len(batch) or any(n not in (1, m) for n, m in zip(batch, tail)):
        raise ValueError(
            f"categorical: shape {shape} must end with what the batch shape {batch} of logits"
            " broadcasts to"
        )
    if tail != batch:
        own = (*tail[:k], own[k], *tail[k:])
        logits = jnp.broadcast_to(logits, own)
    if not replace:
        return _without_replacement(typed, logits, k, lead, mode)
    noise = gumbel(typed, (*lead, *own), logits.dtype, mode)
    return jnp.argmax(noise + jnp.broadcast_to(logits, noise.shape), axis=k + len(lead))


def _without_replacement(key: Any, logits: Any, axis: int, lead: tuple[int, ...], mode: Any) -> Any:
    n = int(np.prod(lead, dtype=np.int64))
    own = logits.shape
    if n > own[axis]:
        raise ValueError(
            f"Number of samples without replacement ({n}) cannot exceed number of categories"
            f" ({own[axis]})."
        )
    scores = jnp.moveaxis(gumbel(key, own, logits.dtype, mode) + logits, axis, -1)
    places = jnp.moveaxis(top_k(scores, n)[1], -1, 0)
    return jnp.reshape(places, (*lead, *places.shape[1:]))
