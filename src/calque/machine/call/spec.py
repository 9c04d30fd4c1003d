"""From the description of an entry (nested tuples) to its words, checked on the way."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.machine.call.layout import (
    CELL,
    HASH_FACTOR,
    SCALAR_KINDS,
    Build,
    Guard,
    Header,
    Match,
    ProgramHeader,
    ScalarKind,
)
from calque.machine.driver.interpreter import DONATES
from calque.machine.objects.array_type import ArrayImpl
from calque.machine.objects.pyapi import slot_offset
from calque.machine.records import record

DEEPEST = 500  # nesting of containers: the machine code recurses
SCALARS: Final = {
    "pyfloat": Match.FLOAT,
    "fraction": Match.FRACTION,
    "pyint": Match.INT,
    "pybool": Match.BOOL,
    "pycomplex": Match.COMPLEX,
}
SCALAR_TYPES: Final = {
    "pyfloat": float,
    "fraction": float,
    "pyint": int,
    "pybool": bool,
    "pycomplex": complex,
}
CONTAINERS = ("tuple", "list", "namedtuple", "dict", "call")
SAFE_KEYS = (
    str,
    int,
    bool,
    float,
    bytes,
    type(None),
)  # hashing and comparing them runs no Python code
FLOATS = frozenset({ScalarKind.F32, ScalarKind.F64, ScalarKind.C64, ScalarKind.C128})


class Encoder:
    """Collects the words of a program and the objects they point to."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.keeps: list[Any] = []
        self.slots: dict[int, str] = {}
        self.cells = 0
        self.chosen: list[
            tuple[int, int]
        ] = []  # (slot, place of a word) of what `choose` gets: in the order of the slots
        self.statics: list[int] = []  # pairs: the place of an argument, the value that it equals
        self.exotic = False  # Python code may run while the result is built

    def pointer(self, thing: Any) -> int:
        """The address of an object that the entry keeps alive."""
        self.keeps.append(thing)
        return id(thing)

    def slot(self, index: Any, what: str) -> int:
        if index is None:
            return -1
        if not isinstance(index, int) or index < 0:
            raise ValueError(f"{what}: an input index is None or an integer from 0, not {index!r}")
        if index in self.slots:
            raise ValueError(f"input {index} is given twice")
        self.slots[index] = what
        return index

    # -- arguments --

    def match(self, spec: Any, depth: int = 0) -> None:
        """Append the matching program of one argument."""
        if not isinstance(spec, tuple) or not spec or depth > DEEPEST:
            if depth > DEEPEST:
                raise RecursionError("nested too deeply")
            raise ValueError(f"no description of an argument: {spec!r}")
        method = getattr(self, f"match_{spec[0]}", None)
        if spec[0] in SCALARS:
            self.scalar(*spec)
        elif method is None:
            raise ValueError(f"unknown kind of argument {spec[0]!r}")
        else:
            method(spec, depth)

    def match_array(self, spec: Any, depth: int) -> None:
        _, aval, index = spec
        self.words += [Match.ARRAY, self.pointer(aval), self.slot(index, "array")]

    def match_elsewhere(self, spec: Any, depth: int) -> None:
        _, aval, place, index = spec
        where = 0 if place is None else self.pointer(place)
        self.words += [Match.ELSEWHERE, self.pointer(aval), self.slot(index, "elsewhere"), where]

    def scalar(self, name: str, dtype: Any, index: Any) -> None:
        kind = SCALAR_KINDS.get(np.dtype(dtype))
        fits = kind is not None and {
            "pyfloat": kind in FLOATS,
            "fraction": kind in FLOATS,
            "pyint": kind is not ScalarKind.BOOL,
            "pybool": True,
            "pycomplex": kind in (ScalarKind.C64, ScalarKind.C128),
        }.get(name)
        if kind is None or not fits:
            raise ValueError(f"{name} cannot be passed as {np.dtype(dtype)}")
        self.words += [SCALARS[name], kind, self.slot(index, name), self.cells]
        self.cells += 1

    def match_ndarray(self, spec: Any, depth: int) -> None:
        _, dtype, shape, index = spec
        dtype = _native(dtype)
        self.words += [
            Match.NDARRAY,
            self.pointer(dtype.type),
            self.slot(index, "ndarray"),
            len(shape),
        ]
        self.words += [int(size) for size in shape]

    def match_kind(self, spec: Any, depth: int) -> None:
        _, aval, index = spec
        offset = slot_offset(type(aval), "kind", aval)
        self.words += [Match.KIND, self.pointer(type(aval)), offset, self.pointer(aval.kind)]
        self.words += [self.slot(index, "kind"), 0]
        self.chosen.append((index, len(self.words) - 1))

    def match_ndarray_kind(self, spec: Any, depth: int) -> None:
        _, dtype, rank, index = spec
        dtype = _native(dtype)
        self.words += [
            Match.NDARRAY_KIND,
            self.pointer(dtype.type),
            int(rank),
            self.slot(index, "ndarray_kind"),
            0,
        ]
        self.chosen.append((index, len(self.words) - 1))

    @property
    def chosen_at(self) -> int:
        """Where what `choose` gets begins, counted from the cells; before it is a place for who is
        called."""
        return CELL * self.cells + 8

    def number_chosen(self) -> int:
        """Give what `choose` gets its place; how many there are."""
        for number, (_, place) in enumerate(sorted(self.chosen)):
            self.words[place] = self.chosen_at + 8 * number
        return len(self.chosen)

    def match_is(self, spec: Any, depth: int) -> None:
        self.words += [Match.IS, self.pointer(spec[1])]

    def match_argument(self, place: int, spec: Any) -> None:
        """Append the matching program of the argument at this place."""
        if isinstance(spec, tuple) and spec[:1] == ("equals",):
            self.words.append(Match.ANY)
            self.statics += [place, self.pointer(spec[1])]
        else:
            self.match(spec)

    def match_eq(self, spec: Any, depth: int) -> None:
        self.words += [Match.EQUAL, self.pointer(spec[1])]

    def match_none(self, spec: Any, depth: int) -> None:
        self.words += [Match.IS, id(None)]

    def match_tuple(self, spec: Any, depth: int) -> None:
        self.words += [Match.TUPLE, id(tuple), len(spec[1])]
        for item in spec[1]:
            self.match(item, depth + 1)

    def match_namedtuple(self, spec: Any, depth: int) -> None:
        _, kind, items = spec
        _check_named(kind)
        self.words += [Match.TUPLE, self.pointer(kind), len(items)]
        for item in items:
            self.match(item, depth + 1)

    def match_list(self, spec: Any, depth: int) -> None:
        self.words += [Match.LIST, len(spec[1])]
        for item in spec[1]:
            self.match(item, depth + 1)

    def match_dict(self, spec: Any, depth: int) -> None:
        self.words += [Match.DICT, len(spec[1])]
        for key, item in spec[1].items():
            self.words.append(self.pointer(key))
            self.match(item, depth + 1)

    # -- captured values --

    def guard(self, kind: str, holder: Any, *rest: Any) -> None:
        """A question that must have the answer it had."""
        if kind == "item":
            self.words += [
                Guard.ITEM,
                self.pointer(holder),
                self.pointer(rest[0]),
                self.pointer(rest[1]),
            ]
        elif kind == "cell":
            self.words += [Guard.CELL, self.pointer(holder), 0, self.pointer(rest[0])]
        elif kind == "list":
            self.words += [Guard.LIST, self.pointer(holder), 0, self.pointer(rest[0])]
        elif kind == "length":
            self.words += [Guard.LENGTH, self.pointer(holder), 0, int(rest[0])]
        else:
            raise ValueError(f"unknown question {kind!r}")

    # -- results --

    def build(self, spec: Any, last: dict[int, int], n_out: int, depth: int = 0) -> None:
        """Append the building program of a result; `last` counts the uses of each output that are
        still to come."""
        if not isinstance(spec, tuple) or not spec or depth > DEEPEST:
            if depth > DEEPEST:
                raise RecursionError("nested too deeply")
            raise ValueError(f"no description of a result: {spec!r}")
        kind = spec[0]
        if kind == "out":
            last[spec[1]] -= 1
            self.words += [Build.SHARE if last[spec[1]] else Build.TAKE, spec[1]]
        elif kind == "input":
            if spec[1] not in self.slots:
                raise ValueError(f"there is no input {spec[1]!r} to give back")
            self.words += [Build.INPUT, spec[1]]
        elif kind == "const":
            self.words += [Build.CONST, self.pointer(spec[1])]
        elif kind == "none":
            self.words += [Build.CONST, id(None)]
        elif kind in CONTAINERS:
            self.build_container(spec, last, n_out, depth)
        else:
            raise ValueError(f"unknown kind of result {kind!r}")

    def build_container(self, spec: Any, last: dict[int, int], n_out: int, depth: int) -> None:
        kind, items = spec[0], spec[-1]
        if kind == "dict":
            self.exotic |= not all(type(key) in SAFE_KEYS for key in items)
            template = dict.fromkeys(items)
            self.words += [Build.DICT, self.pointer(template), len(items)]
            for key, item in items.items():
                self.words.append(self.pointer(key))
                self.build(item, last, n_out, depth + 1)
            return
        if kind == "call":
            self.exotic = True
            self.words += [Build.CALL, self.pointer(spec[1]), len(items)]
        elif kind == "namedtuple":
            _check_named(spec[1])
            self.words += [Build.NAMED, self.pointer(spec[1]), len(items)]
        else:
            self.words += [Build.TUPLE if kind == "tuple" else Build.LIST, len(items)]
        for item in items:
            self.build(item, last, n_out, depth + 1)


