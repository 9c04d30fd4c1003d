"""Threefry-2x32 against the test vectors of its authors, and its rules."""

import numpy as np
import pytest

from calque.core.config import config
from calque.core.primitives import do
from calque.ops.random import threefry as T
from tests.ops.helpers import call, check_batch, same, traced

# Random123, kat_vectors: threefry2x32, 20 rounds: counter, key, result
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]
U = np.uint32


@pytest.mark.parametrize("counter, key, want", VECTORS)
def test_vectors(counter, key, want):
    out = call(T.threefry2x32_p, *(U(v) for v in (*key, *counter)))
    assert tuple(int(x) for x in out) == want


def test_shapes_and_rules():
    x = np.arange(4, dtype=U)
    a, b = call(T.threefry2x32_p, U(1), U(2), x, x + U(9))
    for i in range(4):
        one = call(T.threefry2x32_p, U(1), U(2), x[i], x[i] + U(9))
        assert (a[i], b[i]) == (one[0], one[1])
    assert call(T.threefry2x32_p, U(1), U(2), x[:0], x[:0])[0].shape == (0,)
    check_batch(T.threefry2x32_p, U(1), U(2), x, x)
    with pytest.raises(TypeError, match="threefry2x32 does not accept dtype int32 at position 0"):
        traced(lambda v: do.threefry2x32(v, v, v, v), np.ones(2, np.int32))


def test_a_batch_of_keys_is_each_key_alone():
    keys = np.array([[1, 2], [3, 4], [5, 6]], U)
    for partitionable in (True, False):
        with config.override("calque_threefry_partitionable", partitionable):
            for i, k in enumerate(keys):
                same(T.split_key(keys, (2, 2))[i], T.split_key(k, (2, 2)))
                for width in (8, 16, 32, 64):
                    same(T.random_bits(keys, width, (3,))[i], T.random_bits(k, width, (3,)))
    data = np.arange(3, dtype=U)
    same(T.fold_in(keys, data)[1], T.fold_in(keys[1], data[1]))


def test_elements_do_not_depend_on_the_shape_when_partitionable():
    key = np.array([7, 8], U)
    same(T.random_bits(key, 32, (12,)).reshape(3, 4), T.random_bits(key, 32, (3, 4)))
    same(T.random_bits(key, 32, (12,))[:5], T.random_bits(key, 32, (5,)))


def test_seeds():
    assert T.seed_key(np.int32(-5)).tolist() == [0, 2**32 - 5]
    assert T.seed_key(np.int64(-5)).tolist() == [2**32 - 1, 2**32 - 5]
    assert T.seed_key(np.int64(2**40 + 3)).tolist() == [256, 3]
