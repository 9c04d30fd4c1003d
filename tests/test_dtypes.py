"""The module dtypes."""

import numpy as np
import pytest

import calque
from calque import dtypes


def test_dtypes() -> None:
    key = calque.random.key(0)
    for a, b, want in (
        (key.dtype, dtypes.prng_key, True),
        (key.dtype, dtypes.extended, True),
        (dtypes.prng_key, dtypes.extended, True),
        (np.float32, dtypes.extended, False),
        (dtypes.bfloat16, np.floating, True),
        ("float8_e4m3fn", np.floating, True),
        ("int4", np.signedinteger, True),
        (float, np.inexact, True),
        (key.dtype, np.floating, False),
        (np.int8, np.floating, False),
    ):
        assert dtypes.issubdtype(a, b) is want, (a, b)
    assert [dtypes.scalar_type_of(x) for x in (3, np.float32(3), True, 1j)] == [
        int,
        float,
        bool,
        complex,
    ]
    assert [dtypes.itemsize_bits(d) for d in ("int4", "float32", bool, "complex64")] == [
        4,
        32,
        8,
        64,
    ]
    assert dtypes.result_type(1, np.int8) == np.int8 and dtypes.result_type(
        1, 2.0, return_weak_type_flag=True
    ) == (
        np.float32,
        True,
    )
    assert dtypes.canonicalize_dtype("float64") == np.float32
    with pytest.raises(ValueError, match="extended"):
        dtypes.canonicalize_dtype(key.dtype)
    assert dtypes.canonicalize_dtype(key.dtype, allow_extended_dtype=True) == key.dtype
