"""Norms, ranks and conditions of matrices, held against NumPy."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_of_matrices(order, keepdims):
    want = np.linalg.norm(A, order, axis=(1, 2), keepdims=keepdims)
    got = jnp.linalg.norm(A, order, axis=(1, 2), keepdims=keepdims)
    np.testing.assert_allclose(got, want, rtol=1e-4)
    if order is not None:
        matrix = jnp.linalg.matrix_norm(A, ord=order, keepdims=keepdims)
        np.testing.assert_allclose(matrix, want, rtol=1e-4)


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, -1, 0.5, np.inf, -np.inf])
def test_of_vectors(order):
    np.testing.assert_allclose(
        jnp.linalg.norm(A, order, axis=-1), np.linalg.norm(A, order, axis=-1), rtol=1e-4
    )
    if order is not None:
        got = jnp.linalg.vector_norm(A, ord=order)
        np.testing.assert_allclose(got, np.linalg.norm(A.ravel(), order), rtol=1e-4)


def test_of_complex_numbers():
    z = (A + 1j * A[:, ::-1]).astype(np.complex64)
    np.testing.assert_allclose(jnp.linalg.norm(z), np.linalg.norm(z), rtol=1e-5)


def test_the_gradient_at_zero_is_zero():
    assert calque.grad(jnp.linalg.norm)(jnp.zeros(3)).tolist() == [0, 0, 0]
    g = calque.grad(jnp.linalg.norm)(jnp.array([3.0, 4.0]))
    np.testing.assert_allclose(g, [0.6, 0.8], rtol=1e-6)


def test_ranks_and_conditions():
    m = np.diag([1, 1e-3, 0]).astype(np.float32)
    assert int(jnp.linalg.matrix_rank(m)) == 2 and int(jnp.linalg.matrix_rank(m, rtol=0.1)) == 1
    square = A[0, :, :3] + 3 * np.eye(3, dtype=np.float32)
    for p in (None, 2, "fro", 1):
        np.testing.assert_allclose(jnp.linalg.cond(square, p), np.linalg.cond(square, p), rtol=1e-3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.linalg.norm(A, "fro", axis=0),
        lambda: jnp.linalg.norm(A, 7, axis=(0, 1)),
        lambda: jnp.linalg.norm(A, axis=(0, 1, 2)),
        lambda: jnp.linalg.norm(A, 2),
    ],
)
def test_what_is_no_norm(call):
    with pytest.raises((ValueError, TypeError)):
        call()
