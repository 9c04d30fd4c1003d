"""What policies of `checkpoint` keep inside of loops and branches."""

from collections import Counter

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.jaxprs import subjaxprs


def counts(jaxpr):
    """How often each primitive stands in a program, at any depth."""
    out, todo = Counter(), [jaxpr]
    while todo:
        for e in todo.pop().eqns:
            out[e.primitive.name] += 1
            todo += subjaxprs(e.params)
    return out


def keep(*names):
    return lambda prim, *_, **__: prim.name in names


def backward(f, *args):
    y, pull = jax.vjp(f, *args)
    return counts(jax.make_jaxpr(pull)(y).jaxpr)


def scanned(x):
    return lax.scan(lambda c, _: (jnp.sin(c), jnp.sin(c)), x, None, length=3)[0]


def branched(x):
    return lax.cond(x > 0, lambda x: jnp.sin(jnp.exp(x)), lambda x: x * x, x)


@pytest.mark.parametrize(
    ("f", "policy", "expected"),
    [
        (scanned, keep("cos"), {"sin": 0, "cos": 0}),
        (scanned, keep("sin"), {"sin": 0, "cos": 1}),
        (scanned, keep(), {"sin": 1, "cos": 1}),
        (branched, keep("cos"), {"sin": 0, "cos": 0, "exp": 1}),
        (branched, keep("exp"), {"sin": 0, "cos": 1, "exp": 0}),
        (branched, keep("exp", "cos"), {"sin": 0, "cos": 0, "exp": 0}),
        (branched, keep(), {"sin": 0, "cos": 1, "exp": 1}),
        (lambda x: scanned(branched(x)), keep("sin", "cos", "exp"), {"sin": 0, "exp": 0}),
        (lambda x: branched(scanned(x)), keep("cos"), {"sin": 1, "cos": 0}),
    ],
)
def test_policies_reach_into_loops_and_branches(f, policy, expected):
    kept = jax.checkpoint(f, policy=policy)
    found = backward(kept, 0.7)
    assert {k: found[k] for k in expected} == expected
    for order in (jax.grad, lambda f: jax.grad(jax.grad(f))):
        for x in (0.7, -0.4):
            np.testing.assert_allclose(order(kept)(x), order(f)(x), rtol=1e-6)
            np.testing.assert_allclose(jax.jit(order(kept))(x), order(f)(x), rtol=1e-6)


def test_matrix_products_in_a_loop_are_kept():
    w = jnp.full((4, 4), 0.3)

    def layers(w):
        def step(x, _):
            x = jnp.sin(x @ w)
            return jnp.sin(x @ w), None

        return lax.scan(step, jnp.ones(4), None, length=3)[0].sum()

    dots = jax.checkpoint(layers, policy=jax.checkpoint_policies.dots_saveable)
    assert backward(dots, w)["dot_general"] == 4
    assert backward(jax.checkpoint(layers), w)["dot_general"] > 4
    np.testing.assert_allclose(jax.grad(dots)(w), jax.grad(layers)(w), rtol=1e-5)


def test_calls_in_derivative_rules_do_not_hide_what_can_be_kept():
    @jax.custom_jvp
    def sine(x):
        return jnp.sin(x)

    @sine.defjvp
    def sine_jvp(primals, tangents):
        y, slope = jax.jit(lambda: (jnp.sin(primals[0]), jnp.cos(primals[0])))()
        return y, slope * tangents[0]

    found = backward(jax.checkpoint(sine, policy=keep("cos")), 0.7)
    assert found["cos"] == found["sin"] == 0


def test_a_branch_runs_again_without_what_nobody_reads():
    def f(x):
        return lax.cond(x > 0, lambda c: (jnp.sin(c), jnp.sin(c)), lambda c: (c, jnp.sin(c)), x)

    found = counts(jax.make_jaxpr(jax.linearize(jax.checkpoint(f), 4.0)[1])(1.0).jaxpr)
    assert found["sin"] == 0 and found["cos"] > 0
