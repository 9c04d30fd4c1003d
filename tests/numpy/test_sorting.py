"""Sorted arrays and positions in them."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.integers(0, 9, (4, 7)).astype(np.float32)
X[1, 2] = X[2, 5] = np.nan


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_as_numpy(axis):
    np.testing.assert_array_equal(jnp.sort(X, axis), np.sort(X, axis))
    order = jnp.argsort(X, axis)
    np.testing.assert_array_equal(order, np.argsort(X, axis, kind="stable"))
    flat, k = (X.ravel(), 0) if axis is None else (X, axis)
    np.testing.assert_array_equal(jnp.take_along_axis(flat, order, k), np.sort(flat, k))


def test_along_an_axis_the_others_are_lanes():
    """So whoever splits them over devices has nothing to send; sizes must agree."""
    x, i = jnp.ones((4, 5, 1)), np.zeros((4, 2, 3), int)
    text = str(calque.make_jaxpr(lambda x, i: jnp.take_along_axis(x, i, 1))(x, i))
    assert "operand_batching_dims=(0,)" in text and "iota" not in text
    y, j = RNG.normal(size=(4, 5, 1)), RNG.integers(-5, 5, (1, 2, 3))
    want = np.take_along_axis(np.broadcast_to(y, (4, 5, 3)), j, 1)
    np.testing.assert_allclose(jnp.take_along_axis(y, j, 1), want, rtol=1e-6)
    with pytest.raises(TypeError, match="take_along_axis got incompatible shapes"):
        jnp.take_along_axis(jnp.ones((3, 4)), np.zeros((2, 1), int), 1)


def test_descending():
    x = jnp.array([3, 1, 2, 3])
    assert jnp.sort(x, descending=True).tolist() == [3, 3, 2, 1]
    assert sorted(jnp.argsort(x, descending=True)[:2].tolist()) == [0, 3]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
def test_places_in_sorted_values(side, method):
    a, v = np.array([1, 2, 2, 5]), np.array([0, 1, 2, 3, 5, 9])
    want = np.searchsorted(a, v, side)
    assert jnp.searchsorted(a, v, side, method=method).tolist() == want.tolist()


def test_rows_in_the_order_of_keys():
    keys = RNG.integers(0, 3, (3, 10))
    np.testing.assert_array_equal(jnp.lexsort(tuple(keys)), np.lexsort(keys))


def test_parts():
    for k in (0, 3, -1):
        got = np.asarray(jnp.partition(X[0], k))
        assert got[k] == np.sort(X[0])[k] and sorted(got) == sorted(X[0])
        assert X[0][np.asarray(jnp.argpartition(X[0], k))][k] == np.sort(X[0])[k]


def test_rounding():
    x = np.array([0.5, 1.5, 2.675, -1.25], np.float32)
    for decimals in (0, 1, 2):
        np.testing.assert_allclose(jnp.round(x, decimals), np.round(x, decimals), rtol=1e-6)
    assert jnp.round(jnp.arange(3)).dtype == jnp.int32


def test_refusals_name_the_remedy():
    with pytest.raises(TypeError, match="stable=True"):
        jnp.sort(X, kind="heapsort")
    with pytest.raises(TypeError, match="no 'order'"):
        jnp.argsort(X, order="name")
    with pytest.raises(NotImplementedError, match="mode='fill' or 'clip'"):
        jnp.take(X, 0, mode="raise")


def test_gradients_follow_the_order():
    g = calque.grad(lambda x: (jnp.sort(x) * jnp.arange(3.0)).sum())(jnp.array([5.0, 1.0, 3.0]))
    assert g.tolist() == [2, 0, 1]


def test_a_fill_that_is_no_integer_makes_places_numbers_of_its_kind():
    for x in (jnp.array([0, 1, 2]), jnp.zeros(0)):
        (out,) = jnp.nonzero(x, size=3, fill_value=1.5)
        assert out.dtype == jnp.float32 and out[2] == 1.5
    (out,) = calque.jit(lambda x: jnp.nonzero(x, size=3, fill_value=-7))(jnp.array([0, 1]))
    assert out.tolist() == [1, -7, -7]


def test_the_fill_of_take_is_known_when_it_is_traced():
    x, i = jnp.arange(3.0), jnp.array([1, 9])
    for value in (2.0, 3.0, 4.0):  # a float among the arguments is no argument of a program
        assert jnp.take(x, i, fill_value=value).tolist() == [1, value]
    with pytest.raises(calque.errors.ConcretizationTypeError, match="fill_value is part of"):
        calque.jit(lambda v: jnp.take(x, i, fill_value=v))(2.0)


def test_places_in_nothing_are_arrays():
    nothing = jnp.zeros(0)
    for out in (jnp.searchsorted(nothing, 1.0), jnp.isin(2.0, nothing), jnp.isin(nothing, 1)):
        assert isinstance(out, jnp.ndarray)
