"""Folds: sums in one order, extremes, pairs, running ones; over lanes, in vectors of any width."""

import ctypes
import itertools

import numpy as np
import pytest

from calque.machine.records import replace
from calque.native.emit import folds
from calque.native.emit.lanes import Lanes
from calque.native.emit.writer import CodeOptions, Writer
from calque.native.loops.tree import (
    Acc,
    Fold,
    For,
    Store,
    as_fold,
    identity,
)
from calque.native.scalars.expr import (
    cast,
    const,
    const_value,
    ex,
    load,
    param,
    ref,
    select,
    var,
)
from tests.native.emit.shared import (
    LENGTHS,
    ORDERS,
    address_of,
    c,
    f32,
    i,
    n,
    ordered_sum,
    reduction,
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


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_float_sums_have_one_order(op, dtype):
    x, y, body = reduction(op, dtype)
    f, start = (np.add, 0) if op == "sum" else (np.multiply, 1)
    for size in LENGTHS:
        a = (rng.standard_normal(size) * (1 if op == "sum" else 0.1) + (op == "prod")).astype(
            NP[dtype]
        )
        out = np.zeros((), NP[dtype])
        run(body, {x: a, y: out, "n": size})
        np.testing.assert_array_equal(bits(out), bits(ordered_sum(a, f, start)))
        out2 = np.zeros((), NP[dtype])
        run_plain(body, {x: a, y: out2, "n": size}, avx512=False)
        np.testing.assert_array_equal(bits(out), bits(out2))


@pytest.mark.parametrize(
    "dtype", ["i1", "i8", "u16", "i32", "i64", "u64", "f16", "bf16", "f32", "f64"]
)
@pytest.mark.parametrize("op", ["max", "min", "and", "or", "xor", "sum"])
def test_other_folds(op, dtype):
    if (dtype[0] in "bf" and op not in ("max", "min")) or (dtype == "i1" and op == "sum"):
        return
    meaning = {
        "max": np.max,
        "min": np.min,
        "and": np.bitwise_and.reduce,
        "or": np.bitwise_or.reduce,
        "xor": np.bitwise_xor.reduce,
        "sum": np.sum,
    }[op]
    for kind, width in (("serial", 1), ("vector", 32), ("vector", 64)):
        x, y, body = reduction(op, dtype, kind, width)
        for size in (1, 17, 64, 130):
            a, out = random(dtype, (size,), rng, special=False), np.zeros((), NP[dtype])
            run(body, {x: a, y: out, "n": size})
            with np.errstate(all="ignore"):
                assert out == (meaning(a).astype(a.dtype) if op == "sum" else meaning(a))
        run(body, {x: a, y: out, "n": 0})
        assert out == np.array(NP[dtype](const_value(identity(op, dtype))))


def test_nan_is_the_maximum():
    x, y, body = reduction("max", "f32")
    a = np.arange(100, dtype="f4")
    for where in (0, 63, 64, 99):
        b, out = a.copy(), np.zeros((), "f4")
        b[where] = np.nan
        run(body, {x: b, y: out, "n": 100})
        assert np.isnan(out)


def test_a_given_start():
    for kind, width in (("serial", 1), ("vector", 64)):
        x, y, body = reduction("sum", "f32", kind, width, init=param("p", "f32"))
        out = np.zeros((), "f4")
        p = param("p", "f32")
        run(body, {x: np.ones(70, "f4"), y: out, "n": 70, p: 5.0})
        assert out == 75
        run(body, {x: np.ones(0, "f4"), y: out, "n": 0, p: 5.0})
        assert out == 5


@pytest.mark.parametrize("size", [1, 3, 8, 10, 16, 20, 32, 40, 64])
def test_narrow_vectors_of_small_extents_give_the_same_bits(size):
    width = 1 << (size - 1).bit_length()
    k = var("k", size)
    x, y = array("x", "f32", size), array("y", "f32")
    body = (
        For(k, (), (Acc("a", "sum", load(x, (k,))),), "vector", width),
        Store(y, (), ref("a", "f32")),
    )
    a, out = rng.standard_normal(size).astype("f4"), np.zeros((), "f4")
    run(body, {x: a, y: out})
    assert out == ordered_sum(a)


def argmax(kind, width):
    x, y, at = array("x", "f32", n), array("y", "f32"), array("at", "i32")
    lm, li, rm, ri = ref("lm", "f32"), ref("li", "i32"), ref("rm", "f32"), ref("ri", "i32")
    better = ex("or", ex("gt", rm, lm), ex("and", ex("eq", rm, lm), ex("lt", ri, li)))
    fold = Fold(
        ("m", "k"), (f32(float("-inf")), const(2**31 - 1, "i32")), (load(x, (i,)), cast(i,
        "i32")), (lm, li), (rm, ri),
        (select(better, rm, lm), select(better, ri, li)), order=ORDERS[kind],
    )  # fmt: skip
    return (
        x,
        y,
        at,
        (
            For(i, (), (fold,), kind, width),
            Store(y, (), ref("m", "f32")),
            Store(at, (), ref("k", "i32")),
        ),
    )


@pytest.mark.parametrize("kind, width", [("serial", 1), ("vector", 64)])
def test_general_folds(kind, width):
    x, y, at, body = argmax(kind, width)
    for size in LENGTHS[1:]:
        a = rng.integers(0, 20, size).astype("f4")
        value, where = np.zeros((), "f4"), np.zeros((), "i4")
        run(body, {x: a, y: value, at: where, "n": size})
        assert value == a.max() and where == a.argmax()


def blocked_cumsum(a):
    wide = np.float32 if a.dtype.itemsize == 2 else np.float64
    out, carry = np.empty_like(a), wide(0)
    for k in range(0, len(a), 16):
        b = np.zeros(16, a.dtype)
        b[: len(a) - k] = a[k : k + 16]
        for d in (1, 2, 4, 8):
            b = np.array([b[p // d * d - 1] + b[p] if p & d else b[p] for p in range(16)], a.dtype)
        out[k : k + 16] = (a.dtype.type(carry) + b)[: len(a) - k]
        carry = carry + wide(b[15])
    return out


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i32"])
def test_running_sums(dtype):
    x, y = array("x", dtype, n), array("y", dtype, n)
    acc = Acc("a", "scan", load(x, (i,)))
    store = Store(y, (i,), ref("a", dtype))
    for size in LENGTHS:
        a = random(dtype, (size,), rng, special=False)
        out = np.zeros(size, NP[dtype])
        run((For(i, (store,), (acc,), "vector", 16),), {x: a, y: out, "n": size})
        np.testing.assert_array_equal(
            bits(out), bits(blocked_cumsum(a) if "f" in dtype else np.cumsum(a, dtype=a.dtype))
        )
        plain = replace(acc, order="sequential")
        run((For(i, (store,), (plain,)),), {x: a, y: out, "n": size})
        with np.errstate(over="ignore"):
            in_order = np.array(list(itertools.accumulate(a)), a.dtype)
        np.testing.assert_array_equal(bits(out), bits(in_order))


def test_running_maximum_and_its_result():
    x, y, z = array("x", "i32", n), array("y", "i32", n), array("z", "i32")
    body = (
        For(
            i,
            (Store(y, (i,), ref("a", "i32")),),
            (Acc("a", "max", load(x, (i,)), running=True),),
            "vector",
            16,
        ),
        Store(z, (), ref("a", "i32")),
    )
    for size in (1, 16, 40):
        a, out, last = random("i32", (size,), rng), np.zeros(size, "i4"), np.zeros((), "i4")
        run(body, {x: a, y: out, z: last, "n": size})
        np.testing.assert_array_equal(out, np.maximum.accumulate(a))
        assert last == a.max()


def test_parts_are_dealt_out_fold_by_fold():
    one, two = as_fold(Acc("a", "sum", f32(1.0))), pair_fold()
    assert folds.split(["%1", "%2", "%3"], [one, two]) == [["%1"], ["%2", "%3"]]
    assert folds.fold_types(two, 8) == ["<8 x float>", "<8 x i64>"]
    assert folds.fold_types(two, 0) == ["float", "i64"]


def pair_fold():
    """The last of two values, and how many there were: not commutative."""
    left = (ref("lv", "f32"), ref("lc", "i64"))
    right = (ref("rv", "f32"), ref("rc", "i64"))
    later = select(ex("gt", right[1], c(0)), right[0], left[0])
    return Fold(
        ("v", "k"), (f32(0.0), c(0)), (f32(1.0), c(1)), left, right,
        (later, ex("add", left[1], right[1])),
    )  # fmt: skip


@pytest.mark.parametrize("width", [2, 8, 16])
def test_a_prefix_inside_a_vector(width):
    """With a neutral element and without one: lane k holds what 0 to k make."""
    for op, whole in (("sum", np.cumsum), ("max", np.maximum.accumulate)):
        fold = as_fold(Acc("a", op, load(array("x", "i32", n), (i,)), running=True))
        for known in (fold, replace(fold, neutral=())):
            w = Writer("f", CodeOptions(), frozenset())
            t = f"<{width} x i32>"
            v = w.new(f"load {t}, ptr %x, align 4")
            (r,) = folds.prefix(w, known, [v], Lanes(width))
            w.put(f" store {t} {r}, ptr %x, align 4")
            a = rng.integers(-9, 9, width).astype("i4")
            want = whole(a)
            f = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address_of(w, "define void @f(ptr %x)"))
            f(a.ctypes.data)
            np.testing.assert_array_equal(a, want)
