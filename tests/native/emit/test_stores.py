"""Writes: seen by later reads, once where all lanes mean one element, pairs together."""

import numpy as np
import pytest

from calque.native.emit.loads import contiguous
from calque.native.emit.stores import store_contiguous
from calque.native.loops.tree import (
    For,
    Let,
    Store,
)
from calque.native.scalars.expr import (
    Buffer,
    cast,
    const,
    ex,
    load,
    ref,
    var,
)
from tests.native.emit.shared import (
    c,
    f32,
    i,
    m,
    n,
    rng,
)
from tests.native.emit.test_writer import writer
from tests.native.run_kernel import (
    array,
    run,
    run_plain,
)


def test_stores_are_seen_by_later_reads():
    x, y = array("x", "i32", n), array("y", "i32", n)
    k = var("k", n)
    prev = load(x, (ex("max", ex("sub", k, c(1)), c(0)),))
    body = (
        For(k, (Store(x, (k,), ex("add", prev, const(1, "i32"))),)),
        For(i, (Store(y, (i,), load(x, (i,))), Store(x, (i,), const(0, "i32")), ), (), "vector",
        32),
    )  # fmt: skip
    for size in (1, 5, 40, 70):
        a, out = np.zeros(size, "i4"), np.zeros(size, "i4")
        run(body, {x: a, y: out, "n": size})
        np.testing.assert_array_equal(out, np.arange(1, size + 1))
        assert not a.any()


def test_a_value_read_before_a_store():
    x = array("x", "i32", n)
    k = ex("sub", ex("sub", n, c(1)), i)
    half = var("h", ex("floordiv", n, c(2)))
    k = ex("sub", ex("sub", n, c(1)), half)
    body = (
        For(
            half,
            (
                Let("a", load(x, (half,))),
                Store(x, (half,), load(x, (k,))),
                Store(x, (k,), ref("a", "i32")),
            ),
        ),
    )
    for size in (0, 1, 8, 9):
        a = np.arange(size, dtype="i4")
        run(body, {x: a, "n": size})
        np.testing.assert_array_equal(a, np.arange(size)[::-1])


def test_collisions_in_serial_loops_add_up():
    x, k = array("x", "f32", m), array("k", "i32", n)
    at = cast(load(k, (i,)), "i64")
    idx, out = rng.integers(0, 5, 100).astype("i4"), np.zeros(5, "f4")
    run(
        (For(i, (Store(x, (at,), ex("add", load(x, (at,)), f32(1.0))),)),),
        {x: out, k: idx, "n": 100, "m": 5},
    )
    np.testing.assert_array_equal(out, np.bincount(idx, minlength=5))


def marked(guard_of):
    """One element that is set if a guard holds in any lane."""
    x, y = array("x", "f32", n), array("y", "i32", 1)
    mark = Store(y, (c(0),), const(1, "i32"), guard_of(load(x, (i,))))
    return x, y, (For(i, (mark,), (), "vector", 16),)


@pytest.mark.parametrize("avx512", [True, False])
def test_one_mark_for_all_lanes(avx512):
    """A nan is looked for in both halves at once, any other guard lane by lane; rests count."""
    nan, large = marked(lambda v: ex("ne", v, v)), marked(lambda v: ex("gt", v, f32(5.0)))
    for (x, y, body), odd in ((nan, np.nan), (large, 9.0)):
        for size in (1, 16, 21, 40):
            for where in (None, 0, size // 2, size - 1):
                a, out = np.ones(size, "f4"), np.zeros(1, "i4")
                if where is not None:
                    a[where] = odd
                run_plain(body, {x: a, y: out, "n": size}, avx512=avx512)
                assert out[0] == (where is not None), (size, where)
    text = run_plain(nan[2], {nan[0]: np.ones(16, "f4"), nan[1]: np.zeros(1, "i4"), "n": 16})
    assert "fcmp uno <8 x float>" in text


def test_guarded_pairs_are_one_store():
    """Both parts of a complex number under one guard; under two guards, two stores."""
    y = array("y", "f32", n, 2)
    for guards, wide in (((5, 5), 1), ((5, 6), 0)):
        parts = [
            Store(y, (i, c(k)), cast(ex("add", i, c(10 * k)), "f32"), ex("lt", i, c(limit)))
            for k, limit in enumerate(guards)
        ]
        for order in (parts, parts[::-1]):
            out = np.zeros((20, 2), "f4")
            text = run_plain((For(i, tuple(order), (), "vector", 8),), {y: out, "n": 20})
            want = np.stack([np.arange(20), np.arange(20) + 10], 1).astype("f4")
            for k, limit in enumerate(guards):
                want[limit:, k] = 0
            np.testing.assert_array_equal(out, want)
            assert ("masked.store.v16f32" in text) == bool(wide)


def test_what_a_pair_reads_of_itself_keeps_its_order():
    """y[i] = (y[i].imag, y[i].real): the second store reads what the first has written."""
    y = array("y", "f32", n, 2)
    swap = (Store(y, (i, c(0)), load(y, (i, c(1)))), Store(y, (i, c(1)), load(y, (i, c(0)))))
    a = np.arange(40, dtype="f4").reshape(20, 2)
    want = np.repeat(a[:, 1:], 2, 1)
    run((For(i, swap, (), "vector", 8),), {y: a, "n": 20})
    np.testing.assert_array_equal(a, want)


WORDS = Buffer("x", (const(64),), "f32")
HALF = "<i1 true, i1 true, i1 false, i1 false>"


def test_without_a_mask_it_is_a_plain_access() -> None:
    w = writer()
    v = contiguous(w, WORDS, "%p", None, 4)
    store_contiguous(w, WORDS, "%q", v, None, 4)
    assert w.out.lines[-2:] == [
        f" {v} = load <4 x float>, ptr %p, align 4",
        f" store <4 x float> {v}, ptr %q, align 4",
    ]


def test_under_a_mask_the_others_are_zeros_and_stay() -> None:
    w = writer()
    v = contiguous(w, WORDS, "%p", HALF, 4)
    store_contiguous(w, WORDS, "%q", v, HALF, 4)
    read, written = w.out.lines[-2:]
    assert "@llvm.masked.load.v4f32.p0" in read and HALF in read
    assert "zeroinitializer" in read and "@llvm.masked.store.v4f32.p0" in written
