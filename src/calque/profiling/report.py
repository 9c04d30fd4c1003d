"""`profile`: where the time of a function goes, as a table: kernels by time, how near they come to
what the machine can do, host calls, and the line of the user to blame."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core import notebooks, pytrees
from calque.core.arrays import ArrayImpl, from_numpy, is_pending, to_numpy, wait_for
from calque.core.dtypes import is_extended
from calque.machine.spans import Span
from calque.profiling import traces
from calque.profiling.limits import Limits, limits
from calque.profiling.session import SINGLE, Measured, Session

SECONDS: Final = 0.3  # of calls that are measured, at least one
MOST_CALLS: Final = 1000
EVENTS: Final = 1 << 16  # that a timeline has: the first calls
SLOWER: Final = 1.5  # than without a profile: worth a word
MOST_ROWS: Final = 30  # that are printed
ELSEWHERE: Final = (
    "  programs of XLA are timed as a whole, until their results are there, with the work that XLA"
    " estimates:\n  its kernels, their lines and its threads are not known here"
)


class Row(NamedTuple):
    """One step of a compiled program. Times and turns are those of one call; rates are None where
    they are not known, and so are the threads of a program of XLA; `of_limit` is the share of what
    the machine can do at best in operations or bytes, whichever is nearer, and `limit` says which.
    """

    name: str
    kind: str
    function: str
    seconds: float
    share: float  # of the whole time
    turns: float
    threads: float | None
    flops_per_second: float | None
    bytes_per_second: float | None
    of_limit: float | None
    limit: str
    file: str
    line: int
    other_lines: tuple[int, ...]

    @property
    def code(self) -> str:
        """The line of the user."""
        return linecache.getline(self.file, self.line).strip() if self.line else ""


class Profile:
    """What `profile` found; printing shows a table.

    `seconds`: of one call, as it is when nobody profiles; `calls`: how many were measured;
    `compiled_seconds` and `python_seconds`: of one call while it was profiled, in compiled programs
    and around them; `rows`: the steps, that of the most time first; `limits`: what the machine can
    do. `save("trace.json")` writes a timeline for Perfetto or chrome://tracing."""

    def __init__(
        self, name: str, session: Session, calls: int, seconds: float | None, elapsed: float
    ) -> None:
        self.name, self.session, self.calls, self.seconds = name, session, calls, seconds
        self.limits = limits()
        measured = session.measured()
        elsewhere = [s for s in session.spans if s.kind == "XLA"]
        whole = sum(m.time.ns for m in measured if m.facts is None) / 1e9 / calls
        whole += sum(s.end - s.begin for s in elsewhere) / 1e9 / calls
        self.elapsed = max((elapsed - session.cost) / calls, whole)
        self.compiled_seconds = whole
        self.python_seconds = self.elapsed - self.compiled_seconds
        steps = [m for m in measured if m.facts is not None and m.time.turns]
        rows = [r for m in steps for r in _by_callers(self._row(m), m)]
        rows += [self._whole(spans) for spans in _by_program(elsewhere)]
        self.rows = sorted(_together(rows), key=lambda r: -r.seconds)

    def _row(self, m: Measured) -> Row:
        facts, t = m.facts, m.time
        assert facts is not None
        seconds = t.ns / 1e9 / self.calls
        each = max(t.ns, 1) / 1e9 / t.turns
        flops = None if facts.flops is None else facts.flops / each
        moved = None if facts.nbytes is None else facts.nbytes / each
        near, limit = _nearest(self.limits, facts, each)
        source = facts.sources[0] if facts.sources else None
        return Row(
            facts.name,
            facts.kind,
            m.function,
            seconds,
            seconds / self.elapsed if self.elapsed else 0.0,
            t.turns / self.calls,
            t.busy / t.ns if t.parts > t.turns and t.ns else 1.0,
            flops or None,
            moved or None,
            near,
            limit,
            source.file if source else "",
            source.line if source else 0,
            tuple([s.line for s in facts.sources[1:]]),
        )

    def _whole(self, spans: Sequence[Span]) -> Row:
        """A program of XLA: the time until its results were there, and what XLA estimates of its
        work. What is inside of it XLA does not say."""
        total = sum(s.end - s.begin for s in spans) / 1e9
        each, known = max(total / len(spans), 1e-9), spans[0].details
        file, _, line = known.get("line", "").rpartition(":")
        lines = known.get("lines", "").split(", ")[1:]
        return Row(
            known["executable"],
            "XLA",
            spans[0].name,
            total / self.calls,
            total / self.calls / self.elapsed if self.elapsed else 0.0,
            len(spans) / self.calls,
            None,
            known["flops"] / each if known.get("flops") else None,
            known["bytes"] / each if known.get("bytes") else None,
            None,
            "",
            file,
            int(line or 0),
            tuple(map(int, lines)),
        )

    @property
    def host_calls(self) -> list[Row]:
        """The rows that run Python in the midst of compiled code."""
        return [r for r in self.rows if r.kind == "host call"]

    def save(self, path: str) -> None:
        """Write a timeline for Perfetto (https://ui.perfetto.dev) or chrome://tracing."""
        traces.write(self.session, path)

    def __str__(self) -> str:
        lines = [*self._head(), "", *_table(self.rows[:MOST_ROWS])]
        if len(self.rows) > MOST_ROWS:
            rest = sum(r.seconds for r in self.rows[MOST_ROWS:])
            lines.append(f"... {len(self.rows) - MOST_ROWS} more steps, {duration(rest)}")
        if not self.rows:
            lines[-1:] = ["no compiled program has run"]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [_cells(r) for r in self.rows[:MOST_ROWS]]
        return notebooks.table_html(self._head(), _COLUMNS, cells)

    def _head(self) -> list[str]:
        if self.seconds is not None:
            one = f"{self.name}: {duration(self.seconds)} a call"
            calls = f"{self.calls} call{'s' * (self.calls != 1)} profiled"
        else:
            one, calls = f"{self.name}: {duration(self.elapsed)}", "one run"
        steps = sum(r.seconds for r in self.rows)
        host = sum(r.seconds for r in self.host_calls)
        of_host = f" ({duration(host)} of them in host calls)" if host else ""
        between = max(self.compiled_seconds - steps, 0.0)
        compiling = sum(
            s.end - s.begin for s in self.session.spans if s.kind in ("trace", "compile")
        )
        told = f", {duration(compiling / 1e9)} of them tracing and compiling" if compiling else ""
        best = self.limits
        slower = self.elapsed / self.seconds if self.seconds else 1.0
        warned = (
            [f"  while it was profiled it was {slower:.1f} times as slow: short steps seem longer"]
            if slower >= SLOWER
            else []
        )
        return [
            f"{one} ({calls})",
            f"  {duration(steps)} in steps of compiled programs{of_host},"
            f" {duration(between)} between them, {duration(self.python_seconds)} in Python{told}",
            f"  this machine, as measured: {quantity(best.single)}flop/s (f32),"
            f" {quantity(best.bandwidth[-1])}B/s from memory,"
            f" {quantity(max(best.bandwidth))}B/s from cache",
            *([ELSEWHERE] if any(r.kind == "XLA" for r in self.rows) else []),
            *warned,
        ]


