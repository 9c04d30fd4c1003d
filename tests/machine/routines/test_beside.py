"""Calls that stand behind each other in one array of words, each by a thread of its own."""

import numpy as np

from calque.machine import threads
from calque.machine.lang.unit import Unit, i64, load_i64, load_ptr, ptr, store_i64
from calque.machine.routines.beside import HEAD, calque_beside

unit = Unit("test_beside")


@unit.function
def note(args: ptr, begin: i64, end: i64) -> None:
    """Write what is to be seen of a call: its program, its turns, and a word."""
    out = load_ptr(args, 0)
    store_i64(out, 0, load_i64(args, -8))
    store_i64(out, 8, 100 * begin + end)
    store_i64(out, 16, load_i64(args, 8))


def test_each_call_has_its_words_its_turns_and_the_program() -> None:
    calls, length, run = 3, 2, 4711
    out = np.zeros((calls, 3), np.int64)
    words = [run, HEAD + length]
    for k in range(calls):
        words += [note.address, 5 + k, 0, out[k].ctypes.data, 70 + k]
    given = np.array(words, np.int64)
    before = threads.get_num_threads()
    threads.set_num_threads(2)
    try:
        threads.parallel_for(calque_beside.address, given.ctypes.data + 8, 0, calls, 1)
    finally:
        threads.set_num_threads(before)
    assert out.tolist() == [[run, 5 + k, 70 + k] for k in range(calls)]
