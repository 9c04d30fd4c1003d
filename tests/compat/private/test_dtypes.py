"""Dtypes under the names that libraries ask for."""

import numpy as np
import pytest

from calque.compat.private.dtypes import to_complex_dtype


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [("float32", 64), ("float64", 128), ("int8", 64), ("complex128", 128), (np.float16, 64)],
)
def test_complex_dtypes(dtype, wide) -> None:
    assert to_complex_dtype(dtype) == np.dtype(f"complex{wide}")
