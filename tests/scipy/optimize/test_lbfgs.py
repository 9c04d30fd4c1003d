"""The limited-memory BFGS method: its direction, its history, its end."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.scipy.optimize.lbfgs import LbfgsState, _appended, _direction, minimize_lbfgs
from tests.ops.helpers import x64

RNG = np.random.default_rng(0)


def state(steps, size, n=5):
    """A state with `steps` pairs of a quadratic in a history of `size`, and its gradient."""
    root = RNG.normal(size=(n, n))
    a = root @ root.T + np.eye(n)
    moves = [RNG.normal(size=n) for _ in range(steps)]
    pairs = [(s, a @ s) for s in moves]
    empty = jnp.zeros((size, n))
    h = LbfgsState(*[None] * 12)._replace(
        moves=empty, changes=empty, weights=jnp.zeros(size), scale=jnp.ones(()),
        steps=jnp.asarray(steps), gradient=jnp.asarray(RNG.normal(size=n)),
    )  # fmt: skip
    for s, y in pairs:
        h = h._replace(
            moves=_appended(h.moves, jnp.asarray(s)),
            changes=_appended(h.changes, jnp.asarray(y)),
            weights=_appended(h.weights, jnp.asarray(1 / (s @ y))),
            scale=jnp.asarray(s @ y / (y @ y)),
        )
    return h, pairs


@pytest.mark.parametrize("steps, size", [(0, 3), (1, 3), (3, 3), (7, 3)])
def test_the_direction_is_that_of_the_updated_matrix(steps, size):
    """The recursion beside the matrix that BFGS would make of the pairs in the history."""
    with x64():
        s, pairs = state(steps, size)
        h = np.eye(5) * float(s.scale)
        for move, change in pairs[-size:]:
            rho = 1 / (move @ change)
            left = np.eye(5) - rho * np.outer(move, change)
            h = left @ h @ left.T + rho * np.outer(move, move)
        np.testing.assert_allclose(_direction(s), -h @ np.asarray(s.gradient), rtol=1e-9)


def test_histories_forget_the_oldest():
    h = jnp.zeros((2, 1))
    for k in range(3):
        h = _appended(h, jnp.array([float(k)]))
    assert h.tolist() == [[1], [2]]


def bowl(x):
    return ((x - jnp.arange(1.0, x.size + 1)) ** 4).sum()


@pytest.mark.parametrize(
    "options, status",
    [
        ({"gtol": 1e-4, "ftol": 0.0}, 0),
        ({"maxiter": 2, "ftol": 0.0}, 1),
        ({"maxfun": 3, "ftol": 0.0}, 2),
        ({"maxgrad": 3, "ftol": 0.0}, 3),
        ({"ftol": 1e3}, 4),
        ({"maxls": 0}, 5),
    ],
)
def test_how_it_ends(options, status):
    end, found = minimize_lbfgs(bowl, jnp.full(3, 9.0), **options)
    assert int(found) == status == int(end.status)
    if status == 0:
        assert np.abs(np.asarray(end.gradient)).max() < 1e-4


def test_complex_variables_are_pairs_of_real_ones():
    target = np.array([1 + 2j, -0.5j, 3])

    def f(z):
        return (jnp.abs(z - target) ** 2 * jnp.array([1.0, 4.0, 0.5])).sum()

    with x64():
        end, status = minimize_lbfgs(f, jnp.zeros(3, complex), gtol=1e-8)
        assert int(status) in (0, 4)
        np.testing.assert_allclose(end.x, target, atol=1e-6)
        pairs, _ = minimize_lbfgs(lambda p: f(p[:3] + 1j * p[3:]), jnp.zeros(6), gtol=1e-8)
        np.testing.assert_allclose(end.x, pairs.x[:3] + 1j * pairs.x[3:], atol=1e-6)


@pytest.mark.parametrize("maxcor", [1, 2, 20])
def test_any_length_of_history_finds_the_minimum(maxcor):
    with x64():
        end, status = minimize_lbfgs(bowl, jnp.zeros(4), maxcor=maxcor, gtol=1e-9, ftol=0.0)
        np.testing.assert_allclose(end.x, np.arange(1.0, 5), atol=1e-2)
        assert int(status) == 0 and end.moves.shape == (maxcor, 4)
