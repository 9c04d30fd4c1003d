"""Threefry-2x32, the counter-based generator behind random keys: the primitive threefry2x32, and
what keys need of it in NumPy.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11). 20 rounds on two
32-bit words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.primitives import Primitive, Zero, do
from calque.core.trace import typeof
from calque.ops.common import Accepts, aligned, refuse_dtype, tangent_aval
from calque.ops.kinds import common_aval, not_linear

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
UINT32 = Accepts("uint32", (np.dtype("uint32"),))

# ---------------------------------------------------------------- the block function


def block(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[np.ndarray, np.ndarray]:
    """Encrypt the counters (x0, x1) with the keys (k0, k1): arrays of uint32 that broadcast against
    each other."""
    k0, k1, x0, x1 = (np.asarray(v, np.uint32) for v in np.broadcast_arrays(k0, k1, x0, x1))
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def _meaning(*xs: np.ndarray) -> list[np.ndarray]:
    with np.errstate(over="ignore"):
        return list(block(*xs))


def _shape(*avals: ShapedArray) -> list[ShapedArray]:
    for i, a in enumerate(avals):
        if a.dtype not in UINT32:
            raise refuse_dtype("threefry2x32", a.dtype, UINT32, i)
    if len(avals) != 4:
        raise TypeError(
            f"threefry2x32 takes two key words and two counter words, got {len(avals)} operands"
        )
    out = common_aval("threefry2x32", avals)
    return [out, out]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    out = do.threefry2x32(*primals)
    return out, [Zero(tangent_aval(typeof(o))) for o in out]


def _batch(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[int]]:
    args, dim = aligned(args, dims)
    return do.threefry2x32(*args), [dim, dim]


threefry2x32_p = Primitive(
    "threefry2x32",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=not_linear("threefry2x32"),
    batch=_batch,
    multiple_results=True,
)

# ---------------------------------------------------------------- what keys are made of, in NumPy
# Keys are arrays of uint32 with a last dimension of 2; whatever dimensions they have before it are
# independent keys.


def seed_key(seed: np.ndarray) -> np.ndarray:
    """The key of an integer seed: its high and its low 32 bits."""
    bits = (
        seed.astype(np.int64).astype(np.uint64)
        if seed.dtype.itemsize == 8
        else seed.astype(np.uint32)
    )
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (bits.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)
    return np.stack([high, low], axis=-1)


def fold_in(key: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The key that comes of encrypting `data`."""
    return np.stack(_blocks(key, np.zeros(data.shape, np.uint32), data.astype(np.uint32)), axis=-1)


def split_key(key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Keys of shape `shape` for each key."""
    wide = key[(..., *(None,) * len(shape), slice(None))]
    if config.threefry_partitionable:
        return np.stack(_blocks(wide, *counters(shape)), axis=-1)
    words = _sequence(key, 2 * math.prod(shape))
    return words.reshape((*key.shape[:-1], *shape, 2))


def random_bits(key: np.ndarray, bit_width: int, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform unsigned integers of `bit_width` bits, an array of shape `shape` for each key."""
    dtype = np.dtype(f"uint{bit_width}")
    if config.threefry_partitionable:
        first, second = _blocks(key[(..., *(None,) * len(shape), slice(None))], *counters(shape))
        if bit_width == 64:
            return (first.astype(np.uint64) << np.uint64(32)) | second
        return (first ^ second).astype(dtype)
    size = math.prod(shape)
    words = _sequence(key, -(-bit_width * size // 32))
    if bit_width == 64:
        high, low = np.split(words, 2, axis=-1)
        out = (high.astype(np.uint64) << np.uint64(32)) | low
    else:
        out = words.view(dtype)[..., :size] if size else words.astype(dtype)
    return out.reshape((*key.shape[:-1], *shape))


def counters(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The row-major index of every element of an array, as high and low words."""
    index = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return (index >> np.uint64(32)).astype(np.uint32), index.astype(np.uint32)


def _blocks(key: np.ndarray, high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore"):
        return block(key[..., 0], key[..., 1], high, low)


def _sequence(key: np.ndarray, n: int) -> np.ndarray:
    """`n` words for each key: the counters 0 to n-1, encrypted in pairs of the first half with the
    second."""
    half = (n + 1) // 2
    index = np.arange(2 * half, dtype=np.uint32)
    if n % 2:
        index[-1] = 0
    words = _blocks(key[..., None, :], index[:half], index[half:])
    return np.ascontiguousarray(np.concatenate(words, axis=-1)[..., :n])
