"""A routine that ends its program."""

from calque.machine.driver.interpreter import NO_MEMORY, TOO_LARGE
from calque.machine.lang.unit import Unit, i64, ptr
from calque.machine.routines.ending import stop
from tests.machine.routines.shared import idle_run, stopped

unit = Unit("test_ending")


@unit.function
def end_twice(run: ptr, first: i64, second: i64) -> None:
    stop(run, first)
    stop(run, second)


def test_the_first_reason_counts() -> None:
    run = idle_run()
    end_twice(run.ctypes.data, NO_MEMORY, TOO_LARGE)
    assert stopped(run) == NO_MEMORY
