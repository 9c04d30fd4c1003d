"""What all sparse formats have in common."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental import sparse
from calque.experimental.sparse.base import (
    JAXSparse,
    chosen,
    columns,
    is_sparse,
    per_batch,
    scatter_added,
)

RNG = np.random.default_rng(0)


class Diagonal(JAXSparse):
    """A format of a user's own."""

    def __init__(self, data, shape):
        self.data, self.shape = data, shape


def test_formats_of_ones_own():
    d = Diagonal(jnp.ones(3), (3, 3))
    assert is_sparse(d) and not is_sparse(jnp.ones(3)) and isinstance(d, sparse.JAXSparse)
    assert (d.dtype, d.size, d.ndim, len(d)) == (np.float32, 9, 2, 3)
    for f, name in (
        (lambda: d.nse, "nse"),
        (d.todense, "todense"),
        (lambda: d.T, "transpose"),
        (d.block_until_ready, "tree_flatten"),
    ):
        with pytest.raises(NotImplementedError, match=f"class Diagonal of sparse .* no {name}"):
            f()
    with pytest.raises(TypeError, match=r"use .todense"):
        np.asarray(d)
    with pytest.raises(TypeError, match="unhashable"):
        hash(d)


def test_printed_forms():
    m = sparse.BCOO.fromdense(np.eye(3, dtype=np.float32))
    assert repr(m) == "BCOO(float32[3, 3], nse=3)" and m.block_until_ready() is m
    seen = []
    calque.jit(lambda m: seen.append(repr(m)) or m.data)(m)
    assert seen[0].endswith("[BCOO(float32[3, 3], nse=3)]") and "Tracer" in seen[0]
    assert repr(calque.tree.map(lambda _: None, m)) == "BCOO(<invalid>)"


@pytest.mark.parametrize("n_batch", [0, 1, 2])
def test_functions_of_each_batch(n_batch):
    lead = (2, 3)[:n_batch]
    x, y = RNG.normal(size=(*lead, 4)), RNG.normal(size=(*(1 for _ in lead), 4))
    calls = []

    def f(a, b):
        calls.append(a.shape)
        return (a * b).sum()

    got = per_batch(f, n_batch, jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(got, (x * y).sum(-1), rtol=1e-5)
    assert calls == [(4,)]


def test_indices_by_dimension():
    indices = jnp.array([[0, 1, 2], [3, 4, 5]])
    assert [c.tolist() for c in columns(indices)] == [[0, 3], [1, 4], [2, 5]]
    assert chosen(indices, [2, 0]).tolist() == [[2, 0], [5, 3]]
    assert chosen(indices, []).shape == (2, 0) and chosen(indices, []).dtype == indices.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_values_of_one_place_are_added(dtype):
    at = (jnp.array([0, 2, 0, 9]),)
    got = scatter_added((3,), at, jnp.ones(4, dtype))
    assert got.dtype == dtype and got.astype(int).tolist() == [2 if dtype is not bool else 1, 0, 1]
