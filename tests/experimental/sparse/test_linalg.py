"""lobpcg_standard and spsolve against NumPy."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import calque
import calque.numpy as jnp
from calque.experimental import sparse
from calque.experimental.sparse import linalg

RNG = np.random.default_rng(0)


def _symmetric(n: int) -> np.ndarray:
    q, _ = np.linalg.qr(RNG.normal(size=(n, n)))
    return ((q * np.linspace(1, 10, n) ** 2) @ q.T).astype(np.float32)


def test_largest_eigenvalues() -> None:
    a = _symmetric(60)
    a = (a + a.T) / 2
    want = np.linalg.eigvalsh(a.astype(float))[::-1]
    start = RNG.normal(size=(60, 3)).astype(np.float32)
    for matrix in (a, lambda x: jnp.asarray(a) @ x, sparse.BCOO.fromdense(a)):
        theta, vectors, steps = linalg.lobpcg_standard(matrix, start, m=200)
        np.testing.assert_allclose(theta, want[:3], rtol=1e-4)
        np.testing.assert_allclose(a @ vectors, np.asarray(vectors) * np.asarray(theta), atol=0.05)
        np.testing.assert_allclose(np.asarray(vectors).T @ vectors, np.eye(3), atol=1e-4)
        assert 0 < int(steps) < 200
    theta, _, steps = calque.jit(lambda a: linalg.lobpcg_standard(a, start, m=3))(a)
    assert int(steps) == 3


def _system() -> Any:
    mat = scipy.sparse.random(
        8, 8, 0.3, random_state=1, dtype=np.float32
    ).tocsr() + 3 * scipy.sparse.identity(8, np.float32)
    return scipy.sparse.csr_matrix(mat)


@pytest.mark.parametrize("reorder", range(4))
def test_linear_systems(reorder: int) -> None:
    mat = _system()
    b = RNG.normal(size=8).astype(np.float32)
    got = linalg.spsolve(mat.data, mat.indices, mat.indptr, b, reorder=reorder)
    np.testing.assert_allclose(got, np.linalg.solve(mat.toarray(), b), rtol=1e-4)
    jitted = calque.jit(lambda d, b: linalg.spsolve(d, mat.indices, mat.indptr, b, reorder=reorder))
    np.testing.assert_allclose(jitted(mat.data, b), got, rtol=1e-5)


def test_derivatives_of_solutions() -> None:
    mat = _system()
    b = jnp.asarray(RNG.normal(size=8).astype(np.float32))
    rows, columns = mat.nonzero()

    def f(d, b):
        return (linalg.spsolve(d, mat.indices, mat.indptr, b) ** 2).sum()

    def dense(d, b):
        return (jnp.linalg.solve(jnp.zeros((8, 8)).at[rows, columns].set(d), b) ** 2).sum()

    for got, want in zip(
        calque.grad(f, (0, 1))(mat.data, b), calque.grad(dense, (0, 1))(jnp.asarray(mat.data), b)
    ):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    both = calque.vmap(lambda b: linalg.spsolve(mat.data, mat.indices, mat.indptr, b))(
        jnp.stack([b, 2 * b])
    )
    np.testing.assert_allclose(both[1], 2 * both[0], rtol=1e-4)


def test_bad_arguments() -> None:
    a, x = jnp.eye(10), jnp.ones((10, 1))
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: linalg.lobpcg_standard(a, jnp.ones((10, 2))), ValueError, "search dim"),
        (lambda: linalg.lobpcg_standard(a, jnp.ones((10, 0))), ValueError, "search dim > 0"),
        (lambda: linalg.lobpcg_standard(a, jnp.ones(10)), ValueError, "matrix"),
        (lambda: linalg.lobpcg_standard(lambda v: v[:3], x), ValueError, "output"),
        (lambda: linalg.lobpcg_standard(a, x * 1j), TypeError, "complex"),
        (
            lambda: linalg.spsolve(jnp.ones(2), jnp.arange(2), jnp.arange(3), jnp.ones(3)),
            ValueError,
            "shapes",
        ),
        (
            lambda: linalg.spsolve(
                jnp.ones(2), jnp.arange(2), jnp.arange(3), jnp.ones(2), reorder=9
            ),
            ValueError,
            "reorder",
        ),
        (
            lambda: linalg.spsolve(jnp.ones(2), jnp.arange(2), jnp.arange(3), jnp.ones(2), tol="a"),
            TypeError,
            "tol",
        ),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("shift", [-41.0, -38.0, -20.0])
def test_largest_eigenvalues_that_are_negative(shift: float) -> None:
    """No direction that is 0, with a value of 0, is taken for one of them."""
    q, _ = np.linalg.qr(RNG.normal(size=(40, 40)))
    a = ((q * (np.arange(1, 41) + shift)) @ q.T).astype(np.float32)
    start = RNG.normal(size=(40, 4)).astype(np.float32)
    theta, vectors, _ = linalg.lobpcg_standard((a + a.T) / 2, start, m=200)
    np.testing.assert_allclose(theta, np.arange(40, 36, -1) + shift, atol=2e-3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-4)
