"""Gather and scatter on XLA: indices outside, narrow indices, windows."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.xla.lower.indexing import wide_indices, window_sizes
from calque.xla.text.types import Tensor
from tests.xla.lower.shared import blank, f32, on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

x = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
outside = np.int32([-9, -1, 0, 3, 4, 99])


@needs_jaxlib
def test_reads_outside_clip_or_fill() -> None:
    def read(x: Any, i: Any) -> Any:
        rows = x.at[i]
        return (
            rows.get(mode="clip", wrap_negative_indices=False),
            rows.get(mode="fill", fill_value=-5, wrap_negative_indices=False),
        )

    clipped, filled = on_both(read, x, outside)
    np.testing.assert_array_equal(clipped, x[np.clip(outside, 0, 3)])
    inside = (outside >= 0) & (outside < 4)
    np.testing.assert_array_equal(filled, np.where(inside[:, None], x[outside * inside], -5))


@needs_jaxlib
@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max", "subtract"])
def test_writes_outside_are_dropped_or_clipped(how: str) -> None:
    places = np.int32([1, 99, 3])  # one place each: the order of writes is free

    def written(x: Any, i: Any) -> Any:
        return [
            getattr(x.at[i], how)(2.5, mode=m, wrap_negative_indices=False)
            for m in ("drop", "clip")
        ]

    rules = {
        "set": lambda a: 0 * a + 2.5,
        "add": lambda a: a + 2.5,
        "multiply": lambda a: a * 2.5,
        "min": lambda a: np.minimum(a, 2.5),
        "max": lambda a: np.maximum(a, 2.5),
        "subtract": lambda a: a - 2.5,
    }
    dropped, clipped = on_both(written, x, places)
    want = x.copy()
    for row in (1, 3):
        want[row] = rules[how](want[row])
    np.testing.assert_array_equal(dropped, want)
    want[3] = rules[how](want[3])
    np.testing.assert_array_equal(clipped, want)


@needs_jaxlib
@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_narrow_indices_into_long_arrays(mode: str, dtype: str) -> None:
    long = np.arange(400, dtype=np.float32)
    i = np.array([0, 100, 127], dtype)
    (found,) = on_both(lambda x, i: x.at[i].get(mode=mode), long, i)
    assert found.tolist() == [0, 100, 127]
    put = on_both(lambda x, i: x.at[i].set(-1, mode=mode), long, i)[0]
    assert np.flatnonzero(put == -1).tolist() == [0, 100, 127]


def test_indices_become_wider_where_they_must() -> None:
    b, (narrow,) = blank(Tensor((2, 1), np.dtype("int8")))
    assert wide_indices(b, narrow, (127, 3)) is narrow
    assert wide_indices(b, narrow, (3, 128)).dtype == np.dtype("int32")
    assert wide_indices(b, narrow, ()) is narrow


def test_windows_of_a_scatter() -> None:
    numbers = lax.ScatterDimensionNumbers((0, 2), (1,), (1,))
    _, (operand, updates) = blank(f32(5, 6, 7), f32(2, 9, 3))
    assert window_sizes(operand, updates, numbers) == [2, 1, 3]


@needs_jaxlib
def test_windows_that_reach_over_the_end() -> None:
    numbers = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
    starts = np.int32([[0, 0], [2, 1], [3, 2], [-1, 0]])

    def windows(x: Any, i: Any) -> Any:
        return [lax.gather(x, i, numbers, (2, 2), mode=m) for m in ("clip", "fill")]

    clipped, filled = on_both(windows, x, starts)
    for at, (row, column) in enumerate(starts):
        r, c = np.clip(row, 0, 2), np.clip(column, 0, 1)
        np.testing.assert_array_equal(clipped[at], x[r : r + 2, c : c + 2])
        if (r, c) == (row, column):
            np.testing.assert_array_equal(filled[at], clipped[at])
        else:
            assert np.isnan(filled[at]).all()


@needs_jaxlib
def test_batches_of_indices() -> None:
    rows = np.int32([[0, 2], [1, 1], [2, 0], [0, 0]])
    (found,) = on_both(jax.vmap(lambda r, i: r[i]), x, rows)
    np.testing.assert_array_equal(found, np.take_along_axis(x, rows, 1))
    (put,) = on_both(jax.vmap(lambda r, i: r.at[i].add(1)), x, rows)
    want = x.copy()
    np.add.at(want, (np.arange(4)[:, None], rows), 1)
    np.testing.assert_array_equal(put, want)


@needs_jaxlib
def test_nothing_taken_and_nothing_written() -> None:
    none = np.zeros(0, np.int32)
    taken, put = on_both(lambda x, i: (x[i], x.at[i].set(7)), x, none)
    assert taken.shape == (0, 3)
    np.testing.assert_array_equal(put, x)
    assert "gather" not in operations(text_of(lambda x, i: x[i], x, none))


@needs_jaxlib
def test_a_scatter_with_a_program_of_its_own() -> None:
    (found,) = on_both(lambda x, i: x.at[i].apply(jnp.sqrt), x, np.int32([2, 0]))
    want = x.copy()
    want[[2, 0]] = np.sqrt(want[[2, 0]])
    np.testing.assert_allclose(found, want, rtol=1e-6)
    on_both(lambda z, i: z.at[i].max(1 + 1j), x.astype(np.complex64), np.int32([1]))


def test_promises_about_indices_are_handed_on() -> None:
    def taken(x: Any, i: Any) -> Any:
        return x.at[i].set(0, unique_indices=True, indices_are_sorted=True)

    text = text_of(taken, x, np.int32([0, 2]))
    assert "unique_indices = true" in text and "indices_are_sorted = true" in text
    plain = text_of(lambda x, i: x.at[i].set(0), x, np.int32([0, 2]))
    assert "unique_indices = false" in plain


def test_windows_are_clipped_by_the_operation_itself() -> None:
    text = text_of(lambda x, i: x.at[i].get(mode="clip"), x, outside)
    assert "stablehlo.gather" in text and "stablehlo.clamp" not in text


@needs_jaxlib
@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_the_furthest_indices_of_every_dtype(dtype: str, mode: str) -> None:
    info = np.iinfo(dtype)
    far = np.array([0, 1, 100, info.max, info.min, info.max - 3, info.min + 3], dtype)
    with config.override("calque_enable_x64", True):
        long = np.arange(300, dtype=np.float32)
        for data in (long, long.reshape(10, 30)):
            found, wanted = (
                jax.jit(lambda x, i: x.at[i].get(mode=mode), **where)(data, far)
                for where in ({"backend": "xla_cpu"}, {})
            )
            np.testing.assert_array_equal(found, wanted)
