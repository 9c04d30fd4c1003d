"""Modules for one platform and for several."""

import calque.numpy as jnp
from calque import lax
from calque.core.trace import trace_to_jaxpr, typeof
from calque.xla.lower.module import Request
from calque.xla.lower.several_platforms import for_platforms


def text(function: object, *platforms: str) -> str:
    closed = trace_to_jaxpr(function, [typeof(jnp.ones(3))])  # type: ignore[arg-type]
    return for_platforms(closed, Request(), platforms).text()


def test_what_is_the_same_on_all_is_written_once() -> None:
    found = text(jnp.sin, "cpu", "tpu")
    assert "_platform_index" in found and found.count("stablehlo.sine") == 1
    assert "stablehlo.case" not in found


def test_what_differs_is_chosen_by_the_argument() -> None:
    def f(x: object) -> object:
        return lax.igamma(x, x)

    found = text(f, "cpu", "tpu")
    assert '"stablehlo.case"(%arg0)' in found and found.count("custom_call") == 1


def test_one_platform_is_no_argument() -> None:
    assert "_platform_index" not in text(jnp.sin, "tpu")
