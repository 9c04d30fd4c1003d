"""Elements drawn and reordered."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random

KEY = random.key(0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("independent", [False, True])
def test_permutations_keep_every_element(axis, independent):
    x = jnp.arange(12).reshape(3, 4)
    got = np.asarray(random.permutation(KEY, x, axis, independent=independent))
    np.testing.assert_array_equal(np.sort(got, axis), np.sort(np.asarray(x), axis))
    if not independent:  # whole slices move together
        want = {tuple(r) for r in np.moveaxis(np.asarray(x), axis, 0).tolist()}
        assert {tuple(r) for r in np.moveaxis(got, axis, 0).tolist()} == want


def test_of_a_number():
    assert sorted(random.permutation(KEY, 6).tolist()) == list(range(6))
    seen = {tuple(random.permutation(random.key(k), 3).tolist()) for k in range(60)}
    assert len(seen) == 6


def test_choices_without_replacement_differ():
    x = random.choice(KEY, 10, (10,), replace=False)
    assert sorted(x.tolist()) == list(range(10))
    with pytest.raises(ValueError):
        random.choice(KEY, 3, (4,), replace=False)


@pytest.mark.parametrize("replace", [True, False])
def test_probabilities(replace):
    p = jnp.array([0.0, 0.75, 0.25, 0.0])
    keys = random.split(KEY, 2000)
    x = np.asarray(calque.vmap(lambda k: random.choice(k, 4, (1,), replace, p))(keys)).ravel()
    assert set(x.tolist()) == {1, 2} and abs((x == 1).mean() - 0.75) < 0.05


@pytest.mark.parametrize("wide", [False, True])
def test_places_are_integers_of_the_default_width(wide):
    with calque.enable_x64(wide):
        p = jnp.full(5, 0.2, "float32")
        for replace in (True, False):
            for weights in (None, p):
                x = random.choice(KEY, 5, (3,), replace, weights)
                assert x.dtype == np.dtype("int64" if wide else "int32")


@pytest.mark.parametrize("replace", [True, False])
def test_nothing_is_chosen_of_nothing(replace):
    """The other axes stay, and weights of nothing are none."""
    x = jnp.zeros((2, 0))
    for p in (None, jnp.zeros(0)):
        got = random.choice(KEY, x, (0, 3), replace, p, axis=1)
        assert got.shape == np.random.default_rng(0).choice(x, (0, 3), axis=1).shape == (2, 0, 3)
        assert random.choice(KEY, 0, (0,), replace, p).dtype == jnp.int32
    with pytest.raises(ValueError, match="greater than 0"):
        random.choice(KEY, x, (1,), replace, jnp.zeros(0), axis=1)


def test_rows_are_chosen_along_an_axis():
    x = jnp.arange(12).reshape(3, 4)
    assert random.choice(KEY, x, (2, 5), axis=1).shape == (3, 2, 5)
    assert random.choice(KEY, x, (7,)).shape == (7, 4)
    for call in (
        lambda: random.choice(KEY, x, p=jnp.ones(2)),
        lambda: random.choice(KEY, 0),
        lambda: random.choice(KEY, jnp.zeros((0,))),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
