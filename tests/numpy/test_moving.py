"""Elements moved and repeated, held against NumPy."""

import math
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
CALLS = [
    ("flip", (X, (0, -1))),
    ("flip", (X,)),
    ("fliplr", (X,)),
    ("flipud", (X,)),
    ("roll", (X, 2)),
    ("roll", (X, (1, -1), (0, 2))),
    ("roll", (X, -9, 1)),
    ("repeat", (X, 2, 1)),
    ("repeat", (X, np.array([2, 0]), 0)),
    ("tile", (X, (2, 1, 3, 1))),
]


@pytest.mark.parametrize("name, args", CALLS)
def test_as_numpy(name, args):
    want = getattr(np, name)(*args)
    got = getattr(jnp, name)(*args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    under_jit = calque.jit(lambda x: getattr(jnp, name)(x, *args[1:]))(args[0])
    np.testing.assert_array_equal(under_jit, want)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.flip(X, (0, 0)),
        lambda: jnp.roll(X, (1, 2, 3), (0, 1)),
        lambda: jnp.roll(X, np.zeros((1, 1), int), 0),
        lambda: jnp.repeat(X, -1, 0),
        lambda: jnp.repeat(X, 0.5, 0),
    ],
)
def test_what_does_not_fit(call):
    with pytest.raises((ValueError, TypeError)):
        call()


def test_a_given_length_cuts_and_fills():
    x = jnp.array([1, 2])
    assert jnp.repeat(x, jnp.array([2, 2]), total_repeat_length=3).tolist() == [1, 1, 2]
    assert jnp.repeat(x, jnp.array([1, 1]), total_repeat_length=4).tolist() == [1, 2, 2, 2]


def test_counts_and_axes_may_be_numpy_arrays():
    x = jnp.arange(3)
    for several in (np.array, jnp.array):
        assert jnp.tile(x, several([2, 1])).tolist() == [[0, 1, 2], [0, 1, 2]]
        assert jnp.expand_dims(x, several([0, 2])).shape == (1, 3, 1)
        assert jnp.tile(x, several(2)).shape == (6,)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_repeat_of_a_number(axis):
    """It counts as one row, also where an axis is named."""
    assert jnp.repeat(jnp.float32(2), 3, axis=axis).tolist() == [2, 2, 2]
    assert jnp.repeat(jnp.float32(2), 0, axis=axis).shape == (0,)
    assert jnp.repeat(5, np.array([2]), axis=axis).tolist() == [5, 5]
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.repeat(jnp.float32(2), 3, axis=1)


@pytest.mark.parametrize("repeats", [2, np.zeros(0, np.int32)])
def test_nothing_repeated_is_nothing_whatever_the_total(repeats):
    for f in (jnp.repeat, calque.jit(jnp.repeat, static_argnames=("axis", "total_repeat_length"))):
        got = f(np.zeros((0, 2), np.float32), repeats, axis=0, total_repeat_length=3)
        assert got.shape == (0, 2)


HUGE = 2**62


@pytest.mark.parametrize("repeats", [2**46, 2**63, [HUGE] * 3, np.array([HUGE] * 3)])
def test_repeats_beyond_memory_are_refused(repeats):
    for f in (lambda x: jnp.repeat(x, repeats), calque.jit(lambda x: jnp.repeat(x, repeats))):
        with pytest.raises(MemoryError, match="more than a process can address"):
            f(jnp.arange(3))


def test_sums_of_repeats_do_not_come_round():
    x, many = jnp.arange(4), jnp.array([2**30] * 4)
    with pytest.raises(MemoryError, match="the repeats make an axis of 2\\*\\*31 or more"):
        calque.jit(jnp.repeat)(x, many).block_until_ready()
    for counts, wanted in (([2**30] * 4, [0] * 5), ([1, 2**31 - 1, 2**31 - 1, 3], [0, 1, 1, 1, 1])):
        counts = jnp.array(counts)
        for f in (jnp.repeat, calque.jit(jnp.repeat, static_argnames="total_repeat_length")):
            assert f(x, counts, total_repeat_length=5).tolist() == wanted


def test_repeats_are_integers_of_any_width():
    for counts in (np.uint64(2), np.array([2, 2, 2], np.uint64), np.int8(2)):
        f = calque.jit(lambda x, counts=counts: jnp.repeat(x, counts))
        assert f(jnp.arange(3)).tolist() == [0, 0, 1, 1, 2, 2]
    for counts in (1.5, math.nan, [1.5, 2, 2], None, 1j):
        with pytest.raises(TypeError, match="repeats must be integers"):
            jnp.repeat(jnp.arange(3), counts)
    with pytest.raises(TypeError, match="total_repeat_length must be an integer, got nan"):
        jnp.repeat(jnp.arange(3), 2, total_repeat_length=math.nan)


def test_shifts_of_32_bits_without_a_sign_do_not_come_round():
    far = np.uint32(2**32 - 1)
    wanted = np.roll(np.arange(300), int(far)).tolist()
    for f in (jnp.roll, calque.jit(jnp.roll)):
        assert f(jnp.arange(300), jnp.asarray(far)).tolist() == wanted


@pytest.mark.parametrize("axis", [None, 0, -1, (1, 1), (0, 1)])
@pytest.mark.parametrize(
    "shift", [[1, 2], [200, 100], [-7, 3], [5], []], ids=lambda s: "_".join(map(str, s)) or "none"
)
def test_arrays_of_shifts(shift: list[int], axis: Any) -> None:
    """Several along one axis are one, in whatever dtype they stand, traced or not."""
    x = np.arange(6.0).reshape(2, 3)
    if not shift and isinstance(axis, tuple):
        return
    want = np.roll(x, shift, axis)
    for dtype in ("int32", "int16", "uint8") if min(shift, default=0) >= 0 else ("int32", "int16"):
        s = np.array(shift, dtype)
        for got in (
            jnp.roll(x, s, axis),
            calque.jit(jnp.roll, static_argnums=2)(x, s, axis),
            calque.jit(lambda x, s=s: jnp.roll(x, s, axis))(x),
        ):
            np.testing.assert_array_equal(got, want)


def test_many_shifts_are_one_step() -> None:
    def equations(n: int) -> int:
        return len(calque.make_jaxpr(jnp.roll)(np.arange(4.0), np.arange(n)).eqns)

    assert equations(3) == equations(40)


def test_shifts_that_are_floats_are_cut_off_one_by_one() -> None:
    x = jnp.arange(5)
    for shifts, want in (([1.7, 1.7], 2), ([0.9] * 4, 0), ([-1.5, 0.5], -1)):
        for f in (jnp.roll, calque.jit(jnp.roll)):
            got = f(x, jnp.array(shifts))
            assert got.tolist() == np.roll(np.arange(5), want).tolist()
