"""Typed random keys: their primitives, and the same bits as JAX."""

import copy
import pickle

import numpy as np
import pytest

import calque
from calque import random
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import short_name
from calque.core.primitives import do
from calque.core.printing import print_jaxpr
from calque.core.trace import jaxpr_as_fun, trace_to_jaxpr
from calque.ops.random import keys as K
from tests.ops.helpers import check_batch, run, same, traced, x64

FRY = K.implementation("threefry2x32")
SEED = np.int32(42)


def key_words(fun, *args):
    return run(lambda *xs: do.random_unwrap(fun(*xs)), *args)[0]


def test_dtypes():
    assert short_name(FRY.dtype) == repr(FRY.dtype) == "key<fry>" and repr(FRY) == "fry"
    assert FRY.dtype.itemsize == 8 and K.implementation("rbg").dtype.storage.itemsize == 16
    for x in (FRY, FRY.dtype):
        assert pickle.loads(pickle.dumps(x)) is x and K.implementation(x) is FRY
    assert copy.deepcopy(FRY.dtype) is FRY.dtype
    assert ShapedArray((2,), FRY.dtype) is ShapedArray((2,), FRY.dtype)
    with pytest.raises(
        ValueError, match=r"unrecognized PRNG implementation 'xor'.*threefry2x32, rbg"
    ):
        K.implementation("xor")


def test_wrap_and_unwrap():
    words = np.arange(12, dtype=np.uint32).reshape(3, 2, 2)
    same(key_words(lambda w: do.random_wrap(w, impl=FRY), words), words)
    with pytest.raises(TypeError, match=r"the last dimension being \(2,\); got u32\[3\]"):
        traced(lambda w: do.random_wrap(w, impl=FRY), np.zeros(3, np.uint32))
    with pytest.raises(
        TypeError, match=r"random_unwrap needs typed keys, got u32\[2\].*random.key"
    ):
        traced(do.random_unwrap, np.zeros(2, np.uint32))
    with pytest.raises(TypeError, match="PRNG key seed must be an integer; got f32"):
        traced(lambda s: do.random_seed(s, impl=FRY), np.float32(1))


def test_keys_can_be_moved_about():
    words = np.arange(8, dtype=np.uint32).reshape(4, 2)

    def fun(w):
        keys = do.random_wrap(w, impl=FRY)
        keys = do.reshape(keys, new_sizes=(2, 2), dimensions=None, sharding=None)
        return do.transpose(keys, permutation=(1, 0))

    same(key_words(fun, words), words.reshape(2, 2, 2).transpose(1, 0, 2))


def test_keys_can_be_chosen():
    words = np.arange(8, dtype=np.uint32).reshape(4, 2)
    which = np.array([True, False, False, True])

    def fun(p, a, b):
        return do.select_n(p, do.random_wrap(a, impl=FRY), do.random_wrap(b, impl=FRY))

    same(
        key_words(fun, which, words, words + np.uint32(100)),
        np.where(which[:, None], words + np.uint32(100), words),
    )


def test_batching():
    words = np.arange(6, dtype=np.uint32).reshape(3, 2)
    check_batch(K.random_seed_p, np.arange(4, dtype=np.int32), impl=FRY)
    check_batch(K.random_wrap_p, words, impl=FRY)

    def batched(w):
        keys = do.random_wrap(w, impl=FRY)
        bits, d = K.random_bits_p.batch([keys], [0], bit_width=32, shape=(4,))
        new, e = K.random_split_p.batch([keys], [0], shape=(2,))
        folded, f = K.random_fold_in_p.batch([keys, np.uint32(7)], [0, None])
        assert (d, e, f) == (0, 0, 0)
        return bits, do.random_unwrap(new), do.random_unwrap(folded)

    bits, new, folded = run(batched, words)
    for i in range(3):

        def one(w):
            return do.random_wrap(w, impl=FRY)

        same(bits[i], run(lambda w: do.random_bits(one(w), bit_width=32, shape=(4,)), words[i])[0])
        same(new[i], key_words(lambda w: do.random_split(one(w), shape=(2,)), words[i]))
        same(folded[i], key_words(lambda w: do.random_fold_in(one(w), np.uint32(7)), words[i]))


def test_fold_in_of_one_key_and_many_numbers():
    data = np.arange(3, dtype=np.uint32)

    def make(d):
        return do.random_fold_in(do.random_seed(SEED, impl=FRY), d)

    out = key_words(make, data)
    for i in range(3):
        same(out[i], key_words(make, data[i]))


