"""Numbers of the normal distribution between ends that are far out, against SciPy."""

import numpy as np
import pytest
from scipy import stats

import calque
import calque.numpy as jnp
from tests.ops.helpers import x64

ENDS = [(7.6, np.inf), (9.0, 9.5), (10.0, np.inf), (40.0, 41.0), (1e6, np.inf), (7.6, 7.6001)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ends", ENDS)
def test_tails(dtype: str, ends: tuple[float, float]) -> None:
    key, n = calque.random.key(0), 4000
    with x64():
        right = np.asarray(calque.random.truncated_normal(key, *ends, (n,), dtype))
        turned = (-ends[1], -ends[0])
        left = np.asarray(calque.random.truncated_normal(key, *turned, (n,), dtype))
    np.testing.assert_array_equal(left, -right)
    assert np.all((right > ends[0]) & (right < ends[1]))
    if ends[0] < 1e3 and (dtype == "float64" or ends[1] - ends[0] > 0.01):
        law = stats.truncnorm(*ends)
        assert stats.kstest(right.astype(float), law.cdf).pvalue > 1e-3


def test_ends_that_are_traced_and_differ() -> None:
    """Those that are near keep the bits that they have alone."""
    key = calque.random.key(1)
    lower = np.array([-1.0, 5.0, 9.0, -np.inf], np.float32)
    upper = np.array([2.0, np.inf, 10.0, -20.0], np.float32)
    draw = calque.jit(lambda a, b: calque.random.truncated_normal(key, a, b, (500, 4)))
    got = np.asarray(draw(lower, upper))
    alone = np.asarray(draw(np.full(4, -1.0, np.float32), np.full(4, 2.0, np.float32)))
    np.testing.assert_array_equal(got[:, 0], alone[:, 0])
    for i, (a, b) in enumerate(zip(lower, upper)):
        assert np.all((got[:, i] > a) & (got[:, i] < b))
        assert stats.kstest(got[:, i].astype(float), stats.truncnorm(a, b).cdf).pvalue > 1e-3


def test_slopes_in_the_ends() -> None:
    """A number moves with the end that it is near to."""
    key = calque.random.key(2)

    def total(a: float) -> calque.Array:
        return jnp.mean(calque.random.truncated_normal(key, a, np.inf, (2000,), np.float64))

    with x64():
        slope = float(calque.grad(total)(9.0))
        change = (float(total(9.0 + 1e-4)) - float(total(9.0 - 1e-4))) / 2e-4
    assert slope == pytest.approx(change, rel=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(dtype: str) -> None:
    x = calque.random.truncated_normal(calque.random.key(3), 5.0, np.inf, (2000,), dtype)
    assert 5.1 < float(x.astype(np.float32).mean()) < 5.3 and float(x.max()) < 8
