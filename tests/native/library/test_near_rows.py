"""Rows of the left side of a long product are copied near, in the order in which they are read."""

import re

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.native.library.tiles import has_masks


@pytest.mark.parametrize("rows", [5, 24, 30, 64, 100])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_long_sums_of_rows_side_by_side(rows, batch):
    """What `x.T @ y` copies near: whole vectors of a row of memory, element by element in the last
    tile."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(*batch, 1537, n)).astype(np.float32) for n in (rows, 40))

    def turned(x, y):
        return jnp.matmul(jnp.swapaxes(x, -1, -2), y)

    f = calque.jit(turned, dynamic="never")
    loops = f.lower(x, y).compile().as_text("loops")
    copies = re.findall(r"rows\[t, kc, mv?\] = .*", loops)
    # under masks a ragged right side of few rows is read where it stands
    assert "min" not in copies[0] if copies else has_masks() and rows < 71
    got = np.asarray(f(x, y))
    wide = np.swapaxes(x.astype("f8"), -1, -2) @ y
    np.testing.assert_allclose(got, wide, rtol=1e-3, atol=2e-3)
    lying = np.ascontiguousarray(np.swapaxes(x, -1, -2))  # the same sums, whatever is copied how
    assert got.tobytes() == np.asarray(calque.jit(jnp.matmul, dynamic="never")(lying, y)).tobytes()
    assert got.tobytes() == np.asarray(turned(x, y)).tobytes()


def messages(x, i, w):
    """Rows that are found by indices, of several arrays side by side, times a matrix."""
    return jnp.concatenate([x[i], jnp.maximum(x[i[::-1]], 0.25), x[i] * 2], 1) @ w


@pytest.mark.parametrize("columns", [16, 64, 13, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gathered_rows_are_copied_from_where_they_are(columns, dtype):
    """The product, and that of its derivative, whose sums go over the rows."""
    with calque.enable_x64(dtype == "float64"):
        rng = np.random.default_rng(columns)
        x = jnp.asarray(rng.normal(size=(301, columns)), dtype)
        w = jnp.asarray(rng.normal(size=(3 * columns, 48)), dtype)
        rows = (1 << 21) // (3 * columns * x.dtype.itemsize)
        i = jnp.asarray(rng.integers(-301, 301, rows))

        def both(x, i, w):
            return jnp.tanh(messages(x, i, w)), messages(x, i, w).T @ jnp.sin(messages(x, i, w))

        def slopes(x, i, w):
            return calque.grad(lambda w: (jnp.sin(messages(x, i, w)) * 0.125).sum())(w)

        for f in (messages, both, slopes):
            with config.override("calque_exact", True):
                got = calque.jit(f, dynamic="never")(x, i, w)
                want = f(x, i, w)
            for a, b in zip(calque.tree.leaves(got), calque.tree.leaves(want), strict=True):
                assert a.tobytes() == b.tobytes(), f.__name__
        text = calque.jit(messages, dynamic="never").lower(x, i, w).compile().as_text("homes")
        assert "products copy these rows" in text


def test_the_part_of_a_row_is_asked_for_once():
    """A copy is one loop for each part, and in derivatives a tile asks once which part it is of."""
    x, w = np.ones((300, 64), "f"), np.ones((128, 64), "f")
    i = np.arange(40_000) % 300

    def f(x, i, w):
        return jnp.concatenate([x[i], x[i[::-1]]], 1) @ w

    loops = calque.jit(f, dynamic="never").lower(x, i, w).compile().as_text("loops")
    copies = re.findall(r"rows\[t, m, .*\] = .*", loops)
    assert len(copies) == 2 and not any("select((kc" in c or " if " in c for c in copies)
    if not has_masks():
        return  # a tile of its rows has no vectors of its own
    slopes = calque.jit(calque.grad(lambda x, i, w: f(x, i, w).sum(), 2), dynamic="never")
    loops = slopes.lower(x, i, w).compile().as_text("loops")
    (copy,) = re.findall(r"rows\[t, kc, mv\] = .*", loops)
    asked = re.search(r"%0 = (.*)", loops[: loops.index(copy)].rpartition("for mv")[2])
    assert asked is not None and "mv" not in asked[1]
    order = loops[: loops.index(copy)].rpartition("for i <")[2]
    assert order.index("for kc") < order.index("for t")  # a row is looked for once in its block


@pytest.mark.parametrize("columns", [1, 30, 64, 300, 2000, 9000])
@pytest.mark.parametrize("depth", [24, 128, 500, 700])
def test_homes_and_products_agree_about_what_is_copied(columns, depth):
    """Rows that are not stored since a product copies them are copied by it, for all sizes."""
    x, w = np.ones((300, depth), "f"), np.ones((depth, columns), "f")
    i = np.arange(2 + (1 << 19) // depth) % 300
    e = calque.jit(lambda x, i, w: jnp.sin(x[i]) @ w, dynamic="never").lower(x, i, w).compile()
    inlined = "products copy these rows" in e.as_text("homes")
    loops = e.as_text("loops")
    copied = re.findall(r"rows\[t, m, .*\] = sin", loops)
    assert bool(copied) == inlined and loops.count("sin(") == 1
