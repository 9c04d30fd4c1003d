"""Philox-2x32, Philox-4x32 and Threefry-4x32 behind random keys, in NumPy.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11). A key and a counter
of 32-bit words make a block of as many words as the counter has. Keys are arrays of uint32 with
their words in the last dimension; what is drawn for element i has i in its counter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.ops.random import threefry

_32 = np.uint64(32)
Words = Sequence[Any]  # arrays of uint32 that broadcast against each other

# ---------------------------------------------------------------- the block functions


def _product(a: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(high, low) words of a product."""
    full = np.uint64(a) * x.astype(np.uint64)
    return (full >> _32).astype(np.uint32), full.astype(np.uint32)


def _moved(k: np.ndarray, step: int, turn: int) -> np.ndarray:
    """A key word of a later round."""
    return k + np.uint32(step * turn & 0xFFFFFFFF)


def philox_2x32(key: Words, counter: Words) -> Words:
    (k,), (x0, x1) = key, counter
    for turn in range(10):
        high, low = _product(0xD256D193, x0)
        x0, x1 = high ^ x1 ^ _moved(k, 0x9E3779B9, turn), low
    return x0, x1


def philox_4x32(key: Words, counter: Words) -> Words:
    (k0, k1), (x0, x1, x2, x3) = key, counter
    for turn in range(10):
        (high0, low0), (high1, low1) = _product(0xD2511F53, x0), _product(0xCD9E8D57, x2)
        x0 = high1 ^ x1 ^ _moved(k0, 0x9E3779B9, turn)
        x2 = high0 ^ x3 ^ _moved(k1, 0xBB67AE85, turn)
        x1, x3 = low1, low0
    return x0, x1, x2, x3


_TURNS: Final = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def threefry_4x32(key: Words, counter: Words) -> Words:
    keys = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ np.uint32(threefry.PARITY)]
    x = [c + k for c, k in zip(counter, keys)]
    for turn in range(20):
        for a, b, bits in zip((0, 2), (1, 3) if turn % 2 == 0 else (3, 1), _TURNS[turn % 8]):
            x[a] = x[a] + x[b]
            x[b] = ((x[b] << np.uint32(bits)) | (x[b] >> np.uint32(32 - bits))) ^ x[a]
        if turn % 4 == 3:
            group = turn // 4 + 1
            x = [v + keys[(group + i) % 5] for i, v in enumerate(x)]
            x[3] = x[3] + np.uint32(group)
    return x


# ---------------------------------------------------------------- what keys need


class Generator(NamedTuple):
    """How keys of an algorithm are made and used.

    block       the block function
    words       how many words a key has
    length      how many words a counter has
    seeds_key   whether a seed takes the place of the first words of the key, and not of the counter
    wide        the words of a block that are the high word of 64 bits, and those that are the low
                one, each combined by exclusive or
    """

    block: Callable[[Words, Words], Words]
    words: int
    length: int
    seeds_key: bool
    wide: tuple[tuple[int, ...], tuple[int, ...]]

    def drawn(self, key: np.ndarray, counter: Words, rank: int) -> Words:
        """The block of each counter, which stands behind the dimensions of the keys."""
        at = (..., *(None,) * rank)
        parts = [key[..., i][at] for i in range(self.words)]
        words = [np.asarray(v) for v in np.broadcast_arrays(*parts, *counter)]
        with np.errstate(over="ignore"):
            return self.block(words[: self.words], words[self.words :])

    def seed(self, seeds: np.ndarray) -> np.ndarray:
        halves = threefry.seed_key(seeds)
        given = [halves[..., 0], halves[..., 1]]
        none = np.zeros(seeds.shape, np.uint32)
        padded = [*given, *[none] * max(self.words, self.length)]
        blank = [none] * max(self.words, self.length)
        key, counter = (padded, blank) if self.seeds_key else (blank, padded)
        with np.errstate(over="ignore"):
            out = self.block(key[: self.words], counter[: self.length])
        return np.stack(out[: self.words], axis=-1)

    def split(self, key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        counter = [*[np.uint32(0)] * (self.length - 2), *threefry.counters(shape)]
        out = self.drawn(key, counter, len(shape))
        return np.stack(out[: self.words], axis=-1)

    def fold_in(self, key: np.ndarray, data: np.ndarray) -> np.ndarray:
        counter = [*[np.uint32(0)] * (self.length - 1), data.astype(np.uint32)]
        return np.stack(self.drawn(key, counter, 0)[: self.words], axis=-1)

    def random_bits(self, key: np.ndarray, bit_width: int, shape: tuple[int, ...]) -> np.ndarray:
        counter = [*threefry.counters(shape), *[np.uint32(0)] * (self.length - 2)]
        out = self.drawn(key, counter, len(shape))
        dtype = np.dtype(f"uint{bit_width}")
        if bit_width == 64:
            high, low = [np.bitwise_xor.reduce([out[i] for i in half]) for half in self.wide]
            return np.asarray((high.astype(dtype) << _32) | low)
        return np.bitwise_xor.reduce(list(out)).astype(dtype)


PHILOX_2X32: Final = Generator(philox_2x32, 1, 2, False, ((0,), (1,)))
PHILOX_4X32: Final = Generator(philox_4x32, 2, 4, False, ((0,), (1,)))
THREEFRY_4X32: Final = Generator(threefry_4x32, 4, 4, True, ((0, 2), (1, 3)))
