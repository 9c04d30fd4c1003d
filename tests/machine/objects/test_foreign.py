"""Owners that have buffers of another engine: that of an only result is made when somebody asks for
it, once."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from calque.machine.call.arrays import set_owner, share, wrap_numpy
from tests.machine.call.helpers import fixed_epoch
from tests.machine.call.test_relay import Given, relayed

epoch = fixed_epoch


def test_an_only_result_is_made_once() -> None:
    given = Given(["buffer"])
    (x,) = relayed(lambda buffers: given)()
    assert given.asked == 0
    assert x._owner == "buffer" and given.asked == 1
    assert x._owner == "buffer" and share(x, x.aval)._owner == "buffer" and given.asked == 1


def test_nobody_asks_for_what_is_dropped() -> None:
    given = Given(["buffer"])
    waiting, seen = [given], weakref.ref(given)
    made = relayed(lambda buffers: waiting.pop())()
    del given
    assert seen() is not None
    del made
    assert seen() is None


def test_what_cannot_be_made_stays_to_be_asked_for() -> None:
    given = Given(None)
    (x,) = relayed(lambda buffers: given)()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            _ = x._owner
        with pytest.raises(ZeroDivisionError):
            share(x, x.aval)
    given.buffers = [1, 2]
    with pytest.raises(TypeError, match="a list of its results"):
        _ = x._owner
    given.buffers = ["late"]
    assert x._owner == "late" and gc.isenabled()


def test_no_garbage_is_collected_while_a_buffer_is_made() -> None:
    given = Given(["buffer"])
    seen: list[bool] = []
    given.while_asked = lambda: seen.append(gc.isenabled())
    (x,) = relayed(lambda buffers: given)()
    assert x._owner == "buffer" and seen == [False] and gc.isenabled()


def test_a_buffer_and_its_place_live_as_long_as_the_array() -> None:
    x, buffer, where = wrap_numpy("aval", np.zeros(2)), ["b"], ["w"]
    before = sys.getrefcount(buffer), sys.getrefcount(where)
    set_owner(x, buffer, where)
    assert x._owner is buffer
    assert (sys.getrefcount(buffer), sys.getrefcount(where)) == (before[0] + 1, before[1] + 1)
    y: Any = share(x, "other")
    assert y._owner is buffer
    with pytest.raises(AttributeError, match="readonly"):
        x._owner = None
    del x
    assert y._owner is buffer
    del y
    assert (sys.getrefcount(buffer), sys.getrefcount(where)) == before
