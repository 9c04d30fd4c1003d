"""Branches, operators and returns over traced values, against the function as it is written."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp

SCALE = 3.0


def relu(x):
    if x > 0:
        y = x
    else:
        y = 0.0 * x
    return y


def no_else(x):
    y = 2.0 * x
    if x > 1:
        y = y - 1.0
    return y


def grade(x):
    if x < 0 or x > 100:
        return -1
    elif not x >= 50:
        return 0
    elif 50 <= x < 75 and x != 60:
        return 1
    return 2


def nested(x):
    if x > 0:
        if x > 10:
            z = x - 10.0
        else:
            z = x * 2.0
        return z + 1.0
    if x < -10:
        return -x
    return x


def temporary(x):
    if x > 0:
        t = x * 3.0
        y = t + 1.0
    else:
        y = x
    return y


def conditional_expression(x):
    return (x if x > 2 else 2) * (1.5 if not x < 0 else -1)


def operators(x):
    a = x > 0 and x < 5
    b = x < -3 or x == 7
    c = not a and not b
    return (a or b) * 1 + c * 10


def values_of_and_or(x):
    return (x and x + 1) + (x or 5.0)


def chain(x):
    return (0 < x < 5 != x) + (x <= 2 <= 3 > x) * 2


def clamp(x):
    return -1.0 if x < -1 else 1.0 if x > 1 else x


def mixed_numbers(x):
    if x > 1:
        y = 1
    elif x > 0:
        y = x
    else:
        y = 0.5
    return y


def helper(x):
    if x > 0:
        return x * SCALE
    return x - SCALE


def calls(x):
    return helper(x) + helper(-x) * 2


def inner_function(x):
    def pick(v, bias=1.0, *, sign=1):
        if v > 1:
            return v + bias
        return sign * v

    return pick(x) + pick(x + 1, 2.0, sign=-1)


def an_inner_lambda(x):
    def f(v):
        return v if v > 0 else -v

    return f(x) + f(x - 3)


def in_a_comprehension(x):
    return sum([v if x > v else x for v in (0.0, 1.0, 2.0)])


def tuples(x):
    state = (x, 0.0)
    if x > 1:
        state = (state[1], state[0])
    a, b = state
    return a + 10 * b


def containers(x):
    d = {"a": x, "b": [1.0, x]}
    if x > 1:
        d["a"] = 2 * x
        d["b"][0] = x
    return d["a"] + d["b"][0] * d["b"][1]


def pops(x):
    values = [x, 2.0, 3.0]
    if x > 1:
        values[0] += 1.0
        last = values.pop()
    else:
        last = values.pop() * x
    return sum(values) + last


def global_scale(x):
    if x > 0:
        x = x * SCALE
    return x


def early_returns(x):
    if x < 0:
        return -x
    y = x * 2
    if y > 8:
        return y
    y = y + 1
    if y > 6:
        y = y - 5
    return y


def return_in_with(x):
    with jax.named_scope("here"):
        if x > 1:
            return x * 2
        x = x - 1
    return x


def return_in_try(x):
    try:
        if x > 1:
            return x * 2
        y = x
    except KeyError:
        y = 0.0
    else:
        y = y + 1
    finally:
        x = 0
    return y + x


def matched(x, kind="double"):
    match kind:
        case "double":
            if x > 0:
                return 2 * x
        case _:
            return x
    return x - 1


def annotated(x):
    y: float = x
    if x > 1:
        y: float = 2 * x
    return y


def walrus(x):
    if (y := x + 1) > 2:
        y = y * 2
    return y


def pass_only(x):
    if x > 1:
        pass
    else:
        x = x + 1
    return x


def none_in_a_branch(x, scale=None):
    if scale is None and x > 0:
        return x
    return -x


NUMBERS = (-12.0, -3.5, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 11.0, 60.0, 80.0, 101.0)
BRANCHES = [
    relu, no_else, grade, nested, temporary, conditional_expression, operators, values_of_and_or,
    chain, clamp, mixed_numbers,
    calls, inner_function, an_inner_lambda, in_a_comprehension, tuples, containers, pops,
    global_scale, early_returns,
    return_in_with, return_in_try, matched, annotated, walrus, pass_only, none_in_a_branch,
]  # fmt: skip


@pytest.mark.parametrize("f", BRANCHES, ids=lambda f: f.__name__)
def test_branches(f):
    g = jax.jit(f, control_flow="convert")
    plain = jax.convert(f)
    for x in NUMBERS:
        assert plain(x) == f(x) and type(plain(x)) is type(f(x))
        np.testing.assert_allclose(g(x), f(x), rtol=1e-6, err_msg=str(x))
    np.testing.assert_allclose(
        jax.vmap(plain)(jnp.array(NUMBERS)), [f(x) for x in NUMBERS], rtol=1e-6
    )


SMOOTH = [
    relu,
    no_else,
    nested,
    temporary,
    conditional_expression,
    clamp,
    mixed_numbers,
    calls,
    tuples,
    containers,
    early_returns,
]


@pytest.mark.parametrize("f", SMOOTH, ids=lambda f: f.__name__)
def test_derivatives_of_branches(f):
    want = [(f(x + 1e-3) - f(x - 1e-3)) / 2e-3 for x in (-12.5, -0.7, 0.3, 1.7, 4.6, 12.5)]
    for g in (jax.jit(jax.grad(jax.convert(f))), jax.grad(jax.jit(f, control_flow="convert"))):
        got = [g(x) for x in (-12.5, -0.7, 0.3, 1.7, 4.6, 12.5)]
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    lanes = jax.vmap(jax.grad(jax.convert(f)))(jnp.array([-12.5, -0.7, 0.3, 1.7, 4.6, 12.5]))
    np.testing.assert_allclose(lanes, want, rtol=1e-3, atol=1e-4)
