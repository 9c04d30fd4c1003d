import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, jvp, linearize, vjp
from calque.transforms.functions.branches import cond
from calque.transforms.functions.custom_vjp import (
    custom_vjp,
)
from calque.transforms.functions.loops import scan, while_loop
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8])


def product(factor=1.0):
    """sin(x) * y, with rules that say `factor` times its derivative."""
    f = custom_vjp(lambda x, y: jnp.sin(x) * y)
    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda r, ct: (factor * ct * jnp.cos(r[0]) * r[1], factor * ct * jnp.sin(r[0])),
    )
    return f


def test_right_rules_change_nothing_in_either_mode():
    f = product()
    check(f, X, X[::-1].copy())
    check(lambda x, y: f(f(x, y), x), X, X[::-1].copy())


def test_the_rules_are_used_everywhere():
    f, x = product(2.0), np.float32(0.5)
    want = np.float32(6 * np.cos(0.5))

    def g(x):
        return f(x, 3.0)

    close(
        [grad(g)(x), grad(jit(g))(x), jit(grad(g))(x), jvp(g, (x,), (x * 0 + 1,))[1]],
        [want] * 4,
        1e-6,
    )
    close(
        [jvp(jit(g), (x,), (x * 0 + 1,))[1], linearize(jit(g), x)[1](x * 0 + 1)], [want] * 2, 1e-6
    )
    close(grad(lambda x: cond(x > 0, g, jnp.sin, x))(x), want, 1e-6)
    close(grad(lambda x: scan(lambda c, _: (g(c), None), x, None, length=1)[0])(x), want, 1e-6)
    close(
        grad(lambda x: while_loop(lambda c: c[1] < 1, lambda c: (g(c[0]), c[1] + 1), (x, 0))[0])(x),
        want,
        1e-5,
    )


def test_shared_arguments_are_summed_under_vmap():
    f, xs = product(2.0), X.astype("f")
    want = np.float32(2 * np.sin(xs).sum())
    close(grad(lambda y: vmap(f, (0, None))(xs, y).sum())(3.0), want, 1e-6)
    close(grad(lambda y: jit(vmap(jit(f), (0, None)))(xs, y).sum())(3.0), want, 1e-6)
    close(vmap(grad(f, argnums=1), (0, None))(xs, 3.0), np.float32(2 * np.sin(xs)), 1e-6)


def test_integer_arguments():
    f = custom_vjp(lambda x, n: x * n)
    f.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n, None))
    assert float(grad(f)(2.0, 3)) == 3.0


def test_several_results_of_which_some_are_integers():
    f = custom_vjp(lambda x: (x * 2, 3))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct[0] * 7,))
    close(vjp(lambda x: f(x)[0], 1.0)[1](1.0), (7.0,))


def test_printed_form():
    text = str(verified(product(), 1.0, 2.0))
    assert "custom_vjp_call[" in text and "fwd=<lambda>" in text and "bwd=<lambda>" in text


def test_a_rule_that_is_not_linear_refuses_forward_mode():
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, ct: (jnp.sin(ct),))
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        jvp(f, (1.0,), (1.0,))
    close(grad(f)(1.0), np.float32(np.sin(1.0)))


def test_forward_mode_through_a_rule_with_a_choice_for_each_lane():
    """Lanes hide from each other's branches behind stop_gradient, also in the backward rule, which
    is then transposed."""

    def branch(x):
        return cond(x > 0, lambda x: x * 3, lambda x: x * x, x)

    f = custom_vjp(branch)
    f.defvjp(lambda x: vjp(branch, x), lambda back, ct: back(ct))
    xs = np.array([0.5, -0.7, 0.2], np.float32)
    _, tangents = jvp(vmap(f), (xs,), (np.ones(3, np.float32),))
    close(tangents, np.array([3.0, -1.4, 3.0], np.float32), 1e-6)
