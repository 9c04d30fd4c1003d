"""Vectors inside of an array do without the questions of its edges, and give the same bits."""

import numpy as np
import pytest

from calque.native.emit.inside import inside_of
from calque.native.loops.tree import Acc, For, Let, Store
from calque.native.lower.layout import guarded
from calque.native.scalars.expr import const, ex, load, ref, select, var
from tests.native.emit.shared import c, f32, i, j, m, n, rng
from tests.native.run_kernel import array, run, run_plain

PLAIN = {"avx512": False, "register_bytes": 32}
LENGTHS = (1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 100, 130)
x = array("x", "f32", n)


def at(k):
    return ex("add", i, const(k)) if k >= 0 else ex("sub", i, const(-k))


def rolled_back(by=1):
    """x[i - by], from the end where that is before the beginning."""
    low = ex("lt", i, c(by))
    end = load(x, (ex("add", i, ex("sub", n, c(by))),), low)
    return select(low, end, load(x, (at(-by),), ex("ge", at(-by), c(0))))


def rolled_on():
    edge = ex("sub", n, c(1))
    high = ex("lt", i, edge)
    return select(
        high,
        load(x, (at(1),), high),
        load(x, (ex("sub", i, edge),), ex("ge", ex("sub", i, edge), c(0))),
    )


def padded():
    inside = ex("lt", at(3), n)
    return select(inside, load(x, (at(3),), inside), f32(7.0))


VALUES = {
    "back": rolled_back(),
    "on": rolled_on(),
    "both": ex("add", ex("mul", rolled_back(), f32(2)), rolled_on()),
    "far": rolled_back(20),
    "padded": padded(),
}


def lengths(name):
    """A roll by 20 of fewer elements would read before the first."""
    return [size for size in LENGTHS if size >= (20 if name == "far" else 1)]


def mapped(value, width=16):
    y = array("y", "f32", n)
    return y, (For(i, (Store(y, (i,), value),), (), "vector", width),)


@pytest.mark.parametrize("name", VALUES)
def test_the_bits_of_one_after_the_other(name):
    y, body = mapped(VALUES[name])
    assert inside_of(body[0], {i.attr[0]}) is not None
    for size in lengths(name):
        a = rng.standard_normal(size).astype("f4")
        got, want = np.full(size, 9, "f4"), np.empty(size, "f4")
        text = run_plain(body, {x: a, y: got, "n": size}, **PLAIN)
        run((For(i, body[0].body),), {x: a, y: want, "n": size})
        np.testing.assert_array_equal(got, want)
    loop = text.split("phi i64")[1]
    assert "load <16 x float>, ptr" in loop and "load <8 x float>, ptr" in loop
    assert "masked.load.v8f32" in loop and "masked.load.v16f32" not in text


def test_what_is_near_the_beginning():
    """A size that is known to be small stands near the beginning: most vectors lie behind it."""
    by = ex("mod", const(1), n)  # as of a roll by one whose axis is free
    low = ex("lt", i, by)
    y, body = mapped(select(low, f32(7.0), load(x, (i,))))
    (question,) = inside_of(body[0], {i.attr[0]}).questions
    assert question.asked is low and not question.answer and question.high is None
    for size in LENGTHS:
        a = rng.standard_normal(size).astype("f4")
        got, want = np.zeros(size, "f4"), a.copy()
        want[: 1 % size] = 7
        run_plain(body, {x: a, y: got, "n": size}, **PLAIN)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", VALUES)
def test_short_rows(name):
    """Row after row: rests go register by register, and the last few elements by themselves."""
    rows, z = var("rows"), array("z", "f32", var("rows"), n)
    r = var("r", rows)
    y = array("y", "f32", rows, n)
    store = Store(y, (r, i), ex("add", VALUES[name], load(z, (r, i))))
    inner = For(i, (store,), (), "vector", 32)
    for size in lengths(name):
        a = rng.standard_normal(size).astype("f4")
        b = rng.standard_normal((3, size)).astype("f4")
        values = {x: a, z: b, "n": size, "rows": 3}
        got, want = np.full((3, size), 9, "f4"), np.empty((3, size), "f4")
        run_plain((For(r, (inner,)),), {**values, y: got}, **PLAIN)
        run((For(r, (For(i, (store,)),)),), {**values, y: want})
        np.testing.assert_array_equal(got, want)


