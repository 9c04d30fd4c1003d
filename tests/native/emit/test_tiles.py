"""Arrays turned round in square tiles."""

import re

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
    columns = tiles.transposed(w, [f"row{r}" for r in range(n)], "t")
    assert [values[v] for v in columns] == [[(r, k) for r in range(n)] for k in range(n)]
    assert w.count == n * (n.bit_length() - 1)
