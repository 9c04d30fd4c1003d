"""Loops over lanes: what folds inside of them give."""

import numpy as np

from calque.native.loops.tree import Acc, For, Let, Store
from calque.native.scalars.expr import ex, load, ref, var
from tests.native.run_kernel import array, run

n, m, q = var("n"), var("m"), var("q")
i, j, k = var("i", n), var("j", m), var("k", q)


def columns(*inside):
    """y[i] = t, with i in lanes."""
    y = array("y", "f32", n)
    return y, (For(i, (*inside, Store(y, (i,), ref("t", "f32"))), (), "vector", 32),)


def test_a_fold_of_a_fold_differs_from_lane_to_lane():
    """It is the inner fold's value alone that says so."""
    x = array("x", "f32", m, q, n)
    inner = For(k, (), (Acc("s", "sum", load(x, (j, k, i)), order="sequential"),))
    y, body = columns(For(j, (inner,), (Acc("t", "max", ref("s", "f32")),)))
    for size in (1, 31, 32, 70):
        a = np.random.default_rng(0).integers(-9, 9, (3, 4, size)).astype("f4")
        out = np.zeros(size, "f4")
        run(body, {x: a, y: out, "n": size, "m": 3, "q": 4})
        np.testing.assert_array_equal(out, a.sum(1).max(0))


def test_a_fold_of_what_its_body_binds():
    x = array("x", "f32", m, n)
    square = Let("s", ex("mul", load(x, (j, i)), load(x, (j, i))))
    y, body = columns(For(j, (square,), (Acc("t", "sum", ref("s", "f32"), order="sequential"),)))
    a, out = np.arange(150, dtype="f4").reshape(3, 50), np.zeros(50, "f4")
    run(body, {x: a, y: out, "n": 50, "m": 3})
    np.testing.assert_array_equal(out, (a * a).sum(0))
