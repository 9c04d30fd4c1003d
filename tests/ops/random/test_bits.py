"""rng_bit_generator and the Philox generator behind it."""

import numpy as np
import pytest

import calque
import calque.lax
from calque.ops.random import bits as R
from calque.ops.random import philox as P
from tests.ops.helpers import call, check_batch, run, same, traced, x64

KEY = np.array([1, 2, 3, 4], np.uint32)


def reference(counter, key):
    """Philox-4x32-10 in Python's integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_reference_vectors():
    # Random123, kat_vectors: philox4x32, 10 rounds
    assert reference([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    full = 0xFFFFFFFF
    assert reference([full] * 4, [full] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def test_blocks():
    assert P.blocks(KEY, 2).tolist() == [
        reference((3, 4, 1, 2), (1, 2)),
        reference((4, 4, 1, 2), (1, 2)),
    ]
    last = np.full(4, 0xFFFFFFFF, np.uint32)
    assert P.blocks(last, 2)[1].tolist() == reference((0, 0, 0, 0), (last[0].item(),) * 2)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_the_state_moves_on(dtype):
    with x64():
        for algorithm in R.RandomAlgorithm:
            params = {"dtype": np.dtype(dtype), "algorithm": algorithm, "out_sharding": None}
            state, bits = call(R.rng_bit_generator_p, KEY, shape=(4,), **params)
            again, more = call(R.rng_bit_generator_p, state, shape=(4,), **params)
            whole = call(R.rng_bit_generator_p, KEY, shape=(8,), **params)
            same(np.concatenate([bits, more]), whole[1])
            same(again, whole[0])
            wide = call(R.rng_bit_generator_p, KEY.view(np.uint64), shape=(4,), **params)
            same(wide[1], bits)
            assert call(R.rng_bit_generator_p, KEY, shape=(0, 3), **params)[1].shape == (0, 3)


def test_rules():
    params = {
        "shape": (2, 3),
        "dtype": np.dtype("uint32"),
        "algorithm": R.RandomAlgorithm.RNG_DEFAULT,
    }
    check_batch(R.rng_bit_generator_p, KEY, out_sharding=None, **params)
    with pytest.raises(
        TypeError, match=r"needs a state of type u32\[4\] or u64\[2\], got u32\[3\]"
    ):
        traced(lambda k: R.rng_bit_generator(k, (3,)), KEY[:3])
    with pytest.raises(TypeError, match="gives unsigned integers"):
        traced(lambda k: R.rng_bit_generator(k, (3,), np.float32), KEY)


@pytest.mark.peer
@pytest.mark.parametrize("algorithm", [0, 1, 2])
def test_peer(algorithm):
    jax = pytest.importorskip("jax")
    theirs = jax.lax.RandomAlgorithm(algorithm)
    for key in (KEY, np.array([2**32 - 1, 1, 2**32 - 1, 2**32 - 1], np.uint32)):
        for dtype, shape in (
            ("uint32", (3, 5)),
            ("uint32", (2, 2, 3)),
            ("uint8", (5,)),
            ("uint32", ()),
            ("uint32", (3, 3)),
        ):
            want = jax.lax.rng_bit_generator(key, shape, dtype, theirs)
            got = run(
                lambda k: R.rng_bit_generator(k, shape, dtype, R.RandomAlgorithm(algorithm)), key
            )
            for g, w in zip(got, want):
                same(g, np.asarray(w))


def test_uniform_numbers_from_a_hidden_state():
    draw = calque.jit(
        lambda a, b: (calque.lax.rng_uniform(a, b, (1000,)), calque.lax.rng_uniform(a, b, (1000,)))
    )
    x, y = draw(1.0, 3.0)
    assert 1 <= x.min() < 1.1 and 2.9 < x.max() < 3 and 1.9 < x.mean() < 2.1
    assert not np.array_equal(x, y) and not np.array_equal(x, draw(1.0, 3.0)[0])
    n = calque.lax.rng_uniform(0, 3, (100,))
    assert n.dtype == np.int32 and set(np.asarray(n)) == {0, 1, 2}
    with pytest.raises(ValueError, match="identical dtypes, got float32 and int32"):
        calque.lax.rng_uniform(0.0, 1, (3,))
    with pytest.raises(ValueError, match="must be scalars"):
        calque.lax.rng_uniform(np.ones(2), np.ones(2), (3,))
    with pytest.raises(NotImplementedError, match=r"use calque\.random"):
        calque.grad(lambda x: calque.lax.rng_uniform(0.0, x, ()))(1.0)
