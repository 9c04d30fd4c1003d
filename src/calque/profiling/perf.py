"""Names of compiled code for `perf`: a map of addresses, in the file where it looks for one."""

from __future__ import annotations

import os
import re
from typing import Final

from calque.native.emit import objects
from calque.profiling.steps import kernel_names

PERF_MAP: Final = "/tmp/perf-{pid}.map"  # where `perf` looks


def perf_map(path: str | None = None) -> str:
    """Write the addresses and names of all kernels that are in memory now, so that `perf report`
    shows them; returns the path, `/tmp/perf-PID.map` unless told otherwise.

    A name has the operations of the kernel and its symbol: `calque:sin_mul:k_0123...`. How long a
    kernel is nobody keeps: one ends where the next begins."""
    path = path or PERF_MAP.format(pid=os.getpid())
    names = kernel_names()
    found: dict[int, str] = {}
    for linked in {id(x): x for x in objects.linked.values()}.values():
        for symbol, address in linked.addresses.items():
            operations = re.sub(r"\W+", "_", names.get(address, ""))
            found[address] = ":".join(filter(None, ("calque", operations, symbol)))
    order = sorted(found)
    with open(path, "w", encoding="utf-8") as f:
        for address, after in zip(order, [*order[1:], None]):
            length = min(after - address, _LONGEST) if after is not None else _LAST
            f.write(f"{address:x} {length:x} {found[address]}\n")
    return path


_LONGEST: Final = 1 << 20
_LAST: Final = 1 << 12
