"""Whole numbers: means, variances, and edges of the parameters."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random

KEY, N = random.key(0), 20_000


@pytest.mark.parametrize(
    "draw, mean, variance",
    [
        (lambda: random.poisson(KEY, 3.0, (N,)), 3, 3),
        (lambda: random.poisson(KEY, 40.0, (N,)), 40, 40),
        (lambda: random.binomial(KEY, 10, 0.3, (N,)), 3, 2.1),
        (lambda: random.binomial(KEY, 200, 0.6, (N,)), 120, 48),
        (lambda: random.geometric(KEY, 0.25, (N,)), 4, 12),
        (lambda: random.bernoulli(KEY, 0.3, (N,)), 0.3, 0.21),
        (lambda: random.rademacher(KEY, (N,)), 0, 1),
    ],
)
def test_moments(draw, mean, variance):
    x = np.asarray(draw()).astype(np.float64)
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / N)
    assert abs(x.var() - variance) < 0.06 * variance + 0.01


def test_edges():
    assert not np.asarray(random.poisson(KEY, 0.0, (10,))).any()
    assert np.asarray(random.binomial(KEY, 5, 1.0, (10,))).tolist() == [5] * 10
    assert not np.asarray(random.binomial(KEY, 5, 0.0, (10,))).any()
    assert np.asarray(random.bernoulli(KEY, jnp.array([0.0, 1.0]))).tolist() == [False, True]


def test_categories():
    logits = jnp.log(jnp.array([[0.1, 0.9], [0.5, 0.5]]))
    x = np.asarray(random.categorical(KEY, logits, shape=(5000, 2)))
    assert abs(x[:, 0].mean() - 0.9) < 0.03 and abs(x[:, 1].mean() - 0.5) < 0.04
    assert random.categorical(KEY, logits, axis=0).shape == (2,)
    m = np.asarray(random.multinomial(KEY, 10, jnp.array([0.2, 0.3, 0.5]), shape=(500, 3)))
    assert (m.sum(-1) == 10).all() and abs(m.mean(0) - [2, 3, 5]).max() < 0.4


@pytest.mark.parametrize(
    ("dtype", "few", "many"),
    [
        ("float16", [3, 2, 0, 1, 1, 2], [93, 82, 76, 92, 79, 98]),
        ("float32", [2, 1, 2, 0, 1, 2], [78, 88, 100, 87, 93, 77]),
        ("bfloat16", [2, 3, 2, 1, 2, 2], None),
    ],
)
def test_numbers_are_drawn_in_the_dtype_of_the_probability(
    dtype: str, few: list[int], many: list[int] | None
) -> None:
    """JAX's numbers, whatever the dtype of the result, and with 64-bit types as without."""
    p = jnp.array(0.3, dtype)
    for x64 in (False, True):
        with calque.enable_x64(x64):
            for n, want in ((5, few), (300, many)):
                count = jnp.array(n, dtype)
                got = [random.binomial(random.key(i), count, p) for i in range(6)]
                assert want is None or [int(x) for x in got] == want
                assert got[0].dtype == ("float64" if x64 else "float32")
    pair = random.multinomial(random.key(0), jnp.array(5, dtype), jnp.array([0.3, 0.1], dtype))
    assert pair.dtype == "float32" and pair.sum() == 5
