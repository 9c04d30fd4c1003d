"""Sparse arrays in other shapes."""

import itertools

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.experimental import sparse
from tests.experimental.sparse.shared import RNG, close, doubled, some_zero

SHAPE = (2, 3, 4)


LAYOUTS = [(b, d) for b, d in itertools.product(range(4), range(4)) if b + d <= 3]


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_functions_of_one_array(n_batch: int, n_dense: int) -> None:
    x = some_zero(SHAPE)
    mat = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense)
    n_sparse = 3 - n_batch - n_dense
    for m in (mat, doubled(mat)) if n_sparse else (mat,):
        for axes in ((), (0,), (1,), (2,), (0, 2), (0, 1, 2)):
            close(sparse.bcoo_reduce_sum(m, axes=axes), x.sum(axes) if axes else x)
            close(sparse.bcoo_rev(m, axes), np.flip(x, axes) if axes else x)
        close(sparse.bcoo_sort_indices(m), x)
        close(sparse.bcoo_sum_duplicates(m), x)
        close(m.sum_duplicates(), x)
        close(
            sparse.bcoo_slice(
                m, start_indices=(0, 1, 0), limit_indices=(2, 3, 3), strides=(1, 1, 2)
            ),
            x[:, 1:, :3:2],
        )
        close(
            sparse.bcoo_slice(m, start_indices=(0, 1, 1), limit_indices=(1, 2, 2)), x[:1, 1:2, 1:2]
        )
        close(sparse.bcoo_dynamic_slice(m, (1, jnp.asarray(1), 2), (1, 2, 2)), x[1:, 1:3, 2:])
        close(sparse.bcoo_dynamic_slice(m, (9, 9, 9), (1, 2, 2)), x[1:, 1:3, 2:])
        close(sparse.bcoo_concatenate([m, m], dimension=0), np.concatenate([x, x], 0))
        close(sparse.bcoo_concatenate([m, m], dimension=1), np.concatenate([x, x], 1))
        close(sparse.bcoo_concatenate([m, m], dimension=2), np.concatenate([x, x], 2))
        wide = sparse.bcoo_broadcast_in_dim(m, shape=(2, 5, 3, 4), broadcast_dimensions=(0, 2, 3))
        close(wide, np.broadcast_to(x[:, None], (2, 5, 3, 4)))
        ones = sparse.bcoo_broadcast_in_dim(
            m, shape=(2, 1, 3, 4, 1), broadcast_dimensions=(0, 2, 3)
        )
        close(sparse.bcoo_squeeze(ones, dimensions=(1, 4)), x)
        close(abs(-m), abs(x))
        close(m * 2.0, x * 2)
        close(m / np.arange(1, 5, dtype=np.float32), x / np.arange(1, 5))
        close(m * RNG_PLANE, x * RNG_PLANE)
        close(m + m, 2 * x)
        close(m - 2 * m, -x)
        close(sparse.bcoo_extract(m, 2 * x), 2 * x)
        close(m.astype(np.int32), x.astype(np.int32))
        for batch, dense in LAYOUTS:
            close(m.update_layout(n_batch=batch, n_dense=dense, on_inefficient=None), x)


RNG_PLANE = RNG.normal(size=(3, 1)).astype(np.float32)


def test_repeated_batches() -> None:
    """Batch dimensions of size 1 in values or indices stand for every batch."""
    data, indices = some_zero((2, 1, 3), part=1), jnp.array([[[[0], [2], [3]]]])
    mat = sparse.BCOO((data, indices), shape=(2, 4, 4))
    x = np.asarray(mat.todense())
    assert x.shape == (2, 4, 4) and np.count_nonzero(x) == 24
    close(sparse.bcoo_reduce_sum(mat, axes=(1,)), x.sum(1))
    close(
        sparse.bcoo_slice(mat, start_indices=(1, 1, 1), limit_indices=(2, 3, 4)), x[1:2, 1:3, 1:4]
    )
    close(mat @ np.ones(4, np.float32), x.sum(-1))
    close(sparse.bcoo_concatenate([mat, mat], dimension=1), np.concatenate([x, x], 1))
    both = sparse.BCOO((jnp.ones((1, 2)), jnp.array([[[0], [1]]])), shape=(3, 4))
    assert both.shape == (3, 4) and both.todense().sum() == 6


def test_indexing_and_gathering() -> None:
    x = some_zero((4, 5))
    for n_batch in (0, 1):
        mat = sparse.bcoo_fromdense(x, n_batch=n_batch)
        for item in (
            1,
            -1,
            (2, 3),
            slice(1, 3),
            (slice(None), slice(None, None, 2)),
            (..., None),
            (slice(None, None, -1),),
        ):
            close(mat[item], x[item])
    mat = sparse.bcoo_fromdense(x)
    np.testing.assert_allclose(np.stack([row.todense() for row in mat]), x)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(0,), collapsed_slice_dims=(1,), start_index_map=(1,)
    )
    got = sparse.bcoo_gather(mat, jnp.array([[[3], [0], [3]]]), numbers, (4, 1))
    close(got, x[:, [[3, 0, 3]]])
