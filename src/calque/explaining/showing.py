"""`show`: a page for people who look rather than read: the program as a graph, its loops over time,
and the user's lines beside them."""

from __future__ import annotations

import html as escaping
import os
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from typing import Any, Final

from calque.explaining import page
from calque.explaining.drawing import Key, draw
from calque.explaining.report import Report, explain
from calque.explaining.timeline import Bar, rows_of, timeline
from calque.native.backend import Found
from calque.native.plan.steps import Call, Routine, walk
from calque.profiling.report import Arguments, duration
from calque.profiling.session import Measured, Session
from calque.profiling.steps import described
from calque.transforms.jit.decorator import jit

EVENTS: Final = 1 << 14
TRIES: Final = 4
STYLE: Final = """
.calque-report .drawn { grid-template-columns: minmax(0, 2fr) minmax(0, 3fr) } .calque-report .stays { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow: auto }
@media (max-width: 60rem) { .calque-report .drawn { grid-template-columns: minmax(0, 1fr) } .calque-report .stays { position: static; max-height: none } }
.calque-report svg { max-width: none; display: block } .calque-report .wide { overflow: auto; padding: .4em 0 }
.calque-report svg text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: currentColor; white-space: pre }
.calque-report svg text.head { font-weight: bold } .calque-report svg text.tick, .calque-report svg text.row { opacity: .65 }
.calque-report .edge { fill: none; stroke: currentColor; stroke-opacity: .4; stroke-width: 1.4 }
.calque-report .tick { stroke: currentColor; stroke-opacity: .15; fill: none } .calque-report text.tick { stroke: none; fill: currentColor }
.calque-report g.lit > rect, .calque-report g.chosen > rect { stroke: #ffb400; stroke-width: 3; fill-opacity: .4 }
.calque-report [data-step] { cursor: pointer } .calque-report .kernel.chosen { outline: 2px solid #ffb400 }
"""
SCRIPT: Final = """
for (const root of document.querySelectorAll(".calque-report:not([data-steps])")) {
  root.dataset.steps = "yes";
  root.addEventListener("click", e => {
    const step = e.target.closest("[data-step]");
    root.querySelectorAll(".chosen").forEach(x => x.classList.remove("chosen"));
    if (step) root.querySelectorAll(`[data-step="${step.dataset.step}"]`).forEach(x => {
      x.classList.add("chosen");
      if (x.tagName === "DETAILS") { x.open = true; x.scrollIntoView({block: "nearest", behavior: "smooth"}); }
    });
  });
}
"""


