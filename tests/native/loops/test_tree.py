"""Every kind of statement, run against NumPy; printing, traversal and the verifier."""

from dataclasses import replace

import numpy as np
import pytest

from calque.native.emit.kernels import compile_kernels
from calque.native.loops.tree import (
    Acc,
    Fold,
    For,
    If,
    Let,
    Out,
    Recurrence,
    State,
    Store,
    as_fold,
    identity,
    loaded,
    map_exprs,
    nodes,
    pretty,
    statements,
    stored,
)
from calque.native.loops.verify import MalformedKernel, verify
from calque.native.scalars.expr import Buffer, cast, const, ex, load, param, ref, select, var
from tests.native.run_kernel import NP, array, bits, call, random, run, run_plain, words

SIZES = (0, 1, 15, 16, 17, 31, 63, 64, 65, 130, 1000)
n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)
rng = np.random.default_rng(0)


def f32(v):
    return const(v, "f32")


def c(v):
    return const(v)


def ordered_sum(x, op=np.add, start=0):
    """The order of a vector loop: blocks of 64 folded to 16 lanes by halves."""
    x = np.asarray(x)
    acc = np.full(16, start, x.dtype)
    for k in range(0, len(x), 64):
        b = np.full(64, start, x.dtype)
        b[: len(x) - k] = x[k : k + 64]
        b = op(b[:32], b[32:])
        acc = op(acc, op(b[:16], b[16:]))
    w = 8
    while w:
        acc = op(acc[:w], acc[w : 2 * w])
        w //= 2
    return acc[0]


# --- reductions -----------------------------------------------------------------------------------


ORDERS = {"serial": "sequential", "vector": "blocked"}


def reduction(op, dtype, kind="vector", width=64, init=None):
    x, y = array("x", dtype, n), array("y", dtype)
    return (
        x,
        y,
        (
            For(i, (), (Acc("a", op, load(x, (i,)), init=init, order=ORDERS[kind]),), kind, width),
            Store(y, (), ref("a", dtype)),
        ),
    )


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_float_sums_have_one_order(op, dtype):
    x, y, body = reduction(op, dtype)
    f, start = (np.add, 0) if op == "sum" else (np.multiply, 1)
    for size in SIZES:
        a = (rng.standard_normal(size) * (1 if op == "sum" else 0.1) + (op == "prod")).astype(
            NP[dtype]
        )
        out = np.zeros((), NP[dtype])
        run(body, {x: a, y: out, "n": size})
        np.testing.assert_array_equal(bits(out), bits(ordered_sum(a, f, start)))
        out2 = np.zeros((), NP[dtype])
        run_plain(body, {x: a, y: out2, "n": size}, avx512=False)
        np.testing.assert_array_equal(bits(out), bits(out2))


def test_serial_sums_go_in_order():
    x, y, body = reduction("sum", "f32", "serial", 1)
    a = rng.standard_normal(100).astype("f4")
    out, want = np.zeros((), "f4"), np.float32(0)
    run(body, {x: a, y: out, "n": 100})
    for v in a:
        want += v
    assert out == want


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
        assert out == np.array(NP[dtype](run_const(identity(op, dtype))))


def run_const(e):
    from calque.native.scalars.expr import const_value

    return const_value(e)


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
    for size in SIZES[1:]:
        a = rng.integers(0, 20, size).astype("f4")
        value, where = np.zeros((), "f4"), np.zeros((), "i4")
        run(body, {x: a, y: value, at: where, "n": size})
        assert value == a.max() and where == a.argmax()


