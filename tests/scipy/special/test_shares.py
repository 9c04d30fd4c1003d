"""Exponentials as shares of their sum."""

import numpy as np
import pytest
import scipy.special

import calque
import calque.numpy as jnp
from calque.scipy import special

X = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32) * 20


def test_shares_are_of_all_axes():
    x = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
    for name in ("softmax", "log_softmax"):
        ours, theirs = getattr(special, name), getattr(scipy.special, name)
        for axis in (None, 0, -1, (0, 1)):
            np.testing.assert_allclose(
                ours(x, axis=axis), theirs(x, axis=axis), rtol=2e-6, atol=1e-6
            )
        np.testing.assert_allclose(ours(x), theirs(x), rtol=2e-6, atol=1e-6)
        assert ours(2.0).shape == () and ours(2.0) == theirs(2.0)
        with pytest.raises(TypeError):
            ours(x, 0)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_as_scipy(name, axis):
    want = getattr(scipy.special, name)(X.astype(float), axis=axis)
    got = getattr(special, name)(X, axis=axis)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_scalars_and_large_numbers():
    assert float(special.softmax(3.0)) == 1 and float(special.log_softmax(3.0)) == 0
    assert special.softmax(jnp.array(3.0)).shape == ()
    x = np.float32([1e30, -1e30, 1e30])
    assert special.softmax(x).tolist() == [0.5, 0, 0.5]


def test_derivatives_sum_to_nothing():
    ct = np.random.default_rng(1).normal(size=X.shape).astype(np.float32)
    g = calque.grad(lambda x: (special.softmax(x / 20) * ct).sum())(X)
    assert abs(float(g.sum())) < 1e-6
    s = scipy.special.softmax(X / 20.0)
    np.testing.assert_allclose(g, s * (ct - (s * ct).sum()) / 20, rtol=1e-3, atol=1e-7)


def test_lists_are_refused():
    with pytest.raises(TypeError, match="softmax"):
        special.softmax([1.0])
