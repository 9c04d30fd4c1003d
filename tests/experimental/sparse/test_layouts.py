"""Orders of dimensions, and which are sparse."""

import itertools

import pytest

from calque.experimental import sparse
from tests.experimental.sparse.shared import close, doubled, some_zero


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)])
def test_transposes_and_reshapes(n_batch: int, n_dense: int) -> None:
    x = some_zero((2, 3, 4, 5))
    mat = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense)
    for order in itertools.permutations(range(4)):
        mixes = sorted(order[:n_batch]) != list(range(n_batch)) or sorted(
            order[4 - n_dense :]
        ) != list(range(4 - n_dense, 4))
        if mixes:
            with pytest.raises(NotImplementedError, match="permute"):
                sparse.bcoo_transpose(mat, permutation=order)
        else:
            close(sparse.bcoo_transpose(mat, permutation=order), x.transpose(order))
    if n_batch < 2 and n_dense == 0:
        close(mat.reshape(2, 12, 5), x.reshape(2, 12, 5))
        close(mat.reshape((2, -1)), x.reshape(2, -1))
        close(doubled(mat).reshape(2, 15, 4), x.reshape(2, 15, 4))
    if n_dense == 0 and n_batch == 0:
        close(mat.T, x.T)
        close(mat.reshape(120), x.reshape(120))
    elif n_batch:
        with pytest.raises(NotImplementedError, match="batch"):
            mat.reshape(40, 3)