def test_printed_as_in_jax():
    closed = trace_to_jaxpr(
        lambda s: [do.random_seed(s, impl=FRY)], [ShapedArray((), np.dtype("int32"))]
    )
    assert (
        print_jaxpr(closed.jaxpr)
        == "{ lambda ; a:i32[]. let b:key<fry>[] = random_seed[impl=fry] a in (b,) }"
    )


@pytest.mark.peer
@pytest.mark.parametrize("impl", list(K.IMPLEMENTATIONS))
@pytest.mark.parametrize("partitionable", [True, False])
def test_peer(impl, partitionable):
    jax = pytest.importorskip("jax")
    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", partitionable)
    try:
        with config.override("calque_threefry_partitionable", partitionable):
            _same_bits(jax, K.implementation(impl))
    finally:
        jax.config.update("jax_threefry_partitionable", before)


def _same_bits(jax, impl):
    for seed in (np.int32(0), np.int32(-5)):
        theirs, ours = jax.random.key(seed, impl=impl.name), lambda s: do.random_seed(s, impl=impl)

        def words(k):
            return np.asarray(jax.random.key_data(k))

        same(key_words(ours, seed), words(theirs))
        for shape in ((2,), (2, 3), ()):
            same(
                key_words(lambda s: do.random_split(ours(s), shape=shape), seed),
                words(jax.random.split(theirs, shape)),
            )
        folded = key_words(lambda s: do.random_fold_in(ours(s), np.uint32(7)), seed)
        same(folded, words(jax.random.fold_in(theirs, 7)))
        for width, shape in (
            (8, (5,)),
            (16, (3, 5)),
            (32, (6,)),
            (32, ()),
            (32, (0,)),
            (32, (3, 5)),
        ):
            got = run(lambda s: do.random_bits(ours(s), bit_width=width, shape=shape), seed)[0]
            same(got, np.asarray(jax.random.bits(theirs, shape, f"uint{width}")))
    with x64(), jax.enable_x64(True):
        seed = np.int64(2**40 + 3)
        got = run(
            lambda s: do.random_bits(do.random_seed(s, impl=impl), bit_width=64, shape=(3,)), seed
        )[0]
        same(got, np.asarray(jax.random.bits(jax.random.key(seed, impl=impl.name), (3,), "uint64")))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg", "threefry2x32"])
def test_which_key_draws_for_the_lanes_of_a_vmap(impl):
    keys = calque.random.split(calque.random.key(3, impl=impl), 4)
    first_draws = impl != "threefry2x32"
    bits = calque.vmap(lambda k: calque.random.bits(k, (2,)))(keys)
    alone = np.stack([calque.random.bits(k, (2,)) for k in keys])
    whole = calque.random.bits(keys[0], (4, 2))
    np.testing.assert_array_equal(bits, whole if first_draws else alone)
    nested = calque.vmap(calque.vmap(lambda k: calque.random.bits(k, (2,)), out_axes=1))
    grid = keys.reshape(2, 2)
    wanted = calque.random.bits(keys[0], (2, 2, 2)).transpose(0, 2, 1)
    wanted = wanted if first_draws else alone.reshape(2, 2, 2).transpose(0, 2, 1)
    np.testing.assert_array_equal(nested(grid), wanted)
    halves = calque.random.key_data(calque.vmap(calque.random.split)(keys))
    if impl == "unsafe_rbg":
        wanted = calque.random.key_data(calque.random.split(keys[0], (4, 2)))
    else:
        wanted = np.stack([calque.random.key_data(calque.random.split(k)) for k in keys])
    np.testing.assert_array_equal(halves, wanted)


def drawn(key):
    """Bits, keys and keys of `rbg`, in both forms."""
    out = []
    for partitionable in (False, True):
        with calque.threefry_partitionable(partitionable):
            several = random.split(key, 3)
            four = random.split(random.key(1, impl="rbg"), 2)
            out += [random.bits(key, (5,)), *map(random.key_data, (several, four))]
    return out


@pytest.mark.parametrize("around", [True, False])
def test_the_form_of_a_draw_is_that_of_its_place_in_the_function(around):
    expected = [np.asarray(x) for x in drawn(random.key(7))]
    old, new = expected[:3], expected[3:]
    assert not any(np.array_equal(a, b) for a, b in zip(old, new))
    with calque.threefry_partitionable(around):
        program = calque.make_jaxpr(drawn)(random.key(7))
        jitted = calque.jit(drawn)(random.key(7))
    assert "partitionable" not in str(program)
    lanes = calque.vmap(drawn)(random.key(7)[None])
    for found in (
        jitted,
        jaxpr_as_fun(program)(random.key(7)),
        calque.jit(jaxpr_as_fun(program))(random.key(7)),
        [x[0] for x in lanes],
    ):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
