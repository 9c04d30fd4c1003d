"""Making arrays from all kinds of values, and the methods that change what they are."""

import array as plain
import collections
import copy
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

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


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize(
    "use",
    [
        jnp.asarray, jnp.sin, jnp.sum, jnp.sort, jnp.stack, lambda m: jnp.where(True, m, m),
        lambda m: jnp.ones(3) + m, lambda m: m * jnp.ones(3), lambda m: jnp.ones(3).at[:].set(m),
        lambda m: calque.jit(lambda x: x * 2)(m), lambda m: calque.jit(lambda: jnp.ones(3) * m)(),
        lambda m: calque.jit(lambda: m)(), lambda m: calque.vmap(lambda x: x * 2)(m),
        lambda m: calque.eval_shape(lambda x: x, m), lambda m: calque.make_jaxpr(lambda x: x)(m),
        lambda m: calque.device_put(m), lambda m: jnp.array_equal(m, m),
        lambda m: jnp.dot(m, m), lambda m: calque.lax.neg(m),
        lambda m: calque.lax.cond(True, lambda x: x, lambda x: x, m),
    ],
)  # fmt: skip
def test_masks_are_lost_nowhere_else(use: Any, dtype: str) -> None:
    """Whoever says `jnp.array` has the values copied; everywhere else they are refused."""
    with pytest.raises(ValueError, match=r"numpy masked arrays.*filled\(\)"):
        use(MASKED.astype(dtype))


class Numbers(list):  # type: ignore[type-arg]
    pass


class Held:
    """An array of a library that speaks NumPy's protocol."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([1, 2], "int32")


Pair = collections.namedtuple("Pair", "x y")
SEQUENCES = [
    [1, 2], (1, 2), range(1, 3), collections.deque([1, 2]), Numbers([1, 2]), Pair(1, 2),
    plain.array("i", [1, 2]), memoryview(np.array([1, 2], "int32")), Held(),
]  # fmt: skip


@pytest.mark.parametrize("values", SEQUENCES, ids=lambda v: type(v).__name__)
def test_every_sequence_makes_an_array(values: Any) -> None:
    for made in (jnp.array(values), jnp.asarray(values), calque.jit(lambda: jnp.array(values))()):
        assert made.dtype == np.int32 and made.tolist() == [1, 2]
    assert jnp.array(values, dtype="float16").dtype == np.float16
    nested = jnp.array([values, [3, 4]])
    assert nested.dtype == np.int32 and nested.tolist() == [[1, 2], [3, 4]]
    traced = calque.jit(lambda x: jnp.array([values, [x, x]]))(5)
    assert traced.tolist() == [[1, 2], [5, 5]]
    assert jnp.array_equal(values, jnp.array([1, 2]))


@pytest.mark.parametrize("values", SEQUENCES, ids=lambda v: type(v).__name__)
def test_updates_take_every_sequence(values: Any) -> None:
    x = jnp.arange(4.0)
    for update in (
        lambda x: x.at[:2].set(values),
        lambda x: x.at[jnp.array([0, 1])].set(values),
        lambda x: x.at[x < 2].set(values),
    ):
        assert update(x).tolist() == calque.jit(update)(x).tolist() == [1, 2, 2, 3]
    assert x.at[1:3].add(values).tolist() == [0, 2, 4, 3]
    assert jnp.zeros((2, 2), int).at[1].max(values).tolist() == [[0, 0], [1, 2]]
    with pytest.raises(TypeError, match=r"x\.at"):
        x.at[:2].set("ab")


@pytest.mark.parametrize("values", SEQUENCES, ids=lambda v: type(v).__name__)
def test_shapes_are_told_of_what_numpy_tells_them_of(values: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert jnp.shape(values) == np.shape(values) == (2,)
        assert jnp.ndim(values) == 1 and jnp.size(values) == 2
        for other in (np.array([1, None], object), np.array(["a"]), ["a", "b"], b"ab", MASKED):
            assert jnp.shape(other) == np.shape(other) and jnp.size(other) == np.size(other)
    structured = np.zeros(3, [("a", "i4"), ("b", "f4")])
    assert jnp.shape(structured) == (3,) and jnp.ndim(np.longdouble(1)) == 0


def test_values_held_by_other_objects_update() -> None:
    class Parameter:
        def __jax_array__(self) -> Any:
            return jnp.array([5.0, 6.0])

    assert jnp.zeros(3).at[1:].set(Parameter()).tolist() == [0, 5, 6]


def test_objects_become_numbers_where_the_dtype_is_said() -> None:
    objects = np.array([1, 2.5, None], object)
    np.testing.assert_array_equal(jnp.array(objects, dtype="float32"), [1, 2.5, np.nan])
    assert jnp.array(Decimal("1.5"), "float32") == 1.5 and jnp.array(Fraction(1, 2), float) == 0.5
    assert jnp.array(np.array(["2020-01-02"], "datetime64[D]"), int).tolist() == [18263]
    for refused in (objects, Decimal("1.5"), np.array(["2020-01-02"], "datetime64[D]")):
        with pytest.raises(TypeError, match=r"valid array type|Unexpected input type"):
            jnp.array(refused)
    with pytest.raises(TypeError, match="not a valid array type"):
        jnp.array(np.array(["1"]), "float32")


def test_comparing_what_is_no_array_is_refused() -> None:
    for bad in (None, "ab", np.array(["a"]), {1, 2}):
        for compare in (jnp.array_equal, jnp.array_equiv):
            with pytest.raises((TypeError, ValueError), match=r"valid|Unexpected"):
                compare(bad, jnp.ones(2))
