"""Which lines of the user's source became which loops: pointing at one of them on the page shows
the others. A line is a text, `FILE:LINE` with the number of a file that is shown."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from calque.core.jaxprs import Jaxpr, all_equations
from calque.core.source import Source, is_internal
from calque.transforms.jit.captures import functions_of

NAME: Final = re.compile(
    r"\b(?:[a-z]+\.)?((?:t|out)\d+)\b"
)  # arrays, and the sums that end in them
KERNEL: Final = re.compile(r"^kernel (\w+):", re.MULTILINE)
MOST_SHOWN: Final = 20  # functions whose source is shown


class Shown(NamedTuple):
    """The source of one function: from which line on, and its lines."""

    name: str
    file: str
    first: int
    lines: tuple[str, ...]

    def holds(self, other: Shown) -> bool:
        """Whether the other function stands inside this one."""
        inside = self.first <= other.first < self.first + len(self.lines)
        return self.file == other.file and inside


class Links:
    """The functions that were traced, and their lines."""

    def __init__(self, fun: Any, jaxpr: Jaxpr) -> None:
        codes: dict[types.CodeType, None] = {}
        outermost = code_of(fun)
        if outermost is not None:
            codes[outermost] = None
        for source in sources(jaxpr):
            codes.setdefault(source.code)
        for f in functions_of(fun):  # helpers whose equations are all those of other functions
            if outermost is not None and f.__code__.co_filename == outermost.co_filename:
                codes.setdefault(f.__code__)
        found = [s for code in codes if (s := shown(code)) is not None]
        self.functions = [
            s for s in found if not any(o is not s and o != s and o.holds(s) for o in found)
        ]
        self.functions = list(dict.fromkeys(self.functions))
        self.left_out = max(len(self.functions) - MOST_SHOWN, 0)
        del self.functions[MOST_SHOWN:]
        self.files = {f: k for k, f in enumerate(dict.fromkeys(s.file for s in self.functions))}

    def mark(self, file: str, line: int) -> set[str]:
        """The line of a file, if that is shown."""
        return {f"{self.files[file]}:{line}"} if file in self.files else set()

    def of(self, source: Any) -> set[str]:
        """The line of an equation, if its file is shown."""
        return set() if source is None else self.mark(source.file, source.line)

    def of_arrays(self, executable: Any) -> dict[str, set[str]]:
        """Name of an array in the loops -> the lines that it was computed by, those of what was
        inlined among them."""
        view = executable.planner.view
        out: dict[str, set[str]] = {}
        for n, home in view.items():
            lines, todo, seen = set[str](), [n], set()
            while todo:
                x = todo.pop()
                lines |= self.of(x.source) if x.op not in ("input", "const", "literal") else set()
                new = [a for a in x.args if a not in view and id(a) not in seen]
                seen |= {id(a) for a in new}
                todo += new
            out.setdefault(home.buf.name, set()).update(lines)
        return out


def sources(jaxpr: Jaxpr) -> Iterator[Source]:
    """Where the equations of a program, and of those in it, were made."""
    for e in all_equations(jaxpr):
        if e.source is not None and not is_internal(e.source.code):
            yield e.source


def code_of(fun: Any) -> types.CodeType | None:
    """The code of a function of the user, under what is wrapped around it."""
    while (inner := getattr(fun, "__wrapped__", None) or getattr(fun, "func", None)) is not None:
        fun = inner
    fun = getattr(fun, "__func__", fun)
    code = getattr(fun, "__code__", None)
    if code is None:
        code = getattr(vars(type(fun)).get("__call__"), "__code__", None)
    return None if code is None or is_internal(code) else code


def shown(code: types.CodeType) -> Shown | None:
    """The source of a function; None where it is not at hand."""
    try:
        if code.co_name == "<module>":
            return None
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, IndexError):
        return None
    text = tuple([x.rstrip("\n") for x in lines])
    name = getattr(code, "co_qualname", code.co_name).removeprefix("<module>.")
    return Shown(name.rpartition("<locals>.")[2], code.co_filename, max(first, 1), text)


def loop_lines(text: str, arrays: dict[str, set[str]]) -> list[tuple[set[str], str]]:
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


def lines_of(names: Iterable[str], arrays: dict[str, set[str]]) -> set[str]:
    return set().union(*[arrays.get(name, set()) for name in names])


def by_kernel(text: str, loops: Sequence[tuple[set[str], str]]) -> list[tuple[set[str], str]]:
    """The machine code of each kernel with the lines of its loops."""
    found = {m[1]: lines for lines, row in loops if (m := KERNEL.match(row))}
    starts = [m.start() for m in KERNEL.finditer(text)]
    parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])]
    return [(found.get(KERNEL.match(p)[1], set()), p) for p in parts]  # type: ignore[index]
