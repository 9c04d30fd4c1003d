"""Side effects of a function that happen while it is traced, and only then: found in its
bytecode."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from calque.core.notebooks import file_name
from calque.transforms.jit.captures import MUTATING, functions_of, is_library

DONE: Final = {"STORE": "assigned", "DELET": "deleted"}


class SideEffect(NamedTuple):
    """What is done, in the words of the program, and where."""

    what: str
    line: int | None
    helper: str = ""  # the function that does it, where it is not the outermost
    file: str = ""

    def __str__(self) -> str:
        if self.helper:
            return f"{self.what} in {self.helper} ({file_name(self.file)}:{self.line})"
        return self.what + (f" (line {self.line})" if self.line else "")


def side_effects(fun: Callable[..., Any]) -> list[SideEffect]:
    """The prints, changes of captured containers, and assignments to globals and attributes in a
    function of the user, and in those functions of the user that it calls by name."""
    while (inner := getattr(fun, "__wrapped__", None) or getattr(fun, "func", None)) is not None:
        fun = inner
    f = getattr(fun, "__func__", fun)
    if not isinstance(f, types.FunctionType) or is_library(f):
        return []
    found = dict.fromkeys(of_code(f.__code__))
    for helper in functions_of(fun):
        code = helper.__code__
        if code is not f.__code__ and not is_library(helper):
            for e in of_code(code):
                found.setdefault(e._replace(helper=code.co_name, file=code.co_filename))
    return list(found)


def of_code(code: types.CodeType) -> Iterator[SideEffect]:
    line: int | None = code.co_firstlineno
    captured = set(code.co_freevars)
    previous: Any = None
    done: list[Any] = []
    for i in dis.get_instructions(code):
        line = (
            i.starts_line
            if type(i.starts_line) is int
            else getattr(i.positions, "lineno", line) or line
        )
        name = i.argval
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in ("print", "input", "open"):
            yield SideEffect(f"{name}()", line)
        elif (
            i.opname in ("LOAD_METHOD", "LOAD_ATTR")
            and (name in MUTATING or name == "write")
            and held_outside(previous, captured)
        ):
            yield SideEffect(f"{previous.argval}.{name}()", line)
        elif i.opname == "STORE_GLOBAL":
            yield SideEffect(f"the global {name} is assigned", line)
        elif i.opname == "STORE_DEREF" and name in captured:
            yield SideEffect(f"the variable {name} of an enclosing function is assigned", line)
        elif i.opname in ("STORE_ATTR", "DELETE_ATTR"):
            yield SideEffect(f"the attribute {name} is {DONE[i.opname[:5]]}", line)
        elif i.opname in ("STORE_SUBSCR", "DELETE_SUBSCR") and held_outside(
            container := container_of(done), captured
        ):
            yield SideEffect(f"an item of {container.argval} is {DONE[i.opname[:5]]}", line)
        if i.opname not in ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "COPY", "SWAP"):
            previous = i
            done.append(i)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from of_code(c)


def container_of(done: Sequence[Any]) -> Any:
    """What `x[key]`, with a key that is a constant or a name, is an item of, given the instructions
    so far; also in `x[key] += 1`."""
    where = next((k for k in range(len(done) - 1, -1, -1) if _takes_an_item(done[k])), None)
    if where is not None and done[-1].opname == "BINARY_OP" and done[-1].argrepr.endswith("="):
        done = done[:where]
    simple = len(done) >= 2 and done[-1].opname in (
        "LOAD_CONST",
        "LOAD_SMALL_INT",
        "LOAD_FAST",
        "LOAD_FAST_BORROW",
        "LOAD_GLOBAL",
        "LOAD_DEREF",
        "LOAD_NAME",
    )
    return done[-2] if simple else None


def _takes_an_item(i: Any) -> bool:
    """Whether an instruction is `x[key]`, an operator like others from 3.14 on."""
    return i.opname == "BINARY_SUBSCR" or (i.opname == "BINARY_OP" and i.argrepr == "[]")


def held_outside(loaded: Any, captured: set[str]) -> bool:
    """Whether an object was loaded that lives outside of the function."""
    if loaded is None:
        return False
    return loaded.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR") or (
        loaded.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
        and loaded.argval in captured
    )
