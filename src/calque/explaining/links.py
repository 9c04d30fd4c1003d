"""Which lines of the user's source became which loops: hovering over one of them on the page shows
the others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

NAME: Final = re.compile(
    r"\b(?:[a-z]+\.)?((?:t|out)\d+)\b"
)  # arrays, and the sums that end in them
KERNEL: Final = re.compile(r"^kernel (\w+):", re.MULTILINE)


class Links:
    """Lines of the file of one function."""

    def __init__(self, fun: Any) -> None:
        try:
            self.file = inspect.getsourcefile(inspect.unwrap(fun))
        except TypeError:
            self.file = None

    def of(self, source: Any) -> set[int]:
        """The line of an equation, if it stands in the function's file."""
        return {source.line} if source is not None and self.file in (None, source.file) else set()

    def of_arrays(self, executable: Any) -> dict[str, set[int]]:
        """Name of an array in the loops -> the lines that it was computed by, those of what was
        inlined among them."""
        view = executable.planner.view
        out: dict[str, set[int]] = {}
        for n, home in view.items():
            lines, todo, seen = set[int](), [n], set()
            while todo:
                x = todo.pop()
                lines |= self.of(x.source) if x.op not in ("input", "const", "literal") else set()
                new = [a for a in x.args if a not in view and id(a) not in seen]
                seen |= {id(a) for a in new}
                todo += new
            out.setdefault(home.buf.name, set()).update(lines)
        return out


def loop_lines(text: str, arrays: dict[str, set[int]]) -> list[tuple[set[int], str]]:
    """Each line of the loops with the source lines of what it computes; the head of a kernel has
    those of all of it."""
    rows = []
    for row in text.splitlines():
        left = row.partition(" = ")[0] if " = " in row else ""
        rows.append((lines_of(NAME.findall(left), arrays), row))
    head = None
    for k, (own, row) in enumerate(rows):
        if row.startswith(("kernel ", "driver:")):
            head = k if row.startswith("kernel ") else None
        elif head is not None:
            rows[head] = (rows[head][0] | own, rows[head][1])
    return rows


def lines_of(names: Iterable[str], arrays: dict[str, set[int]]) -> set[int]:
    return set().union(*[arrays.get(name, set()) for name in names])


def by_kernel(text: str, loops: Sequence[tuple[set[int], str]]) -> list[tuple[set[int], str]]:
    """The machine code of each kernel with the lines of its loops."""
    found = {m[1]: lines for lines, row in loops if (m := KERNEL.match(row))}
    starts = [m.start() for m in KERNEL.finditer(text)]
    parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])]
    return [(found.get(KERNEL.match(p)[1], set()), p) for p in parts]  # type: ignore[index]
