"""mode, rankdata and sem against SciPy and JAX."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import calque
import calque.numpy as jnp
from calque.scipy import stats
from tests.peers import compare, jax

RNG = np.random.default_rng(0)
DATA: list[np.ndarray] = [
    RNG.integers(0, 5, (4, 6)),
    RNG.integers(0, 3, (2, 3, 4)).astype(np.float32),
    np.array([np.nan, 1, np.nan, 2], np.float32),
    np.array(3.0, np.float32),
    np.zeros((0, 3), np.float32),
    np.zeros((3, 0), np.float32),
]
METHODS = ("average", "min", "max", "dense", "ordinal")


def _axes(x: np.ndarray) -> list[int | None]:
    return [None, 0, -1] if x.ndim else [None]


@pytest.mark.peer
@pytest.mark.parametrize("x", DATA, ids=lambda x: f"{x.shape}")
def test_as_in_jax(x: np.ndarray) -> None:
    peer = jax().scipy.stats
    for axis in _axes(x):
        for keepdims in (False, True):
            compare(
                tuple(stats.mode(x, axis, keepdims=keepdims)),
                tuple(peer.mode(x, axis, keepdims=keepdims)),
            )
            compare(stats.sem(x, axis, keepdims=keepdims), peer.sem(x, axis, keepdims=keepdims))
        for method in METHODS:
            if x.size:
                compare(stats.rankdata(x, method, axis=axis), peer.rankdata(x, method, axis=axis))
        compare(
            stats.sem(x, axis, ddof=0, nan_policy="omit"),
            peer.sem(x, axis, ddof=0, nan_policy="omit"),
        )


@pytest.mark.parametrize("method", METHODS)
def test_ranks_as_in_scipy(method: str) -> None:
    x = DATA[0]
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(
            stats.rankdata(x, method, axis=axis), scipy.stats.rankdata(x, method, axis=axis)
        )


def test_mode_as_in_scipy() -> None:
    for axis in (None, 0, 1):
        got, want = stats.mode(DATA[0], axis), scipy.stats.mode(DATA[0], axis)
        np.testing.assert_array_equal(got.mode, want.mode)
        np.testing.assert_array_equal(got.count, want.count)


def test_under_transformations() -> None:
    x = DATA[1]
    for f in (
        lambda v: stats.rankdata(v),
        lambda v: stats.mode(v, None)[0],
        lambda v: stats.sem(v, None),
    ):
        want = np.stack([np.asarray(f(row)) for row in x])
        np.testing.assert_allclose(calque.jit(calque.vmap(f))(x), want, rtol=1e-6)
    slope = calque.grad(lambda v: stats.sem(v))(jnp.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(
        slope, np.array([-4, -1, 5]) / 3 / 2 / np.sqrt(7 / 3) / np.sqrt(3), rtol=1e-5
    )


def test_bad_arguments() -> None:
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: stats.rankdata(DATA[0], "middle"), ValueError, "middle"),
        (lambda: stats.mode(DATA[0], nan_policy="omit"), NotImplementedError, "nan_policy"),
        (lambda: stats.mode(DATA[0], nan_policy="keep"), ValueError, "nan_policy"),
        (lambda: stats.rankdata(DATA[0], nan_policy="raise"), NotImplementedError, "nan_policy"),
        (lambda: stats.sem(DATA[0], nan_policy="raise"), ValueError, "nan_policy"),
        (lambda: stats.mode(DATA[0], 2), ValueError, "axis"),
        (lambda: stats.mode([1, 2]), TypeError, "mode"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
