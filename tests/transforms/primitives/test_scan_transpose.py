"""Transposition of scan: what is carried backwards."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, linear_transpose, vjp
from calque.transforms.functions.loops import fori_loop, scan
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

XS = np.array([[0.4, -0.3], [0.8, 0.1], [0.2, 0.5]])
C = np.array([0.3, -0.6])


def eqn_of(closed, n=0):
    return [e for e in closed.eqns if e.primitive.name == "scan"][n]


def test_zero_cotangents_stay_out():
    def f(c, d):
        return scan(lambda c, _: ((c[0] * 2, c[1] * c[1]), None), (c, d), None, length=3)[0][0]

    closed = make_jaxpr(lambda c, d: vjp(f, c, d)[1](1.0)[0])(1.0, 2.0)
    assert eqn_of(closed, -1).params["num_carry"] == 1


def test_linear_transpose_with_a_counter():
    def f(x):
        return fori_loop(0, 3, lambda i, c: c * (i + 1.0), x)

    close(linear_transpose(f, 1.0)(2.0), (12.0,))

    def g(xs):
        return scan(lambda c, x: (c + 2 * x, None), 0.0, xs)[0]

    close(linear_transpose(g, np.ones(3, np.float32))(1.0), (np.float32([2, 2, 2]),))


def test_a_loop_inside_of_which_only_part_varies():
    """The inner loop's carry comes from a constant and leaves the outer loop; its ys read what the
    outer one carries."""

    def f(w, xs):
        def body(c, x):
            last, ys = scan(lambda d, y: (jnp.sin(d), y * d), w, jnp.stack([c, x]))
            return ys.sum(), last * x

        return scan(body, 0.5, xs)

    check(f, np.array(0.7), np.array([0.3, -0.4, 0.9]))


@pytest.mark.parametrize("reverse", [False, True])
def test_the_transpose_of_a_linear_loop_is_that_of_its_matrix(reverse):
    """c' = A_i c + B x_i, y_i = c + x_i, as one matrix."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 2, 2)).astype("f"), rng.normal(size=(2, 2)).astype("f")

    def f(c, xs):
        return scan(lambda c, ax: (ax[0] @ c + b @ ax[1], c + ax[1]), c, (a, xs), reverse=reverse)

    def flat(v):
        last, ys = f(v[:2], v[2:].reshape(3, 2))
        return np.concatenate([np.asarray(last), np.asarray(ys).ravel()])

    matrix = np.stack([flat(e) for e in np.eye(8, dtype="f")], 1)
    ct = rng.normal(size=8).astype("f")
    back = linear_transpose(f, np.zeros(2, "f"), np.zeros((3, 2), "f"))
    got = back((ct[:2], ct[2:].reshape(3, 2)))
    np.testing.assert_allclose(
        np.concatenate([np.asarray(got[0]), np.asarray(got[1]).ravel()]), matrix.T @ ct, rtol=2e-5
    )


def test_constants_get_the_sum_over_the_rounds():
    xs = np.arange(4, dtype="f")

    def f(w):
        return scan(lambda c, x: (c + w * x, w), 0.0, xs)

    close(linear_transpose(f, 1.0)((2.0, np.ones(4, "f"))), (np.float32(2 * 6 + 4),))


def test_arguments_that_nothing_reads_have_no_cotangent():
    def f(c, w, xs):
        return scan(lambda c, x: (c * 2, None), c, xs)[0]

    back = make_jaxpr(lambda ct: linear_transpose(f, 1.0, 1.0, np.ones(3, "f"))(ct))(1.0)
    (e,) = [e for e in back.eqns if e.primitive.name == "scan"]
    assert e.params["num_carry"] == 1 and len(e.outvars) == 1
    got = linear_transpose(f, 1.0, 1.0, np.ones(3, "f"))(1.0)
    close(got, (np.float32(8), np.float32(0), np.zeros(3, "f")))


def test_backward_bodies_are_made_once():
    body_calls = []

    def body(c, x):
        body_calls.append(1)
        return jnp.sin(c) * x, c

    f = jit(lambda c: scan(body, c, XS[:, 0].astype("f"))[0])
    grad(f)(0.5)
    before = len(body_calls)
    grad(f)(0.7)
    grad(f)(0.9)
    assert len(body_calls) == before
