"""What the call path's data looks like in memory: objects, the words of an entry, and the op codes
of its two programs.

An entry is one block of 8-byte words: a header, then the matching program (what the arguments must
be), then the building program (what to make of the results). Both are op codes with operands in
preorder. All of it is data: the machine code that walks it is the same for every jitted function.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from calque.machine.lang.unit import i64, layout, ptr

CallableObject = layout(
    "CallableObject",
    refcount=i64,
    type=ptr,
    vectorcall=ptr,
    entries=ptr,  # a list of Entry objects, or NULL
    miss=ptr,
    dict=ptr,
    weak_references=ptr,
    table=ptr,  # OpFunction only: open addressing, entries that `entries` keeps alive
    mask=i64,
)

EntryObject = layout("EntryObject", refcount=i64, type=ptr, words=ptr, keeps=ptr, key=i64)

Header = layout(
    "Header",
    positional=i64,
    keywords=i64,
    names=ptr,
    epoch=i64,
    program=ptr,
    n_in=i64,
    n_out=i64,
    slots=i64,  # arguments that are kept: those of the program, then those only handed back
    frame_bytes=i64,
    matching=i64,  # offset of the matching program
    building=i64,
    guards=i64,  # captured values that must be what they were
    guard_words=i64,  # offset of four words for each, see `Guard`
    statics=i64,  # arguments that must equal values: asked first, for Python code may run then
    static_words=i64,  # offset of two words for each: its place among the arguments, the value
    hold=i64,  # keep references to the arguments while running: other Python code may run meanwhile
    # a Python function that gives the program for the sizes of a call; 0 where the entry has its
    # own. Without a program to be like, it gives the outputs themselves
    choose=ptr,
    chosen_by=i64,  # how many arguments it takes
    chosen_at=i64,  # where in the frame they stand, counted from the cells
)

ProgramHeader = layout("ProgramHeader", n_in=i64, n_out=i64, nbytes=ptr, avals=ptr, flags=i64)

# While a call runs: the cursor in a program and the arrays of the frame.
State = layout("State", cursor=ptr, inputs=ptr, objects=ptr, scratch=ptr, outputs=ptr, results=ptr)

NEAR_FRAME = 2048  # bytes of a frame on the stack; larger ones come from PyMem_Malloc
HALVES_BELOW = 1e15  # beyond, every float counts as a fraction: see `is_fraction`
CELL = 16  # bytes of a scalar argument in the frame


class Match(IntEnum):
    """Op codes of a matching program, with their operands."""

    ARRAY = 0  # aval, slot or -1
    FLOAT = 1  # kind, slot, cell
    INT = 2  # kind, slot, cell
    BOOL = 3  # kind, slot, cell
    COMPLEX = 4  # kind, slot, cell
    NDARRAY = 5  # scalar type, slot, rank, sizes...
    IS = 6  # object
    EQUAL = 7  # object
    TUPLE = 8  # type, count, items...
    LIST = 9  # count, items...
    DICT = 10  # count, (key, item)...
    FRACTION = 11  # kind, slot, cell
    # type of the aval, offset of its kind, kind, slot, place of the argument of `choose`, counted
    # from the cells
    KIND = 12
    NDARRAY_KIND = 13  # scalar type, rank, slot, that place
    ELSEWHERE = 14  # aval, slot or -1, where it says it lives or 0
    ANY = 15  # one of the arguments that `Header.statics` asks about


class Guard(IntEnum):
    """Questions about captured values: the kind is the first of four words."""

    ITEM = 0  # dict, key, value
    CELL = 1  # cell, 0, value
    LIST = 2  # list, 0, tuple of its items
    LENGTH = 3  # dict, 0, length


class Build(IntEnum):
    """Op codes of a building program, with their operands."""

    SHARE = 0  # result
    TAKE = 1  # result, for the last time
    INPUT = 2  # slot
    CONST = 3  # object
    TUPLE = 4  # count, items...
    LIST = 5  # count, items...
    DICT = 6  # template, count, (key, item)...
    NAMED = 7  # type, count, items...
    CALL = 8  # function, count, items...


class ScalarKind(IntEnum):
    """How a Python scalar is stored."""

    F32 = 0
    F64 = 1
    I8 = 2
    I16 = 3
    I32 = 4
    I64 = 5
    U8 = 6
    U16 = 7
    U32 = 8
    U64 = 9
    C64 = 10
    C128 = 11
    BOOL = 12


SCALAR_KINDS: Final = {
    np.dtype(name): ScalarKind[kind]
    for name, kind in {
        "float32": "F32",
        "float64": "F64",
        "int8": "I8",
        "int16": "I16",
        "int32": "I32",
        "int64": "I64",
        "uint8": "U8",
        "uint16": "U16",
        "uint32": "U32",
        "uint64": "U64",
        "complex64": "C64",
        "complex128": "C128",
        "bool": "BOOL",
    }.items()
}
HASH_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, spreads pointers; as a signed word
# epochs from here on are of programs that look at themselves: single operations are for Python
CHECKED = 1 << 40
THREADS = 64  # that may have an epoch of their own


def is_fraction(x: float) -> bool:
    """Whether twice the number is no integer, or a huge one: such exponents are numbers as any
    other."""
    return not abs(x) < HALVES_BELOW or x + x != int(x + x)
