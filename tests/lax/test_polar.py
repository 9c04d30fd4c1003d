import numpy as np
import pytest
import scipy.linalg

import calque
import calque.numpy as jnp
from calque.lax.linalg import qdwh


@pytest.fixture(autouse=True)
def _double():
    with calque.config.override("calque_enable_x64", True):
        yield


def matrix(m, n, condition=10.0, kind=float, seed=0):
    rng = np.random.default_rng(seed)

    def draw(r, c):
        return rng.normal(size=(r, c)) + (1j * rng.normal(size=(r, c)) if kind is complex else 0)

    q, p = np.linalg.qr(draw(m, n))[0], np.linalg.qr(draw(n, n))[0]
    return q * np.logspace(0, -np.log10(condition), n) @ p.conj().T


@pytest.mark.parametrize(
    "m, n, kind", [(4, 4, float), (7, 3, float), (5, 5, complex), (6, 2, complex), (3, 1, float)]
)
def test_factors(m, n, kind):
    x = matrix(m, n, kind=kind)
    u, h, rounds, converged = qdwh(x)
    wanted = scipy.linalg.polar(x)
    np.testing.assert_allclose(u, wanted[0], atol=1e-13)
    np.testing.assert_allclose(h, wanted[1], atol=1e-13)
    assert bool(converged) and 1 <= int(rounds) <= 6


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e14])
def test_nearly_singular(condition):
    x = matrix(6, 6, condition)
    u, h, rounds, converged = qdwh(x)
    np.testing.assert_allclose(u @ h, x, atol=1e-14)
    np.testing.assert_allclose(u.T @ u, np.eye(6), atol=1e-13)
    assert bool(converged) and int(rounds) <= 7


def test_part_of_a_larger_array():
    x = np.full((8, 5), 7.0)
    x[:6, :3] = matrix(6, 3)
    u, h, _, converged = calque.jit(qdwh, static_argnames="dynamic_shape")(x, dynamic_shape=(6, 3))
    wanted = scipy.linalg.polar(x[:6, :3])
    np.testing.assert_allclose(u, np.pad(wanted[0], ((0, 2), (0, 2))), atol=1e-13)
    np.testing.assert_allclose(h, np.pad(wanted[1], ((0, 2), (0, 2))), atol=1e-13)
    assert bool(converged)


def test_stops_when_told():
    x = matrix(6, 6, 1e8)
    _, _, rounds, converged = qdwh(x, max_iterations=2)
    assert int(rounds) == 2 and not bool(converged)
    assert int(qdwh(x, eps=1e-3)[2]) < int(qdwh(x)[2])
    assert rounds.weak_type and qdwh(x[:, :0])[2].weak_type  # as numbers of Python are, and JAX's


def test_derivative():
    x, t = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.3, -0.1], [0.2, 0.5]])

    def f(x):
        return qdwh(x)[0][0, 1]

    step = (f(x + 1e-6 * t) - f(x - 1e-6 * t)) / 2e-6
    np.testing.assert_allclose((calque.grad(f)(x) * t).sum(), step, rtol=1e-6)


def test_refuses():
    with pytest.raises(ValueError, match=r"at least as many rows as columns, got shape \(2, 3\)"):
        qdwh(np.ones((2, 3)))
    with pytest.raises(TypeError, match="floating or complex"):
        qdwh(np.ones((2, 2), int))
    with pytest.raises(TypeError, match="is_hermitian must be a bool"):
        qdwh(np.ones((2, 2)), is_hermitian=1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("exponent", [0, -1, 1])
def test_singular_matrices(dtype, exponent):
    """x = u h also where x maps something to nothing, and at sizes whose squares have no number."""
    far = 28 if dtype in ("float32", "complex64") else 240
    scale = 10.0 ** (far * exponent)
    rng = np.random.default_rng(far)
    for rank in range(5):
        x = rng.normal(size=(6, rank)) @ rng.normal(size=(rank, 4))
        x = x + 1j * x[::-1] if dtype[0] == "c" else x
        u, h, rounds, converged = qdwh(jnp.asarray((x * scale).astype(dtype)))
        u, h = np.asarray(u, complex), np.asarray(h, complex) / scale
        tolerance = 200 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(u @ h, x, atol=tolerance * np.linalg.norm(x))
        np.testing.assert_allclose(h, scipy.linalg.polar(x)[1], atol=tolerance * np.linalg.norm(x))
        if rank in (0, 4):  # in between what rounding has left of nothing grows for long
            assert bool(converged) and int(rounds) <= 7
