"""The parts of the sorting kernel: networks, splits at pivots, digits, and the rows that hold them
together."""

import numpy as np

from calque.machine.driver.interpreter import TOO_LARGE, Run
from calque.machine.routines.sort import radix as sort_radix
from calque.machine.routines.sort import rows as sort
from calque.machine.routines.sort import work as sort_work
from calque.machine.routines.sort.keys import Key
from tests.machine.routines.sort.shared import idle_run, words


def test_more_places_than_are_counted() -> None:
    run = idle_run()
    args = words(np.zeros(4, np.uint32), np.zeros(4, np.uint32), 1, run)
    args[1 + sort_work.Args.offset("n") // 8] = 1 << 32
    args[1 + sort_work.Args.offset("alone") // 8] = 0
    sort.calque_sort(args.ctypes.data + 8, 0, 1)
    assert run[Run.offset("stopped") // 8] == TOO_LARGE


def test_room_for_layouts() -> None:
    """The bytes that are set aside hold what is kept there."""
    pairs = (
        (sort_work.Work, sort_work.WORK_BYTES),
        (sort_radix.Records, sort_radix.RECORDS_BYTES),
        (sort_radix.Job, sort_radix.JOB_BYTES),
    )
    for layout, nbytes in pairs:
        assert layout.size <= nbytes
    assert (sort_work.Args.size, Key.size, sort_work.Move.size) == (
        sort_work.ARGS_BYTES,
        sort_work.KEY_BYTES,
        sort_work.MOVE_BYTES,
    )