def blocked_cumsum(a):
    out, carry = np.empty_like(a), a.dtype.type(0)
    for k in range(0, len(a), 16):
        b = np.zeros(16, a.dtype)
        b[: len(a) - k] = a[k : k + 16]
        for d in (1, 2, 4, 8):
            b = np.array([b[p // d * d - 1] + b[p] if p & d else b[p] for p in range(16)], a.dtype)
        out[k : k + 16] = (carry + b)[: len(a) - k]
        carry = carry + b[15]
    return out


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
def test_running_sums(dtype):
    x, y = array("x", dtype, n), array("y", dtype, n)
    acc = Acc("a", "scan", load(x, (i,)))
    store = Store(y, (i,), ref("a", dtype))
    for size in SIZES:
        a = random(dtype, (size,), rng, special=False)
        out = np.zeros(size, NP[dtype])
        run((For(i, (store,), (acc,), "vector", 16),), {x: a, y: out, "n": size})
        np.testing.assert_array_equal(
            bits(out), bits(blocked_cumsum(a) if dtype[0] == "f" else np.cumsum(a, dtype=a.dtype))
        )
        plain = replace(acc, order="sequential")
        run((For(i, (store,), (plain,)),), {x: a, y: out, "n": size})
        np.testing.assert_array_equal(bits(out), bits(np.cumsum(a, dtype=a.dtype)))


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


# --- nests ----------------------------------------------------------------------------------------


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


def test_reads_never_leave_loops_that_may_be_empty():
    """x is not there at all when m is 0."""
    x, y = array("x", "f32", m), array("y", "f32", n)
    body = (
        For(i, (For(j, (), (Acc("a", "sum", ex("mul", load(x, (c(0),)), load(x, (j,)))),),
        "vector", 64), Store(y, (i,), ref("a", "f32")))),
    )  # fmt: skip
    (k,) = compile_kernels([body])
    out = np.ones(3, "f4")
    order = {x: np.zeros(0, "f4"), y: out, "n": 3, "m": 0}
    args = words(k, order)
    args[list(k.buffers).index(x)] = 8  # no address
    call(k.address, args)
    np.testing.assert_array_equal(out, 0)


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


def test_parallel_bounds():
    x, y = array("x", "f32", n, m), array("y", "f32", n, m)
    body = (
        For(
            i,
            (For(j, (Store(y, (i, j), ex("add", load(x, (i, j)), f32(1.0))),), (), "vector", 16),),
            (),
            "parallel",
        ),
    )
    a, out = rng.standard_normal((7, 20)).astype("f4"), np.zeros((7, 20), "f4")
    k = run(body, {x: a, y: out, "n": 7, "m": 20}, begin=2, end=5)
    assert k.parallel
    np.testing.assert_array_equal(out[2:5], a[2:5] + 1)
    assert not out[:2].any() and not out[5:].any()


# --- access ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "u8", "f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, -1, -2])
def test_strides(step, dtype):
    x, y = array("x", dtype, m), array("y", dtype, n)
    at = (
        ex("mul", i, c(step)) if step > 0 else ex("mul", ex("sub", ex("sub", n, c(1)), i), c(-step))
    )
    for size in (1, 16, 33, 70):
        a, out = (
            random(dtype, (abs(step) * (size - 1) + 1,), rng, special=False),
            np.zeros(size, NP[dtype]),
        )
        values = {x: a, y: out, "n": size, "m": len(a)}
        run((For(i, (Store(y, (i,), load(x, (at,))),), (), "vector", 32),), values)
        np.testing.assert_array_equal(bits(out), bits(a[::step]))
        back = np.zeros(len(a), NP[dtype])
        run(
            (For(i, (Store(x, (at,), load(y, (i,))),), (), "vector", 32),),
            {x: back, y: out, "n": size, "m": len(a)},
        )
        np.testing.assert_array_equal(bits(back[::step]), bits(out))


def test_guards():
    x, y = array("x", "f32", m), array("y", "f32", n)
    shifted = ex("sub", i, c(3))
    ok = ex("and", ex("ge", shifted, c(0)), ex("lt", shifted, m))
    for kind, width in (("serial", 1), ("vector", 32)):
        for size, inner in ((20, 10), (40, 37), (70, 0), (33, 64)):
            a, out = rng.standard_normal(inner).astype("f4"), np.zeros(size, "f4")
            body = (For(i, (Store(y, (i,), load(x, (shifted,), ok)),), (), kind, width),)
            run(body, {x: a, y: out, "n": size, "m": inner})
            want = np.zeros(size, "f4")
            want[3 : 3 + inner] = a[: max(size - 3, 0)]
            np.testing.assert_array_equal(out, want)
            out[:] = 7
            run(
                (For(i, (Store(y, (i,), f32(1.0), ok),), (), kind, width),),
                {y: out, "n": size, "m": inner},
            )
            np.testing.assert_array_equal(out == 1, [0 <= k - 3 < inner for k in range(size)])


def test_uniform_guards_in_vector_loops():
    x, y, ok = array("x", "f32", n), array("y", "f32", n), param("ok", "i1")
    body = (
        For(i, (Store(y, (i,), ex("add", load(x, (i,), ok), load(x, (c(0),), ok))),), (),
        "vector", 32),
        For(i, (Store(y, (i,), f32(9.0), ex("and", ok, ex("lt", i, c(3)))),), (), "vector", 16),
    )  # fmt: skip
    for size in (20, 64, 67):
        a, out = rng.standard_normal(size).astype("f4"), np.ones(size, "f4")
        run(body, {x: a, y: out, "n": size, ok: True})
        want = a + a[0]
        want[:3] = 9
        np.testing.assert_array_equal(out, want)
        run(body, {x: a, y: out, "n": size, ok: False})
        assert not out.any()


def test_gather_and_scatter():
    x, y, k = array("x", "f64", m), array("y", "f64", n), array("k", "i32", n)
    at = cast(load(k, (i,)), "i64")
    for size in (1, 16, 50):
        a, out, idx = (
            rng.standard_normal(100),
            np.zeros(size),
            rng.permutation(100)[:size].astype("i4"),
        )
        run(
            (For(i, (Store(y, (i,), load(x, (at,))),), (), "vector", 32),),
            {x: a, y: out, k: idx, "n": size, "m": 100},
        )
        np.testing.assert_array_equal(out, a[idx])
        back = np.zeros(100)
        run(
            (For(i, (Store(x, (at,), load(y, (i,))),), (), "vector", 32),),
            {x: back, y: out, k: idx, "n": size, "m": 100},
        )
        np.testing.assert_array_equal(back[idx], out)


def test_collisions_in_serial_loops_add_up():
    x, k = array("x", "f32", m), array("k", "i32", n)
    at = cast(load(k, (i,)), "i64")
    idx, out = rng.integers(0, 5, 100).astype("i4"), np.zeros(5, "f4")
    run(
        (For(i, (Store(x, (at,), ex("add", load(x, (at,)), f32(1.0))),)),),
        {x: out, k: idx, "n": 100, "m": 5},
    )
    np.testing.assert_array_equal(out, np.bincount(idx, minlength=5))


@pytest.mark.parametrize("avx512", [True, False])
def test_complex_numbers_are_pairs(avx512):
    x, y = array("x", "f32", n, 2), array("y", "f32", n, 2)
    re, im = load(x, (i, c(0))), load(x, (i, c(1)))
    square = (
        ex("sub", ex("mul", re, re), ex("mul", im, im)),
        ex("mul", f32(2.0), ex("mul", re, im)),
    )
    body = (
        For(i, (Store(y, (i, c(0)), square[0]), Store(y, (i, c(1)), square[1])), (), "vector", 32),
    )
    for size in (0, 1, 31, 32, 50):
        a = (rng.standard_normal(size) + 1j * rng.standard_normal(size)).astype("c8")
        out = np.zeros(size, "c8")
        text = run_plain(body, {x: a, y: out, "n": size}, exact=True, avx512=avx512)
        np.testing.assert_allclose(out, a * a, rtol=1e-6, atol=1e-6)
    assert "gather" not in text and "scatter" not in text


def test_division_of_indices():
    x, y = array("x", "i64", ex("mul", n, m)), array("y", "i64", ex("mul", n, m))
    k = var("k", ex("mul", n, m))
    e = ex("add", ex("mul", ex("mod", k, n), m), ex("floordiv", k, n))
    body = (For(k, (Store(y, (k,), load(x, (e,))),), (), "vector", 16),)
    for shape in ((3, 5), (16, 16), (1, 40), (0, 4)):
        a = rng.integers(0, 100, shape[0] * shape[1])
        out = np.zeros_like(a)
        run(body, {x: a, y: out, "n": shape[0], "m": shape[1]})
        np.testing.assert_array_equal(out, a.reshape(shape).T.reshape(-1))
    k = var("k", 60)
    body = (
        For(
            k,
            (
                Store(
                    y,
                    (k,),
                    ex("add", ex("mul", ex("mod", k, c(7)), c(100)), ex("floordiv", k, c(7))),
                ),
            ),
            (),
            "vector",
            16,
        ),
    )
    out = np.zeros(60, "i8")
    run(body, {y: out, "n": 1, "m": 60})
    np.testing.assert_array_equal(out, np.arange(60) % 7 * 100 + np.arange(60) // 7)


def test_iota():
    for dtype in ("i8", "u16", "i32", "i64", "f32", "f64", "f16"):
        y = array("y", dtype, n)
        for extent in (n, const(70)):
            k = var("k", extent)
            out = np.zeros(70, NP[dtype])
            run(
                (
                    For(
                        k,
                        (Store(y, (k,), cast(ex("add", ex("mul", k, c(3)), c(5)), dtype)),),
                        (),
                        "vector",
                        32,
                    ),
                ),
                {y: out, "n": 70},
            )
            np.testing.assert_array_equal(out, (np.arange(70) * 3 + 5).astype(NP[dtype]))


def test_constant_and_stack_buffers():
    table = array("t", "f32", 4, place="const", data=np.array([1, 2, 3, 4], "f4").tobytes())
    work = array("w", "f32", 4, place="stack")
    y, k = array("y", "f32", n), var("k", 4)
    body = (
        For(k, (Store(work, (k,), ex("mul", load(table, (k,)), f32(2.0))),), (), "vector", 4),
        For(i, (Store(y, (i,), load(work, (ex("mod", i, c(4)),))),)),
    )  # fmt: skip
    out = np.zeros(9, "f4")
    run(body, {y: out, "n": 9})
    np.testing.assert_array_equal(out, [2, 4, 6, 8, 2, 4, 6, 8, 2])


# --- states and conditions ------------------------------------------------------------------------


def test_while_with_states():
    y = array("y", "i64", 2)
    a, steps = ref("a", "i64"), ref("s", "i64")
    even = ex("eq", ex("and", a, c(1)), c(0))
    step = select(even, ex("ashr", a, c(1)), ex("add", ex("mul", a, c(3)), c(1)))
    body = (
        Recurrence((State("a", param("p", "i64"), step), State("s", c(0), ex("add", steps, c(1)))),
        (), cond=ex("ne", a, c(1))),
        Store(y, (c(0),), a),
        Store(y, (c(1),), steps),
    )  # fmt: skip
    out = np.zeros(2, "i8")
    for start, count in ((27, 111), (1, 0), (6, 8)):
        run(body, {y: out, param("p", "i64"): start})
        assert list(out) == [1, count]


def test_scan_with_states_and_arrays():
    """Fibonacci numbers; all states change at once."""
    y = array("y", "i64", n)
    a, b = ref("a", "i64"), ref("b", "i64")
    body = (
        Recurrence(
            (State("a", c(0), b), State("b", c(1), ex("add", a, b))), (Store(y, (i,), a),), var=i
        ),
    )
    out = np.zeros(12, "i8")
    run(body, {y: out, "n": 12})
    assert list(out) == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    run(body, {y: out, "n": 0})


def test_states_differ_from_lane_to_lane():
    """z -> z*z + c, a fixed number of times, in every lane."""
    x, y = array("x", "f32", m), array("y", "f32", m)
    z, k = ref("z", "f32"), var("k", n)
    body = (
        For(j, (
            Recurrence((State("z", f32(0.0), ex("add", ex("mul", z, z), load(x, (j,)))), State("q",
            f32(1.0), f32(2.0))), (), var=k),
            Store(y, (j,), ex("mul", z, ref("q", "f32"))),
        ), (), "vector", 16),
    )  # fmt: skip
    for size in (5, 16, 40):
        a, out = (rng.random(size) * 0.2).astype("f4"), np.zeros(size, "f4")
        run(body, {x: a, y: out, "n": 5, "m": size}, exact=True)
        want = np.zeros(size, "f4")
        for _ in range(5):
            want = want * want + a
        np.testing.assert_array_equal(out, want * 2)


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


# --- form -----------------------------------------------------------------------------------------


def sample():
    x, y = array("x", "f32", n, m), array("y", "f32", n)
    v = load(x, (i, j))
    return (
        x,
        y,
        (
            For(
                i,
                (
                    For(j, (), (Acc("a", "sum", ex("mul", v, v)),), "vector", 64),
                    Store(y, (i,), ref("a", "f32")),
                ),
            ),
        ),
    )


def test_printing():
    _x, _y, body = sample()
    assert (
        pretty(body)
        == "for i < n:\n  for j < m @vector(64):\n    a = sum((x[i, j] * x[i, j]))\n  y[i] = a"
    )


def test_traversal():
    x, y, body = sample()
    assert stored(body) == {y} and loaded(body) == {x}
    assert [type(s).__name__ for s in statements(body)] == ["For", "For", "Store"]
    assert {e.op for e in nodes(body)} == {"var", "mul", "load", "ref"}
    assert map_exprs(body, lambda e: e) == body
    assert as_fold(Acc("a", "max", f32(0.0))).combine[0].op == "max"


def broken():
    x, y, _ = sample()
    s = Store(y, (i,), f32(0.0))
    yield "is used outside", (For(i, (s,)), s)
    yield "is not known", (For(i, (Store(y, (i,), ref("z", "f32")),)),)
    yield "f32 wanted", (For(i, (Store(y, (i,), const(1, "i32")),)),)
    yield "is an input", (For(i, (For(j, (Store(x, (i, j), f32(0.0)),)),)),)
    yield "not the outermost", (For(i, (s,), (), "parallel"), For(i, (s,)))
    yield (
        "stands in that",
        (For(i, (For(j, (Store(x, (i, j), f32(0.0)),), (), "vector", 4),), (), "vector", 4),),
    )
    yield "no power of two", (For(i, (s,), (), "vector", 12),)
    yield "is its order", (For(i, (), (Acc("a", "sum", load(y, (i,))),), "vector", 32),)
    yield "is its order", (For(i, (), (Acc("a", "scan", load(y, (i,))),), "vector", 32),)
    yield "all lanes store", (For(i, (Store(y, (c(0),), load(y, (i,))),), (), "vector", 4),)
    yield "bound where", (For(i, (For(i, (s,)),)),)
    yield "no fold", (For(i, (), (Acc("a", "mean", load(y, (i,))),)),)
    yield "indices given", (For(i, (Store(y, (i, i), f32(0.0)),)),)
    yield "without count", (Recurrence((), ()),)
    yield (
        "changes from",
        (Recurrence((State("a", c(0), f32(0.0)),), (), cond=ex("lt", ref("a", "i64"), c(5))),),
    )


@pytest.mark.parametrize("message, body", list(broken()))
def test_the_verifier_refuses(message, body):
    x = next((s.buf for s in statements(body) if isinstance(s, Store) and s.buf.name == "x"), None)
    with pytest.raises(MalformedKernel, match=message):
        verify(body, [x] if x is not None and message == "is an input" else [])


# --- tiles ----------------------------------------------------------------------------------------


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
