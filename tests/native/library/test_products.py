"""Which form a product of matrices takes: told by its kernels."""

from collections.abc import Callable
from typing import Any

import pytest

import calque
import calque.numpy as jnp

X_Y: Callable[[Any, Any], Any] = lambda a, b: a @ b  # noqa: E731
XT_Y: Callable[[Any, Any], Any] = lambda a, b: a.T @ b  # noqa: E731


@pytest.mark.parametrize(
    "f, left, right, packed, by_rounds",
    [
        (X_Y, (200, 300), (300, 400), True, False),
        (X_Y, (20, 300), (300, 512), False, False),  # few rows: read where the right side stands
        (X_Y, (60, 5_000), (5_000, 64), False, False),
        (XT_Y, (5_000, 60), (5_000, 64), False, True),  # ... but where they lie across the sum
        (XT_Y, (5_000, 40), (5_000, 64), False, False),
        (XT_Y, (5_000, 200), (5_000, 64), False, True),
        (XT_Y, (1_000, 200), (1_000, 64), True, False),
    ],
)
def test_forms(f: Any, left: Any, right: Any, packed: bool, by_rounds: bool) -> None:
    text = calque.jit(f).lower(jnp.ones(left), jnp.ones(right)).compile().as_text("loops")
    assert ("panels" in text, "rounds" in text) == (packed, by_rounds)
