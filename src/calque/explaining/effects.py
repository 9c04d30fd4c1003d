"""Side effects of a function that happen while it is traced, and only then: found in its bytecode."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from calque.transforms.captures import MUTATING, is_library


class SideEffect(NamedTuple):
    """What is done, in the words of the program, and where."""

    what: str
    line: int | None

    def __str__(self) -> str:
        return self.what + (f" (line {self.line})" if self.line else "")


def side_effects(fun: Callable[..., Any]) -> list[SideEffect]:
    """The prints, changes of captured containers, and assignments to globals and attributes in a function of the user."""
    while (inner := getattr(fun, "__wrapped__", None) or getattr(fun, "func", None)) is not None:
        fun = inner
    f = getattr(fun, "__func__", fun)
    if not isinstance(f, types.FunctionType) or is_library(f):
        return []
    return list(dict.fromkeys(of_code(f.__code__)))


def of_code(code: types.CodeType) -> Iterator[SideEffect]:
    line: int | None = code.co_firstlineno
    captured = set(code.co_freevars)
    previous: Any = None
    for i in dis.get_instructions(code):
        line = i.starts_line if type(i.starts_line) is int else getattr(i.positions, "lineno", line) or line
        name = i.argval
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in ("print", "input", "open"):
            yield SideEffect(f"{name}()", line)
        elif i.opname in ("LOAD_METHOD", "LOAD_ATTR") and name in MUTATING and held_outside(previous, captured):
            yield SideEffect(f"{previous.argval}.{name}()", line)
        elif i.opname == "STORE_GLOBAL":
            yield SideEffect(f"the global {name} is assigned", line)
        elif i.opname == "STORE_DEREF" and name in captured:
            yield SideEffect(f"the variable {name} of an enclosing function is assigned", line)
        elif i.opname == "STORE_ATTR":
            yield SideEffect(f"the attribute {name} is assigned", line)
        if i.opname not in ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "COPY"):
            previous = i
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from of_code(c)


def held_outside(loaded: Any, captured: set[str]) -> bool:
    """Was an object loaded that lives outside of the function?"""
    if loaded is None:
        return False
    return loaded.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR") or (
        loaded.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and loaded.argval in captured
    )
