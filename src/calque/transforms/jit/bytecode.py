"""What code loads and stores, read from its bytecode: the names, in the order of the
instructions."""

from __future__ import annotations

import opcode
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.lazy import LazyModule
from calque.machine.caches import memo

dis = LazyModule("dis")

OPERATIONS: Final = {
    "LOAD_ATTR": "LOAD_ATTR",
    "LOAD_METHOD": "LOAD_ATTR",
    "STORE_ATTR": "STORE_ATTR",
    "DELETE_ATTR": "STORE_ATTR",
    "STORE_SUBSCR": "STORE_SUBSCR",
    "DELETE_SUBSCR": "STORE_SUBSCR",
    "STORE_GLOBAL": "STORE",
    "DELETE_GLOBAL": "STORE",
    "STORE_DEREF": "STORE",
    "LOAD_GLOBAL": "LOAD_GLOBAL",
    "LOAD_NAME": "LOAD_GLOBAL",
    "LOAD_DEREF": "LOAD",
    "LOAD_CLASSDEREF": "LOAD",
    "LOAD_FROM_DICT_OR_DEREF": "LOAD",  # as it is called from 3.12 on
    "LOAD_FROM_DICT_OR_GLOBALS": "LOAD_GLOBAL",
}
_NO_STEPS: Final = frozenset(
    ("COPY", "PRECALL", "CACHE", "PUSH_NULL", "EXTENDED_ARG", "NOP", "RESUME", "NOT_TAKEN")
)
_WITH_FLAG: Final = ("LOAD_GLOBAL",) if sys.version_info < (3, 12) else ("LOAD_GLOBAL", "LOAD_ATTR")
_WRITES_OUTSIDE: Final = ("STORE", "STORE_ATTR", "STORE_SUBSCR")
_EXTENDED_ARG: Final = opcode.opmap["EXTENDED_ARG"]

Step = tuple[str, Any]
_EMPTY: Final[Step] = ("", None)
_Read = Callable[["_Names", int], Sequence[Step]]


class _Names:
    """The names that the arguments of instructions stand for."""

    __slots__ = ("cells", "globals", "variables")

    def __init__(self, code: types.CodeType) -> None:
        own, self.globals = code.co_varnames, code.co_names
        self.cells = {*code.co_cellvars, *code.co_freevars}
        others = [c for c in code.co_cellvars if c not in own]
        self.variables = (*own, *others, *code.co_freevars)

    def fast(self, place: int) -> Step:
        name = self.variables[place]
        return _EMPTY if name in self.cells else ("LOAD", name)  # 3.13: a cell, for a function


def _reader(name: str) -> _Read | None:
    """The steps of an instruction from its argument; None for one that is no step."""
    if name in _NO_STEPS:
        return None
    if name.startswith("LOAD_FAST"):
        if name.count("LOAD_FAST") == 2:
            return lambda names, arg: [names.fast(arg >> 4), names.fast(arg & 15)]
        return lambda names, arg: [names.fast(arg)]
    if name == "STORE_FAST_LOAD_FAST":
        return lambda names, arg: [_EMPTY, names.fast(arg & 15)]
    kind = OPERATIONS.get(name)
    if kind is None:
        return lambda names, arg: (_EMPTY,)
    if kind == "STORE_SUBSCR":
        return lambda names, arg: [("STORE_SUBSCR", None)]
    if name.endswith("DEREF"):
        return lambda names, arg: [(kind, names.variables[arg])]
    shift = int(name in _WITH_FLAG)
    return lambda names, arg: [(kind, names.globals[arg >> shift])]


_READERS: Final = [_reader(opcode.opname[op]) for op in range(256)]
_OUTSIDE: Final = bytes(
    [
        op
        for name, op in opcode.opmap.items()
        if OPERATIONS.get(name) in _WRITES_OUTSIDE and op < 256
    ]
)


@memo("loads and stores of code", 4096)
def steps_of(code: types.CodeType) -> tuple[Step, ...]:
    """The loads and stores of names, in order; anything else is an empty step."""
    out: list[Step] = []
    names, raw, high = _Names(code), code.co_code, 0
    for op, arg in zip(raw[::2], raw[1::2]):
        if op == _EXTENDED_ARG:
            high = (high | arg) << 8
            continue
        read = _READERS[op]
        if read is not None:
            out += read(names, high | arg)
        high = 0
    return tuple(out)


def changed_items(steps: Sequence[Step]) -> set[str]:
    """Names whose items are assigned: `table[key] = value`, with a key that is a constant or a
    name."""
    out = set()
    for k, (op, _) in enumerate(steps):
        if op == "STORE_SUBSCR":
            out |= {
                str(name) for before, name in steps[max(k - 3, 0) : k] if before.startswith("LOAD")
            }
    return out


@memo("names that code assigns outside of itself", 4096)
def assigned_outside(code: types.CodeType) -> frozenset[str]:
    """The globals and the variables of functions around it that code, or code nested in it,
    assigns, or whose attributes or items it assigns."""
    names = _assigned(code) if set(code.co_code[::2]).intersection(_OUTSIDE) else set()
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            names |= assigned_outside(c)
    return frozenset(names.difference(code.co_cellvars))


def _assigned(code: types.CodeType) -> set[str]:
    names: set[str] = set()
    read: dict[Any, str] = {}  # where an expression begins -> the name that it begins with
    for i in dis.get_instructions(code):
        op = OPERATIONS.get(i.opname, "")
        begin = i.positions and (i.positions.lineno, i.positions.col_offset)
        if op == "STORE":
            names.add(i.argval)
        elif op in ("LOAD", "LOAD_GLOBAL") and begin:
            read[begin] = i.argval
        elif op in ("STORE_ATTR", "STORE_SUBSCR") and begin in read:
            names.add(read[begin])
    return names
