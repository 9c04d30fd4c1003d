"""Types for annotations."""

import calque.numpy as jnp
from calque import typing


def test_types_for_annotations() -> None:
    assert isinstance(jnp.ones(2), typing.ArrayLike) and isinstance(1.0, typing.ArrayLike)
