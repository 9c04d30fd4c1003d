"""What random functions take: seeds, shapes, kinds of keys; and keys in operations on arrays."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, random

K = random.split(random.key(0), 4)

ERRORS = {
    "large seed": (lambda: random.key(2**63), OverflowError, "64 bits"),
    "key as seed": (lambda: random.key(K[0]), TypeError, "key accepts a scalar seed"),
    "keys as seed": (lambda: random.PRNGKey(K), TypeError, "PRNGKey accepts a scalar seed"),
    "seeds": (lambda: random.key(np.arange(2)), TypeError, "key accepts a scalar seed"),
    "object as algorithm": (lambda: random.key(0, impl=object()), TypeError, "unrecognized type"),
    "both": (lambda: random.key(0, impl="rbg", dtype=K.dtype), ValueError, "Cannot specify both"),
    "no key": (lambda: random.uniform(jnp.ones(1)), TypeError, "invalid PRNG key data"),
    "shape of choice": (lambda: random.choice(K[0], 5, 2), TypeError, "must be a sequence"),
    "axis": (lambda: random.permutation(K[0], 10, axis=3), ValueError, "out of bounds"),
    "sum": (lambda: K + 1, TypeError, "add does not accept dtypes key<fry>, int32"),
    "sum of keys": (lambda: K + K, TypeError, "add does not accept dtype key<fry>"),
    "conversion": (lambda: lax.convert_element_type(K, int), ValueError, "from key<fry> to int32"),
    "numpy": (lambda: np.asarray(K), TypeError, "cannot be converted to a NumPy array"),
    "logits": (
        lambda: random.categorical(K[0], jnp.zeros((2, 3)), shape=(3,)),
        ValueError,
        "broadcasts to",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fun, error, words = ERRORS[name]
    with pytest.raises(error, match=words):
        fun()


def test_keys_are_written_into_arrays_of_keys():
    new = random.key(7)
    for update in (
        lambda k, v: k.at[1].set(v),
        lambda k, v: lax.dynamic_update_slice(k, v[None], (1,)),
        lambda k, v: k.at[jnp.array([1])].set(v),
    ):
        for f in (update, calque.jit(update)):
            got = random.key_data(f(K, new))
            assert got[1].tolist() == random.key_data(new).tolist()
            assert got[2].tolist() == random.key_data(K[2]).tolist()


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_outside_have_all_their_bits_set(impl):
    keys = random.split(random.key(0, impl=impl), 3)
    for f in (lambda k: k.at[9].get(mode="fill"), lambda k: k.at[jnp.array([9])].get(mode="fill")):
        for g in (f, calque.jit(f)):
            assert (np.asarray(random.key_data(g(keys))) == 2**32 - 1).all()


def test_logits_are_broadcast_to_the_shape_asked_for():
    logits = jnp.where(jnp.arange(5) == 3, 0.0, -1e9)[None, :, None]
    got = random.categorical(K[0], logits, axis=1, shape=(2, 4, 6))
    assert got.shape == (2, 4, 6)
    assert (got == 3).all()


@pytest.mark.parametrize("n", [100, 40_000])
def test_many_words_are_those_of_few(n):
    """Where a kernel makes the words and where NumPy does: the same."""
    with calque.disable_jit():
        want = random.bits(K[0], (n,))
    np.testing.assert_array_equal(calque.jit(lambda k: random.bits(k, (n,)))(K[0]), want)
