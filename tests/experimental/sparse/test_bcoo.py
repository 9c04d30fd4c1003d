"""BCOO arrays: every function against the same one of the dense array, over batch, sparse and dense
dimensions."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import calque
import calque.numpy as jnp
from calque.experimental import sparse
from tests.experimental.sparse.shared import close, doubled, some_zero


def test_matrices_of_scipy() -> None:
    x = scipy.sparse.random(5, 6, 0.3, random_state=0, dtype=np.float32)
    mat = sparse.BCOO.from_scipy_sparse(x)
    close(mat, x.toarray())
    close(mat @ np.ones(6, np.float32), x @ np.ones(6))


def test_under_transformations() -> None:
    x, v = some_zero((4, 5)), some_zero((5,), part=1)
    mat = sparse.bcoo_fromdense(x)
    close(calque.jit(lambda m, v: m @ v)(mat, v), x @ v)
    close(calque.jit(lambda m: (m + m).T)(mat), 2 * x.T)
    close(calque.jit(lambda x: sparse.BCOO.fromdense(x, nse=20) @ v)(x), x @ v)
    slope = calque.grad(
        lambda d, v: (sparse.BCOO((d, mat.indices), shape=(4, 5)) @ v).sum(), (0, 1)
    )(mat.data, v)
    rows, columns = np.nonzero(x)
    np.testing.assert_allclose(slope[0], v[columns], rtol=1e-5)
    np.testing.assert_allclose(slope[1], x.sum(0), rtol=1e-4, atol=1e-4)
    both = sparse.bcoo_fromdense(np.stack([x, 2 * x]), n_batch=1)
    close(calque.vmap(lambda m, v: m @ v, (0, None))(both, v), np.stack([x @ v, 2 * x @ v]))
    turned = calque.vmap(lambda m: m.T)(both)
    close(turned, np.stack([x.T, 2 * x.T]))
    assert turned.shape == (2, 5, 4) and turned.n_batch == 1
    dense = calque.grad(lambda x: (sparse.BCOO.fromdense(x, nse=9) @ v).sum())(x)
    np.testing.assert_allclose(dense, np.where(x != 0, v, 0), rtol=1e-5)
    again = calque.jit(lambda m: m.sum_duplicates(nse=20))(doubled(mat))
    close(again, x)
    with pytest.raises(calque.errors.ConcretizationTypeError, match="nse"):
        calque.jit(sparse.BCOO.fromdense)(x)


def test_bad_arguments() -> None:
    mat = sparse.bcoo_fromdense(some_zero((3, 4)))
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: sparse.BCOO((jnp.ones(3), jnp.zeros((2, 1), int)), shape=(4,)),
            ValueError,
            "nse=2",
        ),
        (lambda: sparse.BCOO((jnp.ones(2), jnp.zeros((2, 1))), shape=(4,)), TypeError, "integers"),
        (
            lambda: sparse.BCOO((jnp.ones(2), jnp.zeros((2, 2), int)), shape=(4,)),
            ValueError,
            "more dimensions",
        ),
        (lambda: sparse.bcoo_todense(jnp.ones(2)), TypeError, "BCOO"),
        (lambda: sparse.bcoo_fromdense(jnp.ones(2), n_batch=2), ValueError, "n_batch=2"),
        (lambda: sparse.bcoo_transpose(mat, permutation=(0, 0)), TypeError, "permutation"),
        (lambda: mat.update_layout(n_batch=1), sparse.SparseEfficiencyError, "n_batch"),
        (lambda: mat.update_layout(n_dense=3), ValueError, "mat.ndim"),
        (lambda: mat.update_layout(n_dense=1, on_inefficient="no"), ValueError, "on_inefficient"),
        (lambda: mat + 1.0, NotImplementedError, "dense"),
        (lambda: 1.0 / mat, NotImplementedError, "Division"),
        (lambda: mat == mat, NotImplementedError, "eq"),
        (lambda: mat @ np.ones(7), TypeError, "matmul"),
        (
            lambda: sparse.bcoo_slice(mat, start_indices=(0, 0), limit_indices=(9, 1)),
            ValueError,
            "limit|invalid",
        ),
        (lambda: sparse.bcoo_concatenate([mat, mat.T], dimension=0), TypeError, "shapes"),
        (lambda: sparse.bcoo_squeeze(mat, dimensions=(0,)), ValueError, "size 1"),
        (lambda: sparse.bcoo_reshape(mat, new_sizes=(5,)), TypeError, "total size"),
        (lambda: sparse.bcoo_extract(mat, jnp.ones(3)), ValueError, "shape"),
        (lambda: sparse.eye(3, sparse_format="dia"), ValueError, "dia"),
        (lambda: sparse.random_bcoo(calque.random.key(0), (3,), nse=5), ValueError, "nse=5"),
        (lambda: np.asarray(mat), TypeError, "todense"),
        (lambda: hash(mat), TypeError, "hash"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()
    with pytest.warns(sparse.SparseEfficiencyWarning):
        mat.update_layout(n_dense=1, on_inefficient="warn")
