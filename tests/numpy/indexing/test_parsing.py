"""What an index may hold, and what is said of what it may not."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)

INDEXES = {
    "lists": np.index_exp[[0, 2], [1, 3]],
    "list of lists": np.index_exp[[[0], [2]], [1, 3]],
    "tuple within": np.index_exp[(0, 1), 2],
    "bools": np.index_exp[[True, False, True], 1],
    "nothing": np.index_exp[:, []],
    "mask of no rows": np.zeros((0,), bool),
    "mask of no columns": np.zeros((3, 0), bool),
}


@pytest.mark.parametrize("name", INDEXES)
def test_as_numpy(name):
    index = INDEXES[name]
    want = X[index]
    np.testing.assert_array_equal(jnp.asarray(X)[index], want)
    np.testing.assert_array_equal(calque.jit(lambda x: x[index])(X), want)
    if not name.startswith("mask"):
        new = X.copy()
        new[index] = 9
        np.testing.assert_array_equal(jnp.asarray(X).at[index].set(9), new)


def test_traced_numbers_in_lists():
    got = calque.jit(lambda x, i: x[[i, 0], [1, i + 1]])(X, 2)
    np.testing.assert_array_equal(got, X[[2, 0], [1, 3]])


ERRORS = {
    "list": ([0, 1], TypeError, r"use arr\[array\(seq\)\]"),
    "list with a slice": ([0, slice(None)], TypeError, r"use arr\[tuple\(seq\)\]"),
    "text": ("a", TypeError, "does not support string indexing"),
    "text within": ((slice(None), "a"), TypeError, "does not support string indexing"),
    "float": (1.0, TypeError, "integer or boolean type, got indexer with type float32"),
    "complex within": ((0, 1j), TypeError, "integer or boolean type"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    index, error, words = ERRORS[name]
    for fun in (lambda: jnp.asarray(X)[index], lambda: jnp.asarray(X).at[index].set(0)):
        with pytest.raises(error, match=words):
            fun()


@pytest.mark.parametrize(("index", "words"), [
    (5, "index 5 out of bounds for axis 0 with size 3"),
    ((slice(None), -5), "index -5 out of bounds for axis 1 with size 4"),
    (([0, 1], 4), "index 4 out of bounds for axis 1 with size 4"),
])  # fmt: skip
def test_static_indices_are_checked_where_that_is_asked_for(index, words):
    x = jnp.asarray(X)
    x[index]  # clamped
    with calque.config.override("calque_check_static_indices", True):
        for fun in (lambda: x[index], lambda: calque.jit(lambda v: v[index])(x)):
            with pytest.raises(IndexError, match=words):
                fun()
        x.at[index].get(mode="clip")


def test_an_axis_of_size_0_is_named():
    for fun in (lambda i: jnp.zeros((2, 0))[0, i], calque.jit(lambda i: jnp.zeros((2, 0))[0, i])):
        with pytest.raises(IndexError, match="out of bounds for axis 1 with size 0"):
            fun(0)


def test_indices_are_counted_from_the_end_in_their_own_type():
    program = calque.make_jaxpr(lambda x, i: x[i])(X, np.array([-1], np.int8))
    names = [e.primitive.name for e in program.eqns]
    assert names == ["lt", "add", "select_n", "convert_element_type", "broadcast_in_dim", "gather"]
    long = jnp.arange(300)  # longer than int8 counts
    assert int(calque.jit(lambda i: long[i])(np.int8(-1))) == 299


def test_large_numbers_fit_unsigned_arrays():
    assert int(jnp.zeros(2, jnp.uint32).at[0].set(2**32 - 1)[0]) == 2**32 - 1
