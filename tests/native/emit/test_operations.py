"""Every operation of every dtype against NumPy, as scalars and as vectors, over sizes around the
widths."""

import ml_dtypes
import numpy as np
import pytest

from calque.native.emit.kernels import compile_kernels
from calque.native.loops.tree import For, Store
from calque.native.loops.verify import verify
from calque.native.scalars.expr import cast, const, ex, load, select, var
from tests.native.run_kernel import FLOATS, INTS, NP, array, bits, call, random, run_plain, words

SIZES = (0, 1, 15, 16, 17, 33, 64, 65, 100)
ALL = ("i1", *INTS, *FLOATS)
n = var("n")
i = var("i", n)


def maps(op, dtypes, out):
    """A serial and a vector kernel of ``out[i] = op(x0[i], ...)``."""
    xs = [array(f"x{k}", d, n) for k, d in enumerate(dtypes)]
    y = array("y", out, n)
    e = op(*[load(x, (i,)) for x in xs])
    return (
        xs,
        y,
        [
            (For(i, (Store(y, (i,), e),), (), kind, w),)
            for kind, w in (("serial", 1), ("vector", 32))
        ],
    )


def check(op, dtypes, out, meaning, make=None, sizes=SIZES, zeros=True):
    xs, y, bodies = maps(op, dtypes, out)
    for b in bodies:
        verify(b, xs)
    rng = np.random.default_rng(1)
    for k in compile_kernels(bodies):
        for size in sizes:
            args = make(size, rng) if make else [random(d, (size,), rng) for d in dtypes]
            for a in args[1:]:
                rng.shuffle(a)
            got = np.full(size + 1, 1, NP[out])
            call(k.address, words(k, {**dict(zip(xs, args, strict=True)), y: got, "n": size}))
            with np.errstate(all="ignore"):
                want = np.asarray(meaning(*args)).astype(NP[out])
            if not zeros:  # which zero is not said
                got[:size] += NP[out](0)
                want += NP[out](0)
            np.testing.assert_array_equal(
                bits(got[:size]), bits(want), err_msg=f"{dtypes} -> {out}, {size}"
            )
            assert got[size] == 1


def arithmetic(op):
    return lambda *a: ex(op, *a)


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


@pytest.mark.parametrize("dtype", ALL)
def test_select_and_copy(dtype):
    check(lambda c, a, b: select(c, a, b), ("i1", dtype, dtype), dtype, np.where)
    check(lambda a: a, (dtype,), dtype, np.copy)


@pytest.mark.parametrize("dtype", ["i1", *INTS])
def test_bits(dtype):
    check(arithmetic("and"), (dtype, dtype), dtype, np.bitwise_and, sizes=(65,))
    check(arithmetic("or"), (dtype, dtype), dtype, np.bitwise_or, sizes=(65,))
    check(arithmetic("xor"), (dtype, dtype), dtype, np.bitwise_xor, sizes=(65,))
    check(arithmetic("not"), (dtype,), dtype, np.invert, sizes=(65,))


@pytest.mark.parametrize("dtype", INTS)
def test_shifts_and_counts(dtype):
    width = 8 * NP[dtype]().itemsize

    def make(size, rng):
        return [random(dtype, (size,), rng), rng.integers(0, width, size).astype(NP[dtype])]

    unsigned = f"u{width}"

    def logical(a, b):
        return (a.view(NP[unsigned]) >> b.view(NP[unsigned])).view(a.dtype)

    def arithmetic_shift(a, b):
        return (a.view(NP[f"i{width}"]) >> b.view(NP[f"i{width}"])).view(a.dtype)

    check(arithmetic("shl"), (dtype, dtype), dtype, np.left_shift, make, (65,))
    check(arithmetic("lshr"), (dtype, dtype), dtype, logical, make, (65,))
    check(arithmetic("ashr"), (dtype, dtype), dtype, arithmetic_shift, make, (65,))
    python = [
        lambda v: bin(v).count("1"),
        lambda v: width - v.bit_length(),
        lambda v: (v & -v).bit_length() - 1 if v else width,
    ]
    for op, f in zip(("ctpop", "clz", "ctz"), python, strict=True):
        check(
            arithmetic(op),
            (dtype,),
            dtype,
            lambda a, f=f: np.array([f(int(v)) for v in a.view(NP[unsigned])]),
            sizes=(65,),
        )