class Drawn:
    """What `show` has drawn. `save(path)` writes the page, `open()` shows it in a browser; a
    notebook shows it by itself."""

    def __init__(self, report: Report, timed: Timed) -> None:
        self.report, self.name = report, report.name
        e = report.executable
        if report.elsewhere:
            raise NotImplementedError(
                f"show draws the steps of calque's own programs, and XLA compiled {report.name}:"
                " jax.explain(f, ...) tells of that one, and show(jit(f, backend='cpu'), ...) draws"
                " what calque's own engine makes of it"
            )
        self.planned = e.planned if isinstance(e, Found) else e
        self.facts = described(e).steps
        programs = {id(getattr(e, "program", None)), id(self.planned.driver)}
        self.times = timed.of(programs)
        self.bars, self.rows = timed.bars(programs, report.links.of)
        whole = sum(self.times.values())
        notes = {k: f"{duration(t)}, {t / whole:.0%}" for k, t in self.times.items() if whole}
        names = [n for n, _ in report.signature]
        hoisted = len(self.planned.in_avals) - len(names)
        self.graph = draw(
            self.planned, self.facts, notes, ["captured"] * hoisted + names, report.links.of
        )

    def html(self) -> str:
        """The whole page."""
        title = escaping.escape(f"calque: {self.name}")
        return page.whole(title, self._repr_html_())

    def save(self, path: str) -> None:
        """Write the page, which needs nothing else."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.html())

    def open(self) -> str:
        """Show the page in a browser; the path of the file that was written for it."""
        handle, path = tempfile.mkstemp(".html", f"calque-{os.getpid()}-")
        os.close(handle)
        self.save(path)
        webbrowser.open(f"file://{path}")
        return path

    def _repr_html_(self) -> str:
        return (
            f'<div class="calque-report"><style>{page.STYLE}{STYLE}</style>{self.content()}</div>'
            f"<script>{page.SCRIPT}{SCRIPT}</script>"
        )

    def content(self) -> str:
        """The parts of the page."""
        text = escaping.escape
        return "".join(
            [
                f"<h1>{text(self.name)}</h1>",
                f'<div class="columns drawn"><div class="stays"><h2>Source</h2>{page.sources(self.report)}</div>',
                f'<div><h2>Program</h2><div class="wide">{self.graph.svg()}</div></div></div>',
                "<h2>One call over time</h2>",
                f'<div class="wide">{timeline(self.bars, self.rows)}</div>',
                f"<h2>Loops</h2>{self.loops()}",
            ]
        )

    def loops(self) -> str:
        """The loops of each kernel, those that take the most time first."""
        numbers: dict[Key, Any] = {}
        for number, call in enumerate(steps_of(self.planned)):
            numbers["call", number] = call
        out = []
        for key in sorted(numbers, key=lambda k: -self.times.get(k, 0.0)):
            schedule = getattr(numbers[key], "schedule", None)
            if schedule is None:
                continue
            facts = self.facts[key]
            took = f", {duration(self.times[key])}" if key in self.times else ""
            marks = set[str]().union(*[self.report.links.of(s) for s in facts.sources])
            mark = f' data-line="{" ".join(sorted(marks))}"' if marks else ""
            why = "".join(f"; {r}\n" for r in schedule.reasons)
            body = self.planned.code[schedule].text("loops")
            out.append(
                f'<details class="kernel" data-step="{key[0]}-{key[1]}"><summary{mark}>'
                f"{escaping.escape(facts.name or facts.kind)}{took}</summary>"
                f"<pre>{escaping.escape(why + body)}</pre></details>"
            )
        return "".join(out) or "<p>there are none</p>"

    def __repr__(self) -> str:
        return (
            f"<drawing of {self.name}: .open() shows it in a browser, .save('page.html') writes it>"
        )


class Timed:
    """One call of a function, the quickest of a few, with every step's time."""

    def __init__(
        self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        given = Arguments(args, kwargs)
        used = given.fresh()
        fun(*used[0], **used[1])
        given.look(used)
        taken = [self._taken(fun, given) for _ in range(TRIES)]
        self.session = min(taken, key=lambda s: s.ended - s.begun)

    @staticmethod
    def _taken(fun: Callable[..., Any], given: Arguments) -> Session:
        session = Session(EVENTS)
        args, kwargs = given.fresh()
        with session:
            fun(*args, **kwargs)
        return session

    def _steps(self, programs: set[int]) -> dict[int, Measured]:
        """The steps of these programs by their number in the log."""
        return {
            k: m
            for k, m in enumerate(self.session.measured())
            if id(m.time.program) in programs and m.time.number is not None
        }

    def of(self, programs: set[int]) -> dict[Key, float]:
        """Seconds of each step."""
        return {
            (m.time.kind, m.time.number or 0): m.time.ns / 1e9
            for m in self._steps(programs).values()
            if m.time.turns
        }

    def bars(self, programs: set[int], marks: Any) -> tuple[list[Bar], list[str]]:
        """What the timeline shows, and its rows."""
        steps = self._steps(programs)
        events = [e for e in self.session.timing.events() if e.step in steps]
        rows = rows_of([e.thread for e in events], threading.get_ident())
        bars = []
        for e in events:
            m = steps[e.step]
            facts = m.facts
            if facts is None or (not e.is_part and m.time.parts):
                continue  # its parts are drawn
            lines = frozenset[str]().union(*[marks(s) for s in facts.sources])
            key = f"{m.time.kind}-{m.time.number}"
            row = rows[e.thread]
            bars.append(Bar(facts.name or facts.kind, key, lines, row, e.begin, e.end))
        used = sorted({b.row for b in bars} | {0})
        names = ["the thread of the call", *[f"thread {k}" for k in range(1, len(rows))]]
        place = {row: k for k, row in enumerate(used)}
        return [b._replace(row=place[b.row]) for b in bars], [names[row] for row in used]


def steps_of(planned: Any) -> list[Any]:
    """The calls of machine code, in the order of the program."""
    return [s for s in walk(planned.steps) if isinstance(s, (Call, Routine))]


def show(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Drawn:
    """Draws what calque makes of a function: the program as a graph, one call over time, the loops
    of its kernels, and the user's lines beside them.

    Pointing at a line, a box or a bar shows what belongs to it; a click opens its loops.

    Args:
        fun: The function, jitted or not. It is called a few times, so it should have no side
            effects.
        *args: What it is called with. Arguments that it donates are copied.
        **kwargs: What it is called with.

    Returns:
        The drawing: a notebook shows it by itself, `open()` shows it in a browser,
        `save("page.html")` writes it as one page that needs nothing else.

    Differs from JAX:
        It is calque's own.

    >>> drawn = jax.show(lambda x: jnp.sin(x) @ x, jnp.ones((5, 5)))
    >>> drawn
    <drawing of <lambda>: .open() shows it in a browser, .save('page.html') writes it>
    >>> "<svg" in drawn.html()
    True"""
    if not callable(fun):
        raise TypeError(f"show: a function is needed, got {type(fun).__name__}")
    jitted = fun if hasattr(fun, "_function") else jit(fun)
    timed = Timed(jitted, args, kwargs)
    given = Arguments(args, kwargs).fresh()
    return Drawn(explain(jitted, *given[0], **given[1]), timed)
