"""Products of sparse arrays."""

from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.experimental import sparse
from tests.experimental.sparse.shared import close, doubled, some_zero

PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...], Any, int]] = [
    ((4, 5), (5, 3), (((1,), (0,)), ((), ())), 0),
    ((4, 5), (4, 3), (((0,), (0,)), ((), ())), 0),
    ((4, 5), (5,), (((1,), (0,)), ((), ())), 1),
    ((4, 5), (3, 4), (((0,), (1,)), ((), ())), 1),
    ((4, 5), (4, 5), (((0, 1), (0, 1)), ((), ())), 0),
    ((4, 5), (3,), (((), ()), ((), ())), 0),
    ((2, 4, 5), (2, 5, 3), (((2,), (1,)), ((0,), (0,))), 1),
    ((2, 4, 5), (3, 2, 5), (((2,), (2,)), ((0,), (1,))), 2),
    ((2, 3, 4, 5), (3, 5, 2), (((3,), (1,)), ((1,), (0,))), 2),
    ((2, 3, 4, 5), (5, 2, 4), (((0, 3, 2), (1, 0, 2)), ((), ())), 1),
]


@pytest.mark.parametrize("a, b, dims, n_batch", PRODUCTS)
def test_products(a: Any, b: Any, dims: Any, n_batch: int) -> None:
    x, y = some_zero(a), some_zero(b)
    want = lax.dot_general(x, y, dims, precision="highest")
    mat = sparse.bcoo_fromdense(x, n_batch=n_batch)
    close(sparse.bcoo_dot_general(mat, y, dimension_numbers=dims), want)
    close(sparse.bcoo_dot_general(doubled(mat), y, dimension_numbers=dims), want)
    (lc, rc), (lb, rb) = dims
    turned = lax.dot_general(y, x, ((rc, lc), (rb, lb)), precision="highest")
    close(sparse.bcoo_dot_general(y, mat, dimension_numbers=((rc, lc), (rb, lb))), turned)
    other = sparse.bcoo_fromdense(
        y.transpose((*rb, *[i for i in range(y.ndim) if i not in rb])), n_batch=len(rb)
    )
    if rb == tuple(range(len(rb))) and lb == tuple(range(n_batch)):
        close(sparse.bcoo_dot_general(mat, other, dimension_numbers=dims), want)
        close(sparse.bcoo_dot_general(doubled(mat), doubled(other), dimension_numbers=dims), want)
    out = sparse.bcoo_dot_general(mat, y, dimension_numbers=dims, preferred_element_type=np.float16)
    assert out.dtype == np.float16


def test_dense_dimensions_in_products() -> None:
    x, y = some_zero((4, 5, 3)), some_zero((4, 2))
    mat = sparse.bcoo_fromdense(x, n_dense=1)
    close(
        sparse.bcoo_dot_general(mat, y, dimension_numbers=(((0,), (0,)), ((), ()))),
        np.einsum("abc,ad->bcd", x, y),
    )
    with pytest.raises(NotImplementedError, match="dense"):
        sparse.bcoo_dot_general(mat, some_zero((3,)), dimension_numbers=(((2,), (0,)), ((), ())))


def test_products_of_two() -> None:
    x, y = some_zero((3, 4)), some_zero((3, 4))
    a, b = sparse.bcoo_fromdense(x), sparse.bcoo_fromdense(y)
    close(a * b, x * y)
    close(doubled(a) * doubled(b), x * y)
    close(a * a, x * x)
    close(sparse.bcoo_fromdense(x, n_batch=1) * sparse.bcoo_fromdense(y, n_batch=1), x * y)
    close(sparse.bcoo_fromdense(x, n_dense=1) * sparse.bcoo_fromdense(y, n_dense=1), x * y)
    close(sparse.bcoo_multiply_sparse(a, sparse.bcoo_fromdense(y[:1])), x * y[:1])
    close(a @ b.T, x @ y.T)
    places = jnp.array([[0, 1], [2, 2], [3, 3]])
    got = sparse.bcoo_dot_general_sampled(
        x, y.T, places, dimension_numbers=(((1,), (0,)), ((), ()))
    )
    np.testing.assert_allclose(got, [(x @ y.T)[0, 1], (x @ y.T)[2, 2], 0], rtol=1e-5)


def test_convolution() -> None:
    x, y = some_zero((1, 1, 9), part=0.7), some_zero((1, 1, 4), part=0.7)
    for padding in ("SAME", "VALID", [(3, 3)], [(0, 2)]):
        want = lax.conv_general_dilated(x, y, (1,), padding)
        for a, b in (
            (sparse.bcoo_fromdense(x), sparse.bcoo_fromdense(y)),
            (sparse.bcoo_fromdense(x, n_batch=2), y),
        ):
            close(
                sparse.bcoo_conv_general_dilated(a, b, window_strides=(1,), padding=padding), want
            )
    with pytest.raises(NotImplementedError, match="window_strides"):
        sparse.bcoo_conv_general_dilated(
            sparse.bcoo_fromdense(x), y, window_strides=(2,), padding="SAME"
        )
