"""BCOO arrays: every function against the same one of the dense array, over batch, sparse and dense
dimensions."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import calque
import calque.numpy as jnp
from calque import lax
from calque.experimental import sparse
from tests.peers import compare, jax

RNG = np.random.default_rng(0)
SHAPE = (2, 3, 4)
LAYOUTS = [(b, d) for b, d in itertools.product(range(4), range(4)) if b + d <= 3]


def _dense(shape: tuple[int, ...], dtype: Any = np.float32, part: float = 0.4) -> np.ndarray:
    x = RNG.normal(size=shape) * 5
    return np.where(RNG.random(shape) < part, x, 0).astype(dtype)


def _close(got: Any, want: Any, tol: float = 1e-4) -> None:
    got = got.todense() if isinstance(got, sparse.JAXSparse) else got
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=tol, atol=tol)


def _doubled(mat: Any) -> Any:
    """The same array stored in twice as many elements, and some padding."""
    halves = [mat.data / 2, mat.data / 2, mat.data[(slice(None),) * mat.n_batch + (slice(0, 1),)]]
    outside = jnp.broadcast_to(
        jnp.array(mat.sparse_shape, mat.indices.dtype), (*mat.indices.shape[:-2], 1, mat.n_sparse)
    )
    indices = jnp.concatenate([mat.indices, mat.indices[..., ::-1, :], outside], axis=-2)
    halves[1] = jnp.flip(halves[1], mat.n_batch)
    return sparse.BCOO((jnp.concatenate(halves, axis=mat.n_batch), indices), shape=mat.shape)


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_there_and_back(n_batch: int, n_dense: int) -> None:
    for dtype in (np.float32, np.int32, bool, np.complex64):
        x = _dense(SHAPE, dtype)
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


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_functions_of_one_array(n_batch: int, n_dense: int) -> None:
    x = _dense(SHAPE)
    mat = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense)
    n_sparse = 3 - n_batch - n_dense
    for m in (mat, _doubled(mat)) if n_sparse else (mat,):
        for axes in ((), (0,), (1,), (2,), (0, 2), (0, 1, 2)):
            _close(sparse.bcoo_reduce_sum(m, axes=axes), x.sum(axes) if axes else x)
            _close(sparse.bcoo_rev(m, axes), np.flip(x, axes) if axes else x)
        _close(sparse.bcoo_sort_indices(m), x)
        _close(sparse.bcoo_sum_duplicates(m), x)
        _close(m.sum_duplicates(), x)
        _close(
            sparse.bcoo_slice(
                m, start_indices=(0, 1, 0), limit_indices=(2, 3, 3), strides=(1, 1, 2)
            ),
            x[:, 1:, :3:2],
        )
        _close(
            sparse.bcoo_slice(m, start_indices=(0, 1, 1), limit_indices=(1, 2, 2)), x[:1, 1:2, 1:2]
        )
        _close(sparse.bcoo_dynamic_slice(m, (1, jnp.asarray(1), 2), (1, 2, 2)), x[1:, 1:3, 2:])
        _close(sparse.bcoo_dynamic_slice(m, (9, 9, 9), (1, 2, 2)), x[1:, 1:3, 2:])
        _close(sparse.bcoo_concatenate([m, m], dimension=0), np.concatenate([x, x], 0))
        _close(sparse.bcoo_concatenate([m, m], dimension=1), np.concatenate([x, x], 1))
        _close(sparse.bcoo_concatenate([m, m], dimension=2), np.concatenate([x, x], 2))
        wide = sparse.bcoo_broadcast_in_dim(m, shape=(2, 5, 3, 4), broadcast_dimensions=(0, 2, 3))
        _close(wide, np.broadcast_to(x[:, None], (2, 5, 3, 4)))
        ones = sparse.bcoo_broadcast_in_dim(
            m, shape=(2, 1, 3, 4, 1), broadcast_dimensions=(0, 2, 3)
        )
        _close(sparse.bcoo_squeeze(ones, dimensions=(1, 4)), x)
        _close(abs(-m), abs(x))
        _close(m * 2.0, x * 2)
        _close(m / np.arange(1, 5, dtype=np.float32), x / np.arange(1, 5))
        _close(m * RNG_PLANE, x * RNG_PLANE)
        _close(m + m, 2 * x)
        _close(m - 2 * m, -x)
        _close(sparse.bcoo_extract(m, 2 * x), 2 * x)
        _close(m.astype(np.int32), x.astype(np.int32))
        for batch, dense in LAYOUTS:
            _close(m.update_layout(n_batch=batch, n_dense=dense, on_inefficient=None), x)


RNG_PLANE = RNG.normal(size=(3, 1)).astype(np.float32)


def test_repeated_batches() -> None:
    """Batch dimensions of size 1 in values or indices stand for every batch."""
    data, indices = _dense((2, 1, 3), part=1), jnp.array([[[[0], [2], [3]]]])
    mat = sparse.BCOO((data, indices), shape=(2, 4, 4))
    x = np.asarray(mat.todense())
    assert x.shape == (2, 4, 4) and np.count_nonzero(x) == 24
    _close(sparse.bcoo_reduce_sum(mat, axes=(1,)), x.sum(1))
    _close(
        sparse.bcoo_slice(mat, start_indices=(1, 1, 1), limit_indices=(2, 3, 4)), x[1:2, 1:3, 1:4]
    )
    _close(mat @ np.ones(4, np.float32), x.sum(-1))
    _close(sparse.bcoo_concatenate([mat, mat], dimension=1), np.concatenate([x, x], 1))
    both = sparse.BCOO((jnp.ones((1, 2)), jnp.array([[[0], [1]]])), shape=(3, 4))
    assert both.shape == (3, 4) and both.todense().sum() == 6


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)])
def test_transposes_and_reshapes(n_batch: int, n_dense: int) -> None:
    x = _dense((2, 3, 4, 5))
    mat = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense)
    for order in itertools.permutations(range(4)):
        mixes = sorted(order[:n_batch]) != list(range(n_batch)) or sorted(
            order[4 - n_dense :]
        ) != list(range(4 - n_dense, 4))
        if mixes:
            with pytest.raises(NotImplementedError, match="permute"):
                sparse.bcoo_transpose(mat, permutation=order)
        else:
            _close(sparse.bcoo_transpose(mat, permutation=order), x.transpose(order))
    if n_batch < 2 and n_dense == 0:
        _close(mat.reshape(2, 12, 5), x.reshape(2, 12, 5))
        _close(mat.reshape((2, -1)), x.reshape(2, -1))
        _close(_doubled(mat).reshape(2, 15, 4), x.reshape(2, 15, 4))
    if n_dense == 0 and n_batch == 0:
        _close(mat.T, x.T)
        _close(mat.reshape(120), x.reshape(120))
    elif n_batch:
        with pytest.raises(NotImplementedError, match="batch"):
            mat.reshape(40, 3)


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
    x, y = _dense(a), _dense(b)
    want = lax.dot_general(x, y, dims, precision="highest")
    mat = sparse.bcoo_fromdense(x, n_batch=n_batch)
    _close(sparse.bcoo_dot_general(mat, y, dimension_numbers=dims), want)
    _close(sparse.bcoo_dot_general(_doubled(mat), y, dimension_numbers=dims), want)
    (lc, rc), (lb, rb) = dims
    turned = lax.dot_general(y, x, ((rc, lc), (rb, lb)), precision="highest")
    _close(sparse.bcoo_dot_general(y, mat, dimension_numbers=((rc, lc), (rb, lb))), turned)
    other = sparse.bcoo_fromdense(
        y.transpose((*rb, *[i for i in range(y.ndim) if i not in rb])), n_batch=len(rb)
    )
    if rb == tuple(range(len(rb))) and lb == tuple(range(n_batch)):
        _close(sparse.bcoo_dot_general(mat, other, dimension_numbers=dims), want)
        _close(
            sparse.bcoo_dot_general(_doubled(mat), _doubled(other), dimension_numbers=dims), want
        )
    out = sparse.bcoo_dot_general(mat, y, dimension_numbers=dims, preferred_element_type=np.float16)
    assert out.dtype == np.float16


def test_dense_dimensions_in_products() -> None:
    x, y = _dense((4, 5, 3)), _dense((4, 2))
    mat = sparse.bcoo_fromdense(x, n_dense=1)
    _close(
        sparse.bcoo_dot_general(mat, y, dimension_numbers=(((0,), (0,)), ((), ()))),
        np.einsum("abc,ad->bcd", x, y),
    )
    with pytest.raises(NotImplementedError, match="dense"):
        sparse.bcoo_dot_general(mat, _dense((3,)), dimension_numbers=(((2,), (0,)), ((), ())))


def test_products_of_two() -> None:
    x, y = _dense((3, 4)), _dense((3, 4))
    a, b = sparse.bcoo_fromdense(x), sparse.bcoo_fromdense(y)
    _close(a * b, x * y)
    _close(_doubled(a) * _doubled(b), x * y)
    _close(a * a, x * x)
    _close(sparse.bcoo_fromdense(x, n_batch=1) * sparse.bcoo_fromdense(y, n_batch=1), x * y)
    _close(sparse.bcoo_fromdense(x, n_dense=1) * sparse.bcoo_fromdense(y, n_dense=1), x * y)
    _close(sparse.bcoo_multiply_sparse(a, sparse.bcoo_fromdense(y[:1])), x * y[:1])
    _close(a @ b.T, x @ y.T)
    places = jnp.array([[0, 1], [2, 2], [3, 3]])
    got = sparse.bcoo_dot_general_sampled(
        x, y.T, places, dimension_numbers=(((1,), (0,)), ((), ()))
    )
    np.testing.assert_allclose(got, [(x @ y.T)[0, 1], (x @ y.T)[2, 2], 0], rtol=1e-5)


def test_convolution() -> None:
    x, y = _dense((1, 1, 9), part=0.7), _dense((1, 1, 4), part=0.7)
    for padding in ("SAME", "VALID", [(3, 3)], [(0, 2)]):
        want = lax.conv_general_dilated(x, y, (1,), padding)
        for a, b in (
            (sparse.bcoo_fromdense(x), sparse.bcoo_fromdense(y)),
            (sparse.bcoo_fromdense(x, n_batch=2), y),
        ):
            _close(
                sparse.bcoo_conv_general_dilated(a, b, window_strides=(1,), padding=padding), want
            )
    with pytest.raises(NotImplementedError, match="window_strides"):
        sparse.bcoo_conv_general_dilated(
            sparse.bcoo_fromdense(x), y, window_strides=(2,), padding="SAME"
        )


def test_indexing_and_gathering() -> None:
    x = _dense((4, 5))
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
            _close(mat[item], x[item])
    mat = sparse.bcoo_fromdense(x)
    np.testing.assert_allclose(np.stack([row.todense() for row in mat]), x)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(0,), collapsed_slice_dims=(1,), start_index_map=(1,)
    )
    got = sparse.bcoo_gather(mat, jnp.array([[[3], [0], [3]]]), numbers, (4, 1))
    _close(got, x[:, [[3, 0, 3]]])


def test_matrices_of_scipy() -> None:
    x = scipy.sparse.random(5, 6, 0.3, random_state=0, dtype=np.float32)
    mat = sparse.BCOO.from_scipy_sparse(x)
    _close(mat, x.toarray())
    _close(mat @ np.ones(6, np.float32), x @ np.ones(6))


def test_under_transformations() -> None:
    x, v = _dense((4, 5)), _dense((5,), part=1)
    mat = sparse.bcoo_fromdense(x)
    _close(calque.jit(lambda m, v: m @ v)(mat, v), x @ v)
    _close(calque.jit(lambda m: (m + m).T)(mat), 2 * x.T)
    _close(calque.jit(lambda x: sparse.BCOO.fromdense(x, nse=20) @ v)(x), x @ v)
    slope = calque.grad(
        lambda d, v: (sparse.BCOO((d, mat.indices), shape=(4, 5)) @ v).sum(), (0, 1)
    )(mat.data, v)
    rows, columns = np.nonzero(x)
    np.testing.assert_allclose(slope[0], v[columns], rtol=1e-5)
    np.testing.assert_allclose(slope[1], x.sum(0), rtol=1e-4, atol=1e-4)
    both = sparse.bcoo_fromdense(np.stack([x, 2 * x]), n_batch=1)
    _close(calque.vmap(lambda m, v: m @ v, (0, None))(both, v), np.stack([x @ v, 2 * x @ v]))
    turned = calque.vmap(lambda m: m.T)(both)
    _close(turned, np.stack([x.T, 2 * x.T]))
    assert turned.shape == (2, 5, 4) and turned.n_batch == 1
    dense = calque.grad(lambda x: (sparse.BCOO.fromdense(x, nse=9) @ v).sum())(x)
    np.testing.assert_allclose(dense, np.where(x != 0, v, 0), rtol=1e-5)
    again = calque.jit(lambda m: m.sum_duplicates(nse=20))(_doubled(mat))
    _close(again, x)
    with pytest.raises(calque.errors.ConcretizationTypeError, match="nse"):
        calque.jit(sparse.BCOO.fromdense)(x)


@pytest.mark.peer
def test_as_in_jax() -> None:
    peer = jax()
    module = pytest.importorskip("jax.experimental.sparse")
    x = _dense(SHAPE)
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


def test_bad_arguments() -> None:
    mat = sparse.bcoo_fromdense(_dense((3, 4)))
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: sparse.BCOO((jnp.ones(3), jnp.zeros((2, 1), int)), shape=(4,)),
            ValueError,
            "nse=2",
        ),
        (lambda: sparse.BCOO((jnp.ones(2), jnp.zeros((2, 1))), shape=(4,)), TypeError, "integers"),
        (
            lambda: sparse.BCOO((jnp.ones(2), jnp.zeros((2, 2), int)), shape=(4,)),
            ValueError,
            "more dimensions",
        ),
        (lambda: sparse.bcoo_todense(jnp.ones(2)), TypeError, "BCOO"),
        (lambda: sparse.bcoo_fromdense(jnp.ones(2), n_batch=2), ValueError, "n_batch=2"),
        (lambda: sparse.bcoo_transpose(mat, permutation=(0, 0)), TypeError, "permutation"),
        (lambda: mat.update_layout(n_batch=1), sparse.SparseEfficiencyError, "n_batch"),
        (lambda: mat.update_layout(n_dense=3), ValueError, "mat.ndim"),
        (lambda: mat.update_layout(n_dense=1, on_inefficient="no"), ValueError, "on_inefficient"),
        (lambda: mat + 1.0, NotImplementedError, "dense"),
        (lambda: 1.0 / mat, NotImplementedError, "Division"),
        (lambda: mat == mat, NotImplementedError, "eq"),
        (lambda: mat @ np.ones(7), TypeError, "matmul"),
        (
            lambda: sparse.bcoo_slice(mat, start_indices=(0, 0), limit_indices=(9, 1)),
            ValueError,
            "limit|invalid",
        ),
        (lambda: sparse.bcoo_concatenate([mat, mat.T], dimension=0), TypeError, "shapes"),
        (lambda: sparse.bcoo_squeeze(mat, dimensions=(0,)), ValueError, "size 1"),
        (lambda: sparse.bcoo_reshape(mat, new_sizes=(5,)), TypeError, "total size"),
        (lambda: sparse.bcoo_extract(mat, jnp.ones(3)), ValueError, "shape"),
        (lambda: sparse.eye(3, sparse_format="dia"), ValueError, "dia"),
        (lambda: sparse.random_bcoo(calque.random.key(0), (3,), nse=5), ValueError, "nse=5"),
        (lambda: np.asarray(mat), TypeError, "todense"),
        (lambda: hash(mat), TypeError, "hash"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()
    with pytest.warns(sparse.SparseEfficiencyWarning):
        mat.update_layout(n_dense=1, on_inefficient="warn")
