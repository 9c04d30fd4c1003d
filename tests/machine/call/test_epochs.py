"""Epochs of the call path: of the process, and of threads that have one of their own."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from calque.machine.call.entries import Entry, set_epoch
from calque.machine.call.layout import THREADS
from calque.machine.objects.array_type import ArrayImpl
from tests.machine.call.helpers import ARRAYS, add_program, array, fixed_epoch, jitted

__all__ = ["fixed_epoch"]


def served(f: Any, x: Any) -> bool:
    return type(f(x, x)) is ArrayImpl


def test_a_thread_has_an_epoch_of_its_own() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    x, me = array(), threading.get_ident()
    with ThreadPoolExecutor(1) as other:
        for mine, theirs, pairs in (
            (True, True, ()),
            (False, True, (me, 8)),
            (False, True, (me + 1, 7, me, 0)),
            (True, True, (me, 7)),
        ):
            set_epoch(7, *pairs)
            assert served(f, x) is mine
            assert other.submit(served, f, x).result() is theirs
        set_epoch(8, me, 7)
        assert served(f, x) and not other.submit(served, f, x).result()
        set_epoch(7)
        assert served(f, x) and other.submit(served, f, x).result()


def test_as_many_threads_as_there_is_room_for() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    x, me = array(), threading.get_ident()
    others = [n for i in range(THREADS - 1) for n in (i, 9)]
    set_epoch(9, *others, me, 7)
    assert served(f, x)
    set_epoch(9, *others)
    assert not served(f, x)


def test_what_is_no_number_changes_nothing() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    with pytest.raises(TypeError):
        set_epoch(8, threading.get_ident(), "x")
    assert served(f, array())


@pytest.mark.parametrize("count", [0, 2, 2 * THREADS + 3])
def test_pairs_for_which_there_is_no_room_are_refused(count: int) -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    with pytest.raises(TypeError, match="at most 64 pairs"):
        set_epoch(*[8] * count)
    assert served(f, array())
