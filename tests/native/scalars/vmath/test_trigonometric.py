"""sin, cos and tan against arithmetic with as many bits of pi as it takes."""

from __future__ import annotations

import numpy as np
import pytest

from calque.native.scalars.expr import cast
from calque.native.scalars.vmath import trigonometric as source
from calque.native.scalars.vmath.base import equal
from tests.native.scalars.vmath.shared import INF, NAN, NUMPY, angle, errors, outputs, run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def trigonometric(name: str, x: float) -> np.longdouble:
    q, r = angle(abs(x), 2)
    s, c = np.sin(r), np.cos(r)
    sine, cosine = [(s, c), (c, -s), (-s, -c), (-c, s)][q % 4]
    sign = -1 if x < 0 else 1
    return {"sin": sign * sine, "cos": cosine, "tan": sign * sine / cosine}[name]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_trigonometric(name: str, dtype: str) -> None:
    """Ordinary and huge arguments, those near multiples of pi/2, and the worst known for each
    type."""
    r = np.random.default_rng(1)
    t, top, huge = NUMPY[dtype], {"f32": 18, "f64": 40}[dtype], {"f32": 128, "f64": 1024}[dtype]
    near = np.rint(2.0 ** r.uniform(0, top - 2, 1000)) * np.longdouble(np.pi) / 2
    x = np.concatenate(
        [
            2.0 ** r.uniform(-3, top, 1500),
            near.astype(t),
            2.0 ** r.uniform(top, huge, 1500),
            r.normal(size=2000) * 3,
        ]
    )
    worst = (
        [16367173.0 * 2.0**72, 2.0**18, 3.4e38]
        if dtype == "f32"
        else [6381956970095103.0 * 2.0**797, 2.0**40, 1.7e308]
    )
    x = np.concatenate([x * r.choice([-1, 1], len(x)), worst]).astype(t)
    x = x[np.isfinite(x)]
    want = np.array([trigonometric(name, float(v)) for v in x], np.longdouble)
    got = run(name, dtype, x)
    e = errors(got, want)
    assert e.max() <= 2.0, (e.max(), x[e.argmax()])
    if name != "tan":
        assert np.abs(got).max() <= 1
        flat = (np.pi / 2 * r.integers(0, 1000, 20000) + r.normal(size=20000) * 1e-3).astype(t)
        assert np.abs(run(name, dtype, flat)).max() <= 1
    assert np.isnan(run(name, dtype, np.array([INF, -INF, NAN], t))).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_sine_of_a_reduced_angle(dtype: str) -> None:
    """Right up to half a turn, and never beyond one."""
    t = NUMPY[dtype]
    r = np.linspace(-np.pi / 2, np.pi / 2, 20001).astype(t)
    (got,) = outputs(lambda v: [source.sine(v)], r, out=[dtype])
    assert errors(got, np.sin(r.astype(np.longdouble))).max() <= 1.5
    assert np.abs(got).max() == 1


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_tangent_of_a_sum(dtype: str) -> None:
    """`rest` counts, though it is too small to be added; an odd quarter turn gives -1 / tan."""
    t, rng = NUMPY[dtype], np.random.default_rng(0)
    r = rng.uniform(-np.pi / 4, np.pi / 4, 4000).astype(t)
    rest = (np.spacing(r) * rng.uniform(-0.5, 0.5, len(r))).astype(t)
    even, odd = outputs(
        lambda a, b: [
            source.tangent(a, b, equal(a, 9.0)),
            source.tangent(a, b, equal(a, a)),
        ],
        r,
        rest,
        out=[dtype] * 2,
    )
    wide = np.tan(r.astype(np.longdouble) + rest)
    assert errors(even, wide).max() <= 1.5 and errors(odd, -1 / wide).max() <= 2.0


def test_tangents_far_out_lose_no_digit() -> None:
    """Where the rest of an angle counts twice, and where an angle is a little over a quarter turn:
    the worst numbers found among all, and a hundred thousand beside them."""
    worst = np.float32([247996.546875, 239778.14, 40528.902, 243984.73, 1.1065503, 64929.652])
    spread = np.random.default_rng(8).uniform(2.0**15, 2.0**19, 100_000).astype(np.float32)
    x = np.concatenate([worst, -worst, spread])
    assert errors(run("tan", "f32", x), np.tan(x.astype(np.longdouble))).max() <= 2.0


def test_infinities_have_no_angle() -> None:
    x = np.array([INF, -INF, NAN, 1.0, -1e30])
    (got,) = outputs(lambda v: [source.finite_only(v, cast(v, "f64"))], x, out=["f64"])
    np.testing.assert_array_equal(got, [NAN, NAN, NAN, 1.0, -1e30])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_where_huge_arguments_begin(dtype: str) -> None:
    """Just below and just above, where the ways part, neither loses a digit."""
    t = NUMPY[dtype]
    edge = {"f32": t(2.0**18), "f64": t(2.0**40)}[dtype]
    x = edge + np.arange(-300, 300) * np.spacing(edge)
    (huge,) = outputs(lambda v: [source.is_huge(v)], x.astype(t), out=["i1"])
    assert (huge.view(bool) == (x >= edge)).all()
    for name in ("sin", "cos", "tan"):
        want = np.array([trigonometric(name, float(v)) for v in x], np.longdouble)
        assert errors(run(name, dtype, x.astype(t)), want).max() <= 2.0
