"""Lines between arrays and parts: both forms, both precisions, any step."""

from typing import Any

import numpy as np
import pytest

from calque.machine.routines.fft import lines
from calque.machine.routines.fft.lines import SINGLE_LINES, Form

KINDS = {
    (Form.COMPLEX, "f4"): "c8",
    (Form.COMPLEX, "f8"): "c16",
    (Form.REAL, "f4"): "f4",
    (Form.REAL, "f8"): "f8",
}
LENGTHS = (0, 1, 3, 8, 37)


def function(name: str, form: Form, item: str) -> Any:
    name += "_real" * (form == Form.REAL)
    return SINGLE_LINES[name] if item == "f4" else getattr(lines, name)


def numbers(dtype: str, n: int) -> np.ndarray:
    x = np.random.default_rng(n).normal(size=(n, 2))
    return (x[:, 0] + 1j * x[:, 1] if dtype[0] == "c" else x[:, 0]).astype(dtype)


@pytest.mark.parametrize(("form", "item"), KINDS)
@pytest.mark.parametrize("stride", [1, 3])
def test_reading(form: Form, item: str, stride: int) -> None:
    """Both parts; of real numbers the other one is zero."""
    for n in LENGTHS:
        x = numbers(KINDS[form, item], n * stride)
        re, im = np.full(n + 1, 7, item), np.full(n + 1, 7, item)
        step = stride * x.itemsize
        load = function("fft_load", form, item)
        load(x.ctypes.data, step, re.ctypes.data, im.ctypes.data, n)
        want = x[::stride]
        np.testing.assert_array_equal(re[:n], want.real)
        np.testing.assert_array_equal(im[:n], want.imag)
        assert re[n] == im[n] == 7


@pytest.mark.parametrize(("form", "item"), KINDS)
@pytest.mark.parametrize("stride", [1, 2])
def test_writing_scaled(form: Form, item: str, stride: int) -> None:
    """Rounded once, and nothing between the elements is touched."""
    for n in LENGTHS:
        re, im = np.random.default_rng(n).normal(size=(2, n)).astype(item)
        out = np.full(n * stride + 1, 9, KINDS[form, item])
        places = (re.ctypes.data, im.ctypes.data, out.ctypes.data)
        scale = np.dtype(item).type(0.1)
        store = function("fft_store", form, item)
        store(*places, stride * out.itemsize, n, float(scale))
        whole = scale * re + 1j * (scale * im) if out.dtype.kind == "c" else scale * re
        np.testing.assert_array_equal(out[: n * stride : stride], whole.astype(out.dtype))
        rest = np.ones(len(out), bool)
        rest[: n * stride : stride] = False
        assert (out[rest] == 9).all()
