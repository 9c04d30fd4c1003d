"""Softmax and its kin, statistics over axes."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import nn
from tests.peers import compare, jax

ROWS = np.random.RandomState(0).randn(4, 6).astype(np.float32)


MASK = np.random.RandomState(1).rand(4, 6) > 0.4


EXTREME = np.array(
    [[np.inf, 1], [-np.inf, -np.inf], [np.nan, 0], [1e30, -1e30], [np.inf, np.inf]], np.float32
)


AXES: list[dict[str, Any]] = [
    {},
    {"axis": 0},
    {"axis": (0, 1)},
    {"where": MASK},
    {"axis": 0, "where": MASK},
]


@pytest.mark.peer
@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"]
)
def test_functions_of_axes(name: str) -> None:
    peer, ours = getattr(jax().nn, name), getattr(nn, name)
    for kw in AXES:
        compare(ours(ROWS, **kw), peer(ROWS, **kw))
    compare(calque.jit(ours)(ROWS), peer(ROWS))
    compare(ours(EXTREME, axis=-1), peer(EXTREME, axis=-1))
    compare(
        ours(np.zeros((0, 3), np.float32), axis=-1), peer(np.zeros((0, 3), np.float32), axis=-1)
    )

    def total(f, sum_):
        return lambda x: sum_(f(x, axis=0) * ROWS[0])

    compare(
        calque.grad(total(ours, jnp.sum))(ROWS),
        jax().grad(total(peer, jax().numpy.sum))(ROWS),
        1e-4,
    )


@pytest.mark.peer
def test_logsumexp_with_factors() -> None:
    b = np.array([1, -2, 0, 3, 1, 1], np.float32)
    for kw in (
        {"b": b},
        {"b": b, "return_sign": True, "keepdims": True},
        {"b": -np.ones(6, np.float32)},
        {"where": np.zeros_like(MASK)},
    ):
        compare(nn.logsumexp(ROWS, axis=1, **kw), jax().nn.logsumexp(ROWS, axis=1, **kw))
