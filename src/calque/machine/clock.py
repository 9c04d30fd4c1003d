"""The time, asked by machine code."""

from __future__ import annotations

import sys
from typing import Any

from calque.machine.lang.unit import Unit, alloca, i32, i64, load_i64, ptr

_MONOTONIC = 6 if sys.platform == "darwin" else 1  # the system's number of this clock

unit = Unit("clock")
_clock_gettime: Any = unit.extern("clock_gettime", i32, i32, ptr)


@unit.helper
def nanoseconds_now() -> i64:
    """The monotonic clock of the system."""
    time = alloca(16)
    _clock_gettime(_MONOTONIC, time)
    return load_i64(time, 0) * 1_000_000_000 + load_i64(time, 8)
