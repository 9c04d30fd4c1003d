"""Folds of segments, against loops and JAX."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from tests import peers

DATA = np.random.RandomState(0).randn(12, 3).astype(np.float32)
IDS = np.array([0, 2, 2, 5, -1, 0, 1, 9, 5, 2, 0, 1])
FOLDS = {
    "sum": (np.add, 0),
    "prod": (np.multiply, 1),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}


def folded(name, data, ids, count):
    f, start = FOLDS[name]
    out = np.full((count, *data.shape[1:]), start, np.float32)
    for i, x in zip(ids, data):
        if 0 <= i < count:
            out[i] = f(out[i], x)
    return out


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("bucket", [None, 5])
def test_against_a_loop(name, bucket):
    def f(d, i):
        return getattr(jax.ops, f"segment_{name}")(d, i, 6, bucket_size=bucket)

    for g in (f, jax.jit(f)):
        np.testing.assert_allclose(g(DATA, IDS), folded(name, DATA, IDS, 6), rtol=1e-5)
    np.testing.assert_allclose(
        f(DATA[:, 0], IDS.astype(np.uint8)), folded(name, DATA[:, 0], IDS % 256, 6), rtol=1e-5
    )


def test_as_many_as_the_largest_number_says():
    want = folded("sum", DATA, IDS, 10)
    for g in (jax.ops.segment_sum, jax.jit(jax.ops.segment_sum)):
        np.testing.assert_allclose(g(DATA, IDS), want, rtol=1e-5)
    assert jax.jit(jax.ops.segment_sum)(DATA[:0], IDS[:0]).shape == (0, 3)


def test_derivatives_and_kinds():
    slope = jax.grad(lambda d: (jax.ops.segment_sum(d, IDS, 6) ** 2).sum())(DATA)
    sums = folded("sum", DATA, IDS, 6)
    inside = (IDS >= 0) & (IDS < 6)
    np.testing.assert_allclose(
        slope, np.where(inside[:, None], 2 * sums[np.clip(IDS, 0, 5)], 0), rtol=1e-5
    )
    assert jax.ops.segment_max(np.arange(3), np.array([0, 0, 2]), 4).tolist() == [
        1,
        -(2**31),
        2,
        -(2**31),
    ]
    assert jax.ops.segment_min(np.array([True, False]), np.array([0, 0]), 2).tolist() == [
        False,
        True,
    ]
    assert jax.ops.segment_sum(np.ones(2), np.array([-1, 7]), 2, mode="clip").tolist() == [1, 1]
    rows = jax.vmap(lambda d, i: jax.ops.segment_sum(d, i, 3))(
        jnp.ones((2, 4)), jnp.array([[0, 1, 1, 2], [2, 2, 2, 2]])
    )
    assert rows.tolist() == [[1, 2, 1], [0, 0, 4]]


def test_bad_arguments():
    with pytest.raises(TypeError, match="integers"):
        jax.ops.segment_sum(DATA, IDS * 1.0)
    with pytest.raises(ValueError, match="begin with the shape"):
        jax.ops.segment_sum(DATA, IDS[:3])
    with pytest.raises(ValueError, match="non-negative"):
        jax.ops.segment_sum(DATA, IDS, -1)
    with pytest.raises(ValueError, match="bucket_size"):
        jax.ops.segment_sum(DATA, IDS, 3, bucket_size=0)


@pytest.mark.parametrize("name", FOLDS)
def test_against_jax(name):
    peer = getattr(peers.jax().ops, f"segment_{name}")
    got, want = getattr(jax.ops, f"segment_{name}")(DATA, IDS, 7), peer(DATA, IDS, 7)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert got.dtype == want.dtype


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("data", [2.0, np.float32(2), np.full(1, 2.0), np.full((1, 3), 2.0)])
def test_one_entry_for_all_numbers(name, data):
    each = np.broadcast_to(np.asarray(data, np.float32), (IDS.size, *np.shape(data)[1:]))
    fold = getattr(jax.ops, f"segment_{name}")
    for bucket in (None, 5):
        got = fold(data, IDS, 6, bucket_size=bucket)
        np.testing.assert_allclose(got, folded(name, each, IDS, 6), rtol=1e-6)


def test_data_that_fits_no_number():
    for data in (np.ones(5), np.ones((3, 12))):
        with pytest.raises(ValueError, match="does not begin with the shape"):
            jax.ops.segment_sum(data, IDS)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32"])
def test_numbers_of_narrow_dtypes_meet_many_segments(dtype):
    ids = np.array([3, 0, 2, 3], dtype)
    np.testing.assert_array_equal(jax.ops.segment_sum(np.ones(4), ids), [1, 0, 1, 2])
    for bucket in (None, 3):
        got = jax.ops.segment_min(np.ones(4), ids, 300, bucket_size=bucket)
        np.testing.assert_array_equal(got[:4], [1, np.inf, 1, 1])
        assert np.isinf(got[4:]).all()
    if dtype.startswith("i"):
        outside = np.array([3, -1, 2, 3], dtype)
        assert jax.ops.segment_sum(np.ones(4), outside, 300).sum() == 3
        assert jax.ops.segment_sum(np.ones(4), outside, 70_000).sum() == 3


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16"])
def test_buckets_keep_the_dtype(name, dtype):
    fold = getattr(jax.ops, f"segment_{name}")
    assert fold(np.ones(5, dtype), np.arange(5), 5, bucket_size=2).dtype == dtype
