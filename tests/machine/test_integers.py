"""Integers in memory of any width, read and written by machine code."""

import ctypes

import pytest

from calque.machine import integers
from calque.machine.integers import IntegerType
from calque.machine.lang.unit import Unit, i1, i64, ptr

unit = Unit("test of integers")


@unit.function
def moved(source: ptr, target: ptr, kind: i64) -> i64:
    number = integers.load_integer(source, kind)
    integers.store_integer(target, number, kind)
    return number


@unit.function
def fits(a: i64, b: i64) -> i1:
    return integers.product_fits(a, b)


KINDS = [
    (IntegerType.I8, ctypes.c_int8, (-128, -1, 127)),
    (IntegerType.U8, ctypes.c_uint8, (0, 128, 255)),
    (IntegerType.I16, ctypes.c_int16, (-(2**15), 2**15 - 1)),
    (IntegerType.U16, ctypes.c_uint16, (0, 2**16 - 1)),
    (IntegerType.I32, ctypes.c_int32, (-(2**31), 2**31 - 1)),
    (IntegerType.U32, ctypes.c_uint32, (0, 2**32 - 1)),
    (IntegerType.I64, ctypes.c_int64, (-(2**63), 2**63 - 1)),
]


@pytest.mark.parametrize("kind, ctype, values", KINDS)
def test_read_and_written(kind, ctype, values):
    for value in values:
        source, target = ctype(value), (ctype * 3)(1, 1, 1)
        place = ctypes.addressof(target) + ctypes.sizeof(ctype)
        assert moved(ctypes.addressof(source), place, int(kind)) == value
        assert list(target) == [1, value, 1]  # and nothing beside it


@pytest.mark.parametrize(
    "a, b", [(0, 2**62), (2**31, 2**31), (2**32, 2**31 - 1), (3, 2**62), (2**62, 2), (2**63 - 1, 1)]
)
def test_products_that_fit(a, b):
    assert bool(fits(a, b)) == bool(fits(b, a)) == (a * b < 2**63)
