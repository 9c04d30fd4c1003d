"""Indexes that hold a boolean of rank 0, as in NumPy."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.numpy.indexing.scalar_masks import is_scalar_mask, opened

X = np.arange(12.0, dtype=np.float32).reshape(4, 3)
ROWS = np.array([True, False, True, False])


@pytest.mark.parametrize(
    "index",
    [
        True,
        False,
        np.bool_(True),
        (True, 1),
        (1, True),
        (False, slice(1, 3)),
        (..., True),
        (True, ..., 0),
        (slice(None), False, 1),
        (None, True, 2),
        (True, False),
        (True, True, slice(2)),
        (slice(None), True),
        (1, False, ...),
    ],
)
def test_as_numpy(index):
    want = X[index]
    np.testing.assert_array_equal(jnp.asarray(X)[index], want)
    np.testing.assert_array_equal(calque.jit(lambda x: x[index])(X), want)


@pytest.mark.parametrize("index", [True, False, (slice(1, 3), True)])
def test_updates_as_numpy(index):
    want = X.copy()
    want[index] = -1
    np.testing.assert_array_equal(jnp.asarray(X).at[index].set(-1), want)


def test_what_counts():
    for p in (True, np.bool_(False), np.array(True), jnp.array(False)):
        assert is_scalar_mask(p)
    for p in (0, 1, None, ..., slice(None), ROWS, np.array(1), [True]):
        assert not is_scalar_mask(p)
    seen = []
    calque.jit(lambda m: seen.append(is_scalar_mask(m)) or m)(True)
    assert seen == [False]


def test_other_indexes_stay_as_they_are():
    for index in (1, (slice(None), 2), (None, ...)):
        same, kept = opened(X, index)
        assert same is X and kept is index


def test_a_traced_boolean_has_no_known_size():
    with pytest.raises((IndexError, TypeError)):
        calque.vmap(lambda m: jnp.asarray(X)[m])(ROWS)
