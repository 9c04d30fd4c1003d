"""Philox-4x32-10, the counter-based generator behind rng_bit_generator and the keys of `rbg` and
`unsafe_rbg`, in NumPy.

A key is four uint32 words: the first two are the key of the generator, and all four its 128-bit
counter, the last two being the low half. Arrays of keys have the words in their last dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calque.ops.random import threefry

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)


def blocks(key: np.ndarray, n: int) -> np.ndarray:
    """The first `n` blocks of four words: an array of shape (..., n, 4)."""
    words = key.astype(np.uint64)[..., None, :]
    low = words[..., 2] | (words[..., 3] << _32)
    high = words[..., 0] | (words[..., 1] << _32)
    with np.errstate(over="ignore"):
        counter = low + np.arange(n, dtype=np.uint64)
        high = high + (counter < low).astype(np.uint64)
    x = [counter & _LOW, counter >> _32, high & _LOW, high >> _32]
    k0, k1 = words[..., 0], words[..., 1]
    for i in range(10):
        p0, p1 = _M0 * x[0], _M1 * x[2]
        r0, r1 = np.uint64(i * _W0 & 0xFFFFFFFF), np.uint64(i * _W1 & 0xFFFFFFFF)
        a, b = (k0 + r0) & _LOW, (k1 + r1) & _LOW
        x = [(p1 >> _32) ^ x[1] ^ a, p1 & _LOW, (p0 >> _32) ^ x[3] ^ b, p0 & _LOW]
    return np.stack(x, axis=-1).astype(np.uint32)


def generate(
    key: np.ndarray, shape: tuple[int, ...], bit_width: int
) -> tuple[np.ndarray, np.ndarray]:
    """(the key moved on, random unsigned integers of `shape` for each key). Narrow types keep the
    low bits of a word."""
    size = math.prod(shape)
    words_each = 2 if bit_width == 64 else 1
    n = -(-size * words_each // 4)
    words = blocks(key, n).reshape((*key.shape[:-1], 4 * n))[..., : size * words_each]
    return advanced(key, n), joined(words, bit_width).reshape((*key.shape[:-1], *shape))


def joined(words: np.ndarray, bit_width: int) -> np.ndarray:
    """Unsigned integers of `bit_width` bits from words: two for each of 64 bits, the low one
    first."""
    if bit_width == 64:
        pairs = words.reshape((*words.shape[:-1], words.shape[-1] // 2, 2)).astype(np.uint64)
        return np.asarray(pairs[..., 0] | (pairs[..., 1] << _32))
    return words.astype(np.dtype(f"uint{bit_width}"))


def advanced(key: np.ndarray, n: Any) -> np.ndarray:
    """The key after `n` blocks: its low counter half moved on."""
    words = key.astype(np.uint64)
    with np.errstate(over="ignore"):
        low = (words[..., 2] | (words[..., 3] << _32)) + np.asarray(n, np.uint64)
    first, second = (np.broadcast_to(words[..., i], low.shape) for i in (0, 1))
    return np.stack([first, second, low & _LOW, low >> _32], axis=-1).astype(np.uint32)


# ---------------------------------------------------------------- keys of four words


def seed_key(seed: np.ndarray) -> np.ndarray:
    """The threefry key of the seed, twice."""
    half = threefry.seed_key(seed)
    return np.concatenate([half, half], axis=-1)


def random_bits(key: np.ndarray, bit_width: int, shape: tuple[int, ...]) -> np.ndarray:
    return generate(key, shape, bit_width)[1]


def _halves(key: np.ndarray) -> np.ndarray:
    return key.reshape((*key.shape[:-1], 2, 2))


def split_halves(key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Each half split as a threefry key."""
    new: Any = threefry.split_key(_halves(key), shape)  # (..., 2, *shape, 2)
    new = np.moveaxis(new, key.ndim - 1, -2)
    return np.asarray(new.reshape((*key.shape[:-1], *shape, 4)))


def fold_in_halves(key: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Each half folded as a threefry key."""
    both = np.stack([data, data], axis=-1)
    return threefry.fold_in(_halves(key), both).reshape(key.shape)


def split_fast(key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Every tenth block of the key's own bits."""
    n = math.prod(shape)
    return blocks(key, 10 * n)[..., ::10, :].reshape((*key.shape[:-1], *shape, 4))


def fold_in_fast(key: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The key with the tenth block of the bits that `data` seeds laid over it."""
    return key ^ blocks(seed_key(data), 10)[..., -1, :]
