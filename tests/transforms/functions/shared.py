"""What the tests of this room share."""

from collections.abc import Iterator

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental.jet import jet
from calque.transforms.functions.linear_calls import linear_call
from calque.transforms.functions.remat import (
    checkpoint_name,
)
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401


def layer(x, w):
    return jnp.sin(checkpoint_name(jnp.sin(x), "a") @ w) * x


def scaled(r, x):
    return linear_call(lambda r, x: r * x, lambda r, ct: 3 * r * ct, r, x)


@pytest.fixture
def double() -> Iterator[None]:
    with calque.config.override("calque_enable_x64", True):
        yield


def nested(fun, x, order=5):
    """The derivatives of order 1 .. order, each as one more jvp."""
    found = []
    for _ in range(order):
        fun = (lambda g: lambda x: calque.jvp(g, (x,), (1.0,))[1])(fun)
        found.append(fun(x))
    return found


def series_agree(fun, x=0.7, order=5, tol=1e-10):
    value, series = jet(fun, (x,), ((1.0,) + (0.0,) * (order - 1),))
    wants, gots = [calque.tree.leaves(t) for t in nested(fun, x, order)], calque.tree.leaves(series)
    for i, v in enumerate(calque.tree.leaves(value)):
        np.testing.assert_allclose(v, calque.tree.leaves(fun(x))[i], rtol=1e-14)
        for n, want in enumerate(wants):
            np.testing.assert_allclose(gots[i * order + n], want[i], rtol=tol, atol=tol)
