"""How constants and types are written: read again, they are what they were."""

import struct

import ml_dtypes
import numpy as np
import pytest

from calque.native.emit import types
from calque.native.scalars.expr import const, const_bits


def read(text: str) -> float:
    """A double as LLVM reads it."""
    assert text.startswith("0x") and len(text) == 18
    return float(struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0])


@pytest.mark.parametrize("dtype, kind", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_narrow_float(dtype: str, kind: type) -> None:
    with np.errstate(all="ignore"):
        values = np.arange(65536, dtype=np.uint16).view(kind).astype(np.float64)
        for bits, want in enumerate(values.tolist()):
            got = read(types.float_text(bits, dtype))
            assert got == want or (got != got and want != want)
            assert np.signbit(got) == np.signbit(want) or want != want


def test_floats_of_every_size() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 2000, dtype=np.uint64).astype(np.uint32)
    bits = np.concatenate([bits, np.array([0, 1, 1 << 31, 0x7F800000, 0xFF800000], np.uint32)])
    for b, want in zip(bits.tolist(), bits.view(np.float32).tolist(), strict=True):
        got = read(types.float_text(b, "f32"))
        assert got == want or (got != got and want != want)
    assert read(types.float_text(0x7FEFFFFFFFFFFFFF, "f64")) == np.finfo(np.float64).max
    assert types.double_text(-0.0) == "0x8000000000000000"


def test_payloads_of_nans_are_kept() -> None:
    for payload in (0x7FC00001, 0xFFC12345, 0x7F800001):
        wide = int(types.float_text(payload, "f32"), 16)
        assert (wide >> 29) & 0x7FFFFF == payload & 0x7FFFFF and wide >> 63 == payload >> 31
    assert types.const_text(const_bits(0x7FF8000000000123, "f64")) == "0x7FF8000000000123"


def test_constants_of_integers() -> None:
    assert types.const_text(const(True, "i1")) == "true"
    assert types.const_text(const(-1, "i8")) == "-1" and types.const_text(const(-1, "u8")) == "255"


def test_types_of_lanes() -> None:
    assert (types.vector("float", 0), types.vector("half", 8)) == ("float", "<8 x half>")
    assert (
        types.splat_text("i8", "3", 0) == "3" and types.splat_text("i8", "3", 4) == "splat (i8 3)"
    )
    assert [types.mangled(t, w) for t, w in (("float", 8), ("i1", 16), ("double", 0))] == [
        "v8f32",
        "v16i1",
        "f64",
    ]
    assert types.index_list([2, 0]) == "<2 x i32> <i32 2, i32 0>"


def test_every_dtype_has_its_forms() -> None:
    """Two forms of one size, but for bools, and halves, which are computed as floats."""
    assert set(types.VALUE) == set(types.MEMORY)
    other = {d for d in types.VALUE if types.VALUE[d] != types.MEMORY[d]}
    assert other == {"i1", "f16", "bf16"}
