"""Products of values in small floats with scales."""

import numpy as np
import pytest

import calque
from calque import nn

R = np.random.RandomState(3)


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


def test_other_implementations_are_refused():
    x, numbers = np.ones((1, 1), np.float32), (((1,), (0,)), ((), ()))
    assert nn.scaled_dot_general(x, x, numbers, implementation="cudnn") == 1.0
    with pytest.raises(ValueError, match="Unsupported implementation option: triton"):
        nn.scaled_dot_general(x, x, numbers, implementation="triton")
