"""Squares of elements turned round in registers."""

import ctypes
import re

import numpy as np
import pytest

from calque.machine.code import llvm
from calque.native.emit import squares
from calque.native.emit.writer import NOTHING, CodeOptions, Writer


@pytest.mark.parametrize(
    ("t", "dtype", "size"),
    [("float", "f4", 16), ("i8", "u1", 16), ("i64", "i8", 16), ("double", "f8", 32)],
)
def test_the_shared_function_turns_a_square_out_of_a_larger_one(t, dtype, size):
    square = squares.Square(t, size)
    text = squares.write(square, CodeOptions())
    symbol = square.symbol("")
    address = llvm.link_module(text, [symbol], cache=False)[symbol]
    turn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(address)
    wide = (np.arange(40 * 50) % 251).astype(dtype).reshape(40, 50)
    for rows in (wide[3 : 3 + size], wide[size + 2 : 2 : -1]):
        out = np.zeros((size, size), dtype)
        turn(rows[:, 5:].ctypes.data, rows.strides[0], out.ctypes.data)
        np.testing.assert_array_equal(out, rows[:, 5 : 5 + size].T)


def test_a_call_tells_which_function_it_needs():
    w = Writer("f", CodeOptions(tag="_o2"), NOTHING)
    squares.call(w, squares.Square("float", 16), "%p", "%s", "%a0")
    assert w.shared == {"turned_float_16_o2": squares.Square("float", 16)}
    assert w.declared == {"declare void @turned_float_16_o2(ptr, i64, ptr)"}
    assert w.out.lines == [" call void @turned_float_16_o2(ptr %p, i64 %s, ptr %a0)"]


@pytest.mark.parametrize("n", [2, 4, 16])
def test_rows_become_columns(n):
    """n log n shuffles, each lane in its place: followed by hand."""

    class Shuffles:
        """Plays the part of a writer: its values are lists of lanes."""

        count = 0

        def new(self, rhs):
            found = re.fullmatch(
                r"shufflevector <\d+ x t> (\S+), <\d+ x t> (\S+), <.*> <(.*)>", rhs
            )
            a, b, order = found.groups()
            both = [*values[a], *values[b]]
            self.count += 1
            name = f"%{self.count}"
            values[name] = [both[int(v.split()[1])] for v in order.split(",")]
            return name

    values = {f"row{r}": [(r, k) for k in range(n)] for r in range(n)}
    w = Shuffles()
    columns = squares.turned(w, [f"row{r}" for r in range(n)], "t")
    assert [values[v] for v in columns] == [[(r, k) for r in range(n)] for k in range(n)]
    assert w.count == n * (n.bit_length() - 1)
