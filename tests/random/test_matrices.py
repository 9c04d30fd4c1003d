"""Random matrices: orthogonal ones, and normal vectors with a covariance."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque import random

KEY = random.key(0)
COV = np.array([[2.0, 0.6], [0.6, 1.0]], np.float32)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_orthogonal(dtype):
    q = np.asarray(random.orthogonal(KEY, 4, (3,), dtype))
    assert q.shape == (3, 4, 4) and q.dtype == np.dtype(dtype)
    np.testing.assert_allclose(q @ np.swapaxes(q.conj(), 1, 2), [np.eye(4)] * 3, atol=1e-5)
    signs = [np.linalg.det(np.asarray(random.orthogonal(random.key(k), 3))) for k in range(20)]
    assert min(signs) < -0.9 and max(signs) > 0.9


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors(method):
    mean = jnp.array([1.0, -1.0])
    x = np.asarray(random.multivariate_normal(KEY, mean, COV, (20_000,), method=method))
    np.testing.assert_allclose(x.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.08)


def test_bad_arguments():
    with pytest.raises((ValueError, TypeError), match="method"):
        random.multivariate_normal(KEY, jnp.zeros(2), COV, method="lu")
    for mean, cov in ((jnp.zeros(3), COV), (jnp.zeros(()), COV), (jnp.zeros(2), COV[0])):
        with pytest.raises((ValueError, TypeError)):
            random.multivariate_normal(KEY, mean, cov)
