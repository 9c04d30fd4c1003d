"""From dense to sparse and back."""

import itertools

import numpy as np
import pytest

from calque.experimental import sparse
from tests.experimental.sparse.shared import some_zero

SHAPE = (2, 3, 4)


LAYOUTS = [(b, d) for b, d in itertools.product(range(4), range(4)) if b + d <= 3]


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_there_and_back(n_batch: int, n_dense: int) -> None:
    for dtype in (np.float32, np.int32, bool, np.complex64):
        x = some_zero(SHAPE, dtype)
        mat = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense)
        assert (mat.n_batch, mat.n_dense, mat.shape, mat.dtype) == (
            n_batch,
            n_dense,
            SHAPE,
            x.dtype,
        )
        np.testing.assert_array_equal(mat.todense(), x)
    more = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=30)
    assert more.nse == 30
    np.testing.assert_array_equal(more.todense(), x)
