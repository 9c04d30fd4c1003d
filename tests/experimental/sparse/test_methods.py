"""Methods and operators of sparse arrays beside those of dense ones."""

import operator

import numpy as np
import pytest
import scipy.sparse

import calque
import calque.numpy as jnp
from calque.experimental import sparse
from tests.experimental.sparse.shared import close, some_zero

X, Y = some_zero((4, 5)), some_zero((4, 5))
M, N = sparse.BCOO.fromdense(X), sparse.BCOO.fromdense(Y)


@pytest.mark.parametrize(
    "f",
    [
        lambda m, n: m + n,
        lambda m, n: m - n,
        lambda m, n: m * n,
        lambda m, n: m * 3.0,
        lambda m, n: 3.0 * m,
        lambda m, n: m / 2.0,
        lambda m, n: -m,
        lambda m, n: +m,
        lambda m, n: abs(m),
        lambda m, n: m**2,
        lambda m, n: m @ n.T,
        lambda m, n: m @ np.ones(5, np.float32),
        lambda m, n: np.ones(4, np.float32) @ m,
        lambda m, n: m.T,
        lambda m, n: m.transpose((1, 0)),
        lambda m, n: m.reshape(2, 10),
        lambda m, n: m.reshape((-1, 2)),
        lambda m, n: m.reshape(20),
        lambda m, n: m.sum(),
        lambda m, n: m.sum(0),
        lambda m, n: m.sum(axis=1),
        lambda m, n: m[2],
        lambda m, n: m[1:3],
        lambda m, n: m[:, None, 0],
        lambda m, n: m.astype(np.int32),
    ],
)
def test_as_the_dense_ones(f):
    close(f(M, N), np.asarray(f(X, Y)))
    close(calque.jit(f)(M, N), np.asarray(f(X, Y)))


def test_rows_one_after_the_other():
    rows = list(M)
    assert len(rows) == len(M) == 4 and all(isinstance(r, sparse.BCOO) for r in rows)
    for row, want in zip(rows, X):
        close(row, want)


def test_duplicates():
    twice = sparse.BCOO(
        (jnp.array([1.0, 2.0, 0.0, -3.0, 3.0]), jnp.array([[1], [0], [2], [3], [3]])), shape=(5,)
    )
    plain = twice.sum_duplicates()
    assert plain.indices.ravel().tolist() == [0, 1, 3]  # what was stored as zero is gone
    assert plain.data.tolist() == [2, 1, 0]
    kept = twice.sum_duplicates(remove_zeros=False)
    assert kept.indices.ravel().tolist() == [0, 1, 2, 3] and kept.data.tolist() == [2, 1, 0, 0]
    padded = twice.sum_duplicates(nse=4)
    assert padded.nse == 4
    close(padded, [2, 1, 0, 0, 0])
    assert twice.sort_indices().indices.ravel().tolist() == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_made_empty(n_batch, n_dense):
    m = sparse.BCOO._empty((2, 3, 4), n_batch=n_batch, n_dense=n_dense, nse=2, dtype=int)
    assert (m.n_batch, m.n_dense, m.nse, m.dtype) == (n_batch, n_dense, 2, np.int32)
    close(m, np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="invalid shape"):
        sparse.BCOO._empty((2,), n_batch=1, n_dense=1)


def test_matrices_of_scipy_have_no_batches():
    m = scipy.sparse.random(4, 5, 0.4, random_state=0, dtype=np.float32)
    got = sparse.BCOO.from_scipy_sparse(m, index_dtype=np.int16)
    assert got.indices.dtype == np.int16
    close(got, m.toarray())
    with pytest.raises(NotImplementedError, match="n_dense or n_batch"):
        sparse.BCOO.from_scipy_sparse(m, n_batch=1)


def test_operators_that_would_store_nearly_everything():
    for f in (operator.gt, operator.eq, operator.ne):
        with pytest.raises(NotImplementedError):
            f(M, 0.0)
    with pytest.raises(NotImplementedError):
        2.0**M
    for f in (operator.add, operator.mul):
        with pytest.raises(TypeError, match=r"unsupported operand|input type"):
            f(M, "text")


def test_rows_as_lists_of_columns():
    rows = sparse.BCSR.fromdense(X)
    close(rows @ np.ones(5, np.float32), X @ np.ones(5, np.float32))
    close(np.ones(4, np.float32) @ rows, np.ones(4, np.float32) @ X)
