"""Memory in which a kernel works, where it is more than a thread's stack is sure to have."""

from __future__ import annotations

from calque.machine.driver.interpreter import NO_MEMORY
from calque.machine.lang.unit import NULL, Unit, i64, load_ptr, ptr
from calque.machine.memory import calque_alloc
from calque.machine.routines.ending import stop

unit = Unit("scratch")


@unit.function
def calque_scratch(args: ptr, nbytes: i64) -> ptr:
    """So much memory for the kernel with these arguments; NULL, and the end of the program, where
    there is none."""
    memory = calque_alloc(nbytes)
    if memory == NULL:
        stop(load_ptr(args, -8), NO_MEMORY)
    return memory
