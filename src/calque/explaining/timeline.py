"""The steps of one call over time, a row for each thread, drawn to scale."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from calque.profiling.report import duration

WIDTH: Final = 1000.0
BAR: Final = 26.0
AXIS: Final = 18.0
LEAST: Final = 1.5  # the width of a bar that can still be seen
MOST: Final = 2000  # bars
_HUES: Final = (212, 160, 32, 320, 92, 262, 12, 186)


class Bar(NamedTuple):
    """One time that a step was done: what it is called, its key, on which row, when."""

    name: str
    key: str
    marks: frozenset[str]
    row: int
    begin: float
    end: float


def timeline(bars: Sequence[Bar], rows: Sequence[str]) -> str:
    """The drawing, in nanoseconds from the first bar to the last."""
    if not bars:
        return "<p>no compiled step has run</p>"
    start, end = min(b.begin for b in bars), max(b.end for b in bars)
    scale = WIDTH / max(end - start, 1.0)
    keys = {key: k for k, key in enumerate(dict.fromkeys(b.key for b in bars))}
    parts = [_axis(end - start, len(rows))]
    for k, name in enumerate(rows):
        parts.append(
            f'<text class="row" x="0" y="{AXIS + BAR * 2 * k + 12:.0f}">{html.escape(name)}</text>'
        )
    for b in bars[:MOST]:
        parts.append(_bar(b, (b.begin - start) * scale, (b.end - b.begin) * scale, keys[b.key]))
    height = AXIS + BAR * 2 * len(rows) + 4
    more = len(bars) - MOST
    note = f"<p>and {more:,} more that are not drawn</p>" if more > 0 else ""
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH:.0f} {height:.0f}" width="{WIDTH:.0f}">'
        f"{''.join(parts)}</svg>{note}"
    )


def _bar(b: Bar, x: float, width: float, colour: int) -> str:
    width = max(width, LEAST)
    y = AXIS + BAR * 2 * b.row + BAR * 0.75
    mark = f' data-line="{" ".join(sorted(b.marks))}"' if b.marks else ""
    about = html.escape(f"{b.name}: {duration((b.end - b.begin) / 1e9)}")
    letters = int(width / 6.7)
    shown = b.name if len(b.name) <= letters else b.name[: max(letters - 1, 0)] + "…"
    text = (
        f'<text x="{x + 3:.2f}" y="{y + BAR * 0.66:.1f}">{html.escape(shown)}</text>'
        if letters > 3
        else ""
    )
    return (
        f'<g class="bar" data-step="{b.key}"{mark}><title>{about}</title><rect x="{x:.2f}"'
        f' y="{y:.1f}" width="{width:.2f}" height="{BAR}" rx="2"'
        f' fill="hsl({_HUES[colour % len(_HUES)]} 55% 55%)" fill-opacity=".55"/>{text}</g>'
    )


def _axis(length: float, rows: int) -> str:
    """Marks of the time at round numbers."""
    step = _round_step(length)
    out, at = [], 0.0
    while at <= length:
        x = at / length * WIDTH
        out.append(
            f'<path class="tick" d="M{x:.1f} {AXIS - 3:.0f}V{AXIS + BAR * 2 * rows:.0f}"/>'
            f'<text class="tick" x="{x + 2:.1f}" y="10">{duration(at / 1e9) if at else "0"}</text>'
        )
        at += step
    return "".join(out)


def _round_step(length: float) -> float:
    """About eight marks: 1, 2 or 5 times a power of ten."""
    size = 1.0
    while True:
        for factor in (1, 2, 5):
            if length / (size * factor) <= 8:
                return size * factor
        size *= 10


def rows_of(threads: Iterable[int], main: int) -> dict[int, int]:
    """A row for each thread, that of the call first."""
    order = dict.fromkeys([main, *threads])
    return {thread: k for k, thread in enumerate(order)}
