"""Arrays that repeat one element: every width, lengths around the blocks that are copied."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from calque.machine.call.arrays import delete_array, filled, wrap_numpy
from calque.machine.objects import plain as arrays_plain


class Aval:
    """Stands for a core aval."""


LENGTHS = (0, 1, 2, 3, 31, 1000, 4096, 4097, 16384, 100_001)


@pytest.mark.parametrize("dtype", ["u1", "f2", "i4", "f8", "c16"])
@pytest.mark.parametrize("value", [0, 3])
def test_every_width_and_length(dtype: str, value: int) -> None:
    scalar = wrap_numpy(Aval(), np.array(value, dtype))
    width = np.dtype(dtype).itemsize
    for n in LENGTHS:
        aval = Aval()
        x = filled(aval, n * width, scalar, width)
        assert x.aval is aval and x._ptr % 64 == 0
        assert ctypes.string_at(x._ptr, n * width) == np.full(n, value, dtype).tobytes()


def test_the_plain_one() -> None:
    scalar = arrays_plain.wrap_numpy(Aval(), np.array(2.5, "f4"))
    x = arrays_plain.filled(Aval(), 40, scalar, 4)
    assert ctypes.string_at(x._ptr, 40) == np.full(10, 2.5, "f4").tobytes()


@pytest.mark.parametrize("nbytes, width", [(-1, 4), (8, 0), (8, 1 << 20)])
def test_bytes_that_cannot_be(nbytes: int, width: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        filled(Aval(), nbytes, wrap_numpy(Aval(), np.array(1.0)), width)


def test_what_is_no_array_and_what_is_no_more() -> None:
    wrong: Any = 1.0
    with pytest.raises(TypeError):
        filled(Aval(), 8, wrong, 8)
    gone = wrap_numpy(Aval(), np.array(1.0))
    delete_array(gone)
    with pytest.raises(RuntimeError, match="deleted"):
        filled(Aval(), 8, gone, 8)