def _native(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if not dtype.isnative or dtype.hasobject or dtype.fields is not None:
        raise ValueError(f"an ndarray of {dtype} cannot be passed")
    return dtype


def _check_named(kind: Any) -> None:
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise ValueError(f"{kind!r} is no namedtuple class")


def count_uses(spec: Any, n_out: int, uses: dict[int, int]) -> None:
    """How often a result uses each output."""
    if not isinstance(spec, tuple) or not spec:
        return
    if spec[0] == "out":
        if not isinstance(spec[1], int) or not 0 <= spec[1] < n_out:
            raise ValueError(f"there is no output {spec[1]!r}; the program has {n_out}")
        uses[spec[1]] = uses.get(spec[1], 0) + 1
    elif spec[0] in CONTAINERS:
        for item in spec[-1].values() if spec[0] == "dict" else spec[-1]:
            count_uses(item, n_out, uses)


def encode(
    in_spec: Any,
    kw_names: Any,
    program: Any,
    out_spec: Any,
    epoch: int,
    guards: Any = (),
    choose: Any = None,
) -> tuple[bytes, tuple[Any, ...]]:
    """The words of an entry as bytes, and everything they point to."""
    names = tuple(kw_names or ())
    if len(names) > len(in_spec) or not all(type(name) is str for name in names):
        raise ValueError("kw_names are strings, no more of them than arguments")
    served = isinstance(program, PythonProgram)
    head = program if isinstance(program, PythonProgram) else ProgramHeaderView(program)
    encoder = Encoder()
    for place, spec in enumerate(in_spec):
        encoder.match_argument(place, spec)
    _check_slots(encoder.slots, head.n_in)
    chosen = encoder.number_chosen()
    if bool(chosen) != (choose is not None) or (choose is not None and head.flags & DONATES):
        raise ValueError(
            "arguments of a kind need a function that chooses a program, which takes no memory of"
            " theirs"
        )
    building = len(encoder.words)
    uses: dict[int, int] = {}
    count_uses(out_spec, head.n_out, uses)
    encoder.build(out_spec, uses, head.n_out)
    guard_words = len(encoder.words)
    for guard in guards:
        encoder.guard(*guard)
    static_words = len(encoder.words)
    encoder.words += encoder.statics
    slots, first = len(encoder.slots), Header.size // 8
    room = 8 * (chosen + 1) if chosen else 0
    header = {
        "positional": len(in_spec) - len(names),
        "keywords": len(names),
        "names": encoder.pointer(names),
        "epoch": epoch,
        "program": head.handle,
        "n_in": head.n_in,
        "n_out": head.n_out,
        "slots": slots,
        "frame_bytes": 16 * slots + 16 * head.n_out + room + CELL * encoder.cells,
        "matching": 8 * first,
        "building": 8 * (first + building),
        "guards": len(guards),
        "guard_words": 8 * (first + guard_words),
        "statics": len(encoder.statics) // 2,
        "static_words": 8 * (first + static_words),
        "hold": int(head.flags != 0 or encoder.exotic),
        "choose": encoder.pointer(head.run if isinstance(head, PythonProgram) else choose)
        if chosen or served
        else 0,
        "chosen_by": chosen,
        "chosen_at": encoder.chosen_at,
    }
    words = [header[name] for name in Header.fields] + encoder.words
    data = array("q", words).tobytes()
    return data, (data, program, *encoder.keeps)


@record
class PythonProgram:
    """A program that a Python function runs: it takes the arguments, in the order of their inputs,
    and gives a list of the outputs, or None where it cannot."""

    n_in: int
    n_out: int
    run: Callable[..., list[Any] | None]

    handle = flags = 0


def _check_slots(slots: dict[int, str], n_in: int) -> None:
    """Every input of the program must be given, and the extra ones must follow without gaps."""
    missing = sorted(set(range(max(n_in, len(slots)))) - set(slots))
    if missing:
        raise ValueError(f"no argument is input {missing[0]} (the program takes {n_in})")


_FIELDS: Final = list(ProgramHeader.fields)
_WORDS = f"{len(_FIELDS)}q"


class ProgramHeaderView:
    """The header of a program, read from Python."""

    def __init__(self, program: Any) -> None:
        self.handle = int(program.handle)
        if self.handle == 0:
            raise ValueError("the program has no handle")
        words = struct.unpack(_WORDS, ctypes.string_at(self.handle, ProgramHeader.size))
        self.n_in, self.n_out, self.flags = (
            words[_FIELDS.index(name)] for name in ("n_in", "n_out", "flags")
        )


def key_of(in_spec: Any) -> int:
    """The hash by which an operator finds the entry: what `hash_arguments` computes from matching
    arguments."""
    full = (1 << 64) - 1
    h = len(in_spec)
    for spec in in_spec:
        h = ((h ^ _key_word(spec)) * HASH_FACTOR) & full
        h ^= h >> 29
    return h


def _key_word(spec: Any) -> int:
    kind = spec[0]
    if kind in ("array", "elsewhere"):
        return id(spec[1])
    if kind == "kind":
        return 0  # such entries are in no table
    if kind in ("is", "eq", "equals"):
        thing: Any = spec[1]
        return id(spec[1].aval) if isinstance(thing, ArrayImpl) else id(type(thing))
    if kind in SCALAR_TYPES:
        return id(SCALAR_TYPES[kind])
    if kind == "namedtuple":
        return id(spec[1])
    types: dict[str, type] = {
        "ndarray": np.ndarray,
        "ndarray_kind": np.ndarray,
        "none": type(None),
        "tuple": tuple,
        "list": list,
        "dict": dict,
    }
    return id(types[kind])
