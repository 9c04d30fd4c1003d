"""Running folds with what is fused around them."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp


@pytest.mark.parametrize("n", [1, 5, 16, 17, 40, 1000])
def test_what_reads_a_running_sum_in_the_same_loop(n):
    x = (np.arange(n) % 3).astype(np.int32)
    want = np.cumsum(x)
    np.testing.assert_array_equal(calque.jit(lambda x: jnp.cumsum(x) - 1)(x), want - 1)
    np.testing.assert_array_equal(calque.jit(lambda x: jnp.cumsum(x * 2) * x + x)(x), 2 * want * x + x)
    both = calque.jit(lambda x: (jnp.cumsum(x + 1), jnp.cumsum(x + 1) + x))(x)
    np.testing.assert_array_equal(both[0], np.cumsum(x + 1))
    np.testing.assert_array_equal(both[1], np.cumsum(x + 1) + x)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_along_axes(name, axis):
    x = np.random.default_rng(0).uniform(0.5, 1.5, (7, 33)).astype(np.float32)
    got = calque.jit(lambda x: getattr(jnp, name)(jnp.sin(x), axis) * 2 + x)(x)
    np.testing.assert_allclose(got, getattr(np, name)(np.sin(x), axis) * 2 + x, rtol=1e-5)


def test_a_gather_by_a_running_count():
    mask = np.array([0, 1, 1, 0, 1])
    data = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    got = calque.jit(lambda m, d: d[jnp.cumsum(m) - 1])(mask, data)
    np.testing.assert_array_equal(got, data[np.cumsum(mask) - 1])
