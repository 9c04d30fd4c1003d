"""What the tests of routines share: a run of a program, and routines called with words."""

import ctypes
from typing import Any

import numpy as np

from calque.machine.driver.interpreter import Run

ROUTINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def idle_run(stopped: int = 0) -> np.ndarray:
    """A run of a program that another thread looks after, so that nobody looks at signals."""
    run = np.zeros(16, np.int64)
    run[Run.offset("owner") // 8] = 1
    run[Run.offset("stopped") // 8] = stopped
    return run


def stopped(run: np.ndarray) -> int:
    return int(run[Run.offset("stopped") // 8])


def call(routine: Any, *words: Any, run: np.ndarray | None = None) -> None:
    """A routine on arrays (None: one that nobody wants) and numbers, without the GIL."""
    run = idle_run() if run is None else run
    given = [
        w.ctypes.data if isinstance(w, np.ndarray) else 0 if w is None else int(w) for w in words
    ]
    args = np.array([run.ctypes.data, *given], np.int64)
    address = routine if isinstance(routine, int) else routine.address
    ROUTINE(address)(args.ctypes.data + 8, 0, 1)
