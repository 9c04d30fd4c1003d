"""pow, cbrt, rsqrt and hypot against wider arithmetic; the logarithm that float64's pow rests on
against decimal arithmetic."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calque.native.scalars.vmath import power
from tests.native.scalars.vmath.shared import (
    INF,
    NAN,
    NUMPY,
    SPECIAL,
    check,
    errors,
    outputs,
    pairs,
    run,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[float, float], float]] = {
    "cbrt": (np.cbrt, (-4, 4), 1.0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0, 4), 1.5),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_wider_arithmetic(name: str, dtype: str) -> None:
    f, limits, most = FUNCTIONS[name]
    check(name, dtype, f, limits, most)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_pow(dtype: str) -> None:
    """Results over the whole range, bases near 1 with huge exponents, negative bases, and all of
    C's special cases."""
    r, t = np.random.default_rng(4), NUMPY[dtype]
    most = float(np.log2(float(np.finfo(t).max)) * 1.02)
    x = np.concatenate(
        [
            2.0 ** r.uniform(-most, most, 10000),
            np.exp(r.normal(size=10000) * 10.0 ** r.uniform(-8, 1, 10000)),
        ]
    ).astype(t)
    y = (r.uniform(-most * 1.05, most, 20000) / np.log2(x.astype(np.longdouble))).astype(t)
    whole = np.array(
        [
            2,
            3,
            -2,
            -3,
            0.5,
            -0.5,
            1e20,
            -1e20,
            INF,
            -INF,
            NAN,
            0,
            2.5,
            1,
            16777217,
            -16777215,
            33554432,
            1e300,
            7,
        ]
    )
    a, b = np.repeat(SPECIAL, len(whole)).astype(t), np.tile(whole, len(SPECIAL)).astype(t)
    c, d = np.repeat(SPECIAL, len(SPECIAL)).astype(t), np.tile(SPECIAL, len(SPECIAL)).astype(t)
    x, y = np.concatenate([x, a, c, -x[:2000]]), np.concatenate([y, b, d, np.rint(y[:2000])])
    got, want = run("pow", dtype, x, y), np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    e = errors(got, want)
    assert e.max() <= {"f32": 2.0, "f64": 1.0}[dtype], (e.max(), x[e.argmax()], y[e.argmax()])
    zero = (got == 0) | np.isinf(got)
    assert (np.signbit(got) == np.signbit(want))[zero].all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_hypot(dtype: str) -> None:
    x, y = pairs(dtype)
    want = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble))
    assert errors(run("hypot", dtype, x, y), want).max() <= 1.0
    t = NUMPY[dtype]
    one_infinite = run("hypot", dtype, np.array([INF, NAN], t), np.array([NAN, -INF], t))
    assert (one_infinite == INF).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_cubes_have_exact_roots(dtype: str) -> None:
    t = NUMPY[dtype]
    n = np.arange(-160, 161).astype(t)
    for scale in (1.0, 2.0 ** (-30), 2.0**12):
        assert (run("cbrt", dtype, n**3 * t(scale) ** 3) == n * t(scale)).all()


def test_the_logarithm_of_float64_as_a_pair() -> None:
    """Good to some 66 bits: more than float64, and than the float128 of most machines, can say."""
    rng = np.random.default_rng(0)
    a = np.concatenate([10.0 ** rng.uniform(-300, 300, 150), 1 + rng.normal(size=150) * 1e-3])
    high, low = outputs(power.log_pair, a, out=["f64"] * 2)
    assert (np.abs(low) <= np.spacing(np.abs(high)) / 2).all()
    with decimal.localcontext(prec=50):
        for x, h, l in zip(a, high, low, strict=True):
            want = decimal.Decimal(float(x)).ln()
            got = decimal.Decimal(float(h)) + decimal.Decimal(float(l))
            assert abs(got / want - 1) < decimal.Decimal(2) ** -65, x


def test_limits_replace_logarithms() -> None:
    a = np.array([0.0, 2.0, INF, NAN])
    y = np.array([3.0, 4.0, 5.0, 6.0])
    (got,) = outputs(lambda p, q: [power.limits(p, q)], a, y, out=["f64"])
    np.testing.assert_array_equal(got, [-INF, 4.0, INF, NAN])
