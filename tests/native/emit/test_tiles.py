"""Arrays turned round in square tiles."""

import numpy as np
import pytest

from calque.native.emit import tiles
from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    ex,
    load,
    var,
)
from tests.native.emit.shared import (
    c,
    i,
    j,
    m,
    n,
    rng,
)
from tests.native.run_kernel import (
    NP,
    array,
    bits,
    random,
    run,
    run_plain,
)


@pytest.mark.parametrize(
    "dtype, width",
    [("f32", 16), ("f32", 8), ("f64", 8), ("u8", 16), ("f16", 16), ("bf16", 16), ("i1", 16)],
)
@pytest.mark.parametrize("avx512", [True, False])
def test_transposition_in_tiles(dtype, width, avx512):
    x, y = array("x", dtype, m, n), array("y", dtype, n, m)
    body = (
        For(
            i,
            (For(j, (Store(y, (i, j), load(x, (j, i))),), (), "vector", width),),
            (),
            "tile",
            width,
        ),
    )
    for shape in ((0, 3), (3, 0), (1, 1), (16, 16), (17, 33), (40, 15), (15, 40), (64, 50)):
        a, out = random(dtype, shape, rng, special=False), np.zeros(shape[::-1], NP[dtype])
        text = run_plain(body, {x: a, y: out, "m": shape[0], "n": shape[1]}, avx512=avx512)
        np.testing.assert_array_equal(bits(out), bits(a.T))
    assert ("shufflevector" in text) == ("alloca" in text)
    assert text.count(" call void @turned_") == (width == 16)


def test_squares_whose_rows_lie_unevenly_are_turned_in_line():
    """y[i, j] = x[(j % 3) * 7 + i]: no one step leads from each row to the next."""
    x, y = array("x", "f32", n), array("y", "f32", m, m)
    i, j = var("i", m), var("j", m)
    at = ex("add", ex("mul", ex("mod", j, c(3)), c(7)), i)
    row = For(j, (Store(y, (i, j), load(x, (at,))),), (), "vector", 16)
    body = (For(i, (row,), (), "tile", 16),)
    a, out = random("f32", (60,), rng, special=False), np.zeros((40, 40), "f4")
    text = run_plain(body, {x: a, y: out, "n": 60, "m": 40})
    np.testing.assert_array_equal(out, a[np.arange(40)[:, None] + np.arange(40) % 3 * 7])
    assert "call void @turned_" not in text and "alloca" in text


def test_addresses_that_move_evenly():
    known = ex("mul", n, m)
    for e in (i, n, ex("sub", known, i), ex("mul", ex("add", ex("mul", i, c(14)), j), n)):
        assert tiles.is_even(e, "i")
    for e in (ex("mul", i, i), ex("mod", i, c(2)), ex("add", n, ex("floordiv", i, c(2)))):
        assert not tiles.is_even(e, "i")


def test_tiles_beside_other_reads():
    """y[i, j] = x[j, i] + x[i, j] * b[j] + c[i] + x[j, i + 1], some of it guarded."""
    k = ex("add", m, c(1))
    x, b, d, y = (
        array("x", "f32", k, k),
        array("b", "f32", m),
        array("d", "f32", m),
        array("y", "f32", m, m),
    )
    i2 = var("i", m)
    e = ex(
        "add",
        ex("add", load(x, (j, i2)), ex("mul", load(x, (i2, j)), load(b, (j,)))),
        ex("add", load(d, (i2,)), load(x, (j, ex("add", i2, c(1))))),
    )
    e = ex("add", e, load(x, (j, i2), ex("lt", j, i2)))
    body = (For(i2, (For(j, (Store(y, (i2, j), e),), (), "vector", 16),), (), "tile", 16),)
    for size in (5, 16, 37):
        a, bb, dd = (
            rng.standard_normal(s).astype("f4") for s in ((size + 1, size + 1), size, size)
        )
        out = np.zeros((size, size), "f4")
        run(body, {x: a, b: bb, d: dd, y: out, "m": size}, exact=True)
        s = a[:size, :size]
        want = ((s.T + s * bb) + (dd[:, None] + a[:size, 1:].T)) + np.triu(s, 1).T
        np.testing.assert_array_equal(out, want)
