"""Linearisation of scan: where each residual lives."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, vjp
from calque.transforms.functions.loops import scan
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

XS = np.array([[0.4, -0.3], [0.8, 0.1], [0.2, 0.5]])
C = np.array([0.3, -0.6])


def eqn_of(closed, n=0):
    return [e for e in closed.eqns if e.primitive.name == "scan"][n]


def test_loop_invariants_are_computed_once():
    def f(w, c):
        return scan(lambda c, _: (c * jnp.exp(w), None), c, None, length=5)[0].sum()

    closed = verified(grad(f), C.astype("f"), C.astype("f"))
    assert primitives_of(closed)[0] == "exp"
    for e in closed.eqns:
        if e.primitive.name == "scan":
            assert "exp" not in [q.primitive.name for q in e.params["jaxpr"].eqns]
    check(f, C, C)


def test_inputs_are_not_stacked_again():
    def f(c, xs):
        return scan(lambda c, x: (c * x, None), c, xs)[0].sum()

    closed = make_jaxpr(grad(f, argnums=(0, 1)))(C.astype("f"), XS.astype("f"))
    assert (
        len(eqn_of(closed).outvars) == 2
    )  # the carry, and the carry of each round; the xs are read again


def stacked_by(f, *args):
    """How many results of the loop that computes residuals are stacked besides its own."""
    closed = make_jaxpr(lambda *a: vjp(f, *a)[1](1.0))(*args)
    first = eqn_of(closed)
    return len(first.outvars) - first.params["num_carry"]


def test_results_are_read_again():
    """The derivative of sin(c) reads c, which the loop stacks for its caller anyway."""

    def f(c):
        last, ys = scan(lambda c, _: (jnp.sin(c), c), c, None, length=4)
        return last + ys.sum()

    check(f, np.array(0.3))
    assert stacked_by(f, np.float32(0.3)) <= 2


def test_loops_without_tangents_are_run_once():
    def f(n, x):
        return scan(lambda k, _: (k * 2 + 1, k), n, None, length=3)[0] * x

    closed = make_jaxpr(grad(f, 1))(2, 3.0)
    assert primitives_of(closed).count("scan") == 1
    close(grad(f, 1)(2, 3.0), np.float32(23))


def test_tangents_that_arise_in_a_later_round():
    """The second carry has a tangent only from the second round on."""

    def f(x):
        return scan(lambda c, _: ((c[0], jnp.sin(c[0]) * c[1]), c[1]), (x, 1.0), None, length=3)

    check(lambda x: f(x)[0][1] + f(x)[1].sum(), np.array(0.7))


def test_calls_leave_the_loop_with_what_does_not_vary():
    part = jit(lambda w, c: (jnp.exp(w), c * 2))

    def f(w, c):
        def body(c, _):
            e, d = part(w, c)
            return jnp.sin(d) * e, None

        return scan(body, c, None, length=3)[0].sum()

    check(f, C, C + 1)
    closed = verified(grad(f), C.astype("f"), C.astype("f"))
    inside = [str(e.params["jaxpr"]) for e in closed.eqns if e.primitive.name == "scan"]
    assert len(inside) == 2 and not any("exp " in text for text in inside)
