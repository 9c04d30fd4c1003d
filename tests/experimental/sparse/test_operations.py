"""Operations by the names of primitives."""

import numpy as np

import calque
import calque.numpy as jnp
from calque.experimental import sparse
from tests.experimental.sparse.shared import close

RNG = np.random.default_rng(0)


X = np.where(RNG.random((4, 5)) < 0.4, RNG.normal(size=(4, 5)), 0).astype(np.float32)


V, W = RNG.normal(size=5).astype(np.float32), RNG.normal(size=(5, 3)).astype(np.float32)


def test_operations_by_name() -> None:
    mat = sparse.BCOO.fromdense(X)
    info = mat._info
    close(sparse.bcoo_todense_p.bind(mat.data, mat.indices, spinfo=info), X)
    data, indices = sparse.bcoo_fromdense_p.bind(
        X, nse=9, n_batch=0, n_dense=0, index_dtype=np.int32
    )
    close(sparse.BCOO((data, indices), shape=X.shape), X)
    dims = (((1,), (0,)), ((), ()))
    out = sparse.bcoo_dot_general_p.bind(mat.data, mat.indices, V, dimension_numbers=dims,
    preferred_element_type=None, lhs_spinfo=info)  # fmt: skip
    close(out, X @ V)
    data, indices = sparse.bcoo_transpose_p.bind(*mat._bufs, permutation=(1, 0), spinfo=info)
    close(sparse.BCOO((data, indices), shape=(5, 4)), X.T)
    for op in (sparse.bcoo_sort_indices_p, sparse.bcoo_sum_duplicates_p):
        close(sparse.BCOO(tuple(op.bind(*mat._bufs, spinfo=info)), shape=X.shape), X)
    np.testing.assert_allclose(sparse.bcoo_extract_p.bind(mat.indices, jnp.asarray(X)), mat.data)
    leaves, tree = calque.tree.flatten(mat)
    close(sparse.todense_p.bind(*leaves, tree=tree), X)
    rows = sparse.CSR.fromdense(X)
    close(sparse.csr_matvec_p.bind(*rows._bufs, V, shape=X.shape), X @ V)
    assert repr(sparse.csr_matvec_p) == "csr_matvec"
    assert set(sparse.__all__) <= set(dir(sparse))
