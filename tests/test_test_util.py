"""Checks of derivatives for the tests of users."""

import functools
from typing import Any

import pytest

import calque
import calque.numpy as jnp
from calque import test_util


def test_checks_of_derivatives() -> None:
    def f(x, n):
        return {"s": jnp.sin(x) * n, "p": (x**2).sum()}

    test_util.check_grads(f, (jnp.array([0.3, 1.0]), 2), order=2, rtol=2e-2, atol=2e-2)
    test_util.check_grads(lambda z: z * z, (jnp.array(1 + 2j),), order=1, atol=5e-2)

    @calque.custom_jvp
    def wrong(x: Any) -> Any:
        return x**2

    wrong.defjvp(lambda primals, tangents: (wrong(*primals), 5 * tangents[0]))
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError):
            test_util.check_grads(wrong, (1.0,), order=1, modes=[mode])
    with pytest.raises(AssertionError):
        test_util.check_vjp(wrong, functools.partial(calque.vjp, wrong), (1.0,))
    with pytest.raises(ValueError, match="modes"):
        test_util.check_grads(wrong, (1.0,), order=1, modes=["back"])


def test_infinities_on_both_sides_are_no_difference():
    def f(x):
        return jnp.stack([x, jnp.where(x > 5, x, -jnp.inf)])

    test_util.check_grads(f, (1.5,), order=1, modes=["fwd"])


def test_complex_functions_have_the_tolerance_of_their_precision() -> None:
    @calque.custom_vjp
    def nearly(z):
        return z * z

    nearly.defvjp(lambda z: (z * z, z), lambda z, ct: (2.02 * z * ct,))
    z = (jnp.array([1 + 2j, 0.5 - 1j]),)
    fine: dict[Any, float] = {"float32": 0.1, "complex64": 0.1, "float64": 1e-9}
    test_util.check_grads(nearly, z, order=1, modes=["rev"], atol=fine, rtol=fine)
    coarse = {**fine, "float32": 1e-3, "float64": 1.0}
    with pytest.raises(AssertionError, match="cotangent projection"):
        test_util.check_grads(nearly, z, order=1, modes=["rev"], atol=coarse, rtol=coarse)
