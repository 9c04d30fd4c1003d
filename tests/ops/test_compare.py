"""Comparisons, select_n and clamp."""

import ml_dtypes
import numpy as np
import pytest

from calque.core.primitives import REGISTRY
from calque.ops import compare as C
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_meaning,
    check_peer,
    check_transpose,
    run,
    same,
    specials,
    traced,
    values,
    x64,
)

DTYPES = ["float32", "float16", ml_dtypes.bfloat16, "float64", "int8", "uint32", "int64", bool]
X, Y = values("float64", (4,)), values("float64", (4,), seed=1)
P = np.array([True, False, True, False])
NUMPY = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def pairs(dtype):
    s = specials(dtype)
    return np.repeat(s, len(s)), np.tile(s, len(s))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NUMPY)
def test_comparisons(name, dtype):
    with x64():
        check_meaning(REGISTRY[name], NUMPY[name], *pairs(dtype))
        check_meaning(REGISTRY[name], NUMPY[name], values(dtype, (0, 2)), values(dtype, (0, 2)))
        check_meaning(REGISTRY[name], NUMPY[name], values(dtype, (2, 3)), values(dtype, ()))


def test_complex_numbers_have_no_order():
    z = values("complex64", (3,))
    same(call(C.eq_p, z, z)[0], np.ones(3, bool))
    with pytest.raises(TypeError, match=r"lt does not accept dtype complex64"):
        traced(C.lt, z, z)


def test_total_order():
    low_to_high = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    low_to_high[0] = np.copysign(np.float32(np.nan), np.float32(-1))
    n = len(low_to_high)
    for dtype in ("float32", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
        x = low_to_high.astype(dtype)
        a, b = np.repeat(x, n), np.tile(x, n)
        i, j = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
        same(call(C.lt_to_p, a, b)[0], i < j)
        same(call(C.le_to_p, a, b)[0], i <= j)
        same(call(C.eq_to_p, a, b)[0], i == j)


def test_comparison_rules():
    for name in (*NUMPY, "eq_to", "lt_to", "le_to"):
        check_batch(REGISTRY[name], X, Y)
        check_batch(REGISTRY[name], X, np.array(1.0))


# ---------------------------------------------------------------- select_n


def test_select():
    same(call(C.select_n_p, P, X, Y)[0], np.where(P, Y, X))
    same(call(C.select_n_p, np.array(True), X, Y)[0], Y)
    which = np.array([2, 0, 1, 2], np.int32)
    same(call(C.select_n_p, which, X, Y, X + Y)[0], np.array([(X + Y)[0], X[1], Y[2], (X + Y)[3]]))
    same(call(C.select_n_p, np.array(False), X)[0], X)
    same(call(C.select_n_p, P[:0], X[:0], Y[:0])[0], X[:0])


def test_select_rules():
    for which in (P, np.array(True)):
        check_jvp(C.select_n_p, which, X, Y)
        check_batch(C.select_n_p, which, X, Y)
        check_transpose(C.select_n_p, which, X, Y, linear=(1, 2))
        check_transpose(C.select_n_p, which, X, Y, linear=(2,))
    check_batch(C.select_n_p, np.array(1, np.int32), X, Y, X * Y)
    check_batch(C.select_n_p, np.array(True), np.array(1.0), np.array(2.0))
    check_batch(C.select_n_p, P.reshape(2, 2), X.reshape(2, 2), Y.reshape(2, 2))


def test_select_protects_from_nan():
    check_jvp(C.select_n_p, P, np.where(P, 0, X), np.where(P, Y, np.nan), moved=(1,))


def test_select_checks():
    f = np.ones(2, np.float32)
    for args, message in (
        ((f, f, f), "must be boolean or integer type, got float32"),
        ((f > 0, f, np.ones(3, np.float32)), r"same shapes, got \[\(2,\), \(3,\)\]"),
        ((f > 0, f, f, f), "cannot have > 2 cases"),
        ((np.ones(3, bool), f, f), r"which` must be scalar.*\(3,\).*\(2,\)"),
        ((f > 0, f, np.ones(2, np.int32)), "same dtypes, got float32, int32"),
    ):
        with pytest.raises(TypeError, match=message):
            traced(C.select_n, *args)
    assert run(lambda p: C.select(p, 1.0, 2.0), np.array(True))[0] == 1


# ---------------------------------------------------------------- clamp


def test_clamp():
    x = specials("float32")
    low, high = np.float32(-1), np.float32(2)
    same(call(C.clamp_p, low, x, high)[0], np.minimum(np.maximum(x, low), high))
    same(
        call(
            C.clamp_p,
            np.array([0, 5], np.int8),
            np.array([-3, 9], np.int8),
            np.array([4, 6], np.int8),
        )[0],
        np.array([0, 6], np.int8),
    )
    assert (
        call(C.clamp_p, np.float32(3), np.float32(2), np.float32(1))[0] == 1
    )  # the upper bound wins


def test_clamp_rules():
    low, high = np.full(4, -1.0), np.full(4, 1.0)
    check_jvp(C.clamp_p, low, X, high, rtol=1e-5)
    check_jvp(C.clamp_p, np.array(-1.0), X, np.array(1.0), rtol=1e-5)
    check_batch(C.clamp_p, low, X, high)
    check_batch(C.clamp_p, np.array(-1.0), X, np.array(1.0))
    check_batch(C.clamp_p, np.array(-1.0), np.array(3.0), np.array(1.0))


def test_clamp_checks():
    x = np.ones((2, 4), np.float32)
    with pytest.raises(TypeError, match=r"min.shape=\(4,\), operand.shape=\(2, 4\)"):
        traced(C.clamp, x[0], x, x[0])
    assert run(lambda v: C.clamp(0, v, 3), x)[0].dtype == np.float32


@pytest.mark.peer
@pytest.mark.parametrize("dtype", ["float32", ml_dtypes.bfloat16, "int8", "uint32", bool])
def test_peer(dtype):
    x, y = pairs(dtype)
    for name in NUMPY:
        check_peer(name, x, y)
    check_peer("clamp", x[0], y, x[-1])
    check_peer("select_n", x == y, x, y)
