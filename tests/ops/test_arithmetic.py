"""Arithmetic primitives: meaning, derivatives, transposes, batching, JAX."""

import ml_dtypes
import numpy as np
import pytest

import calque
from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, UndefinedPrimal, Zero
from calque.core.trace import trace_to_jaxpr
from calque.ops import arithmetic as A
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_meaning,
    check_peer,
    check_transpose,
    derivative,
    run,
    same,
    specials,
    traced,
    values,
    x64,
)

FLOATS = ["float16", ml_dtypes.bfloat16, "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
SHAPES = [(5,), (), (0,), (2, 0, 3), (2, 3)]
X, Y = values("float64", (4,)), values("float64", (4,), seed=1)


def pairs(dtype):
    """Every special value against every other."""
    s = specials(dtype)[:20]
    return np.repeat(s, len(s)), np.tile(s, len(s))


# ---------------------------------------------------------------- meaning

EXPECTED = {
    "neg": lambda x: -x,
    "square": lambda x: x * x,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("name", EXPECTED)
def test_meaning(name, dtype):
    prim, one = REGISTRY[name], name in ("neg", "square")
    with x64():
        for shape in SHAPES:
            args = [values(dtype, shape, seed=i) for i in range(1 if one else 2)]
            check_meaning(prim, EXPECTED[name], *args)
        args = [specials(dtype)] if one else pairs(dtype)
        check_meaning(prim, EXPECTED[name], *args)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["neg", "add", "sub", "mul"])
def test_meaning_complex(name, dtype):
    args = [values(dtype, (2, 3), seed=i) for i in range(1 if name == "neg" else 2)]
    with x64():
        check_meaning(REGISTRY[name], EXPECTED[name], *args)


def test_a_scalar_goes_with_every_shape():
    x = values("float32", (2, 3))
    same(call(A.add_p, x, np.float32(2))[0], x + np.float32(2))
    same(call(A.mul_p, np.float32(2), x)[0], x * np.float32(2))


def test_integer_division():
    low = np.iinfo(np.int32).min
    x, y = (
        np.array([7, -7, 7, -7, low, 5, 0], np.int32),
        np.array([2, 2, -2, -2, -1, 0, 0], np.int32),
    )
    same(call(A.div_p, x, y)[0], np.array([3, -3, -3, 3, low, -1, -1], np.int32))
    same(call(A.rem_p, x, y)[0], np.array([1, -1, 1, -1, 0, 5, 0], np.int32))
    u = np.array([7, 5], np.uint8), np.array([2, 0], np.uint8)
    same(call(A.div_p, *u)[0], np.array([3, 255], np.uint8))
    same(call(A.rem_p, *u)[0], np.array([1, 5], np.uint8))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_division_is_that_of_python_truncated(dtype):
    x, y = pairs(dtype)
    keep = y != 0
    x, y = x[keep], y[keep]

    def wrap(n):
        return (n + 2 ** (8 * x.itemsize - 1)) % 2 ** (8 * x.itemsize) - 2 ** (8 * x.itemsize - 1)

    q = [wrap(abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)) for a, b in zip(x, y)]
    r = [int(a) - wrap(int(b) * c) for a, b, c in zip(x, y, q)]
    with x64():
        same(call(A.div_p, x, y)[0], np.array(q, dtype))
        same(call(A.rem_p, x, y)[0], np.array([wrap(v) for v in r], dtype))


def test_float_remainder_has_the_sign_of_x():
    x, y = (
        np.array([5.5, -5.5, 5.0, np.inf, 1.0], np.float32),
        np.array([2, 2, 0, 2, np.inf], np.float32),
    )
    same(call(A.rem_p, x, y)[0], np.array([1.5, -1.5, np.nan, np.nan, 1], np.float32))


def test_sign_keeps_negative_zero_and_nan():
    x = np.array([-2.0, -0.0, 0.0, 3.0, np.nan], np.float32)
    out = call(A.sign_p, x)[0]
    same(out, np.array([-1, 0, 0, 1, np.nan], np.float32))
    assert np.signbit(out).tolist()[:3] == [True, True, False]
    same(call(A.sign_p, np.array([0, 200], np.uint8))[0], np.array([0, 1], np.uint8))
    same(
        call(A.sign_p, np.array([3 + 4j, 0j], np.complex64))[0],
        np.array([0.6 + 0.8j, 0], np.complex64),
    )


