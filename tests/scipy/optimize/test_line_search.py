"""A step length that satisfies the strong Wolfe conditions."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.scipy.optimize.line_search import (
    CURVATURE,
    ENOUGH,
    Point,
    _cubic_minimum,
    _first_step,
    _not_tiny,
    _parabola_minimum,
    line_search,
    pick,
)
from tests.ops.helpers import x64


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


FUNCTIONS = {
    "parabola": (lambda x: (x**2).sum(), [3.0, -2.0]),
    "rosenbrock": (rosenbrock, [-1.2, 1.0]),
    "quartic": (lambda x: (x**4).sum() + x.sum(), [1.0, 2.0]),
    "waves": (lambda x: jnp.sin(3 * x).sum() + 0.1 * (x**2).sum(), [0.4, 1.0]),
    "steep": (lambda x: jnp.exp(3 * x).sum() - x.sum(), [2.0, 1.0]),
    "shallow": (lambda x: 1e-3 * ((x - 30) ** 2).sum(), [0.0, 1.0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_both_conditions_hold(name, scale):
    f, start = FUNCTIONS[name]
    with x64():
        x = jnp.array(start)
        value, g = calque.value_and_grad(f)(x)
        direction = -g * scale
        found = line_search(f, x, direction, value, g, None, 30)
        assert not bool(found.failed) and int(found.status) == 0
        slope = g @ direction
        at = x + found.step * direction
        value_there, g_there = calque.value_and_grad(f)(at)
        assert float(value_there) <= float(value + ENOUGH * found.step * slope) + 1e-12
        assert abs(float(g_there @ direction)) <= -CURVATURE * float(slope) + 1e-12
        np.testing.assert_allclose([found.value], [value_there], rtol=1e-12, atol=1e-30)
        np.testing.assert_allclose(found.gradient, g_there, rtol=1e-9, atol=1e-12)


def test_evaluations_are_counted():
    seen = []

    def f(x):
        calque.debug.callback(lambda: seen.append(1))
        return rosenbrock(x)

    x = jnp.array([-1.2, 1.0])
    value, g = calque.value_and_grad(rosenbrock)(x)
    found = line_search(f, x, -g, value, g, None, 30)
    calque.effects_barrier()
    assert len(seen) == int(found.evaluations) > 1


def test_no_minimum_is_no_success():
    x = jnp.zeros(2)
    down = line_search(lambda x: x.sum(), x, -jnp.ones(2), x.sum(), jnp.ones(2), None, 5)
    assert bool(down.failed) and int(down.status) == 3
    up = line_search(lambda x: x.sum(), x, jnp.ones(2), x.sum(), jnp.ones(2), None, 5)
    assert bool(up.failed)


def test_first_steps():
    start = Point(jnp.float32(0), jnp.float32(1.0), jnp.float32(-2.0))
    assert float(_first_step(start, None)) == 1
    assert float(_first_step(start, jnp.float32(1.5))) == pytest.approx(1.01 * 0.5)
    assert float(_first_step(start, jnp.float32(9.0))) == 1
    assert float(_not_tiny(jnp.float32(-1e-12))) == pytest.approx(-1e-8)
    assert float(_not_tiny(jnp.float32(0.5))) == 0.5
    with x64():
        assert float(_not_tiny(jnp.float64(1e-12))) == 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_minima_through_points(seed):
    """Of a cubic and of a parabola, which they find exactly."""
    rng = np.random.default_rng(seed)
    with x64():
        third, second = rng.uniform(0.5, 2), rng.uniform(-1, 1)
        cubic = np.poly1d([third, second, -rng.uniform(0.5, 2), rng.normal()])
        points = [Point(s, cubic(s), cubic.deriv()(s)) for s in (0.0, 2.0, 3.0)]
        got = float(_cubic_minimum(*[Point(*map(jnp.float64, p)) for p in points]))
        assert got == pytest.approx(max(cubic.deriv().roots), rel=1e-9)
        parabola = np.poly1d([third, second, 1.0])
        ends = [Point(s, parabola(s), parabola.deriv()(s)) for s in (0.3, 2.0)]
        got = float(_parabola_minimum(*[Point(*map(jnp.float64, p)) for p in ends]))
        assert got == pytest.approx(-second / (2 * third), rel=1e-9)


def test_one_of_two_tuples():
    a, b = Point(1.0, 2.0, 3.0), Point(4.0, 5.0, 6.0)
    assert [float(v) for v in pick(jnp.array(True), a, b)] == [1, 2, 3]
    assert type(pick(jnp.array(False), a, b)) is Point
