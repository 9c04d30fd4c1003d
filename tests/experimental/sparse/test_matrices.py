"""The formats COO, CSR and CSC."""

import numpy as np
import pytest

import calque
from calque.experimental import sparse
from tests.experimental.sparse.shared import close

RNG = np.random.default_rng(0)


X = np.where(RNG.random((4, 5)) < 0.4, RNG.normal(size=(4, 5)), 0).astype(np.float32)


V, W = RNG.normal(size=5).astype(np.float32), RNG.normal(size=(5, 3)).astype(np.float32)


U, Z = RNG.normal(size=4).astype(np.float32), RNG.normal(size=(4, 3)).astype(np.float32)


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
    close(mat, X)
    close(cls.fromdense(X, nse=15), X)
    close(mat.T, X.T)
    close(mat @ V, X @ V)
    close(mat @ W, X @ W)
    close(calque.jit(lambda m, v: m @ v)(mat, V), X @ V)
    close(mat.T @ Z, X.T @ Z)
    slope = calque.grad(lambda d: (calque.tree.unflatten(tree, [d, *rest]) @ V).sum())
    (data, *rest), tree = calque.tree.flatten(mat)
    assert np.isfinite(np.asarray(slope(data))).all()
    close(sparse.eye(4, 5, 1, sparse_format=kind.lower()), np.eye(4, 5, 1))
    close(sparse.empty((4, 5), sparse_format=kind.lower()), np.zeros((4, 5)))
    for bad in (lambda: mat @ mat, lambda: mat @ np.ones((5, 2, 2))):
        with pytest.raises(NotImplementedError):
            bad()
    with pytest.raises(ValueError, match="shape"):
        cls.fromdense(V)


def test_functions_of_matrices() -> None:
    for name, mat in (("coo", sparse.coo_fromdense(X)), ("csr", sparse.csr_fromdense(X))):
        matvec, matmat = getattr(sparse, f"{name}_matvec"), getattr(sparse, f"{name}_matmat")
        close(getattr(sparse, f"{name}_todense")(mat), X)
        close(matvec(mat, V), X @ V)
        close(matvec(mat, U, transpose=True), X.T @ U)
        close(matmat(mat, W), X @ W)
        close(matmat(mat, Z, transpose=True), X.T @ Z)
        with pytest.raises(NotImplementedError, match="matvec"):
            matvec(mat, W)
        with pytest.raises(TypeError, match="matrix"):
            matvec(X, V)
