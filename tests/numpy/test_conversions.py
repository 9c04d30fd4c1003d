"""Making arrays from all kinds of values, and the methods that change what they are."""

import array as plain
import copy

import numpy as np
import pytest

import calque
import calque.numpy as jnp

KEYS = calque.random.split(calque.random.key(0), 3)


def test_buffers_are_read():
    for make in (jnp.array, jnp.asarray):
        assert make(plain.array("l", [1, 2])).tolist() == [1, 2]
        assert make(bytearray(b"ab")).tolist() == [97, 98]
        assert make(memoryview(b"ab")).tolist() == [97, 98]


def test_masks_are_dropped():
    assert jnp.array(np.ma.array([1, 2], mask=[True, False])).tolist() == [1, 2]


def test_numbers_that_fit_the_dtype_fit():
    for made in (
        jnp.full(2, 2**32 - 1, jnp.uint32),
        jnp.full_like(jnp.zeros(2, jnp.uint32), 2**32 - 1),
    ):
        assert made.tolist() == [2**32 - 1] * 2


def words(keys):
    return np.asarray(calque.random.key_data(keys))


def test_arrays_of_keys():
    for made in (jnp.array(KEYS), jnp.asarray(KEYS, KEYS.dtype), calque.jit(jnp.array)(KEYS)):
        np.testing.assert_array_equal(words(made), words(KEYS))
    assert (words(jnp.zeros(2, KEYS.dtype)) == 0).all()
    assert (words(jnp.ones_like(KEYS)) == 1).all()
    assert (words(jnp.full((2, 2), 7, KEYS.dtype)) == 7).all()
    assert (words(jnp.full_like(KEYS, KEYS[1])) == words(KEYS)[1]).all()
    np.testing.assert_array_equal(words(calque.device_get(KEYS)), words(KEYS))
    assert jnp.isclose(KEYS, KEYS).all()


def test_keys_show_the_words_that_they_are():
    base = KEYS._base_array
    assert base.unsafe_buffer_pointer() == KEYS.unsafe_buffer_pointer()
    np.testing.assert_array_equal(base, words(KEYS))
    assert KEYS._impl.key_shape == (2,)
    with pytest.raises(AttributeError):
        jnp.ones(2)._base_array
    keys = KEYS.copy()
    keys.delete()
    assert keys._base_array.is_deleted() and keys._base_array.shape == base.shape


@pytest.mark.parametrize("dtype", ["int16", "float32", "complex64", "int8"])
def test_byteswap(dtype):
    x = np.array([[1, 300 % 100], [-7, 0]]).astype(dtype)
    for swap in (lambda v: v.byteswap(), calque.jit(lambda v: v.byteswap())):
        got = np.asarray(swap(jnp.asarray(x)))
        assert got.tobytes() == x.byteswap().tobytes()


def test_methods_of_numpy():
    x = jnp.arange(6).reshape(2, 3)
    assert x.compress(np.array([False, True]), axis=0).tolist() == [[3, 4, 5]]
    assert jnp.array([1, 0]).choose([jnp.array([1, 2]), jnp.array([3, 4])]).tolist() == [3, 2]
    assert sorted(jnp.array([3, 1, 2]).argpartition(1)[:2].tolist()) == [1, 2]
    with pytest.raises(NotImplementedError, match="flatten"):
        x.flat


def test_a_copy_asked_for_is_one():
    x = jnp.arange(3)
    for made in (x.astype("int32", copy=True), jnp.array(x), copy.copy(x)):
        made.delete()
        assert not x.is_deleted()
    y, t = calque.jvp(jnp.array, (jnp.ones(2),), (one := jnp.ones(2),))
    assert y is not one
    assert t is not one


def test_numpy_reads_arrays_as_sequences():
    keys = jnp.array([[1, 0, 2], [3, 3, 1]])
    assert np.lexsort(keys).tolist() == np.lexsort(np.asarray(keys)).tolist()


def test_programs_count_where_they_can():
    assert [e.primitive.name for e in calque.make_jaxpr(lambda: jnp.arange(1, 5))().eqns] == [
        "iota",
        "add",
    ]
    assert calque.jit(lambda: jnp.arange(2, 5))().tolist() == [2, 3, 4]
    assert calque.jit(lambda: jnp.arange(5, 2))().tolist() == []


def test_what_two_types_make_does_not_depend_on_the_width_in_use():
    assert jnp.promote_types(np.float32, np.complex128) == np.complex128
    assert jnp.promote_types("int64", "int64") == np.int64
    assert jnp.promote_types(int, np.int8) == np.int8
    assert jnp.result_type(None) == np.float32
    assert jnp.issubdtype(KEYS.dtype, calque.dtypes.extended)
    assert jnp.issubdtype(calque.dtypes.prng_key, np.generic)
    assert not jnp.issubdtype(calque.dtypes.prng_key, np.number)
    with pytest.raises(ValueError, match="cannot be None"):
        calque.dtypes.itemsize_bits(None)
