"""How notebooks show arrays and programs: made when one asks, from text and numbers alone."""

from __future__ import annotations

import html
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

# Shades that are readable on light and on dark ground.
_COLOURS: Final = {
    "type": "#3a8f6f",
    "name": "#3f7fd1",
    "word": "#b0609c",
    "bad": "#d0453b",
    "dim": "#8a8a8a",
}
_TOKEN: Final = re.compile(
    r"(?P<type>(?<=:)\w+\[[^\]]*\](?:\{[^}]*\})?)"
    r"|(?P<word>\b(?:lambda|let|in)\b)"
    r"|(?P<name>(?<==\s)[A-Za-z_]\w*)"
)
LARGEST: Final = 100_000_000  # elements of an array whose numbers are summed up


def spans(text: str, pattern: re.Pattern[str] = _TOKEN) -> str:
    """A text with its tokens coloured."""
    out, at = [], 0
    for m in pattern.finditer(text):
        out += [html.escape(text[at : m.start()]), coloured(m[0], m.lastgroup or "dim")]
        at = m.end()
    return "".join([*out, html.escape(text[at:])])


def coloured(text: str, kind: str) -> str:
    """A text in the colour of its kind."""
    return f'<span style="color:{_COLOURS[kind]}">{html.escape(text)}</span>'


def preformatted(content: str) -> str:
    """Lines as they are, in the notebook's own colours."""
    return (
        '<pre style="font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.9em;'
        "background:none;color:inherit;margin:0;line-height:1.4;overflow:auto;white-space:pre"
        f'">{content}</pre>'
    )


def program_html(text: str) -> str:
    """A program in its printed form."""
    return preformatted(spans(text))


def array_html(text: str, head: Sequence[str], values: np.ndarray | None) -> str:
    """An array: its type and place, what its numbers are like, and some of them."""
    facts = [coloured(head[0], "type"), *[coloured(x, "dim") for x in head[1:]]]
    if values is not None and values.size > 1 and values.size <= LARGEST:
        facts += summary(values)
    return f"<div>{' &nbsp;'.join(facts)}</div>{preformatted(html.escape(text))}"


def summary(values: np.ndarray) -> list[str]:
    """The least, the greatest and the mean number; how many are none."""
    if values.dtype.kind not in "fiu":
        return []
    wide = values.astype(np.float64)
    finite = np.isfinite(wide)
    out = []
    if finite.any():
        good = wide[finite]
        out = [coloured(f"{good.min():.4g} … {good.max():.4g}, mean {good.mean():.4g}", "dim")]
    for name, count in (("nan", np.isnan(wide).sum()), ("inf", np.isinf(wide).sum())):
        if count:
            out.append(coloured(f"{count:,} {name}", "bad"))
    return out


def table_html(head: Iterable[str], columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines of text, then a table."""
    cell = '<td style="text-align:left;white-space:nowrap;vertical-align:top">'
    titles = "".join(f'<th style="text-align:left">{html.escape(c)}</th>' for c in columns)
    body = "".join(
        "<tr>" + "".join(f"{cell}{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows
    )
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in head)
    return (
        f'{lines}<div style="overflow:auto"><table style="font-size:.9em">'
        f"<tr>{titles}</tr>{body}</table></div>"
    )


def file_name(file: str) -> str:
    """Of a file, its name; of a cell of a notebook, its number."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return " ".join(named) if named else os.path.basename(file)
