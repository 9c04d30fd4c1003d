"""Lines between arrays and parts in double precision: every form, any step."""

import numpy as np
import pytest

from calque.machine.routines.fft.lines import Form, fft_load, fft_store

DTYPES = {Form.C64: "c8", Form.C128: "c16", Form.F32: "f4", Form.F64: "f8"}
LENGTHS = (0, 1, 3, 8, 37)


def numbers(dtype: str, n: int) -> np.ndarray:
    x = np.random.default_rng(n).normal(size=(n, 2))
    return (x[:, 0] + 1j * x[:, 1] if dtype[0] == "c" else x[:, 0]).astype(dtype)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("stride", [1, 3])
def test_reading(form: Form, stride: int) -> None:
    """Both parts; of real numbers the other one is zero."""
    for n in LENGTHS:
        x = numbers(DTYPES[form], n * stride)
        re, im = np.full(n + 1, 7.0), np.full(n + 1, 7.0)
        step = stride * x.itemsize
        fft_load(form, x.ctypes.data, step, re.ctypes.data, im.ctypes.data, n)
        want = x[::stride]
        np.testing.assert_array_equal(re[:n], want.real.astype("f8"))
        np.testing.assert_array_equal(im[:n], want.imag.astype("f8"))
        assert re[n] == im[n] == 7


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("stride", [1, 2])
def test_writing_scaled(form: Form, stride: int) -> None:
    """Rounded once, and nothing between the elements is touched."""
    for n in LENGTHS:
        parts = np.random.default_rng(n).normal(size=(2, n))
        out = np.full(n * stride + 1, 9, DTYPES[form])
        step = stride * out.itemsize
        re, im = (np.ascontiguousarray(p) for p in parts)
        fft_store(form, re.ctypes.data, im.ctypes.data, out.ctypes.data, step, n, 0.1)
        whole = 0.1 * re + 1j * (0.1 * im) if out.dtype.kind == "c" else 0.1 * re
        np.testing.assert_array_equal(out[: n * stride : stride], whole.astype(out.dtype))
        rest = np.ones(len(out), bool)
        rest[: n * stride : stride] = False
        assert (out[rest] == 9).all()
