"""Which elements of arrays of random keys are used up: cells and their views."""

import numpy as np
import pytest

import calque
from calque import random
from calque.core import key_use
from calque.core.avals import ShapedArray
from calque.core.errors import KeyReuseError

RAW = ShapedArray((3, 2), np.dtype("uint32"))


def test_what_may_be_a_key():
    key = random.key(0)
    assert key_use.is_key(key.aval) and key_use.is_tracked(key.aval)
    assert not key_use.is_key(RAW) and key_use.is_tracked(RAW)
    for shape, dtype in (((3, 7), "uint32"), ((2,), "int32"), ((), "uint32")):
        assert not key_use.is_tracked(ShapedArray(shape, np.dtype(dtype)))
    assert key_use.shape_of(RAW) == (3,) and key_use.shape_of(random.split(key, 4).aval) == (4,)


def test_elements_are_used_one_by_one():
    keys = key_use.new(RAW)
    assert keys.use([True, False, False], "draw", "here") and keys.used.tolist() == [
        True,
        False,
        False,
    ]
    assert keys.use([False, True, True], "split", "there") and keys.used.all()
    assert not keys.use([True, False, False], "draw", "again")
    assert (keys.cell.how, keys.cell.where) == ("split", "there")


def test_views_share_what_is_used():
    keys = key_use.new(ShapedArray((2, 3, 2), np.dtype("uint32")))
    part = key_use.Keys(keys.cell, keys.places[1])
    assert part.use(True, "draw", "here")
    assert keys.used.tolist() == [[False] * 3, [True] * 3]
    assert keys.seen_as((3, 2)).used.tolist() == [[False, False], [False, True], [True, True]]
    assert key_use.Keys(keys.cell, keys.places[0]).seen_as((4, 3)).used.shape == (4, 3)
    lost = keys.seen_as((7,))  # in no known order: any use is one of all
    assert lost.places is None and lost.used and not lost.use(True, "draw", "there")


def test_the_error_tells_both_uses():
    keys = key_use.new(RAW, used=True)
    assert "it was used up before, and now draw at here" in str(
        key_use.reused("f:", keys, "draw", "here")
    )
    keys.cell.how, keys.cell.where = "split", "there"
    error = key_use.reused("f:", keys, "draw", "here")
    assert isinstance(error, KeyReuseError) and "split used it at there" in str(error)


def test_arrays_are_remembered():
    key = random.key(1)
    assert not key_use.is_used(key)
    keys = key_use.keys_of(key, key.aval)
    assert key_use.keys_of(key, key.aval) is keys
    keys.use(True, "draw", "here")
    assert key_use.is_used(key) and not key_use.is_used(random.key(1))
    other = random.clone(key)
    key_use.remember(other, keys)
    assert key_use.is_used(other)


def test_with_the_checks_on_a_draw_uses_its_key_up():
    with calque.debug_key_reuse(True):
        key = random.key(2)
        random.normal(key)
        assert key_use.is_used(key)
        with pytest.raises(KeyReuseError, match=r"test_key_use\.py"):
            random.uniform(key)
    with calque.debug_key_reuse(False):
        key = random.key(3)
        random.normal(key)
        assert not key_use.is_used(key)
