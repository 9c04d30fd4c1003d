"""Reads: at any stride, under guards, gathered; never beyond what is asked for."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

from calque.native.emit.making import compile_kernels
from calque.native.loops.tree import (
    Acc,
    For,
    Store,
)
from calque.native.scalars.expr import (
    cast,
    ex,
    load,
    param,
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
    rng,
)
from tests.native.run_kernel import (
    NP,
    array,
    bits,
    call,
    random,
    run,
    run_plain,
    words,
)


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


PAGE = 4096


def at_the_end_of_a_page(a):
    """A copy whose last byte is the last that may be read, and the memory to hold on to."""
    whole = mmap.mmap(-1, 2 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(whole))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + PAGE), PAGE, 0) == 0
    out = np.frombuffer(whole, a.dtype, len(a), PAGE - a.nbytes)
    out[:] = a
    return out, whole


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel for a page nobody may read")
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_nothing_is_read_behind_the_end(step):
    """The page behind an array may not be there: wide loads end with the last element wanted."""
    x, y = array("x", "f32", m), array("y", "f32", n)
    body = (For(i, (Store(y, (i,), load(x, (ex("mul", i, c(step)),))),), (), "vector", 16),)
    for size in (1, 16, 23, 48):
        a, _held = at_the_end_of_a_page(np.arange(step * (size - 1) + 1, dtype="f4"))
        out = np.zeros(size, "f4")
        run(body, {x: a, y: out, "n": size, "m": len(a)})
        np.testing.assert_array_equal(out, a[::step])


def test_a_guard_that_differs_from_lane_to_lane_over_one_element():
    """The same element for all lanes, read only if some lane may."""
    x, y, ok = array("x", "f32", m), array("y", "f32", n), array("ok", "i1", n)
    body = (For(i, (Store(y, (i,), load(x, (c(0),), load(ok, (i,)))),), (), "vector", 16),)
    (kernel,) = compile_kernels([body])
    for allowed in ([False] * 19, [True, False] * 10):
        out = np.full(len(allowed), 9, "f4")
        flags = np.array(allowed)
        a = np.array([5.0], "f4")
        args = words(kernel, {x: a, y: out, ok: flags, "n": len(allowed), "m": 1})
        if not any(allowed):
            args[list(kernel.buffers).index(x)] = 8  # no address
        call(kernel.address, args)
        np.testing.assert_array_equal(out, np.where(flags, 5, 0))


@pytest.mark.parametrize("avx512", [True, False])
@pytest.mark.parametrize("back", [False, True])
def test_reads_that_no_lane_makes_go_to_no_wild_place(avx512: bool, back: bool) -> None:
    """A processor takes long for those where there is no memory. What some lanes read they read,
    be they at the ends of the vector or between."""
    x, y = array("x", "f32", m), array("y", "f32", n)
    at = ex("sub", c(40), i) if back else ex("sub", i, c(5))
    inside = ex("and", ex("ge", at, c(0)), ex("lt", at, m))
    odd = ex("eq", ex("mod", i, c(2)), c(1))
    for guard in (inside, ex("and", inside, odd), ex("and", odd, inside)):
        body = (For(i, (Store(y, (i,), load(x, (at,), guard)),), (), "vector", 16),)
        for size, inner in ((100, 3), (100, 20), (16, 2), (64, 60), (90, 1)):
            a, out = rng.standard_normal(inner).astype("f4"), np.zeros(size, "f4")
            text = run_plain(body, {x: a, y: out, "n": size, "m": inner}, avx512=avx512)
            places = 40 - np.arange(size) if back else np.arange(size) - 5
            reads = (places >= 0) & (places < inner)
            if guard is not inside:
                reads &= np.arange(size) % 2 == 1
            want = np.where(reads, a[np.clip(places, 0, inner - 1)], 0)
            np.testing.assert_array_equal(out, want)
            assert "ptr %dummy" in text
