"""Operations that look into typed keys, in compiled programs: the same as without them."""

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque import lax
from calque.native.passes import pipeline
from tests.extend.test_random import made
from tests.native.programs import traced

# words in rows of two and four, and in matrices, as libraries may have them
IMPLEMENTATIONS = {"threefry2x32": "threefry2x32", "rbg": "rbg", "matrix": made((2, 3))}


def keys(name):
    impl = IMPLEMENTATIONS[name]
    a = cq.random.split(cq.random.key(1, impl=impl), (2, 3))
    return a, cq.random.split(cq.random.key(2, impl=impl), (2, 3)).at[1, 2].set(a[1, 2])


def words(x):
    typed = jnp.issubdtype(x.dtype, cq.dtypes.prng_key)
    return np.asarray(cq.random.key_data(x) if typed else x)


PROGRAMS = {
    "equal": lambda a, b: a == b,
    "different": lambda a, b: a != b,
    "one beside many": lambda a, b: a == b[1, 2],
    "array_equal": lambda a, b: jnp.array_equal(a, b),
    "set a row": lambda a, b: a.at[0].set(b[1]),
    "set rows by number": lambda a, b: a.at[jnp.array([1, 5])].set(b[0]),
    "set a column": lambda a, b: a.at[:, jnp.array([2, 0])].set(b[:, :2]),
    "update a slice": lambda a, b: lax.dynamic_update_slice(a, b[:1, :2], (1, 1)),
    "update in a loop": lambda a, b: lax.fori_loop(0, 2, lambda i, s: s.at[i, i].set(b[0, 0]), a),
}


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_on_keys(name, impl) -> None:
    a, b = keys(impl)
    f = PROGRAMS[name]
    np.testing.assert_array_equal(words(cq.jit(f)(a, b)), words(f(a, b)))


def test_comparisons_find_every_word() -> None:
    a, b = keys("threefry2x32")
    want = (words(a) == words(b)).all(-1)
    np.testing.assert_array_equal(cq.jit(lambda a, b: a == b)(a, b), want)
    half = cq.random.wrap_key_data(words(a) * np.array([1, 0], np.uint32))
    assert not cq.jit(lambda a, b: a == b)(a, half).any()


def test_what_becomes_of_them() -> None:
    a, b = keys("threefry2x32")
    names = [e.primitive.name for e in pipeline.run(traced(lambda a, b: a != b, a, b)).eqns]
    assert names == ["random_unwrap", "random_unwrap", "ne", "reduce_or"]
