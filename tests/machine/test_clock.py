"""The clock of machine code is Python's monotonic one."""

import time

from calque.machine.clock import nanoseconds_now
from calque.machine.lang.unit import Unit, i64

unit = Unit("test_clock")


@unit.function
def now() -> i64:
    """The clock, for Python."""
    return nanoseconds_now()


def test_it_is_the_monotonic_clock() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    told = int(now())
    assert before <= told <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
