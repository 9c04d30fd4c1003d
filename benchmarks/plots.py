"""Plots as SVG, drawn by nothing but strings. A file of its own follows the reader's light or dark
setting; put into a page of the site it follows the palette chosen there."""

from __future__ import annotations

import math
from html import escape

WIDTH = 640
_LIGHT = (
    "--ink:#24292f;--rule:#d0d7de;--calque:#3f51b5;--jax:#c2410c;--numpy:#15803d;"
    "--torch:#a21caf;--compiled:#be123c;--numba:#a16207"
)
_DARK = (
    "--ink:#d8dee9;--rule:#444c56;--calque:#93a5ff;--jax:#fb923c;--numpy:#4ade80;"
    "--torch:#e879f9;--compiled:#fb7185;--numba:#facc15"
)
STYLE = f"""<style>
.plot {{ {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ .plot {{ {_DARK} }} }}
[data-md-color-scheme="default"] .plot {{ {_LIGHT} }}
[data-md-color-scheme="slate"] .plot {{ {_DARK} }}
.plot text {{ fill: var(--ink); font: 12px system-ui, sans-serif }}
.plot .rule {{ stroke: var(--rule); stroke-width: 1 }}
.plot .one {{ stroke: var(--ink); stroke-width: 1.5 }}
.plot .line {{ fill: none; stroke-width: 2 }}
</style>"""
DASHES = {"calque": "", "jax": "7 3", "numpy": "2 3", "torch": "9 3 2 3", "numba": "4 4"}


def svg(height: int, title: str, parts: list[str]) -> str:
    """A picture with its title, on lines without gaps, so that Markdown keeps it as it is."""
    head = (
        f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def segment(x1: float, y1: float, x2: float, y2: float, kind: str = "rule") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def short(value: float) -> str:
    """A power of ten, or a small number, as a label."""
    if 0.001 <= value < 10_000:
        return f"{value:g}"
    return f"1e{round(math.log10(value))}"


def size(value: float) -> str:
    """A size as a label."""
    return f"{value:,.0f}" if value < 1e5 else f"1e{math.log10(value):g}"


def ratio(value: float) -> str:
    """How many times, with two digits that count."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"


def time_label(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size * 0.999:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def decades(low: float, high: float) -> list[float]:
    """The powers of ten around an interval."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0**k for k in range(first, max(last, first + 1) + 1)]


def bars(title: str, groups: dict[str, dict[str, float]], note: str, peers: dict[str, str]) -> str:
    """Horizontal bars on a logarithmic scale, from 1: how many times as fast, by group and peer."""
    left, right, row = 150, 120, 18
    values = [v for bar in groups.values() for v in bar.values()]
    ticks = decades(min([1.0, *values]), max([1.0, *values]))
    span = math.log10(ticks[-1] / ticks[0])

    def x(value: float) -> float:
        return left + (WIDTH - left - right) * math.log10(value / ticks[0]) / span

    parts, y = [text(left, 16, note)], 34.0
    top = y
    for group, shown in groups.items():
        parts.append(text(left - 12, y + row * len(shown) / 2 + 4, group, "end"))
        for peer, value in shown.items():
            start, end = sorted((x(1.0), x(value)))
            parts.append(
                f'<rect x="{start:.1f}" y="{y + 2:.1f}" width="{max(end - start, 1):.1f}" '
                f'height="{row - 5}" rx="2" fill="var(--{peer})"><title>{escape(peers[peer])}: '
                f"{ratio(value)}</title></rect>"
            )
            words = f"{peers[peer]} {ratio(value)}"
            parts.append(text(x(max(value, 1.0)) + 5, y + row - 6, words))
            y += row
        y += 10
    rules = [segment(x(t), top - 6, x(t), y, "one" if t == 1 else "rule") for t in ticks]
    labels = [text(x(t), y + 16, short(t), "middle") for t in ticks]
    return svg(round(y + 26), title, rules + parts + labels)


def lines(
    title: str, series: dict[str, list[tuple[float, float]]], across: str, names: dict[str, str]
) -> str:
    """Seconds against sizes, both logarithmic, one line for each library."""
    left, right, top, height = 64, 110, 14, 300
    points = [p for line in series.values() for p in line]
    xs = sorted({p[0] for p in points})  # every size that was measured
    if len(xs) == 1:
        xs = [xs[0] / 2, *xs, xs[0] * 2]
    ys = decades(min(p[1] for p in points), max(p[1] for p in points))
    bottom = height - 44

    def x(value: float) -> float:
        return left + (WIDTH - left - right) * math.log10(value / xs[0]) / math.log10(
            xs[-1] / xs[0]
        )

    def y(value: float) -> float:
        return bottom - (bottom - top) * math.log10(value / ys[0]) / math.log10(ys[-1] / ys[0])

    parts = [segment(left, y(t), WIDTH - right, y(t)) for t in ys]
    parts += [text(left - 8, y(t) + 4, time_label(t), "end") for t in ys]
    parts += [segment(x(t), top, x(t), bottom) for t in xs]
    parts += [text(x(t), bottom + 18, size(t), "middle") for t in xs]
    parts.append(text((left + WIDTH - right) / 2, height - 6, across, "middle"))
    ends: list[float] = []
    for name, line in sorted(series.items(), key=lambda item: y(item[1][-1][1])):
        library = name.partition(" ")[0]
        way = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)
        dash = f' stroke-dasharray="{DASHES[library]}"' if DASHES.get(library) else ""
        if " " in name:  # another measure of the same library
            dash = ' stroke-dasharray="2 4"'
        parts.append(f'<polyline class="line" stroke="var(--{library})" points="{way}"{dash}/>')
        for a, b in line:
            parts.append(
                f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="var(--{library})">'
                f"<title>{escape(names[name])}, {a:g}: {time_label(float(f'{b:.3g}'))}</title>"
                "</circle>"
            )
        at = max([y(line[-1][1]) + 4, *(e + 14 for e in ends[-1:])])
        ends.append(at)
        parts.append(text(x(line[-1][0]) + 8, at, names[name]))
    return svg(height, title, parts)
