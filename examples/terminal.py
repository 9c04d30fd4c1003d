"""What the examples share: their options, a line that shows how far they are, and the figures that
they end with."""

import argparse
import sys
import typing
from collections.abc import Iterator


class Options(typing.NamedTuple):
    small: bool
    picture: str


def options(description: str | None, picture: str) -> Options:
    """The options of an example, from the command line: `--small`, `--picture FILE`."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n\n")[0])
    parser.add_argument("--small", action="store_true", help="a short run, as the tests make it")
    parser.add_argument("--picture", default=picture, metavar="FILE", help=f"not {picture}")
    given = parser.parse_args()
    return Options(given.small, given.picture)


class Progress:
    """Counts through steps. On a terminal it redraws one line, elsewhere it writes nothing.

    for step in (bar := Progress(100, "training")):
        ...
        bar.note = f"loss {loss:.3f}"
    """

    WIDTH = 30

    def __init__(self, steps: int, doing: str) -> None:
        self.steps, self.doing, self.note = steps, doing, ""
        self.shown = sys.stdout.isatty()

    def __iter__(self) -> Iterator[int]:
        for step in range(self.steps):
            yield step
            # At most a hundred times: writing must not slow the work down.
            if self.shown and (step + 1) * 100 // self.steps > step * 100 // self.steps:
                self.draw(step + 1)
        if self.shown:
            print()

    def draw(self, done: int) -> None:
        bar = ("#" * (self.WIDTH * done // self.steps)).ljust(self.WIDTH, ".")
        # \r goes back to the start of the line, \x1b[K wipes what is left of the line before
        print(f"\r{self.doing} [{bar}] {done}/{self.steps} {self.note}\x1b[K", end="", flush=True)


def report(picture: str, **figures: object) -> None:
    """Print what came out, one figure a line, and where the picture is."""
    for name, value in figures.items():
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        print(f"{name.replace('_', ' ')}: {text}")
    print(f"picture: {picture}")
