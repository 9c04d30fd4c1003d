"""rng_bit_generator: random bits from an explicit state, by Philox (the default) or Threefry."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dims import whole
from calque.core.dtypes import as_dtype, is_float, is_integer, is_unsigned
from calque.core.primitives import NotApplicable, Primitive, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.machine.once import once
from calque.ops.common import move, operand, tangent_aval
from calque.ops.kinds import not_linear
from calque.ops.random import philox, threefry


class RandomAlgorithm(enum.IntEnum):
    """The algorithms of `rng_bit_generator`."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def _threefry_generate(
    key: np.ndarray, shape: tuple[int, ...], width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of two words. An element of 64 bits is a block; else a dimension of even size (the
    first one, or the largest one made even) is split, and the words of a block stand beside each
    other in it."""
    if width == 64 or not shape:
        at, n, split = 0, math.prod(shape), tuple[int, ...]()
    else:
        at = next(
            (i for i, d in enumerate(shape) if d % 2 == 0),
            max(range(len(shape)), key=lambda i: shape[i]),
        )
        split = (*shape[:at], (shape[at] + 1) // 2, *shape[at + 1 :])
        n = math.prod(split)
    counter = philox.advanced(key[..., None, :], np.arange(n, dtype=np.uint64))
    words = threefry.block(key[..., None, 0], key[..., None, 1], counter[..., 2], counter[..., 3])
    lead = key.shape[:-1]
    if not split:
        out = philox.joined(np.stack(words, axis=-1).reshape((*lead, 2 * n)), 64)
        return philox.advanced(key, n), out.astype(np.dtype(f"uint{width}")).reshape(
            (*lead, *shape)
        )
    pairs = np.stack([w.reshape((*lead, *split)) for w in words], axis=len(lead) + at + 1)
    whole = pairs.reshape((*lead, *shape[:at], 2 * split[at], *shape[at + 1 :]))
    kept = whole.take(np.arange(shape[at]), axis=len(lead) + at)
    return philox.advanced(key, n), kept.astype(np.dtype(f"uint{width}"))


def _meaning(
    key: np.ndarray, *, shape: tuple[int, ...], dtype: Any, algorithm: Any, out_sharding: Any = None
) -> list[np.ndarray]:
    words = np.ascontiguousarray(key).view(np.uint32)
    make = _threefry_generate if algorithm == RandomAlgorithm.RNG_THREE_FRY else philox.generate
    with np.errstate(over="ignore"):
        new, bits = make(words, shape, 8 * dtype.itemsize)
    return [np.ascontiguousarray(new).view(key.dtype).reshape(key.shape), bits.view(dtype)]


def _shape(
    key: ShapedArray,
    *,
    shape: tuple[int, ...],
    dtype: Any,
    algorithm: Any,
    out_sharding: Any = None,
) -> list[ShapedArray]:
    words = {np.dtype("uint32"): 4, np.dtype("uint64"): 2}.get(key.dtype)
    if words is None or not key.ndim or key.shape[-1] != words:
        raise TypeError(
            f"rng_bit_generator needs a state of type u32[4] or u64[2], got {key.str_short()}"
        )
    if not is_unsigned(dtype) or dtype.kind != "u":
        raise TypeError(
            f"rng_bit_generator gives unsigned integers (uint8 to uint64), not {dtype.name}"
        )
    return [key, ShapedArray(key.shape[:-1] + shape, dtype)]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    out = do.rng_bit_generator(*primals, **params)
    return out, [Zero(tangent_aval(typeof(o))) for o in out]


def _batch(args: Sequence[Any], dims: Sequence[int], **params: Any) -> tuple[list[Any], list[int]]:
    """A state that has further dimensions before its words is an array of states, each with bits of
    its own."""
    return do.rng_bit_generator(move(args[0], dims[0], 0), **params), [0, 0]


rng_bit_generator_p = Primitive(
    "rng_bit_generator",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=not_linear("rng_bit_generator"),
    batch=_batch,
    multiple_results=True,
)


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, ...]:
    """Gives random bits, and the state for the next ones.

    Args:
        key: The state: four words of uint32.
        shape: The shape of the result.
        dtype: An unsigned integer dtype.
        algorithm: A `RandomAlgorithm`.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        A pair (the state moved on, the bits).

    >>> state, bits = lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (3,))
    >>> state.shape, bits.dtype
    ((4,), dtype('uint32'))"""
    state_and_bits = rng_bit_generator_p.bind(
        operand(key),
        shape=tuple(whole(d, "shape") for d in shape),
        dtype=as_dtype(dtype),
        algorithm=RandomAlgorithm(algorithm),
        out_sharding=out_sharding,
    )
    return tuple(state_and_bits)


# ---------------------------------------------------------------- rng_uniform: random numbers from


@once
def _generator() -> np.random.Generator:
    """Made when first used: `numpy.random` takes as long to import as all primitives."""
    return np.random.default_rng()


def _uniform_meaning(a: np.ndarray, b: np.ndarray, *, shape: tuple[int, ...]) -> np.ndarray:
    if is_integer(a.dtype):
        return _generator().integers(int(a), int(b), shape).astype(a.dtype)
    low, high = float(a), float(b)
    found = (low + (high - low) * _generator().random(shape)).astype(a.dtype)
    return np.where(found < b, found, a)  # rounding may have reached the end


def _uniform_shape(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    if a.dtype != b.dtype:
        raise ValueError(
            "Arguments to rng_uniform must have identical dtypes, got"
            f" {getattr(a.dtype, 'name', a.dtype)} and {getattr(b.dtype, 'name', b.dtype)}."
        )
    if a.shape or b.shape:
        raise ValueError(
            f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}."
        )
    if not (is_integer(a.dtype) or is_float(a.dtype)):
        raise TypeError(
            f"rng_uniform gives integers or floats, not {getattr(a.dtype, 'name', a.dtype)}"
        )
    return ShapedArray(shape, a.dtype)


_STATEFUL = NotApplicable(
    "rng_uniform has a hidden state: use calque.random, which can be transformed"
)
rng_uniform_p = Primitive(
    "rng_uniform",
    meaning=_uniform_meaning,
    shape=_uniform_shape,
    jvp=_STATEFUL,
    transpose=not_linear("rng_uniform"),
    batch=_STATEFUL,
    effect=True,
)


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Gives random numbers with a hidden state: other ones at each call.

    Those of `jax.random` can be had again, and transformed.

    Args:
        a: The least number, an array without axes.
        b: The number above the largest, of the same dtype.
        shape: The shape of the result.

    Returns:
        An array.

    >>> lax.rng_uniform(0.0, 1.0, (3,)).shape
    (3,)"""
    return rng_uniform_p.bind(operand(a), operand(b), shape=tuple(whole(d, "shape") for d in shape))
