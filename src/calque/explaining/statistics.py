"""Counters of this process."""

from __future__ import annotations

from calque.machine import memory
from calque.machine.call import functions as callpath
from calque.native.emit import kernels
from calque.transforms.jit.traced import stats as jit_stats


def stats() -> dict[str, int]:
    """How much was traced and compiled so far, and the memory of arrays.

    >>> import calque
    >>> sorted(calque.stats())[:3]
    ['allocations', 'bytes_idle', 'bytes_in_use']

    `calls`: of jitted and library functions, of which `calls_through_python` were not served by
    machine code alone; `traces`: functions traced; `compiles`: kernels compiled;
    `kernels_from_disk` and `kernels_from_memory`: kernels found instead; `bytes_in_use` and
    `bytes_idle`: memory of arrays, in use and kept for the next ones; `allocations`: blocks handed
    out.
    """
    m = memory.stats()
    return {
        "calls": jit_stats.asked + callpath.calls_served(),
        "calls_through_python": jit_stats.asked,
        "traces": jit_stats.traces,
        "compiles": kernels.stats.compiled,
        "kernels_from_disk": kernels.stats.disk,
        "kernels_from_memory": kernels.stats.memory,
        "bytes_in_use": m.live_bytes,
        "bytes_idle": m.idle_bytes,
        "allocations": m.allocations,
    }
