"""Attention."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import nn
from tests.peers import compare, jax

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


def test_attention_of_float64_is_float64_throughout() -> None:
    r = np.random.default_rng(0)
    with calque.enable_x64(True):
        q, k, v = (r.normal(size=(2, 5, 2, 3)) for _ in range(3))
        logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(3.0)
        logits = np.where(np.tri(5, dtype=bool), logits, -np.inf)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        total = weights.sum(-1, keepdims=True)
        want = np.einsum("bnts,bsnh->btnh", weights / total, v)
        got, rest = nn.dot_product_attention(q, k, v, is_causal=True, return_residual=True)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
        sums = np.log(total[..., 0]) + logits.max(-1)
        np.testing.assert_allclose(rest, sums.transpose(0, 2, 1), rtol=1e-12)
