"""Rows in memory and rows of lanes: each into the other, in squares and what is left of them."""

from typing import Any

import numpy as np
import pytest

from calque.machine.code.target import describe
from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, const, ex, load, var
from tests.native.run_kernel import NP, run, run_plain

ROWS = 37
I = var("i", ROWS)


def copied(
    dtype: str, columns: int, width: int, x: np.ndarray, register_bytes: int = 0, out: Any = None
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
    y = np.full_like(x, 7) if out is None else out
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


def test_what_lies_behind_the_rows_is_not_touched() -> None:
    """Parts of squares reach into the next rows, which are written then, not beyond the last."""
    room = np.full((ROWS + 2, 11), 5, "f")
    x, y = room.copy(), room.copy()
    x[1:-1] = np.random.default_rng(0).normal(size=(ROWS, 11))
    copied("f32", 11, 16, x[1:-1], out=y[1:-1])
    np.testing.assert_array_equal(y[1:-1], x[1:-1] + x[1:-1, :1])
    assert (y[0] == 5).all() and (y[-1] == 5).all()
