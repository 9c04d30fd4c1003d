"""What a traced value says of itself."""

from typing import Any

import pytest

import calque
import calque.numpy as jnp
from calque.core.origins import origin

KEPT: list[Any] = []


def said(transform, *args):
    """What a value says inside of a transformation, and after it."""

    def noted(x):
        y = jnp.sin(x)
        KEPT[:] = [y]
        texts.append(origin(y))
        return y.sum()

    texts: list[str] = []
    transform(noted)(*args)
    line = noted.__code__.co_firstlineno + 1
    return texts[0], origin(KEPT[0]), line


def test_a_value_of_a_program():
    inside, after, line = said(calque.jit, jnp.ones(3))
    assert f"`sin` at {__file__}:{line} (noted)" in inside
    assert "depends on the argument x of the function noted" in inside and "ended" not in inside
    assert after.startswith(inside) and "has ended: it leaked" in after


@pytest.mark.parametrize(
    ("transform", "maker"), [(calque.vmap, "vmap"), (calque.grad, "a derivative")]
)
def test_a_value_that_no_program_holds(transform, maker):
    inside, after, line = said(transform, jnp.ones(3) if transform is calque.vmap else 1.0)
    assert f"a value of {maker}, used at {__file__}:{line + 2} (noted)" in inside
    assert "has ended" in after and "has ended" not in inside


def test_a_value_of_vmap_inside_of_a_program_tells_of_the_program():
    inside, _, line = said(lambda f: calque.jit(calque.vmap(f)), jnp.ones((2, 3)))
    assert f":{line} (noted)" in inside and "the argument x of the function" in inside


def test_the_arguments_of_a_loop_have_names():
    def step(carry, item):
        KEPT[:] = [origin(carry["n"]), origin(item)]
        return {"n": carry["n"] + 1}, item

    calque.lax.scan(step, {"n": 0}, jnp.ones(3))
    assert "the argument carry['n'] of the function step in scan" in KEPT[0]
    assert "the argument item of" in KEPT[1] and __file__ in KEPT[1]