def test_abs():
    same(call(A.abs_p, np.array([-3, 3, -128], np.int8))[0], np.array([3, 3, -128], np.int8))
    same(call(A.abs_p, np.array([3 + 4j], np.complex64))[0], np.array([5], np.float32))


def test_complex_maximum_is_lexicographic():
    x, y = (
        np.array([1 + 5j, 2 + 1j, 1 + 1j], np.complex64),
        np.array([1 + 4j, 1 + 9j, 1 + 2j], np.complex64),
    )
    same(call(A.max_p, x, y)[0], np.array([1 + 5j, 2 + 1j, 1 + 2j], np.complex64))
    same(call(A.min_p, x, y)[0], np.array([1 + 4j, 1 + 9j, 1 + 1j], np.complex64))


def test_mulhi():
    with x64():
        for dtype in ("int8", "uint16", "int32", "uint64"):
            x, y = pairs(dtype)
            want = [(int(a) * int(b)) >> (8 * x.itemsize) for a, b in zip(x, y)]
            same(call(A.mulhi_p, x, y)[0], np.array(want, object).astype(dtype))


def test_pow():
    x = np.array([2.0, 0.0, 0.0, -2.0, -2.0, np.inf, np.nan, 1.0, -1.0], np.float32)
    y = np.array([3.0, 0.0, -1.0, 3.0, 0.5, 0.0, 0.0, np.nan, np.inf], np.float32)
    same(call(A.pow_p, x, y)[0], np.array([8, 1, np.inf, -8, np.nan, 1, 1, 1, 1], np.float32))
    same(
        call(A.pow_p, x[:4], np.array([2, 0, -1, 3], np.int32))[0],
        np.array([4, 1, np.inf, -8], np.float32),
    )


def test_integer_pow():
    x = np.array([2.0, -3.0, 0.0], np.float32)
    same(call(A.integer_pow_p, x, y=3)[0], x**3)
    same(call(A.integer_pow_p, x, y=-2)[0], np.array([0.25, 1 / np.float32(9), np.inf], np.float32))
    same(call(A.integer_pow_p, x, y=0)[0], np.ones(3, np.float32))
    same(call(A.integer_pow_p, np.array([3, 7], np.int8), y=5)[0], np.array([-13, -89], np.int8))
    with pytest.raises(TypeError, match=r"negative powers, got integer_pow\(i32\[3\], -1\)"):
        call(A.integer_pow_p, np.ones(3, np.int32), y=-1)


def test_nextafter():
    x = np.array([0, 1, 1, -1, np.inf], np.float32)
    y = np.array([1, 2, 1, 0, 0], np.float32)
    same(call(A.nextafter_p, x, y)[0], np.nextafter(x, y))
    b = call(A.nextafter_p, x.astype(ml_dtypes.bfloat16), y.astype(ml_dtypes.bfloat16))[0]
    assert b[1] == 1.0078125 and b.dtype == ml_dtypes.bfloat16


# ---------------------------------------------------------------- rules

ONE = [
    ("neg", X),
    ("sign", X),
    ("abs", X),
    ("abs", X + 1j * Y),
    ("square", X),
    ("square", X + 1j * Y),
]
TWO = ["add", "sub", "mul", "div", "max", "min", "rem", "add_any"]


@pytest.mark.parametrize("name, x", ONE)
def test_unary_rules(name, x):
    check_jvp(REGISTRY[name], x)
    check_batch(REGISTRY[name], x)


@pytest.mark.parametrize("name", TWO)
def test_binary_rules(name):
    prim = REGISTRY[name]
    check_jvp(prim, X, Y)
    check_jvp(prim, X, np.array(1.5))
    check_jvp(prim, np.array(1.5), Y)
    check_batch(prim, X, Y)
    check_batch(prim, X, np.array(2.0))
    check_batch(prim, np.array(3.0), np.array(2.0))
    check_batch(prim, X.reshape(2, 2), Y.reshape(2, 2))
    if name in ("add", "sub", "mul", "div", "add_any"):
        check_jvp(prim, X + 1j * Y, Y - 1j)


@pytest.mark.parametrize("y", [-2, -1, 0, 1, 2, 3, 7])
def test_integer_pow_rules(y):
    check_jvp(A.integer_pow_p, X, y=y)
    check_batch(A.integer_pow_p, X, y=y)


