"""Exchange with other libraries."""

import numpy as np

from calque import dlpack


def test_dlpack() -> None:
    assert [dlpack.is_supported_dtype(d) for d in ("float32", "bfloat16", bool, "int4")] == [
        True,
        True,
        True,
        False,
    ]
    assert dlpack.from_dlpack(np.arange(3, dtype=np.float32)).tolist() == [0, 1, 2]
