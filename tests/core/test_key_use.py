"""Cells of random keys: which elements are used up, through which views."""

import numpy as np
import pytest

import calque
from calque import random
from calque.core import key_use
from calque.core.avals import ShapedArray
from calque.core.errors import KeyReuseError

KEYS = random.split(random.key(0), 6)


def test_elements_are_used_one_by_one():
    keys = key_use.new(ShapedArray((6,), KEYS.dtype))
    mask = np.arange(6) < 2
    assert keys.use(mask, "draw", "here") and not keys.use(mask, "draw", "there")
    assert keys.use(~mask, "draw", "there") and keys.used.all()
    assert (keys.cell.how, keys.cell.where) == ("draw", "there")


def test_views_share_a_cell():
    keys = key_use.new(ShapedArray((6,), KEYS.dtype))
    square, many = keys.seen_as((2, 3)), keys.seen_as((4, 6))
    assert square.use(np.array([[True, False, False]] * 2), "draw", "here")
    assert keys.used.tolist() == [True, False, False, True, False, False]
    assert many.used.shape == (4, 6) and many.used[0].tolist() == keys.used.tolist()
    assert keys.seen_as((5,)).places is None and keys.seen_as((5,)).used


def test_which_values_may_be_keys():
    typed, raw = KEYS.aval, random.PRNGKey(0).aval
    assert key_use.is_key(typed) and not key_use.is_key(raw)
    assert key_use.is_tracked(raw) and not key_use.is_tracked(ShapedArray((3,), np.dtype("uint32")))
    assert key_use.shape_of(typed) == (6,) and key_use.shape_of(raw) == ()


def test_arrays_are_remembered_while_the_checks_are_on():
    with calque.debug_key_reuse(True):
        key = random.key(1)
        assert not key_use.is_used(key)
        random.normal(key)
        assert key_use.is_used(key)
        with pytest.raises(KeyReuseError, match=r"reused: .* used it at .*test_key_use.py"):
            random.uniform(key)
        random.normal(random.clone(random.key(1)))  # the same numbers in another key
    key = random.key(3)
    assert float(random.normal(key)) == float(random.normal(key)) and not key_use.is_used(key)
