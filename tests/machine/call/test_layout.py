"""Where the data of calls stands in memory: as live objects have it."""

from __future__ import annotations

import ctypes
import random
from fractions import Fraction

import numpy as np
import pytest

from calque.machine.call.functions import (
    Entry,
    Jitted,
    OpFunction,
    add_entry,
)
from calque.machine.call.layout import (
    CELL,
    HALVES_BELOW,
    HASH_FACTOR,
    SCALAR_KINDS,
    Build,
    CallableObject,
    EntryObject,
    Header,
    Match,
    ProgramHeader,
    ScalarKind,
    is_fraction,
)
from calque.machine.call.spec import (
    key_of,
)
from tests.machine.call.helpers import (
    F4,
    add_program,
    copy_program,
    fixed_epoch,
    jitted,
    missing,
)

epoch = fixed_epoch


def test_fractions_are_not_twice_an_integer() -> None:
    rng = random.Random(1)
    numbers = [0.0, 0.5, -0.5, 0.25, 1e-300, HALVES_BELOW, -HALVES_BELOW, 1e300]
    numbers += [HALVES_BELOW - 0.5, HALVES_BELOW - 0.125, 0.5 - HALVES_BELOW, 2.0**49 + 0.25]
    numbers += [rng.randrange(-99, 99) / rng.choice([1, 2, 3, 4]) for _ in range(300)]
    for x in numbers:
        want = abs(x) >= HALVES_BELOW or (2 * Fraction(x)).denominator != 1
        assert is_fraction(x) is want, x
    assert all(is_fraction(x) for x in (float("inf"), -float("inf"), float("nan")))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_machine_code_says_the_same_of_fractions(dtype: str) -> None:
    f = jitted(Entry([("fraction", dtype, None)], (), copy_program(0), ("const", "yes"), 7))
    rounded = np.float32 if dtype in ("float32", "complex64") else np.float64
    numbers = [0.0, -0.5, 0.3, 1 + 2**-30, 1e15, 1e15 - 0.125, -1e15, 1e14, 16777217.25]
    numbers += [float("inf"), float("nan"), -float("inf"), 3.0000001, 2.5]
    for x in numbers:
        assert (f(x) == "yes") is is_fraction(float(rounded(x))), x


def test_numbers_that_have_a_place_in_a_cell() -> None:
    for code in "?bBhHiIlLqQfdFD":
        dtype = np.dtype(code)
        assert SCALAR_KINDS[dtype].name.lower().strip("cfiu") in ("bool", str(8 * dtype.itemsize))
        assert dtype.itemsize <= CELL
    for code in "egGOSUV":
        assert np.dtype(code) not in SCALAR_KINDS
    assert len(set(SCALAR_KINDS.values())) == len(ScalarKind) == len(SCALAR_KINDS)


def test_callables_are_laid_out_as_python_sees_them() -> None:
    for make in (Jitted, OpFunction):
        f = make(missing)
        f.extra = 1
        entry = Entry([("none",)], (), copy_program(0), ("none",), 7)
        add_entry(f, entry)
        seen = CallableObject(id(f))
        assert (seen.type, seen.entries, seen.miss) == (id(make), id(f._entries), id(missing))
        assert seen.dict == id(f.__dict__)
        assert make.__weakrefoffset__ == CallableObject.offset("weak_references")
        assert make.__dictoffset__ == CallableObject.offset("dict")
        assert make.__basicsize__ == CallableObject.size
    table = ctypes.c_int64.from_address(seen.table + 8 * (seen.mask + 1) - 8)
    slots = (ctypes.c_int64 * (seen.mask + 1)).from_address(seen.table)
    assert list(slots).count(id(entry)) == 1 and table.value in (0, id(entry))
    assert bin(seen.mask + 1).count("1") == 1


def test_an_entry_points_to_its_words() -> None:
    spec, program = [("array", F4, 0), ("array", F4, 1)], add_program()
    entry = Entry(spec, ("k",), program, ("out", 0), 11)
    seen = EntryObject(id(entry))
    assert seen.words == entry._words and seen.key % (1 << 64) == key_of(spec)
    head = Header(entry._words)
    assert (head.positional, head.keywords, head.epoch, head.n_in, head.n_out) == (1, 1, 11, 2, 1)
    code = ctypes.c_int64.from_address(entry._words + head.matching)
    assert code.value == Match.ARRAY and head.program == program.handle
    built = ctypes.c_int64.from_address(entry._words + head.building)
    assert built.value == Build.TAKE


def test_the_header_of_a_program_is_read_as_it_was_written() -> None:
    program = copy_program(3)
    seen = ProgramHeader(program.handle)
    assert (seen.n_in, seen.n_out, seen.flags) == (3, 3, program.flags)
    assert list((ctypes.c_int64 * 3).from_address(seen.nbytes)) == [16] * 3
    assert list((ctypes.c_int64 * 3).from_address(seen.avals)) == [id(F4)] * 3


def test_the_factor_of_hashes_can_be_undone() -> None:
    """Multiplication by an odd word loses nothing: pointers that differ have hashes that do."""
    assert HASH_FACTOR * pow(HASH_FACTOR, -1, 1 << 64) % (1 << 64) == 1
    assert -(1 << 63) <= HASH_FACTOR < 1 << 63
    places = {(64 * i * HASH_FACTOR) % (1 << 64) >> 54 for i in range(256)}
    assert len(places) > 200  # of 1024 lines: neighbours in memory do not share them
