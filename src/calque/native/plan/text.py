"""Homes and steps as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calque.machine.driver.program import External
from calque.native.loops.tree import LoopPrinter, Store, pretty
from calque.native.lower.graph import Node
from calque.native.lower.stages import Stage
from calque.native.plan.homes import Homes
from calque.native.plan.steps import (
    Call,
    Compute,
    Copy,
    Count,
    Host,
    Made,
    Nest,
    Repeat,
    Routine,
    Step,
    Swap,
    Switch,
    WriteSize,
)
from calque.native.routines import Begun
from calque.native.scalars.expr import Buffer, Expr, show


def homes_text(pieces: Sequence[Homes]) -> str:
    """A node a line, piece by piece."""
    return "\n\n".join("\n".join(homes_lines(h)) for h in pieces)


def homes_lines(h: Homes) -> Iterator[str]:
    yield f"homes of {h.name}:"
    for n in h.order:
        yield f"  {home_text(h, n)}"
    for k, n in enumerate(h.results):
        if n not in h.of or h.of[n].how == "given":
            yield f"  %{n.id} is copied to result {k}"


def home_text(h: Homes, n: Node) -> str:
    """Where a node is, why, and what an element of it weighs where it is computed."""
    home = h.of[n]
    where: str = home.how
    if home.place == "over" and home.other is not None:
        where += f" over %{home.other.id}, read for the last time"
    elif home.place == "result":
        where += f" as result {h.results.index(n)}"
    elif home.how == "fused" and home.other is not None:
        where += f" into %{home.other.id}"
        where += f" as result {h.results.index(n)}" if n in h.results else ""
    elif home.how == "part":
        where += f" of %{n.args[0].id}"
    operands = "".join(f" %{a.id}" for a in n.args)
    weight = f" (weight {h.weight[n]})" if h.weight.get(n) else ""
    return f"%{n.id} = {n.op}{operands}: {where}{f': {home.why}' if home.why else ''}{weight}"


def steps_text(steps: Sequence[Step]) -> str:
    """A step a line, what it holds below it."""
    return "\n".join(lines(steps))


def lines(steps: Sequence[Step]) -> Iterator[str]:
    for s in steps:
        yield from step_lines(s)


def step_lines(s: Step) -> Iterator[str]:
    match s:
        case Compute():
            yield "compute:"
            for stage in s.stages:
                yield from indented(stage_lines(stage))
        case Nest():
            yield "nest, its vectors chosen:" if s.vectors else "nest:"
            yield from indented(pretty(s.body).splitlines())
        case Call():
            yield from call_lines(s)
        case Copy():
            yield f"copy {s.dst.name} <- {s.src.name}"
        case Host():
            yield f"host {s.op}({names(s.args)}) -> {names(s.outs)}"
        case Routine():
            yield f"routine {s.name}({', '.join(map(word, s.words))})"
        case Repeat():
            yield from repeat_lines(s)
        case Switch():
            yield f"switch {s.index.name if isinstance(s.index, Buffer) else show(s.index)}:"
            for k, case in enumerate(s.cases):
                yield f"  case {k}:"
                yield from indented(indented(lines(case)))
        case Swap():
            yield f"swap {s.a.name}, {s.b.name}"
        case Count():
            yield f"size {s.name} = {s.buffer.name}"
        case WriteSize():
            yield f"{s.buffer.name} = size {s.size}"


def call_lines(s: Call) -> Iterator[str]:
    made = s.schedule
    shared = ""
    if made.extent is not None:
        grain = show(made.grain) if isinstance(made.grain, Expr) else made.grain
        shared = f", shared by threads, at least {grain} of {show(made.extent)}"
    yield f"call{shared}:"
    yield from (f"  ; {reason}" for reason in made.reasons)
    yield from indented(pretty(s.body).splitlines())


def repeat_lines(s: Repeat) -> Iterator[str]:
    if s.count is not None:
        yield f"repeat {s.counter} < {show(s.count)}:"
    else:
        yield f"repeat {s.counter}:" if s.counter is not None else "repeat:"
    if s.flag is not None:
        yield from indented(lines(s.test))
        yield f"  while {s.flag.name}"
    yield from indented(lines(s.body))
    yield from (f"  swap {a.name}, {b.name}" for a, b in s.swaps)


def stage_lines(s: Stage) -> Iterator[str]:
    """Its loops, what they fold, and what is stored."""
    over = [f"{d.attr[0]} < {show(d.attr[1]) if d.attr[1] is not None else '?'}" for d in s.dims]
    marks = [
        *(["running"] if s.running else []),
        *([f"{s.colliding} colliding"] if s.colliding else []),
        *(["marks"] if s.marks else []),
        *(["early"] if s.early else []),
        *([] if s.local else ["apart"]),
    ]
    loops = ", ".join(over[: s.rank]) or "once"
    folded = f" folding {', '.join(over[s.rank :])}" if over[s.rank :] else ""
    how = f" ({', '.join(marks)})" if marks else ""
    yield f"stage {s.buf.name} over {loops}{folded}{how}:"
    p = LoopPrinter()
    for a in s.accs:
        p.acc(a, 1)
    for suffix, value in s.parts:
        p.store(Store(s.buf, s.idx + suffix, value, s.guard), 1)
    yield from p.lines


def word(w: Any) -> str:
    """An argument of a routine."""
    if isinstance(w, Buffer):
        return w.name
    if isinstance(w, Expr):
        return show(w)
    if isinstance(w, (np.ndarray, Made)):
        return "table"
    if isinstance(w, Begun):
        return w.split()[1]
    return w.name.split()[1] if isinstance(w, External) else str(w)


def names(buffers: Sequence[Buffer]) -> str:
    return ", ".join(b.name for b in buffers)


def indented(rows: Iterator[str] | Sequence[str]) -> Iterator[str]:
    return ("  " + row for row in rows)
