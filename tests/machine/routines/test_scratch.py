"""Memory for a kernel, or the end of its program."""

import numpy as np

from calque.machine.driver.interpreter import NO_MEMORY
from calque.machine.memory import calque_free
from calque.machine.routines.scratch import calque_scratch
from tests.machine.routines.shared import idle_run, stopped


def test_memory_or_the_end() -> None:
    run = idle_run()
    words = np.array([run.ctypes.data, 0], np.int64)
    args = words.ctypes.data + 8
    memory = calque_scratch(args, 100_000)
    assert memory and memory % 64 == 0 and stopped(run) == 0
    calque_free(memory)
    assert not calque_scratch(args, 1 << 62)
    assert stopped(run) == NO_MEMORY
