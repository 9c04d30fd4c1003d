"""Logarithms and the inverse hyperbolic functions against wider arithmetic, and their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calque.native.scalars.vmath import logarithm
from tests.native.evaluate import compiled
from tests.native.scalars.vmath.shared import (
    INF,
    NAN,
    NUMPY,
    SPECIAL,
    check,
    outputs,
    run,
    spread,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# name: reference, range of ordinary arguments, most units in the last place
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[float, float], float]] = {
    "log": (np.log, (0, 4), 1.0),
    "log2": (np.log2, (0, 4), 1.0),
    "log1p": (np.log1p, (-1, 4), 1.5),
    "asinh": (np.arcsinh, (-10, 10), 2.0),
    "acosh": (np.arccosh, (1, 10), 2.0),
    "atanh": (np.arctanh, (-1, 1), 2.0),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_wider_arithmetic(name: str, dtype: str) -> None:
    f, limits, most = FUNCTIONS[name]
    check(name, dtype, f, limits, most)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_log_hypot(dtype: str) -> None:
    r = np.random.default_rng(3)
    turn = r.uniform(0, 7, 5000)
    size = np.concatenate([1 + r.normal(size=3000) * 1e-6, np.exp(r.uniform(-80, 80, 2000))])
    x, y = (size * np.cos(turn)).astype(NUMPY[dtype]), (size * np.sin(turn)).astype(NUMPY[dtype])
    a, b = x.astype(np.longdouble), y.astype(np.longdouble)
    close = np.abs(size - 1) < 0.1
    want = np.where(close, np.log1p((a - 1) * (a + 1) + b * b) / 2, np.log(np.hypot(a, b)))
    got = run("log_hypot", dtype, x, y).astype(np.longdouble)
    eps = np.finfo(NUMPY[dtype]).eps
    assert (np.abs(got - want) <= 2 * eps * np.maximum(np.abs(want), 0.5)).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_log_hypot_of_what_is_no_number(dtype: str) -> None:
    """An infinity wins over a nan; two zeros have no length."""
    t = NUMPY[dtype]
    x = np.array([INF, NAN, -INF, NAN, 0.0, -0.0, 1e30], t)
    y = np.array([NAN, -INF, 1.0, 1.0, 0.0, 0.0, INF], t)
    np.testing.assert_array_equal(
        run("log_hypot", dtype, x, y), np.array([INF, INF, INF, NAN, -INF, -INF, INF], t)
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_log2_is_exact_at_powers_of_two(dtype: str) -> None:
    """Denormal ones too."""
    info = np.finfo(NUMPY[dtype])
    e = np.arange(info.minexp - info.nmant, info.maxexp)
    assert (run("log2", dtype, np.ldexp(NUMPY[dtype](1), e)) == e).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_splitting_loses_nothing(dtype: str) -> None:
    """x = 2^e (1 + f) exactly, f about 0; -e is what the logarithm is where that is no number."""
    t = NUMPY[dtype]
    x = np.abs(spread(np.random.default_rng(0), 2000)).astype(t)
    x = x[np.isfinite(x) & (x > 0)]
    f, minus_e = outputs(logarithm.split, x, out=[dtype] * 2)
    assert (minus_e == np.rint(minus_e)).all()
    assert (np.ldexp(1 + f.astype(np.longdouble), -minus_e.astype(int)) == x).all()
    assert (f >= np.sqrt(0.5) - 1 - 1e-7).all() and (f < np.sqrt(2) - 1 + 1e-7).all()
    odd = np.array([0.0, -0.0, INF, NAN, -1.0, -INF], t)
    f, minus_e = outputs(logarithm.split, odd, out=[dtype] * 2)
    assert np.isfinite(f).all()
    np.testing.assert_array_equal(minus_e, np.array([INF, INF, -INF, NAN, NAN, NAN], t))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_splitting_one_more(dtype: str) -> None:
    """1 + x = 2^e (1 + f): small x are f themselves; beside an e nothing is lost that counts."""
    t = NUMPY[dtype]
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-0.999, 4, 2000), 10.0 ** rng.uniform(-30, 30, 2000)]).astype(t)
    f, minus_e = outputs(logarithm.split1p, x, out=[dtype] * 2)
    small = np.abs(x) < 0.2
    assert small.any() and (f[small] == x[small]).all() and (minus_e[small] == 0).all()
    scale = np.ldexp(np.longdouble(1), minus_e.astype(int))
    want = x.astype(np.longdouble) * scale + (scale - 1)
    eps = np.finfo(t).eps / 4 * (minus_e != 0)
    assert (np.abs(f - want) <= np.spacing(np.abs(f)) * 0.5001 + eps).all()
    assert np.abs(f).max() < 0.4143


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_what_is_unusual(dtype: str) -> None:
    """All but positive, normal and finite numbers."""
    t = NUMPY[dtype]
    tiny = np.finfo(t).tiny
    x = np.concatenate([np.array(SPECIAL), [tiny, np.nextafter(tiny, t(0)), np.finfo(t).max]])
    x = x.astype(t)
    (got,) = compiled(lambda v: [logarithm.unusual(v)], [dtype], ["i1"])[1](x)
    assert (got == ~((x >= tiny) & (x < INF))).all()
