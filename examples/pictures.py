"""Pictures of the examples: lines, points and fields over two axes, written as SVG, which browsers
and notebooks show. Nothing has to be installed for it."""

import base64
import html
import pathlib
import struct
import zlib

import numpy as np

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 440, 62, 36, 20, 48
COLOURS = ("#3b6fb6", "#d1603d", "#3f9b6c", "#8a5fb0", "#b8902c", "#5a6472")
OVER_FIELDS = ("#111111", "#ffd23f", "#3fd68c")  # seen on all of the colours below
STOPS = np.array([[13, 42, 99], [74, 144, 196], [247, 247, 247], [224, 130, 84], [127, 30, 20]])


class Picture:
    """Axes with a title; `square` makes a unit as long on both axes.

    picture = Picture("tanh", "x", "y")
    picture.line(x, y, "tanh")
    picture.save("tanh.svg")
    """

    def __init__(self, title: str, x: str = "", y: str = "", square: bool = False) -> None:
        self.title, self.names, self.square = title, (x, y), square
        self.fields: list[tuple[bytes, np.ndarray]] = []
        self.curves: list[tuple[np.ndarray, str, bool]] = []

    def line(self, x, y, label: str = "") -> None:
        self.add(x, y, label, joined=True)

    def points(self, x, y, label: str = "") -> None:
        self.add(x, y, label, joined=False)

    def add(self, x, y, label: str, joined: bool) -> None:
        points = np.stack([np.asarray(x, float).ravel(), np.asarray(y, float).ravel()], 1)
        self.curves.append((points[np.isfinite(points).all(1)], label, joined))

    def field(self, values, x=(0.0, 1.0), y=(0.0, 1.0)) -> None:
        """Numbers as colours, from the least (blue) to the greatest (red); row 0 is at the
        bottom."""
        values = np.asarray(values, float)
        spread = max(np.ptp(values), 1e-30)
        place = (values[::-1] - values.min()) / spread * (len(STOPS) - 1)
        below = np.minimum(place.astype(int), len(STOPS) - 2)
        share = (place - below)[..., None]
        colours = STOPS[below] * (1 - share) + STOPS[below + 1] * share
        self.fields.append((png(colours.round().astype(np.uint8)), np.array([x, y], float).T))

    def ranges(self) -> np.ndarray:
        """The least and the greatest of x and y, with some air around curves."""
        corners = [c for _, c in self.fields] or [p for p, _, _ in self.curves if len(p)]
        every = np.concatenate(corners or [np.array([[0.0, 0.0], [1.0, 1.0]])])
        least, greatest = every.min(0), every.max(0)
        if not self.fields:
            air = np.where(greatest > least, (greatest - least) * 0.05, 0.5)
            least, greatest = least - air, greatest + air
        if self.square:
            sizes = np.array([WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM])
            unit = ((greatest - least) / sizes).max()
            extra = (unit * sizes - (greatest - least)) / 2
            least, greatest = least - extra, greatest + extra
        return np.stack([least, greatest])

    def svg(self) -> str:
        least, greatest = self.ranges()
        scale = np.array([WIDTH - LEFT - RIGHT, TOP + BOTTOM - HEIGHT]) / (greatest - least)
        start = np.array([LEFT, HEIGHT - BOTTOM]) - least * scale
        middle = (LEFT + WIDTH - RIGHT) // 2
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            f' width="{WIDTH}" font-family="sans-serif" font-size="13" fill="#222">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<clipPath id="frame"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}"'
            f' height="{HEIGHT - TOP - BOTTOM}"/></clipPath>',
            text(middle, 22, self.title, size=15),
            text(middle, HEIGHT - 8, self.names[0]),
            text(16, (TOP + HEIGHT - BOTTOM) // 2, self.names[1], turned=True),
        ]
        for image, corners in self.fields:
            (x0, y1), (x1, y0) = corners * scale + start
            out.append(
                f'<image x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}"'
                ' preserveAspectRatio="none"'
                f' href="data:image/png;base64,{base64.b64encode(image).decode()}"/>'
            )
        for axis in (0, 1):
            out += ticks(axis, least[axis], greatest[axis], scale[axis], start[axis])
        out.append('<g clip-path="url(#frame)">')
        colours = OVER_FIELDS if self.fields else COLOURS
        for i, (points, _, joined) in enumerate(self.curves):
            out.append(curve(points * scale + start, colours[i % len(colours)], joined))
        out.append("</g>")
        labels = [(i, label) for i, (_, label, _) in enumerate(self.curves) if label]
        for row, (i, label) in enumerate(labels):
            at, colour = TOP + 18 + 18 * row, colours[i % len(colours)]
            out.append(f'<circle cx="{LEFT + 14}" cy="{at - 4}" r="4" fill="{colour}"/>')
            out.append(text(LEFT + 24, at, label, anchor="start"))
        return "\n".join([*out, "</svg>"])

    _repr_svg_ = svg  # what notebooks show

    def save(self, path: str) -> None:
        pathlib.Path(path).write_text(self.svg())


def text(x, y, words: str, anchor: str = "middle", size: int = 13, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x} {y})"' if turned else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}"{turn}>'
        f"{html.escape(words)}</text>"
    )


def curve(points: np.ndarray, colour: str, joined: bool) -> str:
    places = [f"{x:.1f} {y:.1f}" for x, y in points]
    if joined:
        joints = ",".join(places)
        return f'<polyline points="{joints}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
    dots = "".join(f"M{place}h0" for place in places)  # lines of no length with round ends
    return (
        f'<path d="{dots}" stroke="{colour}" stroke-width="5" stroke-linecap="round"'
        ' stroke-opacity="0.7"/>'
    )


def ticks(axis: int, least: float, greatest: float, scale: float, start: float) -> list[str]:
    """Round numbers beside an axis, with a pale line through the picture for each."""
    step = 10.0 ** np.floor(np.log10(greatest - least))
    step *= min((f for f in (0.1, 0.2, 0.5, 1) if (greatest - least) / (f * step) <= 7), default=2)
    out = []
    for i in range(int(np.ceil(least / step)), int(np.floor(greatest / step)) + 1):
        at, label = i * step * scale + start, f"{i * step:.6g}"
        if axis == 0:
            line = f"M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"
            out.append(text(at, HEIGHT - BOTTOM + 17, label))
        else:
            line = f"M{LEFT} {at:.1f}H{WIDTH - RIGHT}"
            out.append(text(LEFT - 6, at + 4, label, anchor="end"))
        out.append(f'<path d="{line}" stroke="#000" stroke-opacity="0.12"/>')
    return out


def png(pixels: np.ndarray) -> bytes:
    """Pixels (rows, columns, 3) of bytes as a PNG file."""
    rows, columns, _ = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], 1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    content = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, data in content:
        check = zlib.crc32(kind + data)
        parts.append(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check))
    return b"".join(parts)
