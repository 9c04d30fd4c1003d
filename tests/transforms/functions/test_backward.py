"""The backward pass at a point."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.functions.autodiff import vjp
from calque.transforms.functions.backward import VJP
from tests.transforms.programs import reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_residuals_that_are_arguments_may_be_taken_out_and_put_back():
    w, x = jnp.ones((4, 4)), {"a": jnp.ones(4), "b": jnp.ones(4)}
    _, pull = calque.vjp(lambda w, x: jnp.sin(w @ x["a"]), w, x)
    assert pull.args_res[0] is w and pull.args_res[1]["a"] is x["a"]
    assert (
        isinstance(pull.args_res[1]["b"], calque.ad.NotNeeded) and len(pull.opaque_residuals) == 1
    )
    before = pull(jnp.ones(4))
    pull.args_res[0] = None
    with pytest.raises(ValueError, match="args_res of the function returned by vjp"):
        pull(jnp.ones(4))
    pull.args_res[0] = 2 * w
    after = calque.jit(lambda pull: pull(jnp.ones(4)))(pull)
    np.testing.assert_allclose(after[1]["a"], 2 * before[1]["a"])
    np.testing.assert_allclose(after[0], before[0])


def test_numbers_that_were_computed_are_residuals():
    """The programs of derivatives at several points are one program."""
    _, first = vjp(jnp.sin, 3.0)
    _, second = vjp(jnp.sin, 4.0)
    assert len(first.opaque_residuals) == 1
    assert first(1.0)[0] == jnp.cos(3.0)


def test_a_backward_pass_takes_one_cotangent():
    _, pull = vjp(lambda x, y: (x * y, x), 2.0, 3.0)
    assert isinstance(pull, VJP) and pull((1.0, 0.0)) == (3.0, 2.0)
    with pytest.raises(TypeError, match="called with 2 arguments, but it takes one"):
        pull(1.0, 0.0)


def test_the_program_of_a_backward_pass_can_be_looked_at():
    kept = calque.checkpoint(
        lambda x: jnp.sin(jnp.sin(x)), policy=lambda p, *_, **__: p.name == "cos"
    )
    assert " cos " not in str(vjp(kept, 1.0)[1].jaxpr)
    again = calque.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    assert str(vjp(again, 1.0)[1].jaxpr).count(" cos ") == 2
