"""Finished programs as text, so that what traces the same program again plans nothing: this process
from memory, another one from disk.

The key is the simplified program as bytes: every primitive, parameter, type and literal, with what
else decides the words (options, threads, processor, the compiler's own files). Arrays are not part
of it, as no word depends on their elements, nor are numbers that stand in words of their own: a
learning rate that has changed is put in its place. What a program calls stands there by name:
kernels, the machine's routines, functions of LAPACK. One that calls Python, or whose parameters
hold objects that bytes cannot tell, is planned in every process.
"""

from __future__ import annotations

import dataclasses
import enum
import marshal
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.arrays import to_numpy
from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import Options
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, subjaxprs
from calque.core.primitives import Primitive
from calque.machine.caches import Table
from calque.machine.code import diskcache, target
from calque.machine.code.digest import digest, hexdigest
from calque.machine.driver.program import Program
from calque.machine.driver.stored import as_data, from_data
from calque.machine.lang.unit import state_of_files
from calque.machine.once import once
from calque.machine.threads import get_num_threads
from calque.native import routines
from calque.native.emit import objects
from calque.native.lower.numbers import TAKERS, Number, open_numbers, opened_body, word_of
from calque.native.passes.inline import CALLS, program_of
from calque.native.passes.pipeline import run as run_passes
from calque.ops.random.keys import KeyDType, PRNGImpl

WORTH: Final = 8  # equations: smaller programs are planned as fast as they are found on disk
SMALL: Final = 1 << 18  # bytes of a text that is kept in memory
_FORMAT: Final = "program-4"
_MARSHAL: Final = 4
_OF_CALLS: Final = ("differentiated", "prevent_cse")  # what inlining asks of a call beside its body
# The rooms whose files decide the words of a program, beside the passes, which have been run.
_ROOMS: Final = ("native", "core", "ops")  # and the machine, which knows the state of its own


class StoredCounts:
    """Programs found, and kept on disk, by this process."""

    found = kept = 0


stats = StoredCounts()
recent: Final[Table[str, bytes]] = Table("programs as text", 256, programs=True)


class _Unknown(Exception):
    """An object whose bytes say not all that matters."""


