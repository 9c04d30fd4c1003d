"""Rows in memory and rows of lanes: each into the other, in squares and what is left of them."""

import numpy as np
import pytest

from calque.machine.code.target import describe
from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, const, ex, load, var
from tests.native.run_kernel import NP, run, run_plain

ROWS = 37
I = var("i", ROWS)


def copied(
    dtype: str, columns: int, width: int, x: np.ndarray, register_bytes: int = 0
) -> np.ndarray:
    """`y[i, c] = x[i, c] + x[i, 0]`, with rows in lanes."""
    shape = const(ROWS), const(columns)
    memory = Buffer("x", shape, dtype), Buffer("y", shape, dtype)
    room = (const(-(-columns // width) * width),)
    lanes = Buffer("x.row", room, dtype, "lane"), Buffer("y.row", room, dtype, "lane")
    c, d, e = (var(name, columns) for name in "cde")
    op = "or" if dtype == "i1" else "add"
    both = ex(op, load(lanes[0], (d,)), load(lanes[0], (const(0),)))
    body = (
        For(c, (Store(lanes[0], (c,), load(memory[0], (I, c))),)),
        For(d, (Store(lanes[1], (d,), both),)),
        For(e, (Store(memory[1], (I, e), load(lanes[1], (e,))),)),
    )
    y = np.full_like(x, 7)
    kernel = (For(I, body, kind="vector", width=width),)
    if register_bytes:
        run_plain(kernel, {memory[0]: x, memory[1]: y}, register_bytes=register_bytes)
    else:
        run(kernel, {memory[0]: x, memory[1]: y})
    return y


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i16", "i8"])
@pytest.mark.parametrize("columns", [5, 8, 15, 16, 17, 33])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_rows_there_and_back(dtype: str, columns: int, width: int) -> None:
    x = np.random.default_rng(columns).integers(-50, 50, (ROWS, columns)).astype(NP[dtype])
    np.testing.assert_array_equal(copied(dtype, columns, width, x), x + x[:, :1])


@pytest.mark.parametrize("register_bytes", [16, 32])
@pytest.mark.parametrize("columns", [5, 16, 17])
def test_other_processors(register_bytes: int, columns: int) -> None:
    if register_bytes > describe().vector_bytes:
        pytest.skip("this processor has no such registers")
    x = np.random.default_rng(columns).normal(size=(ROWS, columns)).astype("f")
    got = copied("f32", columns, register_bytes // 4, x, register_bytes)
    np.testing.assert_array_equal(got, x + x[:, :1])
