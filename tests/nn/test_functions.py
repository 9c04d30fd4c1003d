"""Activations, softmax and its relatives, attention: values, dtypes and derivatives as in JAX."""

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


@pytest.mark.peer
@pytest.mark.parametrize("kw", [{}, {"axis": 0}, {"dtype": "int32"}, {"axis": 1}])
def test_one_hot(kw: dict[str, Any]) -> None:
    x = np.array([[0, 2], [-1, 3]], np.int32)
    compare(nn.one_hot(x, 3, **kw), jax().nn.one_hot(x, 3, **kw))


def test_glu() -> None:
    assert nn.glu(jnp.array([3.0, 0.0])).tolist() == [1.5]
    with pytest.raises(AssertionError, match="divisible by 2"):
        nn.glu(jnp.ones(3))


R = np.random.RandomState(3)
QUERY, KEY, VALUE = (R.randn(2, *s).astype(np.float32) for s in ((4, 4, 3), (5, 2, 3), (5, 2, 3)))
ATTENTION: list[dict[str, Any]] = [
    {},
    {"is_causal": True, "scale": 0.3},
    {"bias": R.randn(1, 1, 4, 5).astype(np.float32)},
    {"mask": R.rand(2, 4, 1, 5) > 0.5, "is_causal": True},
    {
        "query_seq_lengths": np.array([2, 4], np.int32),
        "key_value_seq_lengths": np.array([5, 1], np.int32),
    },
    {"local_window_size": 1},
    {"local_window_size": (1, 2), "return_residual": True},
]


@pytest.mark.peer
@pytest.mark.parametrize("kw", ATTENTION, ids=lambda kw: "+".join(kw) or "plain")
def test_attention(kw: dict[str, Any]) -> None:
    peer, ours = jax().nn.dot_product_attention, nn.dot_product_attention
    compare(ours(QUERY, KEY, VALUE, **kw), peer(QUERY, KEY, VALUE, **kw), 1e-5)
    if "return_residual" not in kw:
        compare(ours(QUERY[:1], KEY[:1], VALUE[:1])[0], ours(QUERY[0], KEY[0], VALUE[0]), 1e-5)

        def total(f, sum_):
            return lambda *a: sum_(f(*a, **kw) ** 2)

        got = calque.grad(total(ours, jnp.sum), (0, 1, 2))(QUERY, KEY, VALUE)
        compare(got, jax().grad(total(peer, jax().numpy.sum), (0, 1, 2))(QUERY, KEY, VALUE), 1e-4)


def test_attention_refuses_shapes() -> None:
    for q, k, v in (((4, 2, 3), (5, 3, 3), (5, 3, 3)), ((4, 2, 3), (5, 2, 4), (5, 2, 3))):
        with pytest.raises(ValueError, match="dot_product_attention"):
            nn.dot_product_attention(*(np.ones(s, np.float32) for s in (q, k, v)))
    with pytest.raises(ValueError, match="Unsupported implementation"):
        nn.dot_product_attention(QUERY, KEY, VALUE, implementation="fast")


def test_scaled_products() -> None:
    a, b = R.randn(2, 4, 64).astype(np.float32), R.randn(2, 8, 64).astype(np.float32)
    sa, sb = R.rand(2, 4, 2).astype(np.float32), R.rand(2, 8, 4).astype(np.float32)
    want = np.einsum("bmk,bnk->bmn", a * sa.repeat(32, -1), b * sb.repeat(16, -1))
    np.testing.assert_allclose(nn.scaled_matmul(a, b, sa, sb), want, rtol=1e-4, atol=1e-4)
    numbers = (((2,), (2,)), ((0,), (0,)))
    exact = np.einsum("bmk,bnk->bmn", a, b)
    np.testing.assert_allclose(nn.scaled_dot_general(a, b, numbers), exact, rtol=1e-4, atol=1e-4)
    for mode, error in (("mxfp8", 1.5), ("nvfp4", 5.0)):
        config = nn.get_scaled_dot_general_config(mode)
        got = nn.scaled_dot_general(a, b, numbers, configs=[config] * 3)
        assert 0 < np.abs(np.asarray(got) - exact).max() < error
        slope = calque.grad(
            lambda x: nn.scaled_dot_general(x, b, numbers, configs=[config] * 3).sum()
        )(a)
        assert np.abs(np.asarray(slope) - b.sum(1, keepdims=True)).max() < error
    with pytest.raises(ValueError, match="Unsupported mode"):
        nn.get_scaled_dot_general_config("int3")
    with pytest.raises(ValueError, match="scaled_matmul"):
        nn.scaled_matmul(a, b, sa[:, :, :0], sb)
