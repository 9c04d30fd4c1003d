"""Lines between arrays and parts: both forms, both precisions, any step."""

from typing import Any

import numpy as np
import pytest

from calque.machine.routines.fft import lines
from calque.machine.routines.fft.lines import LINES, SINGLE_LINES, SINGLE_MEANINGS

ITEMS = ("f4", "f8")
LENGTHS = (0, 1, 3, 8, 37)


def function(name: str, item: str) -> Any:
    if name in LINES:
        return SINGLE_LINES[f"{name}_single"] if item == "f4" else LINES[name]
    return SINGLE_MEANINGS[name] if item == "f4" else getattr(lines, name)


def numbers(dtype: str, n: int) -> np.ndarray:
    x = np.random.default_rng(n).normal(size=(n, 2))
    return (x[:, 0] + 1j * x[:, 1] if dtype[0] == "c" else x[:, 0]).astype(dtype)


def places(*arrays: np.ndarray) -> list[int]:
    return [a.ctypes.data for a in arrays]


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("rows", [1, 4])
def test_rows_of_complex_elements(item: str, stride: int, rows: int) -> None:
    """Both parts are read, and written again, scaled and rounded once; nothing between the elements
    or behind the rows is touched."""
    scale = np.dtype(item).type(0.1)
    for n in LENGTHS:
        x = numbers({"f4": "c8", "f8": "c16"}[item], rows * (n * stride + 2)).reshape(rows, -1)
        re, im = np.full((2, rows * n + 1), 7, item)
        steps = x.strides[0], stride * x.itemsize
        function("fft_load", item)(*places(x), *steps, *places(re, im), rows, n)
        want = x[:, : n * stride : stride].reshape(-1)
        np.testing.assert_array_equal(re[:-1], want.real)
        np.testing.assert_array_equal(im[:-1], want.imag)
        assert re[-1] == im[-1] == 7
        out = np.full_like(x, 9)
        function("fft_store", item)(*places(re, im, out), *steps, rows, n, float(scale))
        scaled = (scale * want.real + 1j * (scale * want.imag)).astype(x.dtype)
        np.testing.assert_array_equal(out[:, : n * stride : stride].reshape(-1), scaled)
        rest = np.ones(out.shape, bool)
        rest[:, : n * stride : stride] = False
        assert (out[rest] == 9).all()


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("rows", [1, 3])
def test_whole_rows(item: str, rows: int) -> None:
    """Rows of elements that follow each other and fill vectors give the same bits."""
    scale = float(np.dtype(item).type(0.1))
    for n in (8, 11, 16, 37):
        x = numbers({"f4": "c8", "f8": "c16"}[item], rows * n)
        made = []
        for kind in ("", "whole_"):
            parts, out = np.full((2, rows * n + 1), 7, item), np.full(rows * n + 1, 9, x.dtype)
            steps = n * x.itemsize, x.itemsize
            function(f"fft_{kind}load", item)(*places(x), *steps, *places(*parts), rows, n)
            function(f"fft_{kind}store", item)(*places(*parts, out), *steps, rows, n, scale)
            made.append((parts, out))
        for any_rows, whole in zip(*made, strict=True):
            np.testing.assert_array_equal(any_rows, whole)
        assert (made[1][0][:, -1] == 7).all() and made[1][1][-1] == 9


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("stride", [1, 3])
def test_reading_real_elements(item: str, stride: int) -> None:
    """The other part is zero."""
    for n in LENGTHS:
        x = numbers(item, n * stride)
        re, im = np.full((2, n + 1), 7, item)
        function("fft_load_real", item)(*places(x), stride * x.itemsize, *places(re, im), n)
        np.testing.assert_array_equal(re[:n], x[::stride])
        np.testing.assert_array_equal(im[:n], 0)
        assert re[n] == im[n] == 7


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("stride", [1, 2])
def test_writing_real_elements(item: str, stride: int) -> None:
    """Rounded once, and nothing between the elements is touched."""
    scale = np.dtype(item).type(0.1)
    for n in LENGTHS:
        re, im = np.random.default_rng(n).normal(size=(2, n)).astype(item)
        out = np.full(n * stride + 1, 9, item)
        step = stride * out.itemsize
        function("fft_store_real", item)(*places(re, im, out), step, n, float(scale))
        np.testing.assert_array_equal(out[: n * stride : stride], scale * re)
        rest = np.ones(len(out), bool)
        rest[: n * stride : stride] = False
        assert (out[rest] == 9).all()