@pytest.mark.parametrize("dtype", INTS)
def test_integer_division(dtype):
    def make(size, rng):
        b = random(dtype, (size,), rng)
        b[b == 0] = 1
        if dtype[0] == "i":
            b[b == -1] = 3
        return [random(dtype, (size,), rng), b]

    def quotient(a, b):
        return np.array(
            [
                int(x) // int(y) if (x >= 0) == (y > 0) else -(abs(int(x)) // abs(int(y)))
                for x, y in zip(a, b, strict=True)
            ],
            a.dtype,
        )

    signed = dtype[0] == "i"
    check(arithmetic("sdiv" if signed else "udiv"), (dtype, dtype), dtype, quotient, make, (65,))
    check(arithmetic("srem" if signed else "urem"), (dtype, dtype), dtype, np.fmod, make, (65,))

    def high(a, b):
        width = 8 * a.dtype.itemsize
        raw = [(int(x) * int(y)) >> width for x, y in zip(a, b, strict=True)]
        return np.array([v & ((1 << width) - 1) for v in raw], np.uint64).astype(a.dtype)

    check(arithmetic("mulhi"), (dtype, dtype), dtype, high, make, (65,))


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


def finite(dtype):
    return lambda size, rng: [
        (
            random(dtype, (size,), rng, special=False)
            if dtype in FLOATS
            else rng.integers(0, 100, size).astype(NP[dtype])
        )
    ]


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


@pytest.mark.parametrize("size", [1 << 16])
def test_half_without_instructions(size):
    """Every half to float and back, and floats around every half."""
    every = np.arange(size, dtype=np.uint16).view(np.float16)
    x, y, z = array("x", "f16", n), array("y", "f32", n), array("z", "f16", n)
    back = (
        For(
            i,
            (Store(y, (i,), cast(load(x, (i,)), "f32")), Store(z, (i,), ex("neg", load(x, (i,))))),
            (),
            "vector",
            16,
        ),
    )
    out, neg = np.zeros(size, "f4"), np.zeros(size, np.float16)
    run_plain(back, {x: every, y: out, z: neg, "n": size}, half=False)
    np.testing.assert_array_equal(bits(out), bits(every.astype("f4")))
    np.testing.assert_array_equal(bits(neg), bits(-every))
    with np.errstate(all="ignore"):
        near = [np.nextafter(out, np.float32(v)) for v in (np.inf, -np.inf)]
        near = np.concatenate([*near, out * np.float32(1 + 2**-11), out * 3])
    narrow = (For(i, (Store(z, (i,), cast(load(y, (i,)), "f16")),), (), "vector", 16),)
    got = np.zeros(len(near), np.float16)
    run_plain(narrow, {y: near, z: got, "n": len(near)}, half=False)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bits(got), bits(near.astype(np.float16)))


def test_deep_expressions():
    x, y = array("x", "f32", n), array("y", "f32", n)
    e = load(x, (i,))
    for k in range(10_000):
        e = ex("add", e, const(float(k % 7), "f32")) if k % 2 else ex("sub", e, load(x, (i,)))
    out = np.zeros(20, "f4")
    text = run_plain(
        (For(i, (Store(y, (i,), e),), (), "serial", 1),), {x: np.zeros(20, "f4"), y: out, "n": 20}
    )
    assert out[0] == sum(k % 7 for k in range(10_000) if k % 2) and len(text) > 10_000


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
