"""What the tests of this room share."""

import calque.numpy as jnp
from calque.transforms.functions.linear_calls import linear_call
from calque.transforms.functions.remat import (
    checkpoint_name,
)
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401


def layer(x, w):
    return jnp.sin(checkpoint_name(jnp.sin(x), "a") @ w) * x


def scaled(r, x):
    return linear_call(lambda r, x: r * x, lambda r, ct: 3 * r * ct, r, x)
