"""Elements chosen by masks, places and conditions."""

import functools
import math

import numpy as np
import pytest

import calque
import calque.numpy as jnp

X = np.array([[0, 3, 0], [5, 0, 7]], np.int32)


def test_places_of_what_is_not_zero():
    assert jnp.argwhere(X).tolist() == np.argwhere(X).tolist()
    assert jnp.flatnonzero(X).tolist() == np.flatnonzero(X).tolist()
    fixed = calque.jit(lambda x: jnp.flatnonzero(x, size=5, fill_value=-1))(X)
    assert fixed.tolist() == [1, 3, 5, -1, -1]
    assert calque.jit(lambda x: jnp.argwhere(x, size=2))(X).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_indices_in_the_flat_array(mode):
    index = (np.array([0, 3, -1]), np.array([1, 7, 2]))
    want = np.ravel_multi_index(index, (2, 4), mode=mode)
    assert jnp.ravel_multi_index(index, (2, 4), mode=mode).tolist() == want.tolist()
    back = jnp.unravel_index(jnp.arange(8), (2, 4))
    assert [b.tolist() for b in back] == [
        b.tolist() for b in np.unravel_index(np.arange(8), (2, 4))
    ]


def test_compressed():
    for axis in (None, 0, 1):
        keep = np.array([True, False, True])[: 3 if axis is None else X.shape[axis]]
        assert jnp.compress(keep, X, axis).tolist() == np.compress(keep, X, axis).tolist()
    assert jnp.compress(jnp.array([1, 0, 1]), jnp.arange(3), size=3, fill_value=9).tolist() == [
        0,
        2,
        9,
    ]
    assert jnp.extract(X > 2, X).tolist() == [3, 5, 7]
    assert calque.jit(lambda x: jnp.extract(x > 2, x, size=2))(X).tolist() == [3, 5]


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_choices(mode):
    a, options = np.array([0, 1, 2, -1]), [np.arange(4), np.arange(4) * 10, np.arange(4) * 100]
    assert jnp.choose(a, options, mode=mode).tolist() == np.choose(a, options, mode=mode).tolist()


@pytest.mark.parametrize("options", [[2.5], [2.5, 3.5], [X * 1.0, 2.5]])
def test_choices_that_are_numbers(options):
    a = np.arange(68).reshape(17, 4) % 5
    options = [np.resize(x, a.shape) if np.ndim(x) else np.asarray(x) for x in options]
    for f in (jnp.choose, calque.jit(jnp.choose, static_argnames="mode")):
        assert f(a, options, mode="wrap").tolist() == np.choose(a, options, mode="wrap").tolist()


def test_functions_of_pieces_are_traced_once_and_when_they_have_changed():
    x, traced, factor = jnp.arange(6.0), [], 2.0

    def low(v):
        traced.append(0)
        return v * factor

    def pieces(other):
        return jnp.piecewise(x, [x < 2, x > 3], [low, jnp.negative, other]).tolist()

    assert pieces(5.0) == [0, 2, 5, 5, -4, -5]
    once = len(traced)
    assert pieces(7.0) == [0, 2, 7, 7, -4, -5] and len(traced) == once
    factor = 3.0
    assert pieces(7.0) == [0, 3, 7, 7, -4, -5] and len(traced) == 2 * once

    class Unhashable:
        __hash__ = None

        def __call__(self, v):
            return v + 1

    assert jnp.piecewise(x, [x < 2], [Unhashable()]).tolist() == [1, 2, 0, 0, 0, 0]

    def line(v, by, *, then):
        return v * by + then

    assert jnp.piecewise(x, [x < 2], [line, line], 2, then=1).tolist() == [1, 3, 5, 7, 9, 11]
    assert jnp.piecewise(x, [x < 2], [lambda v, w: v + w.sum()], np.ones(3))[1] == 4


def test_conditions_in_order():
    x = np.arange(6)
    conditions, choices = [x < 2, x < 4], [x * 10, x * 100]
    assert (
        jnp.select(conditions, choices, -1).tolist() == np.select(conditions, choices, -1).tolist()
    )
    pieces = jnp.piecewise(jnp.arange(6.0), [x < 2, x > 3], [lambda v: -v, lambda v: v * 10, 5.0])
    assert pieces.tolist() == [0, -1, 5, 5, 40, 50]


def test_bad_arguments():
    for call in (
        lambda: jnp.select([X > 0], []),
        lambda: jnp.compress(X > 0, X),
        lambda: jnp.piecewise(jnp.arange(3.0), [X[0] > 0], [1, 2, 3]),
        lambda: jnp.ravel_multi_index((np.array([9]),), (3,)),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    with pytest.raises(NotImplementedError, match=r"'out' argument to jnp.choose"):
        jnp.choose(X, [X], out=X)


def test_places_of_numbers_are_an_array() -> None:
    places = jnp.ravel_multi_index((1, 2), (3, 4), mode="wrap")
    assert places == 6 and not places.weak_type
    assert not jnp.ravel_multi_index((), ()).weak_type


@pytest.mark.parametrize("shape", [(2, 3), (300, 7), (1000, 1000), (65536, 65536), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_positions_are_exact_in_every_dtype_of_places(shape, dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    places = np.array([0, 1, 5, high, high - 1, low, low + 1, 100], dtype)
    total, wanted = math.prod(shape), []
    for i in places.tolist():
        rest, row = max(i + total, 0) if i < 0 else min(i, total - 1), []
        for d in reversed(shape):
            row.insert(0, rest % d)
            rest //= d
        wanted.append(row)
    for f in (jnp.unravel_index, calque.jit(jnp.unravel_index, static_argnums=1)):
        found = [np.asarray(x).astype(np.int64) for x in f(jnp.asarray(places), shape)]
        assert np.stack(found, 1).tolist() == wanted


def test_narrow_places_in_arrays_whose_size_is_free():
    f = calque.jit(lambda x, i: jnp.unravel_index(i, x.shape))
    for n in (3, 5, 300):
        rows, columns = f(jnp.zeros((n, 200)), jnp.array([-1, 0, 127], jnp.int8))
        assert rows.tolist() == [n - 1, 0, 0] and columns.tolist() == [199, 0, 127]


def test_shapes_and_places_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="sizes of a shape must be non-negative"):
        jnp.unravel_index(jnp.arange(2), (-1, 4))
    for _ in range(3):  # also where floats of a call would be arguments of a program
        with pytest.raises(TypeError, match="integer type"):
            jnp.unravel_index(jnp.arange(2), (3.0, 2))
    for index, dims in ((jnp.arange(3), (2**16, 2**16)), (jnp.arange(3, dtype="int8"), (20, 20))):
        with pytest.raises(ValueError, match="give a wider dtype"):
            jnp.ravel_multi_index((index, index), dims, mode="clip")
    narrow = jnp.array([1, -100], jnp.int8)
    in_32_bits = functools.partial(jnp.ravel_multi_index, dtype="int32")
    for f in (in_32_bits, calque.jit(in_32_bits, static_argnums=(1, 2))):
        assert f((narrow, narrow), (300, 400), "wrap").tolist() == [401, 80300]


def test_positions_that_no_integer_holds_are_refused():
    with pytest.raises(ValueError, match="int32 does not hold the positions"):
        jnp.unravel_index(jnp.array([-1]), (2**32, 2))
    assert [x.tolist() for x in jnp.unravel_index(jnp.uint32(5), (2**32, 2))] == [2, 1]
