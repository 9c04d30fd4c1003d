"""Timelines as the XSpace messages that TensorBoard's profiler reads: a plane, a line for each
thread, events with the numbers of their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from calque.profiling.protobuf import data, number

PLANE: Final = "/host:CPU"
_PS: Final = 1_000_000  # picoseconds of a microsecond


def xspace(events: Iterable[dict[str, Any]], start_ns: int) -> bytes:
    """The message of a timeline whose events are those of a trace."""
    names: dict[str, int] = {}
    threads: dict[int, str] = {}
    rows: dict[int, list[bytes]] = {}
    for e in events:
        if e["ph"] == "M" and e["name"] == "thread_name":
            threads[e["tid"]] = e["args"]["name"]
        elif e["ph"] == "X":
            k = names.setdefault(e["name"], len(names) + 1)
            begin, length = int(e["ts"] * _PS), int(e["dur"] * _PS)
            rows.setdefault(e["tid"], []).append(
                data(4, number(1, k) + number(2, max(begin, 0)) + number(3, length))
            )
    plane = [number(1, 1), data(2, PLANE)]
    for tid, row in rows.items():
        head = number(1, tid) + data(2, threads.get(tid, str(tid))) + number(3, start_ns)
        plane.append(data(3, head + b"".join(row)))
    for name, k in names.items():
        plane.append(data(4, number(1, k) + data(2, number(1, k) + data(2, name))))
    return data(1, b"".join(plane))
