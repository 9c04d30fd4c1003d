"""Sine and cosine of one angle, as pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from calque.native.scalars.vmath import turns
from tests.native.scalars.vmath.shared import INF, NUMPY, outputs, pi_bits


def parts(of: Callable[[Any], turns.Turn]) -> Callable[[Any], list[Any]]:
    def found(x: Any) -> list[Any]:
        t = of(x)
        both = [t.placed(s, c) for s, c in zip(t.sine, t.cosine, strict=True)]
        return [both[0][0], both[1][0], both[0][1], both[1][1]]

    return found


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_angles_of_all_sizes(dtype: str) -> None:
    r = np.random.default_rng(0)
    near = r.integers(-40, 40, 2000) * np.pi / 2 + r.normal(size=2000) * 1e-6
    x = np.concatenate([r.normal(size=2000) * 10, near, 10 ** r.uniform(3, 12, 500)])
    x = x.astype(NUMPY[dtype])
    wide, eps = x.astype(np.longdouble), float(np.finfo(NUMPY[dtype]).eps)
    for of, most in ((turns.turn, 1.0), (turns.turn_exactly, 0.15)):
        s, s_low, c, c_low = outputs(parts(of), x, out=[dtype] * 4)
        for high, low, f in ((s, s_low, np.sin), (c, c_low, np.cos)):
            got = high.astype(np.longdouble) + low
            np.testing.assert_allclose(got, f(wide), rtol=most * eps, atol=1e-300)


def test_angles_of_powers() -> None:
    """Of x ln 2, also where x is huge: by integers."""
    x = np.array([3.0, -0.5, 1e9, 3e38], np.float32)
    got = outputs(parts(turns.turn_of_power), x, out=["f32"] * 4)
    bits = 400
    with mpmath.workprec(bits + 20):
        ln2 = int(mpmath.floor(mpmath.log(2) * 2**bits))
    two_pi = 2 * pi_bits(bits)
    for k, v in enumerate(x.tolist()):
        m, d = v.as_integer_ratio()
        angle = float((m * ln2 // d) % two_pi) / float(1 << bits)
        np.testing.assert_allclose(float(got[0][k]) + got[1][k], np.sin(angle), atol=1e-7)
        np.testing.assert_allclose(float(got[2][k]) + got[3][k], np.cos(angle), atol=1e-7)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_no_angle(dtype: str) -> None:
    x = np.array([INF, -INF, np.nan], NUMPY[dtype])
    for of in (turns.turn, turns.turn_exactly, turns.turn_of_power):
        assert np.isnan(outputs(parts(of), x, out=[dtype] * 4)).all()
