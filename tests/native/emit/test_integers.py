"""Operations on integers, bools and indices against Python's own arithmetic."""

import numpy as np
import pytest

from calque.native.emit.modules import processor
from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    cast,
    const,
    ex,
    load,
    select,
    var,
)
from tests.native.emit.shared import (
    arithmetic,
    c,
    check,
    i,
    m,
    n,
    rng,
)
from tests.native.run_kernel import (
    INTS,
    NP,
    array,
    random,
    run,
    run_plain,
)


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


def pairs_of(a, b):
    """The products of the lower and of the upper halves, added, modulo what the type holds."""
    half, signed = 4 * a.dtype.itemsize, np.dtype(f"i{a.dtype.itemsize}")
    x, y = a.view(signed), b.view(signed)
    parts = [((x << half) >> half, (y << half) >> half), (x >> half, y >> half)]
    sums = sum(u.astype(object) * v.astype(object) for u, v in parts)
    return np.array([int(v) % (1 << 2 * half) for v in sums], np.uint64).astype(a.dtype)


@pytest.mark.parametrize("dtype", ["i8", "i32", "u32", "i64"])
def test_products_of_pairs(dtype):
    check(arithmetic("dot2"), (dtype, dtype), dtype, pairs_of)


@pytest.mark.parametrize("pairs", [0, 16, 32])
@pytest.mark.parametrize("width", [4, 8, 32])
def test_products_of_pairs_are_an_instruction(pairs, width):
    """Where the processor has it, for as many lanes as it takes; the least 16 bits overflow."""
    if pairs > processor()["pairs"]:
        pytest.skip("another processor")
    x, y, z = array("x", "i32", n), array("y", "i32", n), array("z", "i32", n)
    body = (
        For(i, (Store(z, (i,), ex("dot2", load(x, (i,)), load(y, (i,)))),), (), "vector", width),
    )
    a, b = random("i32", (67,), rng), random("i32", (67,), rng)
    a[7] = b[7] = -0x7FFF8000
    out = np.zeros_like(a)
    text = run_plain(body, {x: a, y: b, z: out, "n": 67}, pairs=pairs)
    np.testing.assert_array_equal(out, pairs_of(a, b))
    assert (".pmadd" in text) == (4 * width >= pairs > 0)


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


@pytest.mark.parametrize("kind, width", [("serial", 1), ("vector", 16)])
def test_a_division_that_is_never_used_does_not_trap(kind, width):
    """Of an index by a size that is 0, and in lanes that do not exist."""
    y, q = array("y", "i64", n), var("q")
    e = ex("add", ex("floordiv", i, q), ex("mod", i, q))
    body = (For(i, (Store(y, (i,), select(ex("gt", q, c(0)), e, c(-5))),), (), kind, width),)
    for size in (1, 16, 19):
        out = np.zeros(size, "i8")
        run(body, {y: out, "n": size, "q": 0})
        assert (out == -5).all()
        run(body, {y: out, "n": size, "q": 3})
        assert (out == np.arange(size) // 3 + np.arange(size) % 3).all()
    x = array("x", "i32", n)
    body = (For(i, (Store(y, (i,), cast(ex("sdiv", const(100, "i32"), load(x, (i,))), "i64")),), (),
    kind, width),)  # fmt: skip
    a, out = np.arange(1, 20, dtype="i4"), np.zeros(19, "i8")
    run(body, {x: a, y: out, "n": 19})
    assert (out == 100 // a).all()


@pytest.mark.parametrize("top", [1 << 20, 1 << 40])
def test_large_indices_divide_right(top):
    """By constants and by sizes, on both sides of what 32 bits hold."""
    q, x = var("q"), array("x", "i64", n)
    y, z = array("y", "i64", n), array("z", "i64", n)
    k = ex("add", ex("mul", i, c(top)), c(top - 1))
    body = (For(i, (
        Store(y, (i,), ex("sub", ex("floordiv", k, c(1000)), ex("mod", k, c(1000)))),
        Store(z, (i,), ex("sub", ex("floordiv", k, q), ex("mod", k, q))),
    ), (), "vector", 16),)  # fmt: skip
    out, other = np.zeros(40, "i8"), np.zeros(40, "i8")
    run(body, {x: out, y: out, z: other, "n": 40, "q": 997})
    at = np.arange(40) * top + top - 1
    assert (out == at // 1000 - at % 1000).all() and (other == at // 997 - at % 997).all()
