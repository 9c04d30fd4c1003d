"""Folds of heavy bodies: a few lanes at a time, and the same bits as all lanes at once."""

import numpy as np
import pytest

from calque.native.emit import emitter
from calque.native.emit.modules import processor
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import Acc, Fold, For, Let, Store
from calque.native.scalars.expr import const, ex, load, ref, select, var
from tests.native.emit.shared import LENGTHS, f32, i, n, rng
from tests.native.run_kernel import array, run, run_plain

BROAD = {"avx512": True, "register_bytes": 64}
NARROW = {"avx512": False, "register_bytes": 32}


def text_of(body, has):
    order = canonical(body)
    options = emitter.CodeOptions(**{**processor(), **has})
    return emitter.write_kernel("k", order.buffers, order.sizes, order.params, body, options).text


def total(value, *inside, d="f32"):
    """y[0] = sum(value) over i."""
    y = array("y", d, var("one"))
    body = (
        For(i, inside, (Acc("s", "sum", value),), "vector", 64),
        Store(y, (const(0),), ref("s", d)),
    )
    return y, body


def heavy(e):
    """A long chain: more than the registers hold for 64 lanes."""
    for k in range(40):
        e = ex("sub", ex("mul", e, f32(0.5)), f32(k))
    return e


def column(x, k):
    return load(x, (i, const(k)))


def test_a_light_body_is_written_for_all_lanes_and_a_heavy_one_in_portions():
    x = array("x", "f32", n)
    _, light = total(load(x, (i,)))
    _, long = total(heavy(load(x, (i,))))
    assert "<16 x float>, ptr" not in text_of(light, NARROW).replace("align 64", "")
    assert "= load <16 x float>, ptr" in text_of(long, NARROW)
    assert "= load <64 x float>, ptr %t" in text_of(long, BROAD)


def test_gathers_are_written_in_portions_where_the_processor_has_none():
    x = array("x", "f32", n, const(7))
    _, body = total(ex("add", column(x, 0), column(x, 3)))
    assert "gather.v16f32" in text_of(body, NARROW)
    assert "gather.v64f32" not in text_of(body, NARROW)
    assert "gather.v64f32" in text_of(body, BROAD)


def test_what_may_not_be_gathered_is_read_from_zeros():
    """A masked gather would be a jump for each lane."""
    x = array("x", "f32", n, const(7))
    _, body = total(load(x, (i, const(5)), ex("lt", i, const(100))))
    text = text_of(body, NARROW)
    gathers = [line for line in text.splitlines() if "call" in line and "gather" in line]
    assert gathers and all("splat (i1 true)" in line for line in gathers)
    assert "x ptr> %" in text.partition("select <16 x i1>")[2]


def test_a_rest_that_gathers_is_read_one_by_one_where_the_processor_has_no_masks():
    """LLVM would write as much for each of its vectors as for a whole one."""
    x = array("x", "f32", n, const(7))
    _, body = total(column(x, 5))
    whole, rest = text_of(body, NARROW).split("gather.v16f32.v16p0(<16 x ptr> ")
    assert "= load float" in rest and "= load float" not in whole
    assert "gather.v64f32" in text_of(body, BROAD).rpartition("icmp slt")[2]


@pytest.mark.parametrize("size", LENGTHS)
def test_sums_of_columns(size):
    x = array("x", "f32", n, const(7))
    y, body = total(ex("mul", column(x, 1), ex("add", column(x, 6), column(x, 2))))
    a, out = rng.integers(-9, 9, (size, 7)).astype("f4"), np.zeros(1, "f4")
    run(body, {x: a, y: out, "n": size, "one": 1})
    assert out[0] == (a[:, 1] * (a[:, 6] + a[:, 2])).sum()


