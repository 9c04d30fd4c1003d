"""The report as a page: the user's source beside program, loops and assembly; pointing at a line
shows what became of it."""

from __future__ import annotations

import html as escaping
import inspect
from collections.abc import Iterable
from typing import Any

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin: 1.5rem 0 .3rem }
pre { font: 12.5px/1.45 ui-monospace, monospace; background: #f6f6f4; padding: .7rem; margin: 0; overflow: auto; border-radius: 4px }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem } .line { display: block; white-space: pre }
.lit { background: #ffe9a8 } details > summary { cursor: pointer }
@media (max-width: 60rem) { .columns { grid-template-columns: 1fr } }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } pre { background: #262626 } .lit { background: #5a4a10 } }
"""
SCRIPT = """
for (const e of document.querySelectorAll("[data-line]")) {
  const same = () => document.querySelectorAll(e.dataset.line.split(" ").map(n => `[data-line~="${n}"]`).join());
  e.addEventListener("mouseenter", () => same().forEach(x => x.classList.add("lit")));
  e.addEventListener("mouseleave", () => same().forEach(x => x.classList.remove("lit")));
}
"""


def html(report: Any) -> str:
    """The whole page."""
    title = escaping.escape(f"calque: {report.name}")
    return (
        '<!doctype html><html lang="en"><head><meta'
        f' charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
        f"<body>{fragment(report)}<script>{SCRIPT}</script></body></html>\n"
    )


def fragment(report: Any) -> str:
    """What stands on the page."""
    text = escaping.escape
    parts = [f"<h1>{text(report.name)}</h1>"]
    parts.append(
        "<div"
        f' class="columns"><div><h2>Source</h2>{source(report)}</div><div><h2>Program</h2>{program(report)}</div></div>'
    )
    for title, body in report.sections():
        if not title.startswith(("Program", "Machine code")):
            parts.append(f"<h2>{text(title)}</h2><pre>{text(body)}</pre>")
    kernels = f"{report.kernels} kernel{'s' * (report.kernels != 1)}"
    parts.append(
        f"<h2>Machine code: {kernels}</h2><details"
        f" open><summary>loops</summary>{marked(report.loop_lines)}</details>"
    )
    parts.append(f"<details><summary>assembly</summary>{marked(report.assembly_parts)}</details>")
    return "\n".join(parts)


def source(report: Any) -> str:
    """The user's source, a span for each line."""
    fun = inspect.unwrap(report.fun)
    try:
        found, first = inspect.getsourcelines(fun)
    except (OSError, TypeError):
        return "<pre>the source is not at hand</pre>"
    return marked([({first + i}, x.rstrip("\n")) for i, x in enumerate(found)])


def program(report: Any) -> str:
    """The equations, each linked with the line that made it."""
    rows = []
    for e, shown in zip(report.closed.jaxpr.eqns, equations(report)):
        rows.append((report.links.of(e.source), shown))
    return marked(rows)


def equations(report: Any) -> list[str]:
    """One line of text for each equation: its primitive, the types of its operands and results."""
    out = []
    for e in report.closed.jaxpr.eqns:
        made = ", ".join(v.aval.str_short() for v in e.outvars)
        read = ", ".join(a.aval.str_short() for a in e.invars)
        out.append(f"{made} = {e.primitive.name}({read})")
    return out


def marked(rows: Iterable[tuple[set[int], str]]) -> str:
    """Rows of text, each with the lines of the source that it belongs to."""
    return "<pre>" + "".join(line(numbers, text) for numbers, text in rows) + "</pre>"


def line(numbers: set[int], text: str) -> str:
    mark = f' data-line="{" ".join(map(str, sorted(numbers)))}"' if numbers else ""
    return f'<span class="line"{mark}>{escaping.escape(text) or " "}</span>'
