"""lgamma and digamma against SciPy, near their zeros against series, and by what binds them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from calque.native.scalars.vmath import gamma
from tests.native.scalars.vmath.shared import INF, NAN, check_special, errors, outputs, run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
EDGES = [INF, NAN, 1.0, 2.0, 1e-40, 1e30]


def test_lgamma() -> None:
    check_special("lgamma", scipy.special.gammaln, (0, 60), EDGES, (1.0, 8.0))


def test_digamma() -> None:
    check_special("digamma", scipy.special.psi, (0, 60), EDGES, (1.0, 8.0))


def test_gamma_below_zero() -> None:
    r = np.random.default_rng(6)
    x = r.uniform(-20, 0, 2000).astype(np.float32)
    x = x[np.abs(x - np.rint(x)) > 1e-3]
    for name, f in (("lgamma", scipy.special.gammaln), ("digamma", scipy.special.psi)):
        got, want = run(name, "f32", x), f(x.astype(np.float64))
        assert (np.abs(got - want) <= 1e-6 * np.maximum(np.abs(want), 0.1)).all()
    poles = np.array([-1.0, -7.0, 0.0, -0.0], np.float32)
    assert (
        np.isinf(run("lgamma", "f32", poles)).all() and np.isnan(run("digamma", "f32", poles)).all()
    )


def test_lgamma_near_its_zeros() -> None:
    """float32 to the last place also there; so is float64 near those above 0."""
    zeros = [-2.4570247, -2.7476826, -3.1435809, -3.9552943, -4.0392776, -4.9918544, -5.0082183]
    near = [np.float32(z) + np.arange(-400, 400) * np.spacing(np.float32(z)) for z in zeros]
    x = np.concatenate([*near, np.linspace(-10, 0, 4001)[1:-1]]).astype(np.float32)
    x = x[x != np.rint(x)]
    e = errors(run("lgamma", "f32", x), scipy.special.gammaln(x.astype(np.float64)))
    assert e.max() <= 1.0, (e.max(), x[e.argmax()])
    d = 2.0 ** np.arange(-40, -3)
    euler, zeta2, zeta3 = 0.5772156649015329, np.pi**2 / 6, 1.2020569031595942
    few = d[d < 1e-4]
    for sign in (1, -1):  # lgamma(1 + h) = -euler h + zeta(2) h^2 / 2 - zeta(3) h^3 / 3 + ...
        h = (1 + sign * few) - 1
        want = h * (-euler + h * (zeta2 / 2 - h * (zeta3 / 3 - h * np.pi**4 / 360)))
        assert errors(run("lgamma", "f64", 1 + h), want).max() <= 4.0


def test_digamma_near_its_zero() -> None:
    zero, slope, bend = 1.4616321449683622, 0.9676720454471214, -1.1033660200000001 / 2
    h = np.arange(-50, 50) * 2.0**-40
    want = slope * (h - 9.549995429965697e-17) + bend * h * h / 1.0
    got = run("digamma", "f64", zero + h)
    assert (np.abs(got - want) <= 1e-11 * np.abs(h) + 1e-17).all()
    x = np.concatenate([np.linspace(0.05, 3, 3000), [1.2128292351122713, 0.999999, 2.9999]])
    e = errors(run("digamma", "f64", x), scipy.special.psi(x))
    assert e[np.abs(x - zero) > 0.01].max() <= 8.0


def test_one_step_up() -> None:
    """lgamma(x + 1) = lgamma(x) + log(x) and digamma(x + 1) = digamma(x) + 1 / x, everywhere."""
    x = np.random.default_rng(7).uniform(-30, 30, 4000)
    x = x[np.abs(x - np.rint(x)) > 1e-3]
    x = (x + 64) - 64  # so that x + 1 is exact
    for name, step in (("lgamma", np.log(np.abs(x))), ("digamma", 1 / x)):
        got, want = run(name, "f64", x + 1), run(name, "f64", x) + step
        scale = np.maximum(np.maximum(np.abs(got), np.abs(want - step)), np.abs(step))
        assert (np.abs(got - want) <= 2e-14 * np.maximum(scale, 1)).all(), name


def test_whole_numbers() -> None:
    """Factorials, and the first harmonic numbers."""
    n = np.arange(1, 60)
    want = np.array([np.sum(np.log(np.arange(1, k, dtype=np.longdouble))) for k in n])
    assert errors(run("lgamma", "f64", n.astype(float)), want).max() <= 4
    assert (run("lgamma", "f64", np.array([1.0, 2.0])) == 0).all()
    euler = np.longdouble("0.57721566490153286060651209")
    want = np.array([np.sum(1 / np.arange(1, k, dtype=np.longdouble)) for k in n]) - euler
    assert errors(run("digamma", "f64", n.astype(float)), want).max() <= 4


def test_sines_and_tangents_of_half_turns() -> None:
    x = np.random.default_rng(8).uniform(-9, 9, 3000)
    (got,) = outputs(lambda v: [gamma.sin_pi(v)], x, out=["f64"])
    want = np.abs(np.sin(np.longdouble(np.pi) * (x - np.rint(x))))
    assert np.allclose(np.abs(got), want, rtol=1e-14, atol=1e-16)
    f = np.linspace(-0.499, 0.499, 2001)
    (got,) = outputs(lambda v: [gamma.tan_pi(v)], f, out=["f64"])
    assert np.allclose(got, np.tan(np.pi * f), rtol=2e-13, atol=0)
