"""Branches: one side alone where all lanes agree, both where they part."""

import numpy as np
import pytest

from calque.native.emit.making import compile_kernels
from calque.native.loops.tree import (
    For,
    If,
    Out,
    Store,
)
from calque.native.scalars.expr import (
    cast,
    const,
    ex,
    load,
    param,
    ref,
)
from tests.native.emit.shared import (
    c,
    f32,
    i,
    m,
    n,
    rng,
)
from tests.native.run_kernel import (
    array,
    call,
    run,
    run_plain,
    words,
)


def test_conditions():
    y, p = array("y", "f32", n), param("p", "i32")
    big = ex("gt", p, const(3, "i32"))
    body = (
        If(big, (Store(y, (c(0),), f32(1.0)),), (Store(y, (c(0),), f32(2.0)),), (Out("r", load(y,
        (c(1),)), f32(-1.0)),)),
        Store(y, (c(2),), ex("add", ref("r", "f32"), load(y, (c(0),)))),
    )  # fmt: skip
    for v, want in ((5, [1, 10, 11]), (1, [2, 10, 1])):
        out = np.array([0, 10, 0], "f4")
        run(body, {y: out, "n": 3, p: v})
        assert list(out) == want


def test_conditions_protect_reads():
    x, y, k = array("x", "f32", m), array("y", "f32", n), array("k", "i32", n)
    at = cast(load(k, (i,)), "i64")
    body = (For(i, (If(ex("lt", at, m), (Store(y, (i,), load(x, (at,))),)),)),)
    out = np.zeros(3, "f4")
    run(
        body, {x: np.array([5.0], "f4"), y: out, k: np.array([0, 1 << 30, 0], "i4"), "n": 3, "m": 1}
    )
    assert list(out) == [5, 0, 5]


@pytest.mark.parametrize("avx512", [True, False])
def test_lanes_part(avx512):
    """Nested: each side stores and gives values for its own lanes, and for none in a rest."""
    x, y, z = (array(s, "i64", n) for s in "xyz")
    v = load(x, (i,))
    inner = If(
        ex("gt", v, c(10)),
        (Store(z, (i,), c(3)),),
        (Store(z, (i,), c(2)),),
        (Out("k", ex("mul", v, c(2)), ex("add", v, c(100))),),
    )
    outer = If(
        ex("gt", v, c(0)),
        (inner,),
        (Store(z, (i,), c(1)),),
        (Out("r", ref("k", "i64"), ex("neg", v)),),
    )
    body = (For(i, (outer, Store(y, (i,), ref("r", "i64"))), (), "vector", 8),)
    for size in (1, 8, 27):
        for a in (rng.integers(-20, 30, size), np.full(size, 20), np.full(size, -1)):
            out, side = np.zeros(size, "i8"), np.zeros(size, "i8")
            run_plain(body, {x: a, y: out, z: side, "n": size}, avx512=avx512)
            assert (side == np.where(a > 10, 3, np.where(a > 0, 2, 1))).all()
            assert (out == np.where(a > 10, 2 * a, np.where(a > 0, a + 100, -a))).all()


def test_a_side_that_no_lane_takes_is_not_run():
    """It would read where nothing may be read."""
    x, y, k = array("x", "f32", m), array("y", "f32", n), array("k", "i64", n)
    ok = ex("ge", load(k, (i,)), c(0))
    side = If(ok, (), (), (Out("r", load(x, (load(k, (i,)),)), f32(-1.0)),))
    body = (For(i, (side, Store(y, (i,), ref("r", "f32"))), (), "vector", 8),)
    (kernel,) = compile_kernels([body])
    places, out = np.full(19, -1), np.zeros(19, "f4")
    args = words(kernel, {x: out, y: out, k: places, "n": 19, "m": 1})
    args[list(kernel.buffers).index(x)] = 8  # no address
    call(kernel.address, args)
    assert (out == -1).all()
