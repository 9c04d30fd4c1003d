"""Sorting on XLA: the order of all numbers, several keys, the first k."""

from typing import Any

import numpy as np
import pytest

from calque import lax
from tests.xla.lower.shared import on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

rng = np.random.default_rng(0)


@needs_jaxlib
def test_nan_comes_last_and_zeros_keep_their_places() -> None:
    row = np.float32([np.nan, 0.0, -np.inf, -0.0, -np.nan, 1, np.inf])

    def ordered(x: Any) -> Any:
        return lax.sort((x, lax.iota(np.int32, 7)), num_keys=1)

    found, places = on_both(ordered, row)
    assert places.tolist() == [2, 1, 3, 5, 6, 0, 4]
    np.testing.assert_array_equal(found, row[places])


@needs_jaxlib
@pytest.mark.parametrize("axis", [0, 1])
def test_keys_one_after_the_other(axis: int) -> None:
    first = rng.integers(0, 3, (5, 6)).astype(np.int8)
    second = rng.integers(0, 2, (5, 6)).astype(np.float32)
    rest = np.arange(30, dtype=np.int32).reshape(5, 6)
    found = on_both(lambda *xs: lax.sort(xs, axis, num_keys=2), first, second, rest)
    order = np.lexsort((rest, second, first), axis=axis)
    for a, x in zip(found, (first, second, rest), strict=True):
        np.testing.assert_array_equal(a, np.take_along_axis(x, order, axis))


@needs_jaxlib
def test_complex_numbers_by_their_parts() -> None:
    z = np.complex64([1 + 2j, 1 - 1j, np.nan, -3, 1 + 0j])
    (found,) = on_both(lax.sort, z)
    assert found[:4].tolist() == [-3, 1 - 1j, 1, 1 + 2j] and np.isnan(found[4])


@needs_jaxlib
@pytest.mark.parametrize("dtype", ["int4", "uint2", "float8_e4m3fnuz", "bool"])
def test_small_elements(dtype: str) -> None:
    row = np.int8([1, 0, 3, 2, 1] if dtype != "bool" else [1, 0, 1, 0, 1])
    (found,) = on_both(lambda x: lax.sort(x.astype(dtype)).astype(np.int8), row)
    np.testing.assert_array_equal(found, np.sort(row))


@needs_jaxlib
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int4"])
def test_the_first_k(axis: int, dtype: str) -> None:
    data = rng.integers(-4, 4, (6, 7)).astype(np.int8)

    def first(x: Any) -> Any:
        values, places = lax.top_k(x.astype(dtype), 3, axis=axis)
        return values.astype(np.int8), places

    values, places = on_both(first, data)
    order = np.argsort(-data, axis, kind="stable").take(range(3), axis)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(data, order, axis))


@needs_jaxlib
def test_near_enough_is_exact() -> None:
    data = rng.standard_normal((4, 20)).astype(np.float32)
    for f, sign in ((lax.approx_max_k, -1), (lax.approx_min_k, 1)):
        values, places = on_both(lambda x: f(x, 4), data)
        order = np.argsort(sign * data, 1)[:, :4]
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(data, order, 1))


def test_the_largest_of_rows_are_one_operation() -> None:
    data = np.zeros((3, 4), np.float32)
    assert operations(text_of(lambda x: lax.top_k(x, 2), data))["top_k"] == 1
    assert operations(text_of(lambda x: lax.top_k(x, 2, axis=0), data))["sort"] == 1
    assert "is_stable = false" in text_of(lambda x: lax.sort(x, is_stable=False), data)
