"""The rules of elementwise primitives that know of no dtype, and what has no rule."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from calque.native.scalars.elements import ELEMENT, lower, supports
from tests.native.scalars.elements.shared import (
    COMPARE,
    FLOATS,
    MATH,
    MATH_BINARY,
    NAN,
    SPECIAL,
    float_values,
    reference,
    run,
    same,
)


def test_bools() -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    for op, f in {
        "and": np.logical_and,
        "or": np.logical_or,
        "xor": np.logical_xor,
        "max": np.maximum,
        "min": np.minimum,
    }.items():
        assert (run(op, [x, y], ["i1", "i1"], "i1") == f(x, y)).all()
    assert (run("not", [x], ["i1"], "i1") == ~x).all()
    for op, c in COMPARE.items():
        assert (run(op, [x, y], ["i1", "i1"], "i1") == c(x, y)).all(), op


@pytest.mark.parametrize("dtype", FLOATS)
def test_math(dtype: str) -> None:
    x, y = float_values(dtype, 0), float_values(dtype, 1)
    ulps = 2.0 if dtype in ("f32", "f64") else 1.0
    for op, f in MATH.items():
        tame = x
        if dtype == "f64" and op in (
            "sin",
            "cos",
            "tan",
        ):  # longdouble's own are not right for huge arguments
            tame = np.where(np.abs(x) > 1e6, 1.0, x)
        same(run(op, [tame], [dtype], dtype), reference(f, tame), ulps)
    for op, f in SPECIAL.items():
        with np.errstate(all="ignore"):
            tame = (
                np.clip(x, -5, 5) + x.dtype.type(0)
                if op.startswith("erf")
                else np.where((x > 3) & (x < 1e30), x, np.full_like(x, 5))
            )
            tame = tame.astype(x.dtype)
            want = f(tame.astype(np.float64)).astype(x.dtype)
        same(run(op, [tame], [dtype], dtype), want, 16.0 if dtype == "f64" else 4.0)
    for op, f in MATH_BINARY.items():
        same(run(op, [x, y], [dtype] * 2, dtype), reference(f, x, y), ulps)


def test_clamp_passes_nan() -> None:
    low, x, high = (
        np.array(v, np.float32) for v in ([1, NAN, 0, 2, 0], [NAN, 0, 0, 5, 3], [2, 1, NAN, 1, 2])
    )
    same(
        run("clamp", [low, x, high], ["f32"] * 3, "f32"),
        np.array([NAN, NAN, NAN, 1, 2], np.float32),
    )


def test_select() -> None:
    which = np.array([0, 1, 2, 3, -1, 100], np.int32)
    cases = [np.full(6, v, np.float32) for v in (1, 2, 3)]
    assert run("select_n", [which, *cases], ["i32", *["f32"] * 3], "f32").tolist() == [
        1,
        2,
        3,
        3,
        1,
        3,
    ]
    p = np.array([True, False])
    a, b = np.array([1 + 2j, 3 + 4j], np.complex64), np.array([5 + 6j, 7 + 8j], np.complex64)
    assert run("select_n", [p, a, b], ["i1", "c64", "c64"], "c64").tolist() == [5 + 6j, 3 + 4j]
    n = np.array([1, NAN], ml_dtypes.float8_e5m2)
    assert (
        run("select_n", [p, n, n], ["i1", "float8_e5m2", "float8_e5m2"], "float8_e5m2")
        .view(np.uint8)
        .tolist()
        == n.view(np.uint8).tolist()
    )


def test_bitcasts() -> None:
    x = float_values("f32", 7)
    assert (run("bitcast_convert_type", [x], ["f32"], "i32") == x.view(np.int32)).all()
    assert (
        run("bitcast_convert_type", [x.view(np.uint32)], ["u32"], "f32").view(np.uint32)
        == x.view(np.uint32)
    ).all()
    h = np.arange(65536, dtype=np.uint16)
    with np.errstate(all="ignore"):
        finite, brain = ~np.isnan(h.view(np.float16)), ~np.isnan(h.view(ml_dtypes.bfloat16))
    assert (run("bitcast_convert_type", [h], ["u16"], "f16").view(np.uint16) == h)[finite].all()
    assert (run("bitcast_convert_type", [h], ["u16"], "bf16").view(np.uint16) == h)[brain].all()
    b = np.arange(256, dtype=np.uint8)
    assert (run("bitcast_convert_type", [b], ["u8"], "float8_e4m3fn").view(np.uint8) == b).all()
    assert (run("bitcast_convert_type", [b], ["u8"], "i8") == b.view(np.int8)).all()


def test_support() -> None:
    assert supports("add") and not supports("dot_general")
    with pytest.raises(NotImplementedError, match="dot_general"):
        lower("dot_general", [], [], "f32", {})
    with pytest.raises(TypeError, match="floor does not take i32"):
        run("floor", [np.zeros(1, np.int32)], ["i32"], "i32")
    assert set(ELEMENT) >= set(MATH) | set(MATH_BINARY) | set(COMPARE)


def test_support_by_dtype() -> None:
    """A primitive that some dtypes have no lowering of says so before it is asked to lower."""
    assert supports("atan2") and supports("atan2", ["f32"]) and not supports("atan2", ["c64"])
    assert supports("nextafter", ["f16"]) and not supports("nextafter", ["float8_e5m2"])


def test_narrow_elements_are_computed_in_wider_ones() -> None:
    """Each primitive rounds once: the sum of two float8 is that of float32, encoded."""
    t = ml_dtypes.float8_e4m3fn
    every = np.arange(256, dtype=np.uint8).view(t)
    x, y = np.repeat(every, 256), np.tile(every, 256)
    got = run("mul", [x, y], ["float8_e4m3fn"] * 2, "float8_e4m3fn")
    with np.errstate(all="ignore"):
        want = (x.astype(np.float32) * y.astype(np.float32)).astype(t)
    same(got, want)
