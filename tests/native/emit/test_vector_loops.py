"""Loops over lanes: what folds inside of them give, nests, rests."""

import numpy as np

from calque.native.loops.tree import (
    Acc,
    For,
    Let,
    Store,
)
from calque.native.scalars.expr import (
    Buffer,
    ex,
    load,
    ref,
    var,
)
from tests.native.emit.shared import (
    c,
    f32,
    i,
    j,
    m,
    n,
    ordered_sum,
    rng,
)
from tests.native.run_kernel import (
    array,
    run,
    run_plain,
)

q = var("q")
k = var("k", q)


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


def test_softmax_in_one_nest():
    x, y = array("x", "f32", n, m), array("y", "f32", n, m)
    v = load(x, (i, j))
    e = ex("mul", ex("sub", v, ref("top", "f32")), f32(0.5))
    body = (
        For(i, (
            For(j, (), (Acc("top", "max", v),), "vector", 64),
            For(j, (Store(y, (i, j), e),), (Acc("total", "sum", e),), "vector", 64),
            For(j, (Store(y, (i, j), ex("div", load(y, (i, j)), ref("total", "f32"))),), (),
            "vector", 32),
        )),
    )  # fmt: skip
    for shape in ((0, 5), (3, 1), (4, 16), (5, 77), (2, 0)):
        a, out = rng.standard_normal(shape).astype("f4"), np.zeros(shape, "f4")
        run(body, {x: a, y: out, "n": shape[0], "m": shape[1]}, exact=True)
        with np.errstate(all="ignore"):
            e_ = (a - a.max(1, keepdims=True, initial=-np.inf)) * np.float32(0.5)
            want = e_ / np.array([ordered_sum(r) for r in e_], "f4").reshape(-1, 1)
        np.testing.assert_array_equal(out, want)


def test_vector_loop_around_a_serial_one():
    x, y = array("x", "f32", n, m), array("y", "f32", m)
    body = (
        For(
            j,
            (
                For(i, (), (Acc("a", "sum", load(x, (i, j)), order="sequential"),)),
                Store(y, (j,), ref("a", "f32")),
            ),
            (),
            "vector",
            64,
        ),
    )
    for shape in ((0, 5), (3, 1), (4, 16), (5, 77), (9, 130)):
        a, out = rng.standard_normal(shape).astype("f4"), np.ones(shape[1], "f4")
        run(body, {x: a, y: out, "n": shape[0], "m": shape[1]})
        want = np.zeros(shape[1], "f4")
        for r in a:
            want += r
        np.testing.assert_array_equal(out, want)


def test_column_sums_in_lane_buffers():
    """The order of a row sum, down the columns."""
    acc = Buffer("acc", (16,), "f32", "lane")
    x, y = array("x", "f32", n, m), array("y", "f32", m)
    b, k, k2, w = (
        var("b", ex("floordiv", ex("add", n, c(63)), c(64))),
        var("k", 16),
        var("k2", 16),
        var("w", 8),
    )

    def at(q):
        row = ex("add", ex("add", ex("mul", b, c(64)), k2), c(q))
        return load(x, (row, j), ex("lt", row, n))

    block = ex("add", ex("add", at(0), at(32)), ex("add", at(16), at(48)))
    halves = []
    for width in (8, 4, 2, 1):
        w = var(f"w{width}", width)
        halves.append(
            For(
                w,
                (
                    Store(
                        acc, (w,), ex("add", load(acc, (w,)), load(acc, (ex("add", w, c(width)),)))
                    ),
                ),
            )
        )
    body = (
        For(j, (
            For(k, (Store(acc, (k,), f32(0.0)),)),
            For(b, (For(k2, (Store(acc, (k2,), ex("add", load(acc, (k2,)), block)),)),)),
            *halves,
            Store(y, (j,), load(acc, (c(0),))),
        ), (), "vector", 16),
    )  # fmt: skip
    for shape in ((1, 5), (70, 33), (200, 16), (0, 3)):
        a, out = rng.standard_normal(shape).astype("f4"), np.zeros(shape[1], "f4")
        run(body, {x: a, y: out, "n": shape[0], "m": shape[1]})
        np.testing.assert_array_equal(out, np.array([ordered_sum(col) for col in a.T], "f4"))
        out[:] = 0
        run_plain(body, {x: a, y: out, "n": shape[0], "m": shape[1]}, avx512=False)
        np.testing.assert_array_equal(out, np.array([ordered_sum(col) for col in a.T], "f4"))


def test_what_is_overwritten_is_not_moved_again() -> None:
    """c = b and d = e in one loop, where d stands in the memory of b: no vector may end with the
    last element by reading some of b twice."""
    b, made, d, e = (array(name, "f32", n) for name in ("b", "made", "d", "e"))
    k = var("k", n)
    moves = Store(made, (k,), load(b, (k,))), Store(d, (k,), load(e, (k,)))
    for size in (3, 13, 16, 41):
        shared, new = np.arange(size, dtype="f4"), np.full(size, -1, "f4")
        copy = np.zeros(size, "f4")
        run(
            (For(k, moves, (), "vector", 8),), {b: shared, d: shared, made: copy, e: new, "n": size}
        )
        np.testing.assert_array_equal(copy, np.arange(size))
        np.testing.assert_array_equal(shared, new)
