"""Arrays without memory, whose elements somebody else has: they are asked for when they are needed,
once, and never by those who only hand the array on."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from calque.machine.call.arrays import (
    DELETED,
    arrivals,
    as_numpy,
    delete_array,
    filled,
    pending_arrays,
    set_owner,
    share,
    wrap_numpy,
)
from calque.machine.objects import plain


class Aval:
    """Stands for a core aval."""


class Elsewhere:
    """Has elements, and counts how often they were asked for."""

    def __init__(self, elements: Any) -> None:
        self.elements, self.asked = np.asarray(elements), 0


@pytest.fixture(autouse=True)
def arrive() -> Iterator[None]:
    def elements(_: Any, array: Any) -> np.ndarray:
        owner = array._owner
        owner.asked += 1
        if owner.elements.dtype == object:
            raise ZeroDivisionError("what went wrong there")
        return owner.elements

    for hook in (arrivals, plain.arrivals):
        hook.intercept("test", elements)
    yield
    for hook in (arrivals, plain.arrivals):
        hook.intercept("test", None)


F8 = np.dtype("f8")


def test_memory_is_asked_for_once() -> None:
    owner = Elsewhere([1.0, 2.0, 3.0])
    (x,) = pending_arrays((Aval(),), [owner], (None,))
    assert x._ptr == 0 and x._extra is None and x._owner is owner and owner.asked == 0
    assert as_numpy(x, F8, (3,)).tolist() == [1, 2, 3]
    assert as_numpy(x, F8, (3,)).tolist() == [1, 2, 3]
    assert x._ptr == owner.elements.ctypes.data and owner.asked == 1 and x._extra is None


def test_they_say_where_they_live_before_and_after() -> None:
    place, owners = object(), [Elsewhere(1.0), Elsewhere(2.0)]
    x, y = pending_arrays((Aval(), Aval()), list(owners), (place, None))
    assert x._extra is place and y._extra is None
    assert as_numpy(x, F8, ()) == 1 and x._extra is place
    x._extra, y._extra = None, place
    assert x._extra is None and y._extra is place
    y._extra = None  # it is still pending
    assert y._extra is None and as_numpy(y, F8, ()) == 2


def test_another_array_on_the_same_memory_waits_for_itself() -> None:
    owner = Elsewhere([5.0])
    (x,) = pending_arrays((Aval(),), [owner], (None,))
    y = share(x, Aval())
    assert owner.asked == 0 and y._owner is owner and y._ptr == 0
    assert as_numpy(y, F8, (1,)) == [5] and x._ptr == 0
    del x
    assert as_numpy(y, F8, (1,)) == [5] and owner.asked == 1


def test_errors_come_when_the_elements_are_asked_for() -> None:
    (x,) = pending_arrays((Aval(),), [Elsewhere(object())], (None,))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="what went wrong there"):
            as_numpy(x, F8, ())
    with pytest.raises(ZeroDivisionError):
        filled(Aval(), 16, x, 8)


def test_deleted_ones() -> None:
    owner = Elsewhere([5.0])
    (x,) = pending_arrays((Aval(),), [owner], (None,))
    delete_array(x)
    assert x._extra is DELETED
    with pytest.raises(RuntimeError, match="deleted"):
        as_numpy(x, F8, (1,))
    assert owner.asked == 0


def test_owners_live_as_long_as_their_arrays() -> None:
    owner = Elsewhere([5.0])
    alive = weakref.ref(owner)
    (x,) = pending_arrays((Aval(),), [owner], (None,))
    del owner
    view = as_numpy(x, F8, (1,))
    del x
    gc.collect()
    assert alive() is not None and view == [5]
    del view
    assert alive() is None


def test_a_new_owner_keeps_what_the_array_has() -> None:
    memory = np.arange(3.0)
    x = wrap_numpy(Aval(), memory)
    address, before = x._ptr, sys.getrefcount(memory)
    owner = Elsewhere(memory)
    set_owner(x, owner)
    assert x._owner is owner and x._ptr == address and as_numpy(x, F8, (3,)).tolist() == [0, 1, 2]
    assert owner.asked == 0 and sys.getrefcount(memory) == before  # one more, and one less


def test_bad_arguments() -> None:
    wrong: Any = [Aval()]
    with pytest.raises(TypeError):
        pending_arrays(wrong, [1], (None,))
    with pytest.raises(TypeError):
        pending_arrays((Aval(),), [], (None,))
    with pytest.raises(TypeError):
        set_owner(wrong, None)


def test_the_plain_ones() -> None:
    owner, place = Elsewhere([1.0, 2.0]), object()
    x, y = plain.pending_arrays((Aval(), Aval()), [owner, owner], (place, None))
    assert x._extra is place and y._extra is None and owner.asked == 0
    assert plain.as_numpy(x, F8, (2,)).tolist() == [1, 2] and owner.asked == 1
    z = plain.share(y, Aval())
    assert z._ptr == 0 and plain.as_numpy(z, F8, (2,)).tolist() == [1, 2]
    plain.set_owner(x, None)
    assert x._owner is None and x._ptr
