"""Programs of scalars on whole arrays."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.primitives import Zero
from calque.ops.scalar_programs import is_elementwise, jvp_scalars, run_scalars

X, Y = (np.linspace(0.5, 2, 5, dtype=np.float32) + k for k in range(2))


def of(f, n=2):
    return calque.make_jaxpr(f)(*[1.0] * n)


def loop(x, y):
    return lax.while_loop(lambda c: c < y, lambda c: c * 2, x)


@pytest.mark.parametrize(
    "f, elementwise",
    [
        (lambda x, y: jnp.sin(x) * y + 1, True),
        (lambda x, y: jnp.where(x > y, x, y), True),
        (lambda x, y: calque.jit(lambda a: a + 1)(x) * y, True),
        (loop, False),
    ],
)
def test_all_at_once_or_one_by_one(f, elementwise):
    closed = of(f)
    assert is_elementwise(closed.jaxpr) is elementwise
    (out,) = run_scalars(closed.jaxpr, closed.consts, X, Y)
    want = [float(f(x, y)) for x, y in zip(X, Y)]
    np.testing.assert_allclose(out, want, rtol=1e-6)
    assert out.shape == X.shape


def test_shapes_of_several_dimensions():
    closed = of(loop)
    x = np.ones((2, 3), np.float32)
    (out,) = run_scalars(closed.jaxpr, closed.consts, x, x * 5)
    assert out.tolist() == [[8] * 3] * 2


def test_tangents():
    closed = of(lambda x, y: jnp.sin(x) * y)
    outs, ts = jvp_scalars(closed.jaxpr, closed.consts, [X, Y], [np.ones_like(X), np.ones_like(X)])
    np.testing.assert_allclose(outs[0], np.sin(X) * Y, rtol=1e-6)
    np.testing.assert_allclose(ts[0], np.cos(X) * Y + np.sin(X), rtol=1e-5)
    zero = Zero(closed.in_avals[0].update(shape=X.shape))
    assert type(jvp_scalars(closed.jaxpr, closed.consts, [X, Y], [zero, zero])[1][0]) is Zero
