"""Philox: blocks by their counter, and keys made of keys."""

import numpy as np
import pytest

from calque.ops.random import philox

KEY = np.array([1, 2, 3, 4], np.uint32)
KEYS = np.stack([KEY, KEY + np.uint32(7)])


def test_the_same_key_gives_the_same_blocks():
    a = philox.blocks(KEY, 5)
    assert a.shape == (5, 4) and a.dtype == np.uint32
    np.testing.assert_array_equal(a, philox.blocks(KEY, 9)[:5])
    assert len(np.unique(a)) == a.size
    np.testing.assert_array_equal(philox.blocks(KEYS, 3)[1], philox.blocks(KEYS[1], 3))


def test_a_key_moved_on_goes_on():
    np.testing.assert_array_equal(
        philox.blocks(philox.advanced(KEY, 2), 3), philox.blocks(KEY, 5)[2:]
    )


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits_of_each_width(width):
    bits = philox.random_bits(KEY, width, (1000,))
    assert bits.dtype == np.dtype(f"uint{width}") and bits.shape == (1000,)
    ones = np.unpackbits(bits.view(np.uint8)).mean()
    assert 0.47 < ones < 0.53
    moved, again = philox.generate(KEY, (1000,), width)
    np.testing.assert_array_equal(again, bits)
    assert moved.shape == KEY.shape and (moved != KEY).any()


def test_words_of_64_bits_have_the_low_one_first():
    words = np.array([1, 2, 3, 4], np.uint32)
    assert philox.joined(words, 64).tolist() == [1 + (2 << 32), 3 + (4 << 32)]
    assert philox.joined(words, 8).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("split", [philox.split_halves, philox.split_fast])
@pytest.mark.parametrize("fold", [philox.fold_in_halves, philox.fold_in_fast])
def test_keys_of_keys_differ(split, fold):
    many = split(KEY, (50,)).reshape(50, 4)
    assert len(np.unique(many, axis=0)) == 50
    folded = [fold(KEY, np.uint32(k)).tolist() for k in range(50)]
    assert len({tuple(k) for k in folded}) == 50
    np.testing.assert_array_equal(split(KEYS, (3,))[1], split(KEYS[1], (3,)))


def test_seeds():
    a, b = (philox.seed_key(np.array(s, np.uint32)) for s in (0, 1))
    assert a.shape == (4,) and a.tolist() != b.tolist() and a[:2].tolist() == a[2:].tolist()
