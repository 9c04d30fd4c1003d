"""Comparisons whose tolerance depends on the dtype."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.compat.private.testing.public_test_util import check_close, default_tolerance


def test_values_may_differ_by_the_rounding_of_their_dtype() -> None:
    x = {"a": jnp.ones(4), "b": (jnp.arange(3), np.float64(2.0))}
    near = {"a": jnp.ones(4) + 2e-6, "b": (jnp.arange(3), np.float64(2.0))}
    check_close(x, near)
    with pytest.raises(AssertionError):
        check_close(np.ones(4), np.ones(4) + 1e-6)  # of float64
    with pytest.raises(AssertionError, match="off by one"):
        check_close(jnp.arange(3), jnp.arange(3) + 1, err_msg="off by one")
    with pytest.raises(AssertionError, match="shapes"):
        check_close(jnp.ones(3), jnp.ones((3, 1)))


def test_tolerances_that_are_given() -> None:
    x, far = jnp.ones(2), jnp.ones(2) * 1.1
    check_close(x, far, rtol=0.1)
    check_close(x, far, atol={np.float32: 0.1})
    with pytest.raises(AssertionError):
        check_close(x, far, atol={np.float16: 0.1})
    assert default_tolerance(jnp.float8_e5m2) == 0.1 and default_tolerance("int32") == 0.0
