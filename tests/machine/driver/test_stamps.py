"""What stamps write."""

from __future__ import annotations

import time

import numpy as np

from calque.machine.driver.stamps import (
    EVENT_WORDS,
    LOG_WORDS,
    RECORD_WORDS,
    Log,
    Record,
    Run,
    Stamp,
    interp_stamp,
)


def test_a_step_is_counted_and_logged() -> None:
    run = np.zeros(Run.size // 8, np.int64)
    records = np.zeros((2, RECORD_WORDS), np.int64)
    log = np.zeros(LOG_WORDS + 2 * EVENT_WORDS, np.int64)
    log[0] = 2
    records[:, Record.offset("log") // 8] = log.ctypes.data
    records[:, Record.offset("number") // 8] = [5, 6]
    program, step = records[0].ctypes.data, records[1].ctypes.data
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    interp_stamp(run.ctypes.data, program, Stamp.ENTER)
    for _ in range(2):
        interp_stamp(run.ctypes.data, step, Stamp.BEGIN)
        interp_stamp(run.ctypes.data, step, Stamp.END)
    interp_stamp(run.ctypes.data, program, Stamp.LEAVE)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert records[:, 0].tolist() == [1, 2]
    assert 0 < records[1, 1] <= records[0, 1] <= after - before
    assert log[Log.offset("count") // 8] == 3  # of which there was room for two
    assert log[LOG_WORDS::EVENT_WORDS].tolist() == [6, 6]
    assert before <= log[LOG_WORDS + 2] <= log[LOG_WORDS + 3] <= after
