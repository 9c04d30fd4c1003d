"""Conversions of elements against NumPy's and ml_dtypes' casts."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from calque.native.scalars.elements.conversions import convert
from calque.native.scalars.elements.formats import SMALL_INTS
from calque.native.scalars.elements.values import Cx
from tests.native.evaluate import Array, apply, compiled, numpy_type

INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")


def run(x: Array, source: str, target: str) -> Array:
    return apply(lambda v: convert(v, source, target), x, dtypes=[source], out=target)  # type: ignore[arg-type,return-value]


def cast(x: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.astype(numpy_type(dtype))


def values(n: int = 4000) -> Array:
    """f32 numbers of all sizes: random bits, ordinary ones, special ones."""
    r = np.random.default_rng(0)
    random = r.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ordinary = r.normal(size=n) * 10.0 ** r.uniform(-8, 8, n)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        -np.nan,
        1e-45,
        -1e-45,
        1e-39,
        3e38,
        -3e38,
        5.9e-39,
        1.2e-38,
    ]
    return np.concatenate([random, ordinary.astype(np.float32), np.array(special, np.float32)])


def equal(got: Array, want: Array) -> None:
    assert got.dtype == want.dtype
    raw: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    with np.errstate(all="ignore"):
        nan = (got != got) & (want != want)
    assert ((got.view(raw) == want.view(raw)) | nan).all()


@pytest.mark.parametrize("source", FLOATS)
def test_floats(source: str) -> None:
    x = cast(values(), source)
    for target in FLOATS:
        if (source, target) == (
            "f64",
            "bf16",
        ):  # ml_dtypes goes by way of f32, here there is one rounding
            continue
        equal(run(x, source, target), cast(x, target))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
    for target in INTS:
        info = np.iinfo(numpy_type(target))
        want = [
            0 if v != v else max(info.min, min(info.max, int(max(-1e30, min(1e30, v)))))
            for v in wide.tolist()
        ]
        assert run(x, source, target).tolist() == want, target
    assert (run(x, source, "i1") == (wide != 0)).all()


@pytest.mark.parametrize("source", (*INTS, "i1"))
def test_integers(source: str) -> None:
    r = np.random.default_rng(1)
    x = r.integers(0, 256, 8 * 1000, dtype=np.uint8).view(np.uint64)
    x = (x >> r.integers(0, 64, len(x)).astype(np.uint64)).astype(numpy_type(source))
    for target in INTS:
        assert (run(x, source, target) == x.astype(numpy_type(target))).all(), target
    for target in ("f32", "f64"):
        equal(run(x, source, target), x.astype(numpy_type(target)))
    assert (run(x, source, "i1") == (x != 0)).all()


@pytest.mark.parametrize("dtype", sorted(SMALL_INTS))
def test_narrow_integers(dtype: str) -> None:
    small = (
        np.arange(-8, 8)
        if dtype == "int4"
        else np.arange(-2, 2)
        if dtype == "int2"
        else np.arange(16 if dtype == "uint4" else 4)
    )
    stored = small.astype(numpy_type(dtype))
    for target in ("i8", "i32", "u16", "f32", "i1", "float8_e5m2"):
        equal(run(stored, dtype, target), small.astype(numpy_type(target)))
    wide = np.arange(-40, 40, dtype=np.int32)
    assert (run(wide, "i32", dtype).view(np.uint8) == cast(wide, dtype).view(np.uint8)).all()
    x = np.array([np.nan, np.inf, -np.inf, 1.9, -1.9, 100, -100], np.float32)
    low, high = small[0], small[-1]
    clipped = np.clip(np.nan_to_num(np.trunc(x)), low, high).astype(int)
    assert run(x, "f32", dtype).astype(int).tolist() == clipped.tolist()


def test_complex() -> None:
    def both(x: Any, y: Any) -> list[Any]:
        z = Cx(x, y)
        narrow = convert(z, "c128", "c64")
        assert isinstance(narrow, Cx)
        made = convert(x, "f64", "c64")
        assert isinstance(made, Cx)
        return [*narrow, convert(z, "c128", "f32"), convert(z, "c128", "i1"), *made]

    re, im = np.array([1.5, 0.0, 0.0, -0.0]), np.array([2.5, 3.5, 0.0, np.nan])
    out = compiled(both, ["f64", "f64"], ["f32", "f32", "f32", "i1", "f32", "f32"])[1](re, im)
    f = np.float32
    for got, want in zip(
        out,
        [
            re.astype(f),
            im.astype(f),
            re.astype(f),
            [True, True, False, True],
            re.astype(f),
            im.astype(f) * 0,
        ],
        strict=True,
    ):
        np.testing.assert_array_equal(np.nan_to_num(got), np.nan_to_num(want))


def test_halves_of_ml_dtypes() -> None:
    x = values()
    equal(run(x, "f32", "bf16"), cast(x, "bf16"))
    h = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    equal(run(h, "bf16", "f32"), cast(h, "f32"))
