"""Derivatives of sparse arrays in their own places."""

from typing import Any

import numpy as np
import pytest

import calque
from calque.experimental import sparse

RNG = np.random.default_rng(0)


X = np.where(RNG.random((4, 5)) < 0.4, RNG.normal(size=(4, 5)), 0).astype(np.float32)


V, W = RNG.normal(size=5).astype(np.float32), RNG.normal(size=(5, 3)).astype(np.float32)


def test_derivatives_in_sparse_places() -> None:
    mat = sparse.BCOO.fromdense(X)
    rows, columns = np.nonzero(X)

    def f(a: Any, v: Any) -> Any:
        return ((a @ v) ** 2).sum()

    whole = calque.grad(f, (0, 1))(X, V)
    at_a, at_v = sparse.grad(f, (0, 1))(mat, V)
    assert isinstance(at_a, sparse.BCOO) and at_a.indices is mat.indices
    np.testing.assert_allclose(at_a.data, np.asarray(whole[0])[rows, columns], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(at_v, whole[1], rtol=1e-4)
    value, slope = sparse.value_and_grad(f)(mat, V)
    assert float(value) == pytest.approx(float(f(X, V)), rel=1e-5) and slope.nse == mat.nse
    slope, aux = sparse.grad(lambda a: (f(a, V), a.nse), has_aux=True)(mat)
    assert aux == mat.nse and slope.shape == mat.shape
    full = calque.jacrev(lambda a: a @ V)(X)
    for jacobian in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        found = jacobian(lambda a: a @ V)(mat)
        assert found.shape == (4, 4, 5) and found.n_batch == 1
        np.testing.assert_allclose(found.data, np.asarray(full)[:, rows, columns], rtol=1e-5)
    tree = {"a": mat, "b": V}
    slopes = sparse.grad(lambda t: f(t["a"], t["b"]))(tree)
    np.testing.assert_allclose(slopes["b"], whole[1], rtol=1e-4)
    np.testing.assert_allclose(sparse.grad(f, 1)(sparse.CSR.fromdense(X), V), whole[1], rtol=1e-4)
    with pytest.raises(ValueError, match="argnums"):
        sparse.grad(f, 5)(mat, V)
