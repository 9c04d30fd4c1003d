"""Copies between strided memory: every element size, strides of every sign, against NumPy."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from calque.machine.objects.strided import Axis, calque_strided_copy, merged

DTYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


def copy(to: np.ndarray, source: np.ndarray, axes: Any, offsets: tuple[int, int] = (0, 0)) -> None:
    words = [to.ctypes.data, source.ctypes.data, to.itemsize, *offsets, len(axes)]
    words = np.array([*words, *itertools.chain(*axes)], np.int64)
    calque_strided_copy(words.ctypes.data, 0, 1)


def between(to: np.ndarray, source: np.ndarray) -> list[Axis]:
    return list(zip(to.shape, to.strides, source.strides, strict=True))


def numbers(size: int, *shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape, dtype=int)).astype(DTYPES[size]).reshape(shape)


VIEWS: list[Any] = [
    np.s_[...],
    np.s_[::-1],
    np.s_[:, ::2, ::-1],
    np.s_[1:3, 2, :],
    np.s_[:, :, 1],
    np.s_[2, 3, 1],
    np.s_[:0],
    np.s_[::2, :0, ::-1],
    np.s_[:, None, 1:2],
]


@pytest.mark.parametrize("size", DTYPES)
def test_parts_turned_about(size: int) -> None:
    whole = numbers(size, 4, 5, 3)
    for view in VIEWS:
        source = np.asarray(whole[(*view, ...)] if isinstance(view, tuple) else whole[view])
        for order in itertools.permutations(range(source.ndim)):
            turned = source.transpose(order)
            to = np.zeros(turned.shape, turned.dtype)
            copy(to, turned, between(to, turned))
            np.testing.assert_array_equal(to, turned)


@pytest.mark.parametrize("size", DTYPES)
def test_only_the_places_named_are_written(size: int) -> None:
    room, source = numbers(size, 6, 7) + 100, numbers(size, 3, 2)
    want = room.copy()
    want[4:1:-1, 1::4] = source
    to = room[4:1:-1, 1::4]
    copy(to, source, between(to, source))
    np.testing.assert_array_equal(room, want)


def test_a_stride_of_zero_repeats() -> None:
    for size in DTYPES:
        row = numbers(size, 3)
        to = np.zeros((2, 3, 2), row.dtype)
        copy(to, row, [(2, 6 * size, 0), (3, 2 * size, size), (2, size, 0)])
        np.testing.assert_array_equal(to, np.broadcast_to(row[:, None], (2, 3, 2)))


def test_offsets_are_in_bytes_of_each_side() -> None:
    source, to = numbers(4, 8), np.zeros(8, np.uint32)
    copy(to, source, [(3, 4, 8)], (8, 4))
    assert to.tolist() == [0, 0, 2, 4, 6, 0, 0, 0]
    copy(to, source, [], (28, 12))
    assert to.tolist() == [0, 0, 2, 4, 6, 0, 0, 4]


def test_the_highest_rank() -> None:
    source = numbers(2, *(2,) * 5, *(1,) * 27)
    turned = source.transpose(list(range(31, -1, -1)))
    to = np.zeros(turned.shape, turned.dtype)
    copy(to, turned, between(to, turned))
    np.testing.assert_array_equal(to, turned)


def test_fewer_axes_for_the_same_copy() -> None:
    assert merged([]) == [] and merged([(1, 5, 7)]) == []
    assert merged([(2, 60, 60), (3, 20, 20), (5, 4, 4)]) == [(30, 4, 4)]
    assert merged([(2, 60, 60), (1, 3, 8), (15, 4, 4)]) == [(30, 4, 4)]
    assert merged([(3, 20, 4), (5, 4, 12)]) == [(3, 20, 4), (5, 4, 12)]  # one side alone runs on
    assert merged([(0, 20, 20), (5, 4, 4)]) == [(0, 4, 4)]
    assert merged([(2, 12, 0), (3, 4, 0)]) == [(6, 4, 0)]
    assert merged([(2, 4, -12), (3, 8, -4)]) == [(2, 4, -12), (3, 8, -4)]
    assert merged([(2, -12, -12), (3, -4, -4)]) == [(6, -4, -4)]


def test_merged_axes_copy_the_same() -> None:
    rng, fewer = random.Random(3), 0
    for _ in range(200):
        shape = [rng.choice([1, 1, 2, 3]) for _ in range(rng.randrange(1, 5))]
        source = numbers(8, *shape)
        if rng.random() < 0.5:
            source = source[tuple(slice(None, None, rng.choice([1, -1])) for _ in shape)]
        order = rng.sample(range(len(shape)), len(shape))
        place = sorted(order) if rng.random() < 0.5 else order
        to = np.zeros([shape[k] for k in place], np.uint64)
        turned = source.transpose(place)
        axes = between(to, turned)
        copy(to, turned, merged(axes))
        np.testing.assert_array_equal(to, turned)
        fewer += len(merged(axes)) < len(axes)
    assert fewer > 50
