"""BCSR, COO, CSR and CSC, the derivatives in sparse places, and the operations by their names."""

import numpy as np
import pytest
import scipy.sparse

import calque.numpy as jnp
from calque.experimental import sparse
from tests.experimental.sparse.shared import close

RNG = np.random.default_rng(0)
V, W = RNG.normal(size=5).astype(np.float32), RNG.normal(size=(5, 3)).astype(np.float32)


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_rows(n_batch: int, n_dense: int) -> None:
    shape = (3,) * n_batch + (4, 5) + (2,) * n_dense
    x = np.where(RNG.random(shape) < 0.5, RNG.normal(size=shape), 0).astype(np.float32)
    mat = sparse.BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    assert (mat.shape, mat.n_batch, mat.n_dense, mat.n_sparse) == (shape, n_batch, n_dense, 2)
    close(mat, x)
    close(mat.to_bcoo(), x)
    close(sparse.BCSR.from_bcoo(mat.to_bcoo()), x)
    close(mat.sum_duplicates(), x)
    close(sparse.bcsr_concatenate([mat, mat], dimension=n_batch), np.concatenate([x, x], n_batch))
    taken = sparse.bcsr_extract(mat.indices, mat.indptr, jnp.asarray(2 * x))
    np.testing.assert_allclose(taken, 2 * mat.data)
    if not n_dense:
        dims = (((n_batch + 1,), (0,)), ((), ()))
        close(sparse.bcsr_dot_general(mat, V, dimension_numbers=dims), x @ V)
        close(mat @ V, x @ V)
    wide = (
        sparse.bcsr_broadcast_in_dim(mat, shape=(*shape, 2), broadcast_dimensions=range(len(shape)))
        if n_dense
        else mat
    )
    close(wide, np.broadcast_to(x[..., None], (*shape, 2)) if n_dense else x)


def test_rows_of_scipy() -> None:
    x = scipy.sparse.random(5, 6, 0.3, format="csr", random_state=0, dtype=np.float32)
    mat = sparse.BCSR.from_scipy_sparse(x)
    np.testing.assert_array_equal(mat.indptr, x.indptr)
    close(mat, x.toarray())
    close(sparse.empty((3, 4), sparse_format="bcsr"), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="indptr"):
        sparse.BCSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(3, int)), shape=(4, 4))
    with pytest.raises(NotImplementedError, match="to_bcoo"):
        mat.transpose()