def test_folds_inside():
    y = array("y", "f32", var("one"))
    body = (
        For(i, (), (Acc("s", "sum", ex("mul", rolled_back(), rolled_on())),), "vector", 64),
        Store(y, (const(0),), ref("s", "f32")),
    )
    assert inside_of(body[0], {i.attr[0]}) is not None
    for size in (1, 63, 64, 65, 200, 500):
        a = rng.standard_normal(size).astype("f4")
        got, want = np.zeros(1, "f4"), np.zeros(1, "f4")
        run_plain(body, {x: a, y: got, "n": size, "one": 1}, **PLAIN)
        expected = np.roll(a, 1) * np.roll(a, -1)
        run_plain(body, {x: a, y: want, "n": size, "one": 1}, avx512=True)
        assert got == want
        np.testing.assert_allclose(got[0], expected.sum(dtype="f8"), rtol=1e-4, atol=1e-4)


def test_stores_under_masks():
    y = array("y", "f32", n)
    odd = ex("lt", at(2), n)
    store = Store(y, (at(2),), load(x, (i,)), odd)
    body = (For(i, (Let("t", load(x, (i,))), store), (), "vector", 16),)
    for size in LENGTHS:
        a = rng.standard_normal(size).astype("f4")
        got = np.full(size, 9, "f4")
        run_plain(body, {x: a, y: got, "n": size}, **PLAIN)
        np.testing.assert_array_equal(got[:2], np.full(min(size, 2), 9, "f4"))
        np.testing.assert_array_equal(got[2:], a[: max(size - 2, 0)])


def test_what_is_written_once():
    """Loops that know their extent is short, what lies elsewhere for each lane, reads that only a
    mask allows."""
    varying = {i.attr[0]}
    _, plain = mapped(load(x, (i,)))
    assert inside_of(plain[0], varying) is None
    short = var("i", 20)
    value = select(ex("lt", short, c(1)), f32(1), f32(2))
    y = array("y", "f32", const(20))
    assert inside_of(For(short, (Store(y, (short,), value),), (), "vector", 16), varying) is None
    first = ex("lt", i, c(1))
    lone = array("lone", "f32", m)
    _, body = mapped(select(first, f32(0), load(lone, (j,), ex("ge", i, c(1)))))
    assert inside_of(body[0], varying) is None
    _, body = mapped(select(ex("lt", ex("mod", i, c(3)), c(1)), f32(0), f32(1)))
    assert inside_of(body[0], varying) is None


@pytest.mark.parametrize("avx512", [True, False])
def test_a_choice_for_all_lanes_reads_one_place(avx512):
    a2, b2 = array("a", "f32", m, n), array("b", "f32", m, n)
    top = ex("lt", j, c(1))
    there = load(a2, (ex("add", j, ex("sub", m, c(1))), i), top)
    above = load(b2, (ex("sub", j, c(1)), i), ex("ge", ex("sub", j, c(1)), c(0)))
    y = array("y", "f32", m, n)
    value = select(top, there, above)
    body = (For(j, (For(i, (Store(y, (j, i), value),), (), "vector", 16),)),)
    other = select(top, load(a2, (c(0), i)), guarded(load(b2, (j, i)), top))  # zero where chosen
    second = (For(j, (For(i, (Store(y, (j, i), other),), (), "vector", 16),)),)
    for rows, columns in ((1, 40), (5, 33), (3, 16), (4, 7)):
        p, q = (rng.standard_normal((rows, columns)).astype("f4") for _ in range(2))
        got = np.empty_like(p)
        sizes = {"m": rows, "n": columns}
        text = run_plain(body, {a2: p, b2: q, y: got, **sizes}, avx512=avx512)
        np.testing.assert_array_equal(got, np.concatenate([p[-1:], q[:-1]]))
        assert "select <16 x i1>" not in text  # nor in the masked rest
        run_plain(second, {a2: p, b2: q, y: got, **sizes}, avx512=avx512)
        np.testing.assert_array_equal(got, np.concatenate([p[:1], 0 * q[1:]]))


def test_stores_that_only_the_edge_makes():
    y = array("y", "f32", n)
    few = (Store(y, (i,), load(x, (i,)), ex("lt", i, c(5))),)
    body = (For(i, few, (), "vector", 16),)
    found = inside_of(body[0], {i.attr[0]})
    assert found is not None and not found.loop.body
    for size in LENGTHS:
        a = rng.standard_normal(size).astype("f4")
        got = np.full(size, 9, "f4")
        run_plain(body, {x: a, y: got, "n": size}, **PLAIN)
        np.testing.assert_array_equal(got, np.where(np.arange(size) < 5, a, np.float32(9)))
