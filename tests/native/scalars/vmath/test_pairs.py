"""Numbers as sums of two."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.native.scalars.vmath import pairs
from calque.native.scalars.vmath.pairs import Pair
from tests.native.scalars.vmath.shared import outputs

R = np.random.default_rng(0)
A, B = R.normal(size=(2, 500)).astype(np.float32)
A_LOW, B_LOW = (v * R.normal(size=500).astype(np.float32) * np.float32(2.0**-26) for v in (A, B))


def result(f: Any) -> Any:
    got = outputs(
        lambda a, b, c, d: [*f(Pair(a, b), Pair(c, d))], A, A_LOW, B, B_LOW, out=["f32"] * 2
    )
    return got[0].astype(float) + got[1]


def test_twice_the_digits() -> None:
    a, b = A.astype(float) + A_LOW, B.astype(float) + B_LOW
    most = 2.0**-44
    np.testing.assert_allclose(result(pairs.times), a * b, rtol=most)
    np.testing.assert_allclose(result(lambda p, q: pairs.square(p)), a * a, rtol=most)
    np.testing.assert_allclose(result(pairs.plus), a + b, rtol=most, atol=most)
    np.testing.assert_allclose(result(pairs.size_squared), a * a + b * b, rtol=2.0**-43)
    inverse = pairs.base.div
    quotient = result(lambda p, q: pairs.quotient(p, q, inverse(1.0, q.high)))
    np.testing.assert_allclose(quotient, a / b, rtol=2.0**-43)
    square = result(lambda p, q: pairs.root(pairs.square(p)))
    np.testing.assert_allclose(square, np.abs(a), rtol=2.0**-43)
    less = result(lambda p, q: pairs.scaled(pairs.negative(p), 0.5))
    np.testing.assert_array_equal(less, a * -0.5)


def test_large_rests() -> None:
    """Products take them."""

    def product(p: Pair, q: Pair) -> Pair:
        half = Pair(pairs.base.mul(p.high, 0.5), pairs.base.fma(p.high, 0.5, p.low))
        return pairs.times(half, pairs.single(q.high))

    np.testing.assert_allclose(result(product), (A.astype(float) + A_LOW) * B, rtol=2.0**-23)


def test_choices() -> None:
    got = result(lambda p, q: pairs.where(pairs.base.less(p.high, 0.0), q, pairs.near(*p)))
    want = np.where(A < 0, B.astype(float) + B_LOW, A.astype(float) + A_LOW)
    np.testing.assert_allclose(got, want, rtol=2.0**-46)
    assert pairs.is_single(pairs.single(pairs.const(1.0, "f32")))
