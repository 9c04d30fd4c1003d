"""Activations, softmax and its relatives, attention: values, dtypes and derivatives as in JAX."""

import math
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import nn
from tests.peers import compare, jax

ACTIVATIONS = [
    "relu",
    "relu6",
    "sigmoid",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "soft_sign",
    "silu",
    "log_sigmoid",
    "leaky_relu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "elu",
    "celu",
    "selu",
    "gelu",
    "squareplus",
    "mish",
    "identity",
    "tanh",
    "log1mexp",
]
POINTS = np.array(
    [-100, -20, -4, -3, -1.5, -1, -0.5, 0, 1e-3, 0.3, 1, 2, 3, 6, 20, 100, np.inf, -np.inf, np.nan],
    np.float32,
)


@pytest.mark.peer
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    peer, ours = getattr(jax().nn, name), getattr(nn, name)
    compare(ours(jnp.array(POINTS)), peer(POINTS), weak=True)
    compare(calque.jit(ours)(POINTS), peer(POINTS))
    compare(calque.vmap(calque.grad(ours))(POINTS), jax().vmap(jax().grad(peer))(POINTS), 2e-5)
    half = POINTS[np.isfinite(POINTS)].astype(np.float16)
    compare(ours(half), peer(half))
    compare(ours(2.0), peer(2.0), weak=True)


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_integers_are_refused_where_jax_does(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(nn, name)(jnp.arange(3))
    with pytest.raises(TypeError, match="list"):
        getattr(nn, name)([1.0])


@pytest.mark.peer
@pytest.mark.parametrize("kw", [{}, {"axis": 0}, {"dtype": "int32"}, {"axis": 1}])
def test_one_hot(kw: dict[str, Any]) -> None:
    x = np.array([[0, 2], [-1, 3]], np.int32)
    compare(nn.one_hot(x, 3, **kw), jax().nn.one_hot(x, 3, **kw))


def test_one_hot_of_what_is_true_or_false_counts_it_as_1_or_0() -> None:
    assert nn.one_hot(jnp.array([True, False]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("classes", [None, 1.5, float("nan"), -1])
def test_one_hot_takes_a_number_of_classes(classes: Any) -> None:
    with pytest.raises(TypeError, match=r"integer|must not be negative, got -1"):
        nn.one_hot(jnp.arange(2), classes)


def test_glu() -> None:
    assert nn.glu(jnp.array([3.0, 0.0])).tolist() == [1.5]
    with pytest.raises(AssertionError, match="divisible by 2"):
        nn.glu(jnp.ones(3))


def test_classes_beyond_the_reach_of_narrow_numbers_do_not_come_round():
    for dtype in ("int8", "uint8"):
        x = nn.one_hot(jnp.array([0, 44, 100], dtype), 300)
        assert x.sum(1).tolist() == [1, 1, 1] and x.argmax(1).tolist() == [0, 44, 100]
    assert nn.one_hot(jnp.array([-1], "int8"), 300).sum() == 0
    with pytest.raises(TypeError, match="num_classes must be an integer, got nan"):
        nn.one_hot(jnp.arange(2), math.nan)
