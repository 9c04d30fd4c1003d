"""Rows of which several go to one place: threads share the columns, and every sum keeps its
order."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.records import replace
from calque.native.loops.tree import For, Store
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, var
from calque.native.schedule import threads
from calque.native.schedule.columns import columns_of

LONG_NS = 100 * threads.PARALLEL_NS


def rows(sizes: Sizes, columns: int, place: Expr | None = None, dtype: str = "f32") -> For:
    """for d < 1000 @colliding: for c < columns @vector: y[i[d], c] += x[d, c]"""
    d, c = var("d", sizes.dim(1000)), var("c", sizes.dim(columns))
    x = Buffer("x", (d.attr[1], c.attr[1]), dtype)
    y = Buffer("y", (sizes.dim(50), c.attr[1]), dtype)
    row = load(Buffer("i", (d.attr[1],), "i64"), (d,))
    at = (row, c if place is None else place)
    value = ex("add", load(y, at), load(x, (d, c)))
    inner = For(c, (Store(y, at, value),), kind="vector", width=64)
    return For(d, (inner,), colliding=True)


@pytest.mark.parametrize(
    "columns, dtype, size",
    [(64, "f32", 32), (32, "f32", 16), (100, "f32", 32), (1024, "f32", 256), (64, "f64", 16)],
)
def test_blocks_of_columns_are_lines_of_the_cache(columns: int, dtype: str, size: int) -> None:
    sizes = Sizes()
    f = rows(sizes, columns, dtype=dtype)
    assert columns_of(f, sizes) == (f.body[0], size)
    made = threads.shared_out(f, LONG_NS, sizes)
    assert made is not None and made.loop.kind == "parallel" and "columns" in made.reason
    (around,) = made.loop.body
    assert isinstance(around, For) and around.colliding and around.var is f.var
    (inner,) = around.body
    assert isinstance(inner, For) and inner.kind == "vector" and inner.width <= size


def test_rows_that_one_thread_adds() -> None:
    sizes = Sizes()
    f = rows(sizes, 1024)
    assert columns_of(rows(sizes, 31), sizes) is None  # two lines are the least
    assert columns_of(replace(f, colliding=False), sizes) is None
    assert columns_of(replace(f, body=f.body * 2), sizes) is None
    assert threads.shared_out(f, 4 * threads.PARALLEL_NS, sizes) is None
    (inner,) = f.body
    assert isinstance(inner, For)
    c = inner.var
    assert columns_of(rows(sizes, 1024, ex("sub", const(1023), c)), sizes) is None
    assert columns_of(rows(sizes, 1024, const(3)), sizes) is None


def test_columns_that_are_read_beside_their_own_stay_with_one_thread() -> None:
    sizes = Sizes()
    f = rows(sizes, 1024)
    (inner,) = f.body
    assert isinstance(inner, For)
    (store,) = inner.body
    assert isinstance(store, Store)
    row, column = store.idx
    assert row is not None and column is not None and store.value is not None
    beside = load(store.buf, (row, ex("min", ex("add", column, const(1)), const(1023))))
    other = replace(inner, body=(replace(store, value=ex("add", store.value, beside)),))
    assert columns_of(replace(f, body=(other,)), sizes) is None


@pytest.mark.parametrize("how", ["add", "multiply", "max", "set"])
@pytest.mark.parametrize("columns, dtype", [(64, "f4"), (100, "f4"), (257, "f8"), (70, "c8")])
def test_every_column_takes_its_rows_in_their_order(how: str, columns: int, dtype: str) -> None:
    if how == "max" and dtype == "c8":
        pytest.skip("complex numbers have no order")
    r = np.random.default_rng(columns)
    n, m = 12_000, 40
    with calque.enable_x64(dtype == "f8"):
        u = r.normal(size=(n, columns)).astype(dtype)
        i = r.integers(0, m + 5, n)
        f = calque.jit(
            lambda u, i: getattr(jnp.ones((m, columns), dtype).at[i], how)(u, mode="drop")
        )
        text = f.lower(u, i).compile().as_text("steps")
        assert "columns at a time" in text
        want = np.ones((m, columns), dtype)
        step: dict[str, Any] = {
            "add": np.add,
            "multiply": np.multiply,
            "max": np.maximum,
            "set": lambda a, b: b,
        }
        for row, x in zip(i, u, strict=True):
            if row < m:
                want[row] = step[how](want[row], x)
        got = np.asarray(f(u, i))
        if dtype == "c8" and how == "multiply":
            np.testing.assert_allclose(got, want, rtol=1e-3)
        else:
            assert got.tobytes() == want.tobytes()
        before = calque.get_num_threads()
        try:
            calque.set_num_threads(1 + before % 2)
            assert np.asarray(f(u, i)).tobytes() == got.tobytes()
        finally:
            calque.set_num_threads(before)
