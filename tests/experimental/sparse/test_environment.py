"""Sparse arrays as references to buffers."""

import operator

import numpy as np
import pytest

import calque.numpy as jnp
from calque.experimental import sparse
from calque.experimental.sparse.environment import (
    SparsifyEnv,
    SparsifyValue,
    arrays_to_spvalues,
    sparsify_raw,
    spvalues_to_arrays,
    spvalues_to_avals,
)


def test_arrays_go_to_buffers_and_come_back() -> None:
    dense = jnp.arange(4.0).reshape(2, 2)
    given = {"d": dense, "o": sparse.BCOO.fromdense(dense), "r": sparse.BCSR.fromdense(dense)}
    env = SparsifyEnv()
    values = arrays_to_spvalues(env, given)
    assert values["d"] == SparsifyValue((2, 2), 0) and values["d"].is_dense()
    assert values["o"].is_bcoo() and values["r"].is_bcsr() and values["r"].ndim == 2
    back = spvalues_to_arrays(env, values)
    for name, kind in (("o", sparse.BCOO), ("r", sparse.BCSR)):
        assert isinstance(back[name], kind) and back[name].unique_indices
        np.testing.assert_array_equal(back[name].todense(), dense)
    assert spvalues_to_avals(env, values["o"]).shape == (2, 2)


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul])
def test_arrays_that_share_their_indices(op) -> None:
    x = sparse.BCOO.fromdense(jnp.arange(5))
    env = SparsifyEnv([x.indices, x.data, 2 * x.data])
    pair = [env.sparse(x.shape, data_ref=k, indices_ref=0, unique_indices=True) for k in (1, 2)]
    (out,), several = sparsify_raw(op)(env, *pair)
    assert out.indices_ref == 0 and not several
    found = spvalues_to_arrays(env, out)
    assert found.nse == x.nse
    np.testing.assert_array_equal(found.todense(), op(np.arange(5), 2 * np.arange(5)))


def test_places_that_are_not_there() -> None:
    env = SparsifyEnv([jnp.ones(2)])
    with pytest.raises(ValueError, match="give data or data_ref, and not both"):
        env.sparse((2,), indices_ref=0)
    with pytest.raises(IndexError, match=r"1 buffers, got indices_ref=3"):
        env.sparse((2,), data_ref=0, indices_ref=3)
    with pytest.raises(RuntimeError, match="the array has no indptr"):
        env.indptr(env.dense(1.0))
