"""Sparse arrays out of nothing."""

import numpy as np
import pytest

import calque
from calque.experimental import sparse
from tests.experimental.sparse.shared import some_zero
from tests.peers import compare, jax

SHAPE = (2, 3, 4)


@pytest.mark.peer
def test_as_in_jax() -> None:
    peer = jax()
    module = pytest.importorskip("jax.experimental.sparse")
    x = some_zero(SHAPE)
    for n_batch, n_dense in ((0, 0), (1, 1), (2, 0)):
        ours = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense)
        theirs = module.bcoo_fromdense(peer.numpy.asarray(x), n_batch=n_batch, n_dense=n_dense)
        compare(ours._bufs, theirs._bufs)
        assert repr(ours) == repr(theirs)
        for name in (
            "nse",
            "n_batch",
            "n_sparse",
            "n_dense",
            "shape",
            "size",
            "ndim",
            "indices_sorted",
            "unique_indices",
        ):
            assert getattr(ours, name) == getattr(theirs, name)
    a, b = (
        m.random_bcoo(j.random.key(0), (5, 6), nse=0.4, sorted_indices=True, dtype=np.float32)
        for m, j in ((sparse, calque), (module, peer))
    )
    compare(a._bufs, b._bufs)
    for kind in ("bcoo", "coo", "csr", "csc"):
        for k in (-1, 0, 2, 9):
            a, b = sparse.eye(3, 4, k, sparse_format=kind), module.eye(3, 4, k, sparse_format=kind)
            assert repr(a) == repr(b)
            compare(a.todense(), b.todense())
    assert repr(sparse.empty((3, 4))) == repr(module.empty((3, 4)))
