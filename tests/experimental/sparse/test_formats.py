"""BCSR, COO, CSR and CSC, the derivatives in sparse places, and the operations by their names."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import calque
import calque.numpy as jnp
from calque.experimental import sparse

RNG = np.random.default_rng(0)
X = np.where(RNG.random((4, 5)) < 0.4, RNG.normal(size=(4, 5)), 0).astype(np.float32)
V, W = RNG.normal(size=5).astype(np.float32), RNG.normal(size=(5, 3)).astype(np.float32)
U, Z = RNG.normal(size=4).astype(np.float32), RNG.normal(size=(4, 3)).astype(np.float32)


def _close(got: Any, want: Any) -> None:
    got = got.todense() if isinstance(got, sparse.JAXSparse) else got
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["COO", "CSR", "CSC"])
def test_matrices(kind: str) -> None:
    cls = getattr(sparse, kind)
    mat = cls.fromdense(X)
    assert (mat.shape, mat.nse, mat.ndim, mat.dtype, len(mat)) == (
        X.shape,
        np.count_nonzero(X),
        2,
        np.float32,
        4,
    )
    assert repr(mat) == f"{kind}(float32[4, 5], nse={mat.nse})"
    _close(mat, X)
    _close(cls.fromdense(X, nse=15), X)
    _close(mat.T, X.T)
    _close(mat @ V, X @ V)
    _close(mat @ W, X @ W)
    _close(calque.jit(lambda m, v: m @ v)(mat, V), X @ V)
    _close(mat.T @ Z, X.T @ Z)
    slope = calque.grad(lambda d: (calque.tree.unflatten(tree, [d, *rest]) @ V).sum())
    (data, *rest), tree = calque.tree.flatten(mat)
    assert np.isfinite(np.asarray(slope(data))).all()
    _close(sparse.eye(4, 5, 1, sparse_format=kind.lower()), np.eye(4, 5, 1))
    _close(sparse.empty((4, 5), sparse_format=kind.lower()), np.zeros((4, 5)))
    for bad in (lambda: mat @ mat, lambda: mat @ np.ones((5, 2, 2))):
        with pytest.raises(NotImplementedError):
            bad()
    with pytest.raises(ValueError, match="shape"):
        cls.fromdense(V)


def test_functions_of_matrices() -> None:
    for name, mat in (("coo", sparse.coo_fromdense(X)), ("csr", sparse.csr_fromdense(X))):
        matvec, matmat = getattr(sparse, f"{name}_matvec"), getattr(sparse, f"{name}_matmat")
        _close(getattr(sparse, f"{name}_todense")(mat), X)
        _close(matvec(mat, V), X @ V)
        _close(matvec(mat, U, transpose=True), X.T @ U)
        _close(matmat(mat, W), X @ W)
        _close(matmat(mat, Z, transpose=True), X.T @ Z)
        with pytest.raises(NotImplementedError, match="matvec"):
            matvec(mat, W)
        with pytest.raises(TypeError, match="matrix"):
            matvec(X, V)


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_rows(n_batch: int, n_dense: int) -> None:
    shape = (3,) * n_batch + (4, 5) + (2,) * n_dense
    x = np.where(RNG.random(shape) < 0.5, RNG.normal(size=shape), 0).astype(np.float32)
    mat = sparse.BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    assert (mat.shape, mat.n_batch, mat.n_dense, mat.n_sparse) == (shape, n_batch, n_dense, 2)
    _close(mat, x)
    _close(mat.to_bcoo(), x)
    _close(sparse.BCSR.from_bcoo(mat.to_bcoo()), x)
    _close(mat.sum_duplicates(), x)
    _close(sparse.bcsr_concatenate([mat, mat], dimension=n_batch), np.concatenate([x, x], n_batch))
    taken = sparse.bcsr_extract(mat.indices, mat.indptr, jnp.asarray(2 * x))
    np.testing.assert_allclose(taken, 2 * mat.data)
    if not n_dense:
        dims = (((n_batch + 1,), (0,)), ((), ()))
        _close(sparse.bcsr_dot_general(mat, V, dimension_numbers=dims), x @ V)
        _close(mat @ V, x @ V)
    wide = (
        sparse.bcsr_broadcast_in_dim(mat, shape=(*shape, 2), broadcast_dimensions=range(len(shape)))
        if n_dense
        else mat
    )
    _close(wide, np.broadcast_to(x[..., None], (*shape, 2)) if n_dense else x)


def test_rows_of_scipy() -> None:
    x = scipy.sparse.random(5, 6, 0.3, format="csr", random_state=0, dtype=np.float32)
    mat = sparse.BCSR.from_scipy_sparse(x)
    np.testing.assert_array_equal(mat.indptr, x.indptr)
    _close(mat, x.toarray())
    _close(sparse.empty((3, 4), sparse_format="bcsr"), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="indptr"):
        sparse.BCSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(3, int)), shape=(4, 4))
    with pytest.raises(NotImplementedError, match="to_bcoo"):
        mat.transpose()


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


def test_operations_by_name() -> None:
    mat = sparse.BCOO.fromdense(X)
    info = mat._info
    _close(sparse.bcoo_todense_p.bind(mat.data, mat.indices, spinfo=info), X)
    data, indices = sparse.bcoo_fromdense_p.bind(
        X, nse=9, n_batch=0, n_dense=0, index_dtype=np.int32
    )
    _close(sparse.BCOO((data, indices), shape=X.shape), X)
    dims = (((1,), (0,)), ((), ()))
    out = sparse.bcoo_dot_general_p.bind(mat.data, mat.indices, V, dimension_numbers=dims,
    preferred_element_type=None, lhs_spinfo=info)  # fmt: skip
    _close(out, X @ V)
    data, indices = sparse.bcoo_transpose_p.bind(*mat._bufs, permutation=(1, 0), spinfo=info)
    _close(sparse.BCOO((data, indices), shape=(5, 4)), X.T)
    for op in (sparse.bcoo_sort_indices_p, sparse.bcoo_sum_duplicates_p):
        _close(sparse.BCOO(tuple(op.bind(*mat._bufs, spinfo=info)), shape=X.shape), X)
    np.testing.assert_allclose(sparse.bcoo_extract_p.bind(mat.indices, jnp.asarray(X)), mat.data)
    leaves, tree = calque.tree.flatten(mat)
    _close(sparse.todense_p.bind(*leaves, tree=tree), X)
    rows = sparse.CSR.fromdense(X)
    _close(sparse.csr_matvec_p.bind(*rows._bufs, V, shape=X.shape), X @ V)
    assert repr(sparse.csr_matvec_p) == "csr_matvec"
    assert set(sparse.__all__) <= set(dir(sparse))
