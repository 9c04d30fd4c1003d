"""Float elements against NumPy's, bit patterns against their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from calque.native.scalars.elements import floats
from calque.native.scalars.powers import NAMES
from tests.native.evaluate import apply, numpy_type
from tests.native.scalars.elements.shared import (
    COMPARE,
    FLOATS,
    INF,
    NAN,
    SMALL,
    float_values,
    reference,
    run,
    same,
)


def sign(x: Any) -> Any:
    return np.where(x == 0, x, np.sign(x))


def half_away(x: Any) -> Any:
    return np.where(np.isfinite(x), np.copysign(np.floor(np.abs(x) + 0.5), x), x)


FLOAT_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod,
    "max": np.maximum, "min": np.minimum,
}  # fmt: skip
FLOAT_UNARY: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "sign": sign, "abs": np.abs, "square": np.square, "sqrt": np.sqrt,
    "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS + SMALL)
def test_floats(dtype: str) -> None:
    x, y = float_values(dtype, 0), float_values(dtype, 1)
    for op, f in FLOAT_BINARY.items():
        if op in ("max", "min"):  # of -0 and 0 either is right
            got, want = run(op, [x, y], [dtype] * 2, dtype), reference(f, x, y)
            same(got + np.zeros_like(got), want + np.zeros_like(want))
        else:
            same(run(op, [x, y], [dtype] * 2, dtype), reference(f, x, y))
    for op, f in FLOAT_UNARY.items():
        if dtype == "float8_e4m3b11fnuz" and op in ("ceil", "sign"):
            continue
        same(run(op, [x], [dtype], dtype), reference(f, x))
    for op, c in COMPARE.items():
        assert (
            run(op, [x, y], [dtype] * 2, "i1") == c(x.astype(np.float64), y.astype(np.float64))
        ).all(), op
    same(run("round", [x], [dtype], dtype, rounding_method=0), reference(half_away, x))
    same(run("round", [x], [dtype], dtype, rounding_method=1), reference(np.round, x))
    assert (run("is_finite", [x], [dtype], "i1") == np.isfinite(x.astype(np.float64))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_powers(dtype: str) -> None:
    x = float_values(dtype, 3)
    for y in (0, 1, 2, 3, -1, -2, 7):
        same(
            run("integer_pow", [x], [dtype], dtype, y=y),
            reference(lambda v, y=y: v ** np.float64(y), x),
            4.0,
        )
    n = (
        np.random.default_rng(0)
        .choice([0, 1, -1, 2, 3, -3, 16777217, 2**31 - 1, -(2**31)], len(x))
        .astype(np.int32)
    )
    x = np.where(np.random.default_rng(1).random(len(x)) < 0.3, -np.ones_like(x), x)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), n.astype(np.float64)).astype(x.dtype)
    same(run("pow", [x, n], [dtype, "i32"], dtype), want, 4.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nextafter(dtype: str) -> None:
    x, y = float_values(dtype, 4), float_values(dtype, 5)
    with np.errstate(all="ignore"):
        want = np.where(x == y, y, np.nextafter(x, y))
    same(run("nextafter", [x, y], [dtype] * 2, dtype), want)


def test_nextafter_refuses_narrow_floats() -> None:
    with pytest.raises(NotImplementedError, match="nextafter"):
        run("nextafter", [np.zeros(1)] * 2, ["float8_e5m2"] * 2, "float8_e5m2")


@pytest.mark.parametrize("dtype", FLOATS)
def test_total_order(dtype: str) -> None:
    x = np.array([-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN]).astype(numpy_type(dtype))
    i, j = np.meshgrid(np.arange(7), np.arange(7))
    i, j = i.ravel(), j.ravel()
    assert (run("lt_to", [x[i], x[j]], [dtype] * 2, "i1") == (i < j)).all()
    assert (run("le_to", [x[i], x[j]], [dtype] * 2, "i1") == (i <= j)).all()
    assert (run("eq_to", [x[i], x[j]], [dtype] * 2, "i1") == (i == j)).all()


def test_reduce_precision() -> None:
    x = float_values("f32", 6, 2000)
    with np.errstate(all="ignore"):
        half = x.astype(np.float16).astype(np.float32)
        half[np.abs(half) < np.float32(2.0**-14)] *= 0  # what is denormal there becomes zero
        brain = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    same(run("reduce_precision", [x], ["f32"], "f32", exponent_bits=5, mantissa_bits=10), half)
    same(run("reduce_precision", [x], ["f32"], "f32", exponent_bits=8, mantissa_bits=7), brain)
    same(run("reduce_precision", [x], ["f32"], "f32", exponent_bits=8, mantissa_bits=23), x)
    y = x.astype(np.float64)
    with np.errstate(all="ignore"):
        y += np.random.default_rng(0).normal(size=len(y)) * 1e-9
        want = y.astype(np.float32).astype(np.float64)
    want[np.abs(want) < 2.0**-126] *= 0
    same(run("reduce_precision", [y], ["f64"], "f64", exponent_bits=8, mantissa_bits=23), want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_keys_order_as_floats_do(dtype: str) -> None:
    """Every half; of the others random bits: from -nan over -inf, -0, 0 and inf to nan."""
    t = numpy_type(dtype)
    width = 8 * t.itemsize
    raw = (
        np.random.default_rng(0).integers(0, 256, 8 * 65536, dtype=np.uint8).view(f"u{t.itemsize}")
    )
    bits = np.arange(65536, dtype=np.uint16) if width == 16 else raw
    key = apply(floats.order_key, bits.view(t), dtypes=[dtype], out=f"i{width}")
    top = 1 << (width - 1)
    want = [v if v < top else top - 1 - v for v in bits.tolist()]
    with np.errstate(all="ignore"):
        nan = bits.view(t) != bits.view(t)  # a nan that is computed may lose its payload
    assert [k for k, n in zip(key.tolist(), nan, strict=True) if not n] == [
        k for k, n in zip(want, nan, strict=True) if not n
    ]
    assert (key[nan & (bits < top)] > key[~nan].max()).all()
    assert (key[nan & (bits >= top)] < key[~nan].min()).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_steps_from_every_half(dtype: str) -> None:
    """One step up is the next of all numbers in order."""
    t = numpy_type(dtype)
    every = np.arange(65536, dtype=np.uint16).view(t)
    with np.errstate(all="ignore"):
        numbers = np.unique(every[every == every].astype(np.float64)).astype(t)
    up = apply(floats.nextafter, numbers, np.full_like(numbers, INF), dtypes=[dtype] * 2)
    assert (up[:-1] == numbers[1:]).all() and up[-1] == INF
    down = apply(floats.nextafter, numbers, np.full_like(numbers, -INF), dtypes=[dtype] * 2)
    assert (down[1:] == numbers[:-1]).all() and down[0] == -INF


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_functions_of_halves_are_rounded_once(dtype: str) -> None:
    """By way of float32: every half gives what float64, rounded, gives."""
    t = numpy_type(dtype)
    every = np.arange(65536, dtype=np.uint16).view(t)
    with np.errstate(all="ignore"):
        want = np.tanh(every.astype(np.float64)).astype(t)
    got = apply(lambda v: floats.math("tanh", v), every, dtypes=[dtype])
    with np.errstate(all="ignore"):
        wrong = (got != want) & (want == want)
    assert wrong.mean() < 1e-3  # float32's own last place, where it falls on a tie
    same(got, want, 1.0)


def test_signs_of_odd_powers_that_floats_have_lost() -> None:
    """An integer exponent is odd by its last bit, though as a float it would be even."""
    n = np.array([2**24 + 1, 2**24, 2**31 - 1, -(2**31), -3], np.int32)
    x = np.full(5, -1.0, np.float32)
    assert run("pow", [x, n], ["f32", "i32"], "f32").tolist() == [-1, 1, -1, 1, -1]
    minus = np.array([-0.0, -0.0, -INF, -INF, -0.0], np.float32)
    got = run("pow", [minus, n], ["f32", "i32"], "f32")
    assert got.tolist() == [0, 0, -INF, 0, -INF] and np.signbit(got).tolist() == [
        True,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("exponent", NAMES)
def test_fixed_powers_of_halves(exponent: float) -> None:
    x = float_values("f16", 8)
    got = apply(lambda v: floats.fixed_power(v, exponent), x, dtypes=["f16"])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), np.full(x.shape, exponent)).astype(np.float16)
    same(got, want, 1.0)
