"""How a routine ends the program that has called it."""

from __future__ import annotations

from calque.machine.driver.stamps import Run
from calque.machine.lang.unit import Unit, atomic_cas, i64, ptr

unit = Unit("routine_ending")


@unit.helper
def stop(run: ptr, status: i64) -> None:
    """End the program with an error, the first that there is."""
    atomic_cas(Run.at(run).stopped, 0, 0, status)
