"""Algorithms of random keys that libraries define, and the parts of those that there are."""

import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random
from calque.extend import random as extend_random


def made(key_shape=(2, 3), name="mine"):
    def bits(key, width, shape):
        return (key.sum() + jnp.arange(np.prod(shape, dtype=int)).reshape(shape)).astype(
            f"uint{width}"
        )

    return extend_random.define_prng_impl(
        key_shape=key_shape,
        seed=lambda s: jnp.full(key_shape, s, "uint32"),
        split=lambda k, shape: (
            k + jnp.arange(np.prod(shape), dtype="uint32").reshape(*shape, *[1] * len(key_shape))
        ),
        fold_in=lambda k, data: k * data,
        random_bits=bits,
        name=name,
        tag="m",
    )


def test_keys_of_a_library():
    impl, other = made(), made()
    key = random.key(5, impl=impl)
    assert key.dtype.name == "key<m>" and key.dtype == random.key_dtype(impl)
    assert random.key_impl(key) is impl and key.dtype != random.key(5, impl=other).dtype
    assert random.key(5, dtype=key.dtype).dtype == key.dtype
    assert random.key_data(key).tolist() == [[5] * 3] * 2

    def use(key):
        keys = random.split(key, (2, 2))
        each = calque.vmap(calque.vmap(lambda k: random.bits(k, (2,))))(keys)
        return (
            each,
            random.key_data(calque.vmap(lambda k: random.fold_in(k, 3))(keys[1])),
            random.bits(key, (2,), "uint8"),
        )

    for run in (use, calque.jit(use)):
        bits, folded, narrow = run(key)
        want = [[[30 + 6 * (2 * i + j) + k for k in (0, 1)] for j in (0, 1)] for i in (0, 1)]
        assert bits.tolist() == want and narrow.tolist() == [30, 31]
        assert folded[:, 0, 0].tolist() == [(5 + 2) * 3, (5 + 3) * 3]
    wrapped = random.wrap_key_data(jnp.ones((4, 2, 3), "uint32"), impl=impl)
    assert wrapped.shape == (4,) and wrapped[1:].shape == (3,)
    moved = calque.vmap(lambda w: random.wrap_key_data(w, impl=impl), in_axes=2)(
        jnp.ones((2, 3, 4), "uint32")
    )
    assert moved.shape == (4,)
    assert random.split(key, 0).shape == (0,) and random.uniform(key).shape == ()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(impl)


@pytest.mark.parametrize("name", ["threefry2x32", "rbg", "counting"])
def test_an_algorithm_is_told_by_more_than_its_name(name):
    """Those that every process has stay what they are, and machine code takes no other for one."""
    own = extend_random.define_prng_impl(
        key_shape=(2,),
        seed=lambda seed: jnp.full(2, 7, "uint32"),
        split=lambda key, shape: jnp.broadcast_to(key, (*shape, 2)),
        fold_in=lambda key, data: key + data,
        random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
        name=name,
    )
    key, known = calque.random.key(1, impl=own), calque.random.key(1)
    draw = lambda key: calque.random.bits(calque.random.split(key)[0], (3,), "uint32")  # noqa: E731
    want = np.asarray(draw(known))
    for f in (draw, calque.jit(draw)):
        assert f(key).tolist() == [7, 7, 7]
        np.testing.assert_array_equal(f(known), want)
    assert calque.random.key_data(key).tolist() == [7, 7]
    assert calque.random.key_data(known).tolist() == [0, 1]


def test_parts_of_the_algorithms():
    for name, impl in {
        "threefry2x32": extend_random.threefry_prng_impl,
        "rbg": extend_random.rbg_prng_impl,
        "unsafe_rbg": extend_random.unsafe_rbg_prng_impl,
    }.items():
        for key in (extend_random.seed_with_impl(impl, 3), extend_random.random_seed(3, impl)):
            assert bool(key == random.key(3, impl=name))
    assert extend_random.random_seed(jnp.arange(3), impl).shape == (3,)


@pytest.mark.peer
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_jax_encrypts_the_same(shape):
    theirs = pytest.importorskip("jax.extend.random")
    jax = pytest.importorskip("jax")
    words = np.arange(np.prod(shape, dtype=int), dtype=np.uint32).reshape(shape)
    got = extend_random.threefry_2x32((jnp.uint32(7), jnp.uint32(9)), jnp.array(words))
    j = jax.numpy
    want = theirs.threefry_2x32((j.uint32(7), j.uint32(9)), j.array(words))
    np.testing.assert_array_equal(got, want)
    with pytest.raises(TypeError, match="requires uint32 arguments"):
        extend_random.threefry_2x32((jnp.uint32(7), jnp.uint32(9)), jnp.ones(2))
