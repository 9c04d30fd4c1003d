"""The scaled Bessel functions against mpmath, and their parts."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from calque.native.scalars.vmath import bessel
from tests.native.scalars.vmath.shared import INF, NAN, outputs, run


def exact(order: int, x: float) -> mpmath.mpf:
    return mpmath.besseli(order, mpmath.mpf(x)) * mpmath.exp(-abs(mpmath.mpf(x)))


@pytest.mark.parametrize("order", [0, 1])
def test_against_mpmath(order: int) -> None:
    """In all pieces, where they meet, and far out."""
    r = np.random.default_rng(order)
    x = np.concatenate(
        [r.uniform(-9, 9, 150), r.uniform(0, 0.5, 50), 10 ** r.uniform(-300, 300, 50),
        [2.0, np.nextafter(2.0, 0), 8.0, np.nextafter(8.0, 0), 5e-324]]
    )  # fmt: skip
    got = run(f"bessel_i{order}e", "f64", x)
    with mpmath.workprec(150):
        want = [exact(order, v) for v in x.tolist()]
        wrong = [abs(mpmath.mpf(g) - w) for g, w in zip(got.tolist(), want, strict=True)]
    units = np.spacing(np.abs([float(w) for w in want]))
    assert (np.array([float(e) for e in wrong]) <= 1.6 * units).all()


@pytest.mark.parametrize("order", [0, 1])
def test_short_pieces_are_rounded_as_long_ones_but_for_what_lies_between_two(order: int) -> None:
    r = np.random.default_rng(order)
    spread = [r.uniform(-9, 9, 50_000), r.uniform(-99, 99, 5_000), 10 ** r.uniform(-38, 30, 5_000)]
    edges = [2.0, np.nextafter(2.0, 0), 8.0, np.nextafter(8.0, 0), 0.0]
    x = np.concatenate([*spread, edges]).astype(np.float32)
    wide = run(f"bessel_i{order}e", "f64", x.astype(float))
    got = run(f"bessel_i{order}e", "f32", x)
    assert (np.abs(got - wide) <= 0.53 * np.spacing(np.abs(got)).astype(float)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges(dtype: type) -> None:
    x = np.array([0.0, -0.0, INF, -INF, NAN], dtype)
    name = {np.float32: "f32", np.float64: "f64"}[dtype]
    np.testing.assert_array_equal(run("bessel_i0e", name, x), np.array([1, 1, 0, 0, NAN], dtype))
    first = run("bessel_i1e", name, x)
    np.testing.assert_array_equal(first, np.array([0, 0, 0, 0, NAN], dtype))
    assert np.signbit(first[:4]).tolist() == [False, True, False, True]


def test_pieces_are_sums_of_two() -> None:
    piece = bessel.Piece(1.0, 2.0**-60, (0.25, 0.5))
    t = np.array([0.5, -0.25, 0.0])
    high, low = outputs(lambda v: list(bessel.value(piece, v)), t, out=["f64"] * 2)
    np.testing.assert_array_equal(high, 1 + t * (0.25 + 0.5 * t))
    np.testing.assert_array_equal(low, 2.0**-60)
