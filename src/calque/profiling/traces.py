"""Sessions as timelines in the format of Chrome's traces, which Perfetto and TensorBoard read as
well."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from typing import Any, Final

from calque.profiling.session import Measured, Session

_SPAN_NAMES: Final = {
    "annotation": "",
    "step": "",
    "trace": "trace ",
    "passes": "passes, ",
    "plan": "plan ",
    "kernels": "kernels of ",
    "compile": "compile ",
    "LLVM": "LLVM ",
    "XLA": "",
}


def write(session: Session, path: str) -> None:
    """Write the timeline; compressed where the name ends with .gz."""
    text = json.dumps({"traceEvents": list(events(session)), "displayTimeUnit": "ns"})
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as f:
            f.write(text)
    else:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def events(session: Session) -> Iterator[dict[str, Any]]:
    """What happened, in microseconds since the start."""
    pid, start = os.getpid(), session.begun
    threads = dict(session.threads)
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": "calque"}}
    for s in session.spans:
        yield _event(
            pid, s.thread, _SPAN_NAMES.get(s.kind, f"{s.kind} ") + s.name, s.kind,
            s.begin - start, s.end - s.begin, s.details,
        )  # fmt: skip
    measured = session.measured()
    shown = [_shown(m) for m in measured]
    programs: list[int] = []  # the number of the program that each step belongs to
    for number, m in enumerate(measured):
        programs.append(number if m.facts is None else programs[-1])
    for e in session.timing.events():
        name, kind, details = shown[e.step]
        if measured[e.step].callers:
            caller = session.calls.at(programs[e.step], e.thread, e.begin)
            if caller is not None:
                details = {**details, "line": f"{caller.file}:{caller.line}"}
        threads.setdefault(e.thread, f"calque {len(threads)}")
        if e.is_part:
            name, kind = f"{name} (part)", "part"
        yield _event(pid, e.thread, name, kind, e.begin - start, e.end - e.begin, details)
    for sample in session.samples:
        yield {
            "ph": "C",
            "pid": pid,
            "name": "memory of arrays",
            "ts": (sample.at - start) / 1e3,
            "args": {"in use": sample.live, "idle": sample.idle},
        }
    for thread, name in threads.items():
        yield {"ph": "M", "pid": pid, "tid": thread, "name": "thread_name", "args": {"name": name}}
    if session.timing.lost:
        yield _event(
            pid, 0, f"{session.timing.lost} events were lost: the trace is full", "lost", 0, 0, {}
        )


def _event(
    pid: int, thread: int, name: str, kind: str, begin: int, length: int, details: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": pid,
        "tid": thread,
        "name": name,
        "cat": kind,
        "ts": begin / 1e3,
        "dur": length / 1e3,
        "args": {k: v if isinstance(v, (int, float, str)) else str(v) for k, v in details.items()},
    }


def _shown(m: Measured) -> tuple[str, str, dict[str, Any]]:
    """The name, the kind and the details of a step's events."""
    if m.facts is None:
        return m.function, "call", {}
    f = m.facts
    details: dict[str, Any] = {"function": m.function}
    if f.sources:
        details["line"] = f"{f.sources[0].file}:{f.sources[0].line}"
        details["lines"] = ", ".join(str(s.line) for s in f.sources)
    if f.nbytes is not None:
        details["bytes"] = f.nbytes
    if f.flops is not None:
        details["flops"] = f.flops
    return f.name or f.kind, f.kind, details