@pytest.mark.parametrize("size", LENGTHS)
def test_the_order_of_a_sum_is_that_of_all_lanes_at_once(size):
    """Not exact sums: 64 -> 32 -> 16 partial sums, in the end 16 -> 8 -> 4 -> 2 -> 1."""
    x = array("x", "f32", n)
    y, body = total(heavy(load(x, (i,))))
    a, out = rng.standard_normal(size).astype("f4"), np.zeros(1, "f4")
    run(body, {x: a, y: out, "n": size, "one": 1}, exact=True)
    v = a
    for k in range(40):
        v = v * np.float32(0.5) - np.float32(k)
    v = np.concatenate([v, np.zeros(-size % 64, "f4")]).reshape(-1, 64)
    part = np.zeros(16, "f4")
    for row in v:
        row = row[:32] + row[32:]
        part = part + (row[:16] + row[16:])
    while len(part) > 1:
        part = part[: len(part) // 2] + part[len(part) // 2 :]
    assert out[0].tobytes() == part[0].tobytes()


@pytest.mark.parametrize("size", LENGTHS)
@pytest.mark.parametrize("sign", ["", "neg"])
def test_a_product_is_contracted_with_the_sum_as_ever(size, sign):
    """What is kept of a product are its factors: adding it is one instruction where there is one,
    on every processor."""
    x = array("x", "f32", n, const(3))
    e = ex("mul", column(x, 0), column(x, 1))
    y, body = total(ex("neg", e) if sign else e)
    a = rng.standard_normal((size, 3)).astype("f4")
    found = []
    for has in (BROAD, NARROW, {**NARROW, "register_bytes": 16}):
        out = np.zeros(1, "f4")
        run_plain(body, {x: a, y: out, "n": size, "one": 1}, **has)
        found.append(out.tobytes())
    assert len(set(found)) == 1


def test_the_last_lanes_of_a_light_sum_are_read_one_by_one_where_masks_are_slow():
    """Whole registers first; what comes of them is put together as all lanes at once."""
    x, z = array("x", "f32", n), array("z", "f32", n)
    _, body = total(ex("mul", load(x, (i,)), load(z, (i,))))
    assert "masked.load" not in text_of(body, NARROW)
    rest = text_of(body, NARROW).rpartition("align 64")[0].rpartition("load <64")[0]
    assert "= load <8 x float>, ptr" in rest and "= load float, ptr" in rest
    assert "masked.load.v64f32" in text_of(body, BROAD)
    _, long = total(heavy(load(x, (i,))))
    assert "masked.load.v16f32" in text_of(long, NARROW)


@pytest.mark.parametrize("size", LENGTHS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_light_sum_is_the_same_on_every_processor(size, dtype):
    kind = {"f4": "f32", "f8": "f64"}[dtype]
    x, z = array("x", kind, n), array("z", kind, n)
    y, body = total(ex("mul", load(x, (i,)), load(z, (i,))), d=kind)
    a, b = rng.standard_normal((2, size)).astype(dtype)
    found = []
    for has in (BROAD, NARROW, {**NARROW, "register_bytes": 16}):
        out = np.zeros(1, dtype)
        run_plain(body, {x: a, z: b, y: out, "n": size, "one": 1}, **has)
        found.append(out.tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("size", LENGTHS)
def test_the_body_may_store_and_bind(size):
    x, z = array("x", "f32", n, const(5)), array("z", "f32", n)
    half = Let("h", ex("mul", column(x, 4), f32(0.5)))
    square = ex("mul", ref("h", "f32"), ref("h", "f32"))
    y, body = total(square, half, Store(z, (i,), ref("h", "f32")))
    a, out, kept = (
        rng.integers(-9, 9, (size, 5)).astype("f4"),
        np.zeros(1, "f4"),
        np.zeros(size, "f4"),
    )
    run(body, {x: a, y: out, z: kept, "n": size, "one": 1})
    np.testing.assert_array_equal(kept, a[:, 4] / 2)
    assert out[0] == (a[:, 4] ** 2 / 4).sum()


@pytest.mark.parametrize("size", [1, 16, 17, 64, 65, 200])
def test_the_largest_with_its_place(size):
    """Two values are kept; a place that is an index of the loop is not."""
    x = array("x", "f32", n, const(3))
    y, z = array("y", "f32", var("one")), array("z", "i64", var("one"))
    left = (ref("lm", "f32"), ref("li", "i64"))
    right = (ref("rm", "f32"), ref("ri", "i64"))
    later = ex("gt", right[0], left[0])
    fold = Fold(
        ("top", "at"), (f32(-np.inf), const(0)), (column(x, 1), i), left, right,
        (select(later, right[0], left[0]), select(later, right[1], left[1])),
    )  # fmt: skip
    body = (
        For(i, (), (fold,), "vector", 64),
        Store(y, (const(0),), ref("top", "f32")),
        Store(z, (const(0),), ref("at", "i64")),
    )
    a = np.stack([rng.permutation(size)] * 3, 1).astype("f4")
    top, at = np.zeros(1, "f4"), np.zeros(1, "i8")
    run(body, {x: a, y: top, z: at, "n": size, "one": 1})
    assert (top[0], at[0]) == (a[:, 1].max(), a[:, 1].argmax())


def test_several_sums_share_a_portion():
    x = array("x", "f32", n, const(7))
    y = array("y", "f32", const(2))
    accs = (Acc("s", "sum", column(x, 1)), Acc("t", "max", ex("add", column(x, 1), column(x, 2))))
    body = (
        For(i, (), accs, "vector", 64),
        *[Store(y, (const(k),), ref(name, "f32")) for k, name in enumerate("st")],
    )
    a, out = rng.integers(-9, 9, (150, 7)).astype("f4"), np.zeros(2, "f4")
    run(body, {x: a, y: out, "n": 150})
    np.testing.assert_array_equal(out, [a[:, 1].sum(), (a[:, 1] + a[:, 2]).max()])


def mapped(value, d="f32"):
    y = array("y", d, n)
    return y, (For(i, (Store(y, (i,), value),), (), "vector", 32),)


def chain(x, k):
    e = load(x, (i,))
    for q in range(k):
        e = ex("sub", ex("mul", e, f32(0.5)), f32(q))
    return e


def test_the_rest_of_a_map_is_masked_where_it_computes_enough():
    x, small = array("x", "f32", n), array("x", "u8", n)
    wide = load(array("w", "f32", n, const(7)), (i, const(3)))
    _, light = mapped(ex("add", load(x, (i,)), f32(1)))
    _, long = mapped(chain(x, 4))
    _, apart = mapped(ex("add", chain(x, 4), wide))
    _, bytes_ = mapped(ex("add", load(small, (i,)), const(1, "u8")), "u8")
    assert "@llvm.masked.store.v16f32" in text_of(long, NARROW)
    for body in (light, apart, bytes_):
        assert "masked.store" not in text_of(body, NARROW)
    assert "@llvm.masked.store" in text_of(light, BROAD)


@pytest.mark.parametrize("size", LENGTHS)
def test_a_masked_rest_of_a_map_has_the_same_bits_and_writes_nothing_behind_it(size):
    x = array("x", "f32", n)
    y, body = mapped(chain(x, 4))
    a = rng.standard_normal(size).astype("f4")
    out, one = np.full(size + 40, 7, "f4"), np.zeros(size, "f4")
    run_plain(body, {x: a, y: out, "n": size}, **NARROW)
    serial = (For(i, body[0].body),)
    run(serial, {x: a, y: one, "n": size})
    np.testing.assert_array_equal(out[:size], one)
    assert (out[size:] == 7).all()
