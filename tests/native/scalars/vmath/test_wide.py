"""Numbers of twice the digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calque.native.scalars.vmath import pairs, wide
from tests.native.scalars.vmath.shared import NUMPY, outputs


def formula(a: Any, b: Any) -> list[Any]:
    """(root(a^2 + b^2) - (a + b)) / (2 a), of which little is left."""
    x, y = wide.of_single(a), wide.of(pairs.single(b))
    size = wide.root(wide.plus(wide.square(x), wide.times(y, y)))
    less = wide.plus(size, wide.negative(wide.sum_of(a, b)))
    double = wide.scaled(x, 2.0)
    out = wide.quotient(less, double, wide.inverse(double))
    chosen = wide.where(pairs.base.less(a, 0.0), wide.negative(out), out)
    assert wide.first(chosen).dtype == "f64"
    return [wide.rounded(chosen, a.dtype)]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_differences(dtype: str) -> None:
    r = np.random.default_rng(0)
    a = r.normal(size=500).astype(NUMPY[dtype])
    b = (np.abs(r.normal(size=500)) * 1e-3).astype(NUMPY[dtype])
    (got,) = outputs(formula, np.abs(a), b, out=[dtype])
    x, y = np.abs(a).astype(np.longdouble), b.astype(np.longdouble)
    want = (y * y / (np.hypot(x, y) + x) - y) / (2 * x)
    np.testing.assert_allclose(got, want, rtol=float(np.finfo(NUMPY[dtype]).eps))
