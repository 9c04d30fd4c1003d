"""Squares turned round: by instructions where the processor has them, else by shuffles."""

import numpy as np
import pytest

from calque.machine.code.target import describe
from calque.native.emit.transposing import transposed
from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, const, load, var
from tests.native.emit.test_writer import writer
from tests.native.run_kernel import NP, run_plain

BYTES = describe().vector_bytes


def kernel(dtype: str, n: int) -> tuple[Buffer, Buffer, For]:
    """`y[i, j] = x[j, i]` in one tile."""
    x, y = (Buffer(name, (const(n), const(n)), dtype) for name in "xy")
    i, j = var("i", n), var("j", n)
    row = For(j, (Store(y, (i, j), load(x, (j, i))),), kind="vector", width=n)
    return x, y, For(i, (row,), kind="tile", width=n)


@pytest.mark.parametrize("dtype", ["f32", "i32", "u32", "f64", "i64", "i16", "u8"])
@pytest.mark.parametrize("n", [4, 8, 16])
@pytest.mark.parametrize("registers", [16, 32, 64])
def test_squares_of_all_types_and_sizes(dtype: str, n: int, registers: int) -> None:
    if registers > BYTES:
        pytest.skip("this processor has no such registers")
    x, y, loop = kernel(dtype, n)
    a = np.arange(n * n).reshape(n, n).astype(NP[dtype])
    out = np.zeros_like(a)
    text = run_plain((loop,), {x: a, y: out}, register_bytes=registers)
    np.testing.assert_array_equal(out, a.T)
    size = n * a.itemsize
    by_instructions = size in (32, 64) and size <= registers and a.itemsize >= 4
    assert (" asm " in text) == by_instructions


@pytest.mark.skipif(BYTES < 64, reason="for registers of 64 bytes")
@pytest.mark.parametrize("t, n, blocks", [("float", 16, 8), ("double", 8, 6), ("i32", 8, 6)])
def test_few_blocks_of_instructions(t: str, n: int, blocks: int) -> None:
    w = writer()
    columns = transposed(w, [f"%r{k}" for k in range(n)], t)
    assert len(set(columns)) == n
    assert sum(" asm " in line for line in w.out.lines) == blocks
    assert not any("shufflevector" in line for line in w.out.lines)
