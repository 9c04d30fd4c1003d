"""The BFGS method: its steps, its end, and what it knows of the Hessian."""

import itertools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.scipy.optimize.bfgs import minimize_bfgs
from tests.ops.helpers import x64

RNG = np.random.default_rng(0)


def quadratic(n):
    root = RNG.normal(size=(n, n))
    a, b = root @ root.T + np.eye(n), RNG.normal(size=n)
    return a, b, lambda x: 0.5 * x @ jnp.asarray(a) @ x - jnp.asarray(b) @ x


@pytest.mark.parametrize("n", [1, 3, 6])
def test_of_a_quadratic_it_finds_minimum_and_inverse_hessian(n):
    with x64():
        a, b, f = quadratic(n)
        end, status = minimize_bfgs(f, jnp.zeros(n), gtol=1e-7)
        assert int(status) == 0 and bool(end.converged)
        np.testing.assert_allclose(end.x, np.linalg.solve(a, b), rtol=1e-5, atol=1e-6)
        assert np.abs(np.asarray(end.gradient)).max() < 1e-7
        np.testing.assert_allclose(end.inverse_hessian, np.linalg.inv(a), rtol=0.3, atol=0.1)


def test_the_secant_condition_holds_after_each_step():
    """The inverse Hessian times the change of the gradient is the move."""
    with x64():
        _, _, f = quadratic(4)
        x0 = jnp.asarray(RNG.normal(size=4))
        states = [minimize_bfgs(f, x0, maxiter=k)[0] for k in range(4)]
        assert [int(s.steps) for s in states] == [0, 1, 2, 3]
        values = [float(s.value) for s in states]
        assert values == sorted(values, reverse=True)
        for before, after in itertools.pairwise(states):
            change, move = after.gradient - before.gradient, after.x - before.x
            np.testing.assert_allclose(after.inverse_hessian @ change, move, rtol=1e-6, atol=1e-10)
            h = np.asarray(after.inverse_hessian)
            np.testing.assert_allclose(h, h.T, atol=1e-10)
            assert (np.linalg.eigvalsh(h) > 0).all()


def test_how_it_ends():
    _, status = minimize_bfgs(lambda x: x.sum(), jnp.zeros(2), maxiter=3, line_search_maxiter=3)
    assert int(status) == 5  # the line search took too many steps
    end, status = minimize_bfgs(lambda x: (x**2).sum() ** 2, jnp.ones(2), maxiter=1)
    assert int(status) == 1 and int(end.steps) == 1
    end, status = minimize_bfgs(lambda x: (x**2).sum(), jnp.zeros(2))
    assert int(status) == 0 and int(end.steps) == 0 and int(end.evaluations) == 1


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_the_norm_that_decides(norm):
    end, status = minimize_bfgs(lambda x: (x**4).sum(), jnp.ones(3), norm=norm, gtol=1e-2)
    assert int(status) == 0 and np.linalg.norm(np.asarray(end.gradient), norm) < 1e-2


def test_lanes_end_alone():
    def solve(x0):
        end, status = minimize_bfgs(lambda x: ((x - 1) ** 4).sum(), x0, gtol=1e-3)
        return end.x, end.steps, status

    starts = jnp.array([[1.0, 1.0], [3.0, -2.0], [1.5, 1.0]])
    xs, steps, statuses = calque.vmap(solve)(starts)
    for k, start in enumerate(starts):
        x, n, status = solve(start)
        np.testing.assert_allclose(xs[k], x, atol=1e-3)
        assert int(steps[k]) == int(n) and int(statuses[k]) == int(status)
