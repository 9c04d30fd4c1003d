"""Rounding primitives."""

import ml_dtypes
import numpy as np
import pytest

from calque.core.primitives import REGISTRY
from calque.ops import rounding as R
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_peer,
    check_transpose,
    run,
    same,
    specials,
    traced,
    values,
)

X = values("float64", (5,))


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
def test_integers(dtype):
    x = specials(dtype)
    same(call(R.floor_p, x)[0], np.floor(x))
    same(call(R.ceil_p, x)[0], np.ceil(x))
    same(call(R.is_finite_p, x)[0], np.isfinite(x))


def test_halves():
    x = np.array([0.5, 1.5, -0.5, -2.5, 0.49999997, 8388609.0, np.inf, np.nan], np.float32)
    same(
        call(R.round_p, x, rounding_method=0)[0],
        np.array([1, 2, -1, -3, 0, 8388609, np.inf, np.nan], np.float32),
    )
    same(
        call(R.round_p, x, rounding_method=1)[0],
        np.array([0, 2, 0, -2, 0, 8388609, np.inf, np.nan], np.float32),
    )


def test_reduce_precision_as_the_formats_do():
    x = values("float32", (200,), -100, 100)
    for e, m, dtype in (
        (5, 10, np.float16),
        (8, 7, ml_dtypes.bfloat16),
        (5, 2, ml_dtypes.float8_e5m2),
    ):
        same(
            call(R.reduce_precision_p, x, exponent_bits=e, mantissa_bits=m)[0],
            x.astype(dtype).astype(np.float32),
        )
    big = np.array([65520, 65519, 6e-8, -1e-9, np.inf, np.nan], np.float32)
    out = call(R.reduce_precision_p, big, exponent_bits=5, mantissa_bits=10)[0]
    same(out, np.array([np.inf, 65504, 0, 0, np.inf, np.nan], np.float32))
    same(call(R.reduce_precision_p, x, exponent_bits=8, mantissa_bits=23)[0], x)


@pytest.mark.parametrize("name", ["floor", "ceil"])
def test_rules(name):
    check_jvp(REGISTRY[name], X)
    check_batch(REGISTRY[name], X)


def test_other_rules():
    check_jvp(R.round_p, X, rounding_method=1)
    check_batch(R.round_p, X, rounding_method=0)
    check_batch(R.is_finite_p, X)
    check_batch(R.reduce_precision_p, X, exponent_bits=5, mantissa_bits=3)
    check_transpose(R.reduce_precision_p, X, exponent_bits=11, mantissa_bits=52)


def test_parameters_are_checked():
    x = np.ones(2, np.float32)
    with pytest.raises(ValueError, match="mantissa_bits must not be negative"):
        traced(lambda v: R.reduce_precision(v, 5, -1), x)
    with pytest.raises(ValueError, match="exponent_bits must be positive"):
        traced(lambda v: R.reduce_precision(v, 0, 3), x)
    with pytest.raises(TypeError, match="floor does not accept dtype int32"):
        traced(R.floor, np.ones(2, np.int32))
    assert run(R.round, np.array([2.5], np.float32))[0] == 3


@pytest.mark.peer
@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
def test_peer(dtype):
    x = specials(dtype)
    for name in ("floor", "ceil", "is_finite", "round"):
        check_peer(name, x)
    with np.errstate(over="ignore"):
        y = np.array([1.1, 3.14159, 1e10, 1e-10, 65520.0, 6e-8, -1e-9, 1e-39]).astype(dtype)
    for e, m in ((5, 10), (8, 7), (4, 3), (5, 0), (8, 23), (11, 30)):
        check_peer("reduce_precision", np.concatenate([x, y]), exponent_bits=e, mantissa_bits=m)