def test_pow_rules():
    check_jvp(A.pow_p, np.abs(X) + 0.3, Y)
    check_jvp(A.pow_p, X, np.array([0, 1, 2, 3]))
    check_jvp(A.pow_p, np.abs(X) + 0.1, np.array(1.5))
    check_jvp(A.pow_p, X + 1j, Y + 0.5j)
    check_batch(A.pow_p, np.abs(X), Y)
    check_batch(A.pow_p, X, np.array(3))


def test_derivatives_at_kinks():
    x = np.array([0.0, -0.0, -2.0, 3.0], np.float32)
    assert derivative(A.abs_p, x) == [1, 1, -1, 1]
    assert derivative(A.abs_p, np.zeros(1, np.complex64)) == [0]
    ones = np.ones(3, np.float32)
    y = np.array([1, 0, 2], np.float32)
    assert derivative(A.max_p, ones, y) == [0.5, 1, 0]
    assert derivative(A.min_p, ones, y, moved=1) == [0.5, 1, 0]
    zero = np.zeros(2, np.float32)
    assert derivative(A.pow_p, zero, np.array([0.0, 2.0], np.float32)) == [0, 0]
    assert derivative(A.pow_p, zero, np.array([0, 2], np.int32)) == [0, 0]
    assert derivative(A.pow_p, zero, np.array([0.0, 2.0], np.float32), moved=1) == [0, 0]


def test_integers_have_no_tangents():
    i = np.array([1, 2], np.int32)
    aval = ShapedArray((2,), np.dtype([("float0", np.void, 0)]))

    def fun(x):
        _, t = A.add_p.jvp([x, x], [Zero(aval), Zero(aval)])
        assert isinstance(t, Zero) and t.aval is aval
        return x

    run(fun, i)


def test_transposes():
    for name in ("add", "sub", "add_any"):
        check_transpose(REGISTRY[name], X, Y, linear=(0, 1))
        check_transpose(REGISTRY[name], np.array(2.0), Y, linear=(0, 1))
        check_transpose(REGISTRY[name], X, Y, linear=(1,))
    check_transpose(A.neg_p, X)
    check_transpose(A.mul_p, X, Y)
    check_transpose(A.mul_p, X, Y, linear=(1,))
    check_transpose(A.mul_p, np.array(2.0), Y)
    check_transpose(A.div_p, X, Y)
    check_transpose(A.div_p, np.array(2.0), Y)


def test_what_is_not_linear_says_so():
    u = UndefinedPrimal(ShapedArray((4,), np.dtype("float32")))
    with pytest.raises(NotImplementedError, match="sign is not linear"):
        A.sign_p.transpose(None, u)
    with pytest.raises(NotImplementedError, match="mul is not linear in both"):
        A.mul_p.transpose(None, u, u)
    with pytest.raises(NotImplementedError, match="second operand"):
        A.div_p.transpose(None, X, u)
    with pytest.raises(NotImplementedError, match="no derivative"):
        derivative(A.nextafter_p, X, Y)


# ---------------------------------------------------------------- public functions


def test_shapes_and_types_are_checked():
    f, i = np.ones((2,), np.float32), np.ones((2,), np.int32)
    with pytest.raises(
        TypeError, match=r"add got incompatible shapes for broadcasting: \(2,\), \(3,\)\..*reshape"
    ):
        traced(A.add, f, np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"same number of dimensions, got shapes \(3,\), \(2, 3\)"):
        traced(A.add, np.ones(3, np.float32), np.ones((2, 3), np.float32))
    with pytest.raises(
        TypeError,
        match=r"lax.mul requires arguments to have the same dtypes, got float32, int32.*jnp.mul",
    ):
        traced(A.mul, f, i)
    with pytest.raises(TypeError, match=r"add does not accept dtype bool at position 0.*astype"):
        traced(A.add, f > 0, f > 0)
    with pytest.raises(TypeError, match=r"same dtypes"):
        traced(lambda x: A.add(x, 2.5), i)
    with pytest.raises(OverflowError, match="300 is out of bounds for int8"):
        traced(lambda x: A.add(x, 300), i.astype(np.int8))
    with pytest.raises(TypeError, match="pow does not accept dtype int32 at position 0"):
        traced(A.pow, i, i)


def test_python_scalars_take_the_other_dtype():
    for dtype in ("float32", "int8", "complex64", ml_dtypes.bfloat16):
        out = run(lambda x: A.add(x, 2), values(dtype, (3,)))[0]
        assert out.dtype == np.dtype(dtype)
    assert run(lambda x: A.add(2.5, x), np.ones(2, np.float16))[0].tolist() == [3.5, 3.5]


