"""Counters of this process."""

from __future__ import annotations

from typing import Final

from calque.machine import memory
from calque.machine.caches import Counters
from calque.machine.call import functions as callpath
from calque.machine.code.arena import arena
from calque.machine.state import process
from calque.native import stored
from calque.native.emit import kernels
from calque.transforms.jit import again
from calque.transforms.jit.traced import stats as jit_stats

_COLUMNS: Final = ("cache", "hits", "misses", "size", "evictions", "bound")


class Statistics(dict[str, int]):
    """Counters by name; `caches` holds those of each cache. Prints as two tables."""

    def __init__(self, counters: dict[str, int], caches: tuple[Counters, ...]) -> None:
        super().__init__(counters)
        self.caches = caches

    def __str__(self) -> str:
        width = max(map(len, self))
        lines = [f"{name:{width}}  {n:>14,}" for name, n in self.items()]
        return "\n".join([*lines, "", *_table([_COLUMNS, *map(_row, self.caches)])])

    __repr__ = __str__


def _row(c: Counters) -> tuple[str, ...]:
    hits = "-" if c.hits is None else f"{c.hits:,}"  # not counted
    bound = f"{c.bound:,}" if isinstance(c.bound, int) else c.bound
    return (c.name, hits, f"{c.misses:,}", f"{c.size:,}", f"{c.evictions:,}", bound)


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of text, names and bounds to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    last = len(widths) - 1
    return [
        "  ".join(
            f"{cell:{w}}" if k in (0, last) else f"{cell:>{w}}"
            for k, (cell, w) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def stats() -> Statistics:
    """Tells how much was traced and compiled so far, the memory of arrays, and what caches hold.

    `calls`: of jitted and library functions, of which `calls_through_python` were not served by
    machine code alone; `traces`: functions traced; `compiles`: kernels compiled;
    `kernels_from_disk` and `kernels_from_memory`: kernels found instead; `programs_from_disk`:
    programs that another process planned; `programs_improved`: programs that were made quickly for
    a first call and then with care; `bytes_of_code`: what kernels and the runtime take in
    memory; `bytes_in_use` and `bytes_idle`: memory of arrays, in use and kept for the next ones;
    `allocations`: blocks handed out.

    Returns:
        A dict of these counters, which prints as a table. Its attribute `caches` has a name,
        `hits`, `misses`, `size`, `evictions` and `bound` for each cache; hits are None where
        counting them would cost as much as they do.

    Differs from JAX:
        It is calque's own.

    >>> sorted(jax.stats())[:3]
    ['allocations', 'bytes_idle', 'bytes_in_use']
    >>> [c.bound for c in jax.stats().caches if c.name == "kernels"]
    [1024]"""
    m = memory.stats()
    counters = {
        "calls": jit_stats.asked + callpath.calls_served(),
        "calls_through_python": jit_stats.asked,
        "traces": jit_stats.traces,
        "compiles": kernels.stats.compiled,
        "kernels_from_disk": kernels.stats.disk,
        "kernels_from_memory": kernels.stats.memory,
        "programs_from_disk": stored.stats.found,
        "programs_improved": again.stats.improved,
        "bytes_of_code": sum(arena.used()),
        "bytes_in_use": m.live_bytes,
        "bytes_idle": m.idle_bytes,
        "allocations": m.allocations,
    }
    return Statistics(counters, process.caches.counters())
