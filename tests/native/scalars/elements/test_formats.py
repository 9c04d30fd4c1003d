"""The narrow formats against ml_dtypes: every code, and all that lies between two of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from calque.native.scalars.elements.formats import (
    E8M0,
    FORMATS,
    SMALL_FLOATS,
    SMALL_INTS,
    decode,
    encode,
    pack_small,
    wrap_small,
)
from tests.native.evaluate import apply, numpy_type
from tests.native.scalars.elements.test_conversions import INTS, cast, equal, run, values


@pytest.mark.parametrize("dtype", sorted(SMALL_FLOATS))
def test_narrow_floats(dtype: str) -> None:
    """All codes decoded; encoded are random numbers, all values, their neighbours and the points
    halfway between."""
    bits = FORMATS[dtype].bits if dtype in FORMATS else 8
    codes = np.arange(1 << bits, dtype=np.uint8)
    exact = cast(codes.view(numpy_type(dtype)), "f32")
    equal(apply(lambda v: decode(v, dtype), codes, dtypes=[dtype], out="f32"), exact)
    up, down = np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf))
    with np.errstate(all="ignore"):
        between = ((exact[:-1].astype(np.float64) + exact[1:]) / 2).astype(np.float32)
    x = np.concatenate([values(), exact, up, down, between])
    got = apply(lambda v: encode(v, dtype), x, dtypes=["f32"], out=dtype).view(np.uint8)
    assert (got == cast(x, dtype).view(np.uint8)).all()
    for source in ("f16", "bf16", "f64", "i32", "u8"):
        y = cast(np.nan_to_num(x) if source in INTS else x, source)
        want = cast(cast(y, "f32"), dtype).view(np.uint8)
        assert (run(y, source, dtype).view(np.uint8) == want).all(), source
    assert (run(codes.view(numpy_type(dtype)), dtype, "i1") == (exact != 0)).all()


@pytest.mark.parametrize("dtype", sorted(FORMATS))
def test_the_fields_of_a_format(dtype: str) -> None:
    f, t = FORMATS[dtype], numpy_type(dtype)
    info = ml_dtypes.finfo(t)
    assert (f.bits, f.exponent, f.fraction) == (info.bits, info.nexp, info.nmant)
    assert f.sign == 1 << (f.bits - 1)

    def code(v: float) -> int:
        return int(np.array(v, t).view(np.uint8))

    assert code(float(info.max)) == f.largest
    one = f.bias << f.fraction
    assert code(1.0) == one
    assert (code(-0.0) == f.sign) == f.negative_zero
    if f.infinity is not None:
        assert code(np.inf) == f.infinity
    if f.nan is not None:
        assert code(np.nan) & (f.sign - 1) == f.nan & (f.sign - 1) or f.infinity is not None
    if f.saturates:
        assert code(1e9) == f.largest


def test_powers_of_two_alone() -> None:
    """The format without fraction and sign: halfway up, nothing below zero."""
    x = np.array([1.0, 1.5, 1.49, 3.0, 0.0, -1.0, np.inf, np.nan, 3e38, 1e-45], np.float32)
    got = apply(lambda v: encode(v, E8M0), x, dtypes=["f32"], out=E8M0).view(np.uint8)
    assert got.tolist() == x.astype(numpy_type(E8M0)).view(np.uint8).tolist()
    assert got[:4].tolist() == [127, 128, 127, 129]


@pytest.mark.parametrize("dtype", sorted(SMALL_INTS))
def test_packing_keeps_low_bits(dtype: str) -> None:
    """Every byte, packed and read again, is what its low bits say."""
    bits, signed = SMALL_INTS[dtype], dtype[0] == "i"
    kind: Any = np.int8 if signed else np.uint8
    x = np.arange(256, dtype=np.uint8).view(kind)
    stored = apply(lambda v: pack_small(v, dtype), x, dtypes=["i8" if signed else "u8"])
    assert (stored.view(np.uint8) == np.arange(256) % (1 << bits)).all()
    back = apply(lambda v: wrap_small(v, dtype), x, dtypes=["i8" if signed else "u8"])
    low, size = (-(1 << (bits - 1)) if signed else 0), 1 << bits
    assert back.tolist() == [(v - low) % size + low for v in x.tolist()]