def test_weak_types():
    weak, strong = (
        ShapedArray((), np.dtype("float32"), True),
        ShapedArray((2,), np.dtype("float32")),
    )
    out = trace_to_jaxpr(
        lambda a, b: [A.add(a, 1.0), A.add(a, b), A.neg(a), A.mul(2, a)], [weak, strong]
    ).out_avals
    assert [o.weak_type for o in out] == [True, False, True, True]


def test_dimensions_of_size_one_are_repeated():
    x, y = values("float32", (1, 3)), values("float32", (2, 1))
    same(run(A.add, x, y)[0], x + y)
    same(run(A.add, np.ones((1, 1), np.float32), y)[0], 1 + y)


# ---------------------------------------------------------------- JAX


@pytest.mark.peer
@pytest.mark.parametrize(
    "dtype", ["float32", "int32", "uint32", "complex64", "int8", ml_dtypes.bfloat16]
)
def test_peer(dtype):
    x, y = (
        pairs(dtype)
        if np.dtype(dtype).kind != "c"
        else (values(dtype, (20,)), values(dtype, (20,), seed=2))
    )
    rtol = {"c": 1e-6, "f": 1e-6, "V": 2e-2}.get(np.dtype(dtype).kind, 0)
    for name in ("add", "sub", "mul", "max", "min", "div"):
        check_peer(name, x, y, rtol=rtol)
    for name in ("neg", "sign", "square"):
        check_peer(name, x, rtol=rtol)
    if np.dtype(dtype).kind != "c":
        check_peer("rem", x, y, rtol=rtol)
    if np.dtype(dtype).kind != "u":
        check_peer("abs", x, rtol=rtol)
    if np.dtype(dtype).kind == "f":
        check_peer("pow", x, y, rtol=1e-5)
        check_peer("pow", x, np.arange(len(x)).astype(np.int32) % 7 - 3, rtol=1e-5)
        check_peer("nextafter", x, y)
        for n in (-3, 0, 1, 5):
            check_peer("integer_pow", x, rtol=1e-6, y=n)


def test_mul_in_another_dtype():
    assert int(A.mul(np.int8(100), np.int8(100), out_dtype=np.int32)) == 10000
    assert A.mul(2.0, np.float32(3), out_dtype="bfloat16").dtype.name == "bfloat16"
    mixed = A.mul(np.int32([3]), np.float32([0.5]), out_dtype=np.float32)
    assert mixed.dtype == np.float32 and mixed.tolist() == [1.5]
    with pytest.raises(TypeError, match="same dtypes"):
        A.mul(np.int32([3]), np.float32([0.5]))


def test_the_slope_of_a_power_of_0():
    """It is 0 where both are 0, also of an integer exponent that promotion has made a float; of the
    integer exponent 0 it is 0 for any base."""
    slope = calque.grad(A.pow)
    assert slope(0.0, 0.0) == 0 and slope(0.0, 1.0) == 1 and slope(0.0, 2.0) == 0
    assert calque.grad(calque.jit(lambda x, n: x**n))(0.0, 0) == 0
    assert calque.grad(A.pow, 1)(0.0, 0.0) == 0
    for base in (0.0, -2.0, np.inf, np.nan):
        assert slope(base, np.int32(0)) == 0
    assert slope(3.0, np.int32(2)) == 6 and slope(2.0, np.int32(-1)) == -0.25


def test_the_slope_of_a_power_is_differentiated_by_an_exponent_of_0():
    """d/dy of y x^(y - 1) is 1 / x there."""
    x, y = 4.0, 0.0
    for jacobian in (calque.jacfwd, calque.jacrev):
        (xx, xy), (yx, yy) = jacobian(jacobian(A.pow, (0, 1)), (0, 1))(x, y)
        assert [float(v) for v in (xx, xy, yx)] == [0, 0.25, 0.25]
        assert float(yy) == pytest.approx(np.log(4.0) ** 2, rel=1e-5)


def test_the_high_half_of_a_product_of_two_numbers():
    for dtype, x, want in (("int64", 2**62, 2**60), ("uint64", 2**63, 2**62), ("int8", -128, 64)):
        got = A._mulhi_meaning(np.asarray(x, dtype), np.asarray(x, dtype))
        assert got.dtype == dtype and got.shape == () and got == want
