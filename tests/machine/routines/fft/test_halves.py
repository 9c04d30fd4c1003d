"""Halves that are joined and parted: both precisions, vectors of elements and of lines."""

from typing import Any

import numpy as np
import pytest

from calque.machine.routines.fft import halves

MADE = {"f8": (halves.HALVES, ""), "f4": (halves.SINGLE_HALVES, "_single")}


def both(item: str, kind: str = "") -> tuple[Any, Any]:
    made, end = MADE[item]
    return made[f"fft_{kind}join_halves{end}"], made[f"fft_{kind}part_halves{end}"]


@pytest.mark.parametrize("item", MADE)
@pytest.mark.parametrize("lanes", [1, 3, 9])
def test_both_directions(item: str, lanes: int) -> None:
    """The real transform of twice the length, and back, twice as large; no element is written
    twice with another value, and none behind the last one."""
    join, part = both(item)
    close = 1e-12 if item == "f8" else 1e-5
    for h in (1, 2, 3, 7, 8, 15, 16, 17, 31, 64):
        x = np.random.default_rng(h).normal(size=(2 * h, lanes))
        pairs = np.fft.fft(x[0::2] + 1j * x[1::2], axis=0)
        angle = np.pi * np.arange(h) / h
        roots = np.concatenate([np.cos(angle), -np.sin(angle)])
        given = np.stack([pairs.real, pairs.imag]).astype(item)
        made = np.full((2, h + 2, lanes), 7, item)
        places = [a.ctypes.data for a in (given[0], given[1], made[0], made[1], roots)]
        join(*places, h, lanes)
        want = np.fft.rfft(x, axis=0)
        got = made[0, : h + 1] + 1j * made[1, : h + 1]
        np.testing.assert_allclose(got, want, rtol=0, atol=close * h)
        assert (made[:, h + 1] == 7).all()
        back = np.full((2, h + 1, lanes), 7, item)
        places = [a.ctypes.data for a in (made[0], made[1], back[0], back[1], roots)]
        part(*places, h, lanes)
        np.testing.assert_allclose(
            back[0, :h] + 1j * back[1, :h], 2 * pairs, rtol=0, atol=2 * close * h
        )
        assert (back[:, h] == 7).all()


@pytest.mark.parametrize("item", MADE)
def test_whole_lines(item: str) -> None:
    """One line that fills vectors gives the same bits."""
    for h in (16, 17, 31, 64):
        given = np.random.default_rng(h).normal(size=(2, h + 1)).astype(item)
        angle = np.pi * np.arange(h) / h
        roots = np.concatenate([np.cos(angle), -np.sin(angle)])
        for any_lines, whole in zip(both(item), both(item, "whole_"), strict=True):
            made = []
            for function in (any_lines, whole):
                out = np.full((2, h + 2), 7, item)
                function(*[a.ctypes.data for a in (*given, *out, roots)], h, 1)
                made.append(out)
            np.testing.assert_array_equal(*made)
            assert (made[1][:, -1] == 7).all()
