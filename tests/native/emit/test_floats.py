"""Operations on floats against NumPy, as scalars and as vectors, over sizes around the widths."""

import numpy as np
import pytest

from calque.native.emit import floats
from calque.native.emit.lanes import SCALAR
from calque.native.emit.making import compile_kernels
from calque.native.emit.values import value
from calque.native.emit.writer import CodeOptions, Writer
from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    const,
    ex,
    load,
)
from tests.native.emit.shared import (
    ALL,
    SIZES,
    arithmetic,
    check,
    f32,
    i,
    n,
)
from tests.native.run_kernel import (
    FLOATS,
    INTS,
    NP,
    array,
    bits,
    call,
    random,
    run,
    run_plain,
    words,
)


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
def test_arithmetic(dtype):
    check(arithmetic("add"), (dtype, dtype), dtype, np.add)
    check(arithmetic("sub"), (dtype, dtype), dtype, np.subtract)
    check(arithmetic("mul"), (dtype, dtype), dtype, np.multiply)
    check(arithmetic("neg"), (dtype,), dtype, np.negative)
    check(arithmetic("abs"), (dtype,), dtype, np.abs)


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
def test_extremes(dtype):
    check(arithmetic("max"), (dtype, dtype), dtype, np.maximum, sizes=(17, 65), zeros=False)
    check(arithmetic("min"), (dtype, dtype), dtype, np.minimum, sizes=(17, 65), zeros=False)
    three = const(3, dtype)
    check(
        lambda a: ex("max", a, three),
        (dtype,),
        dtype,
        lambda a: np.maximum(a, a.dtype.type(3)),
        sizes=(65,),
        zeros=False,
    )
    check(
        lambda a: ex("min", three, a),
        (dtype,),
        dtype,
        lambda a: np.minimum(a.dtype.type(3), a),
        sizes=(65,),
        zeros=False,
    )


def test_extremes_of_zeros_take_the_first():
    x, y, z = (array(s, "f32", n) for s in "xyz")
    e = ex("max", load(x, (i,)), load(y, (i,)))
    (k,) = compile_kernels([(For(i, (Store(z, (i,), e),), (), "vector", 32),)])
    a, b, out = (
        np.array([0.0, -0.0] * 20, "f4"),
        np.array([-0.0, 0.0] * 20, "f4"),
        np.ones(40, "f4"),
    )
    call(k.address, words(k, {x: a, y: b, z: out, "n": 40}))
    np.testing.assert_array_equal(bits(out), bits(a))


@pytest.mark.parametrize("dtype", ALL)
def test_comparisons(dtype):
    for op, meaning in (
        ("lt", np.less),
        ("le", np.less_equal),
        ("gt", np.greater),
        ("ge", np.greater_equal),
        ("eq", np.equal),
        ("ne", np.not_equal),
    ):
        check(arithmetic(op), (dtype, dtype), "i1", meaning, sizes=(0, 17, 65))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_functions(dtype):
    check(arithmetic("div"), (dtype, dtype), dtype, np.divide)
    check(arithmetic("sqrt"), (dtype,), dtype, np.sqrt)
    for op, meaning in (
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("trunc", np.trunc),
        ("round", np.rint),
    ):
        check(arithmetic(op), (dtype,), dtype, meaning, sizes=(65,))
    check(arithmetic("copysign"), (dtype, dtype), dtype, np.copysign, sizes=(65,))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_rounds_once(dtype):
    t = NP[dtype]
    eps = t(np.finfo(t).eps)

    def make(size, rng):
        return [np.full(size, 1 + eps, t), np.full(size, 1 - eps, t), np.full(size, -1, t)]

    check(
        arithmetic("fma"),
        (dtype,) * 3,
        dtype,
        lambda a, b, c: np.full(len(a), -(eps * eps), t),
        make,
        (65,),
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_ldexp(dtype):
    def make(size, rng):
        x = (rng.random(size) + 0.5).astype(NP[dtype])
        return [x, rng.integers(-160, 120, size).astype(np.int32)]

    check(arithmetic("ldexp"), (dtype, "i32"), dtype, np.ldexp, make, (65,))


def test_exact_mode_keeps_both_roundings():
    x, y = array("x", "f32", n), array("y", "f32", n)
    e = ex("add", ex("mul", load(x, (i,)), load(x, (i,))), const(-1.0, "f32"))
    a = np.full(40, 1 + 2**-12, "f4")
    results = []
    for exact in (True, False):
        (k,) = compile_kernels([(For(i, (Store(y, (i,), e),), (), "vector", 32),)], exact=exact)
        out = np.zeros(40, "f4")
        call(k.address, words(k, {x: a, y: out, "n": 40}))
        results.append(out)
    np.testing.assert_array_equal(results[0], a * a - np.float32(1))
    fused = (a.astype("f8") ** 2 - 1).astype("f4")
    assert all(v in (f, e) for v, f, e in zip(results[1], fused, results[0], strict=True))


@pytest.mark.parametrize("avx512", [True, False])
def test_other_processors(avx512):
    """Tails one by one give the same bits."""
    x, y = array("x", "f32", n), array("y", "f32", n)
    e = ex("ldexp", ex("sqrt", ex("abs", load(x, (i,)))), const(3, "i32"))
    rng = np.random.default_rng(0)
    for size in SIZES:
        a, out = random("f32", (size,), rng, special=False), np.zeros(size, "f4")
        run_plain(
            (For(i, (Store(y, (i,), e),), (), "vector", 32),),
            {x: a, y: out, "n": size},
            avx512=avx512,
        )
        np.testing.assert_array_equal(out, np.sqrt(np.abs(a)) * 8)


def test_which_constants_are_nans():
    for dtype in FLOATS:
        values = {float("nan"): True, float("inf"): False, -float("inf"): False, 1.0: False}
        for v, nan in values.items():
            assert floats.is_nan(const(v, dtype)) is nan
        assert not floats.is_nan(const(-0.0, dtype))


def test_the_extreme_of_a_constant_is_one_comparison():
    """A nan of the other operand passes by the comparison itself; a constant nan needs its own."""
    x, y = array("x", "f32", n), array("y", "f32", n)
    for v, tests in ((2.0, 1), (float("nan"), 2)):
        e = ex("max", load(x, (i,)), f32(v))
        w = Writer("f", CodeOptions(), frozenset())
        w.bind("i", "%i")
        w.bind("n", "%n")
        w.pointers[x] = "%x"
        value(w, e, SCALAR)
        assert sum("fcmp" in line for line in w.out.lines) == tests
        a, out = np.array([1, 3, np.nan], "f4"), np.zeros(3, "f4")
        run((For(i, (Store(y, (i,), e),)),), {x: a, y: out, "n": 3})
        np.testing.assert_array_equal(out, np.maximum(a, np.float32(v)))
