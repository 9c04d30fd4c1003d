"""The platforms that a traced function is lowered for."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax

X = np.ones(3, np.float32)


def choice(a: Any) -> Any:
    return lax.platform_dependent(a, cpu=lambda v: v * 2, tpu=lambda v: v * 3)


def lowered(*platforms: str) -> Any:
    return jax.jit(choice).trace(X).lower(lowering_platforms=platforms)


def test_the_branch_is_that_of_the_platform_that_was_asked_for() -> None:
    text = lowered("tpu").as_text()
    assert "dense<3.0" in text and "dense<2.0" not in text
    assert "dense<2.0" in lowered("cpu").as_text()
    assert lowered().as_text() == jax.jit(choice).lower(X).as_text()


def test_a_program_for_one_platform_is_compiled_as_it_was_lowered() -> None:
    assert lowered("tpu").compile()(X).tolist() == [3.0, 3.0, 3.0]
    assert lowered("cpu").compile()(X).tolist() == [2.0, 2.0, 2.0]
    assert jax.jit(choice)(X).tolist() == [2.0, 2.0, 2.0]


def test_of_several_platforms_an_argument_tells_which_it_is() -> None:
    text = lowered("cpu", "tpu").as_text()
    assert '%arg0: tensor<i32> {jax.global_constant = "_platform_index"}' in text
    assert text.index("dense<2.0") < text.index("dense<3.0")
    turned = lowered("tpu", "cpu").as_text()
    assert turned.index("dense<3.0") < turned.index("dense<2.0")
    with pytest.raises(ValueError, match="Name one in lowering_platforms"):
        lowered("cpu", "tpu").compile()


def test_operations_are_written_in_the_form_of_the_platform() -> None:
    traced = jax.jit(lambda a: lax.igamma(a, a)).trace(X)
    assert "custom_call" in traced.lower().as_text()
    assert "custom_call" not in traced.lower(lowering_platforms=("tpu",)).as_text()


def test_names_that_are_no_platforms_are_refused() -> None:
    traced = jax.jit(jnp.sin).trace(X)
    for wrong in ("tpu", ("gpu",), (3,), 3):
        with pytest.raises(ValueError, match="lowering_platforms: a program is for platforms such"):
            traced.lower(lowering_platforms=wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'platforms'"):
        traced.lower(platforms=("tpu",))
    with pytest.raises(NotImplementedError, match="not found for platform cuda"):
        lowered("cuda")


def test_memory_is_given_away_on_all_platforms_or_on_none() -> None:
    traced = jax.jit(jnp.sin, donate_argnums=0).trace(X)
    text = traced.lower(lowering_platforms=("cpu", "tpu")).as_text()
    assert "%arg1: tensor<3xf32> {tf.aliasing_output = 0 : i32}" in text
    with pytest.raises(NotImplementedError, match="either all or no lowering platforms"):
        traced.lower(lowering_platforms=("cpu", "mine"))