@once
def version() -> str:
    """Changes with every file that decides what a program becomes."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return hexdigest(f"{objects.fingerprint(package, _ROOMS, deep=True)}\0{state_of_files()}")[:16]


class Key(NamedTuple):
    """The name of a program, and its open numbers, which are not part of the name: only which of
    them are one is. Some are worth a place on disk."""

    name: str
    numbers: tuple[Number, ...] = ()
    on_disk: bool = True


def key_of(closed: ClosedJaxpr, options: Options) -> Key | None:
    """The key of a simplified program; None where it has none."""
    w = _Writer()
    try:
        w.value(
            (options.exact, options.donated, get_num_threads(), *map(_checked, closed.in_avals))
        )
        w.jaxpr(closed.jaxpr, opens=True)
    except _Unknown:
        return None
    text = "\n".join(w.parts)
    name = hexdigest(
        f"{_FORMAT}\0{version()}\0{objects.version()}\0{target.describe().key}\0{text}"
    )
    on_disk = _at_least(closed.jaxpr, WORTH) and diskcache.directory() is not None
    return Key(name, tuple(w.numbers), on_disk)


def content_of(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> tuple[str, frozenset[Primitive]] | None:
    """All that decides what this equation computes, the programs in it included; None where bytes
    cannot tell. Two of them that are equal may share what was compiled in this process."""
    w = _Writer()
    try:
        w.value((p.name, *map(_checked, avals)))
        w.value(tuple(params.items()))
    except _Unknown:
        return None
    return "\n".join(w.parts), frozenset((p, *w.primitives))


def _at_least(jaxpr: Jaxpr, count: int) -> bool:
    """Whether a program and those in it have so many equations."""
    todo = [jaxpr]
    while todo and count > 0:
        jaxpr = todo.pop()
        count -= len(jaxpr.eqns)
        if count > 0:
            todo += [j for e in jaxpr.eqns for j in subjaxprs(e.params)]
    return count <= 0


class Stored(NamedTuple):
    """A program from disk, and whether kernels of it were made in haste."""

    program: Program
    hasty: bool


def find(
    key: Key, closed: ClosedJaxpr, out_avals: Sequence[ShapedArray], text: Callable[[], str]
) -> Stored | None:
    """The program of this key, with the arrays of `closed` and the numbers of the key."""
    raw = recent.find(key.name)
    if raw is None and key.on_disk:
        raw = diskcache.get(key.name, "program")
        if raw is not None:
            remember(key, raw)
    if raw is None:
        return None
    outputs = [(aval, nbytes(aval)) for aval in out_avals]
    arrays = [constant_data(c) for c in closed.consts]
    hasty, data = marshal.loads(raw)
    numbers = [(n, word_of(n.value.tobytes())) for n in key.numbers]
    program = from_data(data, outputs, arrays, _code_of, text, numbers)
    stats.found += program is not None
    return None if program is None else Stored(program, hasty)


def _code_of(name: str) -> tuple[int, object] | None:
    """What a program calls: a routine, a function of LAPACK, or a kernel."""
    if " " not in name:
        return objects.by_symbol(name)
    address = routines.by_name(name)
    return None if address is None else (address, None)


def keep(key: Key, program: Program, arrays: Sequence[np.ndarray], hasty: bool = False) -> None:
    """Store a program that was planned, in place of a hasty one."""
    data = as_data(program, arrays, key.numbers)
    if data is None:
        return
    raw = marshal.dumps((hasty, data), _MARSHAL)
    remember(key, raw)
    if key.on_disk:
        diskcache.put(key.name, "program", raw)
        stats.kept += 1


def remember(key: Key, raw: bytes) -> None:
    """Keep the text of a program in memory."""
    if len(raw) <= SMALL:
        recent[key.name] = raw


def constant_data(value: Any) -> np.ndarray:
    """An array that a program reads as a constant, in the order of memory."""
    array = to_numpy(value)
    return np.ascontiguousarray(array).reshape(array.shape)


def _checked(aval: ShapedArray) -> ShapedArray:
    """A type that bytes tell whole."""
    if aval.place is not None or not (isinstance(aval.dtype, np.dtype) or _is_own(aval.dtype)):
        raise _Unknown
    return aval


def _is_own(x: Any) -> bool:
    """Whether this is an algorithm of random keys that every process has, or the dtype of its
    keys."""
    impl = x.impl if isinstance(x, KeyDType) else x
    return isinstance(impl, PRNGImpl) and impl.field == impl.name


def _text(x: Any) -> str:
    """A dtype, or what `_is_own` knows."""
    if isinstance(x, np.dtype):
        return f"dtype {x.str}{x.name}"
    return f"key {x.impl.name}" if isinstance(x, KeyDType) else f"algorithm {x.name}"


class _Writer:
    """A program as text in which variables are numbers."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.types: dict[ShapedArray, str] = {}
        self.programs: dict[tuple[int, bool], str] = {}
        self.primitives: set[Primitive] = set()
        self.numbers: dict[Number, int] = {}  # those that are open

    def jaxpr(self, jaxpr: Jaxpr, opens: bool = False) -> None:
        """A program; in one that `opens` its numbers, those that nothing depends on are left out
        of the text."""
        numbers: dict[Var, int] = {}
        open_here = open_numbers(jaxpr) if opens else {}

        def bind(variables: Sequence[Var]) -> str:
            for v in variables:
                numbers[v] = len(numbers)
            return ",".join([self.type(v.aval) for v in variables])

        def read(a: Var | Literal) -> str:
            if a.__class__ is Literal:
                return f"={a.val.tobytes().hex()}:{self.type(a.aval)}"  # type: ignore[union-attr]
            return str(numbers[a])  # type: ignore[index]

        def taken(a: Var | Literal) -> str:
            number = open_here.get(id(a.val)) if a.__class__ is Literal else None  # type: ignore[union-attr]
            if number is not None:
                k = self.numbers.setdefault(number, len(self.numbers))
                return f"#{k}:{self.type(a.aval)}"
            return read(a)

        parts = self.parts
        parts.append("(" + bind(jaxpr.constvars) + ";" + bind(jaxpr.invars))
        for e in jaxpr.eqns:
            name = e.primitive.name
            reads = taken if opens and name in TAKERS else read
            inputs = " ".join([reads(a) for a in e.invars])
            self.primitives.add(e.primitive)
            parts.append(f"{name} {inputs}")
            body = opened_body(e) if opens else None
            for parameter, value in self.deciding(e).items():
                parts.append(parameter)
                if body is not None and value is body:
                    self.closed(run_passes(body), opens=True)
                else:
                    self.value(value)
            parts.append(bind(e.outvars))
        parts.append(" ".join([read(a) for a in jaxpr.outvars]) + ")")

    def deciding(self, e: Eqn) -> dict[str, Any]:
        """The parameters that decide what an equation computes: of a call that will be inlined its
        body, not the rules of its derivatives; the program of what the user has defined."""
        if e.primitive.program is not None:
            return {"program": program_of(e)}
        if e.primitive.of_user:
            raise _Unknown
        body = CALLS.get(e.primitive.name)
        if body is None or not isinstance(e.params.get(body), (Jaxpr, ClosedJaxpr)):
            return e.params
        return {name: e.params[name] for name in (body, *_OF_CALLS) if name in e.params}

    def type(self, aval: ShapedArray) -> str:
        text = self.types.get(aval)
        if text is None:
            _checked(aval)
            text = self.types[aval] = f"{_text(aval.dtype)}{aval.shape}{aval.weak_type}"
        return text

    def value(self, x: Any) -> None:
        """A parameter."""
        kind = type(x)
        if kind in (int, bool, str, float, complex, bytes) or x is None:
            self.parts.append(repr(x))
        elif kind is tuple or kind is list:
            self.parts.append(f"{kind.__name__}{len(x)}")
            for item in x:
                self.value(item)
        else:
            self.object(x)

    def object(self, x: Any) -> None:
        kind = type(x)
        if isinstance(x, ClosedJaxpr):
            self.closed(x)
        elif isinstance(x, Jaxpr):
            self.jaxpr(x)
        elif isinstance(x, ShapedArray):
            self.parts.append(self.type(x))
        elif isinstance(x, np.dtype) or _is_own(x):
            self.parts.append(_text(x))
        elif isinstance(x, enum.Enum):
            self.parts.append(f"{kind.__qualname__}.{x.name}")
        elif isinstance(x, type):
            self.parts.append(f"{x.__module__}.{x.__qualname__}")
        elif isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
            self.parts.append(f"{x.dtype.str}{x.shape}{digest(x.tobytes()).hex()}")
        elif isinstance(x, Primitive) and x.program is None and not x.of_user:
            self.parts.append(f"primitive {x.name}")
        elif isinstance(x, dict):
            self.value(tuple(x.items()))
        elif isinstance(x, tuple) and hasattr(x, "_fields"):
            self.parts.append(kind.__qualname__)
            self.value(tuple(x))
        elif dataclasses.is_dataclass(x) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            self.parts.append(kind.__qualname__)
            self.value(tuple(getattr(x, f.name) for f in dataclasses.fields(x)))
        else:
            raise _Unknown

    def closed(self, x: ClosedJaxpr, opens: bool = False) -> None:
        """A program in a program; its arrays count, as they may have become numbers."""
        known = self.programs.get((id(x), opens))
        if known is None:
            self.programs[id(x), opens] = f"program {len(self.programs)}"
            for c in x.consts:
                self.value(constant_data(c))
            self.jaxpr(x.jaxpr, opens)
        else:
            self.parts.append(known)
