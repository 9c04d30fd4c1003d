import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.branches import cond, switch
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8])


def test_derivatives_through_both_branches():
    def f(x, y):
        return cond(x.sum() > 0, lambda x: jnp.sin(x) * y, lambda x: x * x * x + y, x)

    check(f, X, 0.7)
    check(f, -X, 0.7)


def test_branches_with_different_residuals():
    def f(x):
        return switch(
            2,
            [lambda x: x, lambda x: jnp.exp(jnp.sin(x)), lambda x: jnp.sin(x) * jnp.cos(x) * x],
            x,
        )

    check(f, X)


def test_captured_values_are_differentiated():
    w = np.array([1.0, 2.0, 3.0])
    check(lambda x, c: cond(c > 0, lambda: (x * w).sum() * c, lambda: c * c), X, 0.5)


def test_nested():
    def f(x):
        return cond(x > 0, lambda x: cond(x > 0.5, jnp.sin, jnp.cos, x) * x, lambda x: -x, x)

    for v in (0.7, 0.3, -0.2):
        check(f, v, batched=False)


def test_each_lane_has_its_own_predicate():
    def f(x):
        return cond(x > 0, lambda x: jnp.log(x), lambda x: x * x, x)

    xs = np.array([0.5, -0.5, 2.0], np.float32)
    close(vmap(f)(xs), np.where(xs > 0, np.log(np.abs(xs)), xs * xs), 1e-6)
    # log of a negative number in a lane that does not take it must not spoil the gradient
    close(vmap(grad(f))(xs), np.where(xs > 0, 1 / xs, 2 * xs), 1e-6)
    close(grad(lambda x: vmap(f)(x).sum())(xs), np.where(xs > 0, 1 / xs, 2 * xs), 1e-6)


def test_switch_by_lane():
    branches = [lambda x: x, lambda x: 2 * x, lambda x: x * x]
    i, xs = np.array([2, 0, 1, 7]), np.array([3.0, 4.0, 5.0, 6.0], np.float32)
    close(vmap(lambda i, x: switch(i, branches, x))(i, xs), np.float32([9, 4, 10, 36]))


def test_shared_predicate_stays_a_cond():
    f = vmap(lambda p, x: cond(p, jnp.sin, jnp.cos, x), in_axes=(None, 0))
    assert primitives_of(verified(f, True, X))[-1] == "cond"
    close(f(True, X.astype("f")), np.sin(X.astype("f")))


def test_printed_form():
    text = " ".join(
        str(make_jaxpr(lambda x: cond(x > 0, lambda x: x, lambda x: -x, x))(1.0)).split()
    )
    assert (
        "d:f32[] = cond[ branches=( { lambda ; e:f32[]. let f:f32[] = neg e in (f,) } { lambda ;"
        " g:f32[]. let in (g,) } ) ] c a" in text
    )
