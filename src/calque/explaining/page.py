"""The report as a page: the sources beside the program, loops and assembly; pointing at a line shows
what became of it. In a notebook the same, with styles that hold for it alone."""

from __future__ import annotations

import html as escaping
from collections.abc import Iterable
from typing import Any

from calque.core.notebooks import file_name
from calque.explaining.equations import equation_rows

# Colours are shades of what is around, which a notebook has its own ideas of.
STYLE = """
.calque-report { font: 14px/1.5 system-ui, sans-serif; text-align: left; max-width: 100% }
.calque-report h1 { font-size: 1.3em; margin: 0 0 .4em } .calque-report h2 { font-size: 1em; margin: 1.2em 0 .3em }
.calque-report h3 { font-size: .9em; font-weight: normal; opacity: .75; margin: .6em 0 .2em }
.calque-report pre { font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace; background: rgba(128,128,128,.12); color: inherit;
  padding: .6em; margin: 0; overflow: auto; max-height: 40em; border: 0; border-radius: 4px; white-space: pre }
.calque-report .columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1em }
.calque-report .line { display: block; white-space: pre; min-width: max-content }
.calque-report .lit { background: rgba(255, 190, 0, .38) } .calque-report .dim { opacity: .6 }
.calque-report details > summary { cursor: pointer }
@media (max-width: 60rem) { .calque-report .columns { grid-template-columns: minmax(0, 1fr) } }
"""
PAGE = """
:root { color-scheme: light dark } body { margin: 2rem auto; max-width: 84rem; padding: 0 1rem; color: #222; background: #fff }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } }
"""
SCRIPT = """
for (const root of document.querySelectorAll(".calque-report:not([data-ready])")) {
  root.dataset.ready = "yes";
  const light = marked => {
    root.querySelectorAll(".lit").forEach(x => x.classList.remove("lit"));
    if (marked) root.querySelectorAll(marked.dataset.line.split(" ").map(n => `[data-line~="${n}"]`).join())
      .forEach(x => x.classList.add("lit"));
  };
  root.addEventListener("mouseover", e => light(e.target.closest("[data-line]")));
  root.addEventListener("mouseleave", () => light(null));
}
"""


def html(report: Any) -> str:
    """The whole page."""
    return whole(escaping.escape(f"calque: {report.name}"), fragment(report))


def whole(title: str, body: str) -> str:
    """A page of its own."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{PAGE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def fragment(report: Any) -> str:
    """What stands on the page, with its style and script: also what a notebook shows."""
    return (
        f'<div class="calque-report"><style>{STYLE}</style>{content(report)}</div>'
        f"<script>{SCRIPT}</script>"
    )


def content(report: Any) -> str:
    """The report itself."""
    text = escaping.escape
    parts = [f"<h1>{text(report.name)}</h1>"]
    parts.append(
        f'<div class="columns"><div><h2>Source</h2>{sources(report)}</div>'
        f"<div><h2>Program</h2>{program(report)}</div></div>"
    )
    for title, body in report.sections():
        if not title.startswith("Program") and title != report.code_title:
            parts.append(f"<h2>{text(title)}</h2><pre>{text(body)}</pre>")
    parts.append(
        f"<h2>{report.code_title}</h2><details"
        f" open><summary>loops</summary>{marked(report.loop_lines)}</details>"
    )
    parts.append(f"<details><summary>assembly</summary>{marked(report.assembly_parts)}</details>")
    return "\n".join(parts)


def sources(report: Any) -> str:
    """The source of every function that was traced, a span for each line."""
    links = report.links
    parts = []
    for s in links.functions:
        rows = [(links.mark(s.file, s.first + k), x) for k, x in enumerate(s.lines)]
        where = f"{file_name(s.file)}:{s.first}"
        parts.append(
            f'<h3 title="{escaping.escape(s.file)}">{escaping.escape(f"{s.name}, {where}")}</h3>'
            + marked(rows)
        )
    if links.left_out:
        parts.append(f"<h3>and {links.left_out} more functions</h3>")
    return "".join(parts) or "<pre>the source is not at hand</pre>"


def program(report: Any) -> str:
    """The equations, each linked with the line that made it."""
    rows = []
    for r in equation_rows(report.closed.jaxpr):
        indent = "  " * r.depth
        shown = "\n".join(indent + line for line in r.text.split("\n"))
        rows.append((report.links.of(r.source), shown, r.variable))
    return (
        "<pre>"
        + "".join(
            line(
                marks,
                shown,
                f'  <span class="dim"># {escaping.escape(name)}</span>' if name else "",
            )
            for marks, shown, name in rows
        )
        + "</pre>"
    )


def marked(rows: Iterable[tuple[set[str], str]]) -> str:
    """Rows of text, each with the lines of the source that it belongs to."""
    return "<pre>" + "".join(line(marks, text) for marks, text in rows) + "</pre>"


def line(marks: set[str], text: str, note: str = "") -> str:
    mark = f' data-line="{" ".join(sorted(marks))}"' if marks else ""
    return f'<span class="line"{mark}>{escaping.escape(text) or " "}{note}</span>'
