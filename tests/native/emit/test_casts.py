"""Conversions: every dtype to every other, rounded once, and indices that are counted in their
type."""

import ml_dtypes
import numpy as np
import pytest

from calque.native.emit import emitter
from calque.native.emit.making import compile_kernels
from calque.native.emit.writer import CodeOptions
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    cast,
    const,
    ex,
    var,
)
from tests.native.emit.shared import (
    ALL,
    c,
    check,
    maps,
    n,
)
from tests.native.run_kernel import (
    FLOATS,
    INTS,
    NP,
    array,
    call,
    random,
    run,
    words,
)


def saturated(x, to):
    info = np.iinfo(NP[to])
    out = []
    for v in np.asarray(x, np.float64):
        out.append(
            0
            if np.isnan(v)
            else info.min
            if v <= info.min
            else info.max
            if v >= info.max
            else int(v)
        )
    return np.array(out, NP[to])


@pytest.mark.parametrize("src", ALL)
def test_casts(src):
    for dst in ALL:
        if src in FLOATS and dst in INTS:

            def meaning(x, dst=dst):
                return saturated(x, dst)
        elif dst == "i1":

            def meaning(x):
                return x != 0
        elif src == "f64" and dst == "bf16":
            continue  # ml_dtypes rounds twice
        elif dst == "bf16" and src in INTS:

            def meaning(x):
                return x.astype(np.float32)
        else:

            def meaning(x, dst=dst):
                return x.astype(NP[dst])

        check(lambda x, dst=dst: cast(x, dst), (src,), dst, meaning, sizes=(17, 100))


@pytest.mark.parametrize("src", ["f32", "f64"])
@pytest.mark.parametrize("dst", INTS)
def test_floats_at_the_ends_of_an_integer(src, dst):
    """The floats next to the least and the largest integer, infinities and NaN, lane by lane."""
    t, info = NP[src], np.iinfo(NP[dst])
    ends = np.array([info.min, info.max, info.max + 1.0, -1.0, 0.0, 1.0], t)
    beside = [np.nextafter(ends, t(way)) for way in (-np.inf, np.inf)]
    x = np.concatenate([ends, *beside, np.array([np.inf, -np.inf, np.nan, -0.0, 0.99, -0.99], t)])
    x = np.tile(x, 6)
    xs, y, bodies = maps(lambda a: cast(a, dst), (src,), dst)
    k, _ = compile_kernels(bodies)
    got = np.zeros(x.size, NP[dst])
    call(k.address, words(k, {xs[0]: x, y: got, "n": x.size}))
    np.testing.assert_array_equal(got, saturated(x, dst))


def test_double_to_narrow_rounds_once():
    x = np.array(
        [1 + 2**-9 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8 + 2**-40, 1 + 2**-8], np.float64
    )
    xs, y, bodies = maps(lambda a: cast(a, "bf16"), ("f64",), "bf16")
    k, _ = compile_kernels(bodies)
    got = np.zeros(4, ml_dtypes.bfloat16)
    call(k.address, words(k, {xs[0]: x, y: got, "n": 4}))
    np.testing.assert_array_equal(got.astype(np.float64), [1.0, 1.0, 1 + 2**-7, 1.0])
    xs, y, bodies = maps(lambda a: cast(a, "f16"), ("f64",), "f16")
    k, _ = compile_kernels(bodies)
    x = np.array(
        [1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 2**-25 + 2**-60, 65520 - 2**-30], np.float64
    )
    got = np.zeros(4, np.float16)
    call(k.address, words(k, {xs[0]: x, y: got, "n": 4}))
    np.testing.assert_array_equal(got, x.astype(np.float16))


def finite(dtype):
    return lambda size, rng: [
        (
            random(dtype, (size,), rng, special=False)
            if dtype in FLOATS
            else rng.integers(0, 100, size).astype(NP[dtype])
        )
    ]


@pytest.mark.parametrize(
    "pair",
    [
        ("f16", "u16"),
        ("bf16", "i16"),
        ("f32", "i32"),
        ("f64", "u64"),
        ("i8", "u8"),
        ("f16", "bf16"),
    ],
)
def test_bitcasts(pair):
    a, b = pair
    check(
        lambda x: cast(x, b, "bitcast"),
        (a,),
        b,
        lambda x: np.where(x != x, x, x).view(NP[b]),
        make=finite(a),
        sizes=(65,),
    )
    check(
        lambda x: cast(x, a, "bitcast"),
        (b,),
        a,
        lambda x: x.view(NP[a]),
        make=finite(b),
        sizes=(65,),
    )


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


@pytest.mark.parametrize("dst", ["i8", "u8", "i32", "u64"])
def test_fast_casts_are_those_of_the_range(dst):
    """Inside of the target's range, where alone they say anything."""
    info = np.iinfo(NP[dst])

    def make_values(size, rng):
        return [np.trunc(rng.uniform(max(info.min, -(2.0**60)), min(info.max, 2.0**60), size))]

    check(
        lambda x: cast(x, dst, "cast_fast"),
        ("f64",),
        dst,
        lambda x: x.astype(NP[dst]),
        make_values,
        (65,),
    )


def test_an_index_is_converted_by_way_of_32_bits_where_it_fits():
    """64-bit conversions are missing on many machines."""
    y = array("y", "f32", const(300))
    for k, narrow in ((var("k", 300), True), (var("k", n), False)):
        e = cast(ex("mul", k, k), "f32")
        order = canonical((body := For(k, (Store(y, (k,), e),), (), "vector", 8),))
        text = emitter.write_kernel(
            "f", order.buffers, order.sizes, order.params, (body,), CodeOptions()
        ).text
        assert ("sitofp <8 x i32>" in text) == narrow and ("sitofp <8 x i64>" in text) != narrow
