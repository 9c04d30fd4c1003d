"""The other counter-based generators: their published vectors, what keys give, JAX's bits."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random
from calque.ops.random import counter_based as c

ONES = 0xFFFFFFFF
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
E = (0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89)

# key, counter, block: from the vectors that the authors of the generators publish
VECTORS = [
    (c.philox_2x32, (0,), (0, 0), (0xFF1DAE59, 0x6CD10DF2)),
    (c.philox_2x32, (ONES,), (ONES, ONES), (0x2C3F628B, 0xAB4FD7AD)),
    (c.philox_2x32, (PI[2],), PI[:2], (0xDD7CE038, 0xF62A4C12)),
    (c.philox_4x32, (0,) * 2, (0,) * 4, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (c.philox_4x32, (ONES,) * 2, (ONES,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (c.philox_4x32, E[:2], PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    (c.threefry_4x32, (0,) * 4, (0,) * 4, (0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8)),
    (c.threefry_4x32, (ONES,) * 4, (ONES,) * 4, (0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732)),
    (c.threefry_4x32, E, PI, (0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84)),
]


@pytest.mark.parametrize(("block", "key", "counter", "want"), VECTORS)
def test_published_vectors(block, key, counter, want):
    with np.errstate(over="ignore"):
        got = block([np.uint32(k) for k in key], [np.uint32(w) for w in counter])
    assert tuple(map(int, got)) == want


NAMES = {"threefry4x32": ("fry4", 4), "philox2x32": ("phx2", 1), "philox4x32": ("phx4", 2)}


@pytest.mark.parametrize("name", NAMES)
def test_keys(name):
    tag, words = NAMES[name]
    key = random.key(3, impl=name)
    assert key.dtype.name == f"key<{tag}>" and random.key_impl(key) == name
    assert random.key_data(key).shape == (words,)
    keys = random.split(key, (2, 3))
    data = np.asarray(random.key_data(keys)).reshape(6, words)
    assert keys.shape == (2, 3) and len({tuple(d) for d in data.tolist()}) == 6
    one_by_one = [[random.bits(k, (4,)) for k in row] for row in keys]
    np.testing.assert_array_equal(
        calque.vmap(calque.vmap(lambda k: random.bits(k, (4,))))(keys), np.array(one_by_one)
    )

    def f(k):
        return (random.normal(k, (5,)), random.fold_in(k, 7), random.split(k))

    for got, want in zip(calque.jit(f)(key), f(key)):
        assert got.dtype == want.dtype and bool(jnp.all(got == want))
    values = np.asarray(random.uniform(key, (4000,)))
    assert abs(values.mean() - 0.5) < 0.02 and values.min() >= 0 and values.max() < 1
    with pytest.raises(TypeError, match=f"keys of {name} are made of uint32 words"):
        random.wrap_key_data(jnp.zeros(words + 1, jnp.uint32), impl=name)


@pytest.mark.peer
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 42, -3, 1 << 40])
def test_jax_draws_the_same(name, seed):
    jax = pytest.importorskip("jax")

    def drawn(m):
        with m.enable_x64(True):
            key = m.random.key(seed, impl=name)
            keys = m.random.split(key, (2, 3))
            return [
                *map(m.random.key_data, (key, keys, m.random.fold_in(key, 9))),
                *[m.random.bits(key, (3, 2), f"uint{n}") for n in (8, 16, 32, 64)],
                m.random.uniform(keys[1, 2], (7,), "float32"),
            ]

    for ours, theirs in zip(drawn(calque), drawn(jax), strict=True):
        np.testing.assert_array_equal(ours, theirs)
