import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("batched", [False, True])
def test_blocks_have_scales(batched):
    lead = (2,) if batched else ()
    a, b = RNG.normal(size=(*lead, 3, 8)).astype("f"), RNG.normal(size=(*lead, 8, 5)).astype("f")
    s, t = RNG.normal(size=(*lead, 3, 2)).astype("f"), RNG.normal(size=(*lead, 4, 5)).astype("f")
    got = lax.scaled_dot(a, b, lhs_scale=s, rhs_scale=t, preferred_element_type=np.float32)
    want = (a * s.repeat(4, -1)) @ (b * t.repeat(2, -2))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert lax.scaled_dot(a, b).dtype == jnp.bfloat16
    grad = calque.grad(
        lambda s: lax.scaled_dot(a, b, lhs_scale=s, preferred_element_type=np.float32).sum()
    )(s)
    np.testing.assert_allclose(
        grad, (a * b.sum(-1)[..., None, :]).reshape(*lead, 3, 2, 4).sum(-1), rtol=1e-4, atol=1e-5
    )


def test_other_dimensions_and_small_floats():
    a = jnp.array(RNG.normal(size=(2, 8, 3)), jnp.float8_e4m3fn)
    b = jnp.array(RNG.normal(size=(2, 8, 5)), jnp.float8_e4m3fn)
    s = jnp.full((2, 4, 3), 2.0, jnp.float8_e8m0fnu)
    numbers = (((1,), (1,)), ((0,), (0,)))
    got = lax.scaled_dot(
        a, b, lhs_scale=s, dimension_numbers=numbers, preferred_element_type=np.float32
    )
    np.testing.assert_allclose(
        got, 2 * np.einsum("bkm,bkn->bmn", a.astype("f"), b.astype("f")), rtol=1e-6
    )


@pytest.mark.parametrize(
    "shape, text",
    [
        ((2, 3, 3), "LHS contracting dim 2 of size 4 must be divisible by its scale's dim size 3"),
        ((2, 1, 2), "LHS dim 1 of size 3 does not match scale dim size 1"),
        ((2, 4), "LHS rank 3 does not match scale rank 2"),
    ],
)
def test_bad_scales(shape, text):
    with pytest.raises(TypeError, match=text):
        lax.scaled_dot(np.ones((2, 3, 4)), np.ones((2, 4, 5)), lhs_scale=np.ones(shape))


def test_needs_dimension_numbers():
    with pytest.raises(TypeError, match="need dimension_numbers"):
        lax.scaled_dot(np.ones((1, 2, 3, 4)), np.ones((1, 2, 4, 5)))