def profile(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Profile:
    """Where the time of a function goes: which kernels, how near they come to what this machine can
    do, which of them run Python, and the line to blame.

    Steps are timed by machine code around them, some 50 ns each, in a form of the program that
    exists only meanwhile: when nobody profiles, nothing of it is there.

    Args:
        fun: Any function, jitted or not. It is called for about half a second, at least four
            times, so it should have no side effects.
        *args: What it is called with. Arguments that it donates are copied.
        **kwargs: What it is called with.

    Returns:
        A report: printing it shows a table, `rows` has its numbers, `save("trace.json")` writes a
        timeline for Perfetto (https://ui.perfetto.dev).

    Differs from JAX:
        It is calque's own.

    >>> report = jax.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((50, 50)))
    >>> report.calls > 0 and report.seconds > 0
    True
    >>> sorted({row.kind for row in report.rows})
    ['kernel']
    >>> "matmul" in " ".join(row.name for row in report.rows)
    True"""
    if not callable(fun):
        raise TypeError(f"profile: a function is needed, got {type(fun).__name__}")
    given = Arguments(args, kwargs)
    fun(*(first := given.fresh())[0], **first[1])
    given.look(first)
    second = given.fresh()
    waits = any(map(_is_pending, pytrees.leaves(fun(*second[0], **second[1]))))
    plain = _calls(fun, given, waits)
    session = Session(EVENTS)
    with session:
        calls = _calls(fun, given, waits)
    name = getattr(fun, "__name__", type(fun).__name__)
    return Profile(name, session, len(calls), sorted(plain)[len(plain) // 2], sum(calls))


class Arguments:
    """Arguments for many calls; those that a call deletes are copied for each."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.given = (args, kwargs)
        self.copies = True

    def fresh(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return pytrees.tree_map(_copied, self.given) if self.copies else self.given

    def look(self, used: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        """Whether a call has deleted what it was given."""
        self.copies = any(type(x) is ArrayImpl and x.is_deleted() for x in pytrees.flatten(used)[0])


def _copied(x: Any) -> Any:
    """An array of its own memory, made by no compiled program."""
    if type(x) is not ArrayImpl or x.is_deleted():
        return x
    if is_extended(x.dtype) or x.aval.place is not None:
        return x.copy()
    return from_numpy(np.array(to_numpy(x)), x.aval.weak_type)


def _is_pending(x: Any) -> bool:
    """Whether an array is still computed, by a program of another engine."""
    return type(x) is ArrayImpl and not x.is_deleted() and is_pending(x)


def _calls(fun: Callable[..., Any], given: Arguments, waits: bool) -> list[float]:
    """Seconds of each of some calls, until the results are there if calls do not wait."""
    out: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(out) < MOST_CALLS and (not out or time.perf_counter() < end):
        args, kwargs = given.fresh()
        begun = time.perf_counter()
        results = fun(*args, **kwargs)
        if waits:
            for x in pytrees.leaves(results):
                if _is_pending(x):
                    wait_for(x)
        out.append(time.perf_counter() - begun)
    return out


def _nearest(best: Limits, facts: Any, each: float) -> tuple[float | None, str]:
    """The share of the machine's limit that a step reaches, and of which."""
    if facts.additions is None or facts.nbytes is None:
        return None, ""
    peak = best.double if facts.double else best.single
    computing = facts.additions / each / peak
    moving = facts.nbytes / each / best.bytes_per_second(facts.nbytes)
    return (computing, "flops") if computing >= moving else (moving, "bytes")


def _together(rows: Iterable[Row]) -> list[Row]:
    """The rows, those of the same operation done singly as one."""
    out: dict[Any, Row] = {}
    for k, r in enumerate(rows):
        planned = r.function != SINGLE and (r.line or r.flops_per_second is not None)
        key = (k,) if planned else (r.name, r.kind, r.function, r.file, r.line)
        known = out.get(key)
        if known is not None:
            r = r._replace(
                seconds=r.seconds + known.seconds,
                share=r.share + known.share,
                turns=r.turns + known.turns,
            )
        out[key] = r
    return list(out.values())


def _by_program(spans: Iterable[Span]) -> list[list[Span]]:
    """The runs of each program of XLA."""
    out: dict[Any, list[Span]] = {}
    for s in spans:
        key = (s.name, *(s.details.get(k) for k in ("executable", "line", "flops", "bytes")))
        out.setdefault(key, []).append(s)
    return list(out.values())


def _by_callers(row: Row, m: Measured) -> Iterable[Row]:
    """A row for each line that has called a single operation: its share of the calls."""
    if not m.callers:
        return [row]
    turns = sum(c.turns for c in m.callers)
    return [
        row._replace(
            seconds=row.seconds * c.turns / turns,
            share=row.share * c.turns / turns,
            turns=row.turns * c.turns / turns,
            file=c.source.file,
            line=c.source.line,
            other_lines=(),
        )
        for c in m.callers
    ]


_COLUMNS: Final = ("time", "share", "turns", "of limit", "flop/s", "B/s", "threads", "step", "line")
_LEFT: Final = ("step", "line")


def _cells(r: Row) -> tuple[str, ...]:
    where = f"{notebooks.file_name(r.file)}:{r.line}" if r.line else r.function
    kind = "" if r.kind == "kernel" or r.name == r.kind else f"{r.kind} "
    return (
        duration(r.seconds),
        f"{r.share:.1%}",
        f"{r.turns:,.6g}" if r.turns >= 1 else f"{r.turns:.2g}",
        "" if r.of_limit is None else f"{r.of_limit:.0%} {r.limit}",
        "" if r.flops_per_second is None else quantity(r.flops_per_second),
        "" if r.bytes_per_second is None else quantity(r.bytes_per_second),
        "" if r.threads is None else f"{r.threads:.1f}",
        f"{kind}{r.name}",
        f"{where}  {r.code}".rstrip(),
    )


def _table(rows: Sequence[Row]) -> list[str]:
    cells = [_COLUMNS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    out = []
    for row in cells:
        line = "  ".join(
            f"{c:{w}}" if name in _LEFT else f"{c:>{w}}"
            for c, w, name in zip(row, widths, _COLUMNS)
        )
        out.append(line.rstrip())
    return out


def duration(seconds: float) -> str:
    """A time with its unit, in three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e9:.0f} ns"


def quantity(x: float) -> str:
    """A number with the prefix of its unit."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if x >= factor:
            return f"{x / factor:.3g} {prefix}"
    return f"{x:.3g} "
