"""Reductions, argmax and argmin."""

import ml_dtypes
import numpy as np
import pytest

from calque.core.config import config
from calque.core.primitives import REGISTRY
from calque.ops import reductions as R
from calque.ops.common import instantiate
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_peer,
    check_transpose,
    forward,
    run,
    same,
    specials,
    traced,
    values,
    x64,
)

X = values("float64", (3, 4), seed=5)
NUMPY = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
NUMBERS = ["float32", "float16", ml_dtypes.bfloat16, "float64", "int8", "uint32", "int64"]
I32 = np.dtype("int32")


def expected(name, x, axes):
    """NumPy, in float64 for floats, wrapping for integers."""
    if x.dtype.kind in "iu":
        return NUMPY[name](x.astype(np.int64), axis=axes).astype(x.dtype)
    return np.asarray(NUMPY[name](x.astype(np.float64), axis=axes)).astype(x.dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", NUMPY)
def test_values(name, dtype):
    prim = REGISTRY[f"reduce_{name}"]
    with x64():
        x = values(dtype, (2, 3, 4))
        for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            same(call(prim, x, axes=axes)[0], expected(name, x, axes))
        same(call(prim, x, axes=())[0], x)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "complex64", ml_dtypes.bfloat16])
def test_nothing_gives_the_identity(dtype):
    x = np.zeros((2, 0), dtype)
    low, high = (
        (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if np.dtype(dtype).kind in "iu"
        else (-np.inf, np.inf)
    )
    for name, want in (("sum", 0), ("prod", 1), ("max", low), ("min", high)):
        same(call(REGISTRY[f"reduce_{name}"], x, axes=(1,))[0], np.full(2, want).astype(dtype))


def test_types_without_infinity():
    x = np.zeros((0,), ml_dtypes.float8_e4m3fn)
    assert (
        call(R.reduce_max_p, x, axes=(0,))[0] == -448
        and call(R.reduce_min_p, x, axes=(0,))[0] == 448
    )


def test_logical():
    x = values("int32", (3, 4), -50, 50)
    for name, fn in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        prim = REGISTRY[f"reduce_{name}"]
        same(call(prim, x, axes=(0,))[0], fn.reduce(x, axis=0))
        same(call(prim, x > 0, axes=(0, 1))[0], np.asarray(fn.reduce((x > 0).ravel())))
        same(call(prim, x[:0] > 0, axes=(0,))[0], np.full(4, name == "and"))
        same(call(prim, x[:0], axes=(0,))[0], np.full(4, -1 if name == "and" else 0, np.int32))
        check_batch(prim, x, axes=(1,))
    same(call(R.reduce_max_p, x > 0, axes=(0,))[0], (x > 0).any(0))


def test_nan_and_infinity():
    x = np.array([[1, np.nan, 2], [1, np.inf, -np.inf]], np.float32)
    same(call(R.reduce_max_p, x, axes=(1,))[0], np.array([np.nan, np.inf], np.float32))
    same(call(R.reduce_min_p, x, axes=(1,))[0], np.array([np.nan, -np.inf], np.float32))
    same(call(R.reduce_sum_p, x, axes=(1,))[0], np.array([np.nan, np.nan], np.float32))


def test_complex_maximum():
    z = np.array([1 + 5j, 2 + 1j, 2 + 3j], np.complex64)
    assert call(R.reduce_max_p, z, axes=(0,))[0] == 2 + 3j
    assert call(R.reduce_min_p, z, axes=(0,))[0] == 1 + 5j


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
@pytest.mark.parametrize("name", NUMPY)
def test_rules(name, axes):
    prim = REGISTRY[f"reduce_{name}"]
    check_jvp(prim, X, axes=axes)
    check_batch(prim, X, axes=axes, rtol=1e-14)
    if name in ("sum", "prod"):
        check_jvp(prim, X + 1j * X[::-1], axes=axes)


def test_product_with_zeros():
    for zeros in ([(0, 0)], [(0, 0), (1, 0)], [(0, 1), (1, 1), (2, 1)]):
        x = X.copy()
        for at in zeros:
            x[at] = 0
        check_jvp(R.reduce_prod_p, x, axes=(0,))
        check_jvp(R.reduce_prod_p, x, axes=(0, 1))
    for n in range(6):
        check_jvp(R.reduce_prod_p, values("float64", (n, 2)), axes=(0,), order=1)


def test_ties_share():
    x, t = np.array([1, 2, 2, 2], np.float32), np.array([7, 1, 2, 6], np.float32)

    def tangent(x, t):
        return [instantiate(v) for v in forward(lambda v: R.reduce_max(v, (0,)))([x], [t])[1]]

    assert run(tangent, x, t)[0] == 3


def test_sum_transpose():
    for axes in ((0,), (1,), (0, 1), ()):
        check_transpose(R.reduce_sum_p, X, axes=axes)


# ---------------------------------------------------------------- argmax and argmin


@pytest.mark.parametrize("dtype", [*NUMBERS, bool])
def test_arg(dtype):
    with x64():
        x = values(dtype, (3, 4))
        for axis in (0, 1):
            same(
                call(R.argmax_p, x, axes=(axis,), index_dtype=I32)[0],
                np.argmax(x, axis).astype(I32),
            )
            same(
                call(R.argmin_p, x, axes=(axis,), index_dtype=np.dtype("uint8"))[0],
                np.argmin(x, axis).astype("uint8"),
            )


def test_arg_nan_and_ties():
    x = np.array([1, np.nan, 3, np.nan], np.float32)
    assert (
        call(R.argmax_p, x, axes=(0,), index_dtype=I32)[0]
        == 1
        == call(R.argmin_p, x, axes=(0,), index_dtype=I32)[0]
    )
    assert call(R.argmax_p, np.array([1, 3, 3], np.int8), axes=(0,), index_dtype=I32)[0] == 1


def test_arg_rules():
    for prim in (R.argmax_p, R.argmin_p):
        check_jvp(prim, X, axes=(0,), index_dtype=I32)
        for axis in (0, 1):
            check_batch(prim, X, axes=(axis,), index_dtype=I32)


def test_checks():
    x = np.ones((2, 3), np.float32)
    for call_, error, message in (
        (
            lambda v: R.reduce_sum(v, (0, 0)),
            ValueError,
            r"duplicate value in 'axes' of reduction: \(0, 0\)",
        ),
        (
            lambda v: R.reduce_sum(v, (-1,)),
            ValueError,
            r"\(-1,\) contains out-of-bounds indices for f32\[2,3\]",
        ),
        (lambda v: R.reduce_and(v, (0,)), TypeError, "reduce_and does not accept dtype float32"),
        (
            lambda v: R.argmax(v, 5, np.int32),
            ValueError,
            r"Invalid axis 5 for operand shape \(2, 3\)",
        ),
        (
            lambda v: R.argmax(v, 0, np.float32),
            TypeError,
            "index_dtype must be an integer type, but got float32",
        ),
    ):
        with pytest.raises(error, match=message):
            traced(call_, x)
    with pytest.raises(
        ValueError, match=r"require non-empty reduced dimension. operand.shape=\(0, 3\) axis=0"
    ):
        traced(lambda v: R.argmax(v, 0, np.int32), x[:0])
    with pytest.raises(TypeError, match=r"reduce_sum does not accept dtype bool.*astype"):
        traced(lambda v: R.reduce_sum(v, (0,)), x > 0)


@pytest.mark.peer
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", "complex64", ml_dtypes.bfloat16])
def test_peer(dtype):
    rtol = {"f": 1e-6, "c": 1e-6, "V": 2e-2}.get(np.dtype(dtype).kind, 0)
    for x in (values(dtype, (3, 4)), values(dtype, (0, 2))):
        for name in NUMPY:
            check_peer(f"reduce_{name}", x, axes=(0,), rtol=rtol, atol=rtol)
    if np.dtype(dtype).kind in "iu":
        for name in ("and", "or", "xor"):
            check_peer(f"reduce_{name}", specials(dtype), axes=(0,))
    if np.dtype(dtype).kind != "c":
        for name in ("argmax", "argmin"):
            check_peer(name, specials(dtype), axis=0, index_dtype=np.int32)


def test_sums_of_short_floats_can_be_forbidden():
    x = np.ones((1, 3), ml_dtypes.bfloat16)
    with config.override("calque_allow_f16_reductions", False):
        with pytest.raises(ValueError, match="not allowed"):
            R.reduce_sum(x, (1,))
        assert R.reduce_sum(x, (0,)).shape == (3,)  # of one element each
