import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, jvp
from calque.transforms.functions.loops import fori_loop, scan, while_loop
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def grow(x):
    return while_loop(lambda c: c < 30.0, lambda c: (c + 1) * c, x)


def python_grow(x):
    while x < 30:
        x = (x + 1) * x
    return x


def test_values():
    close(grow(1.5), np.float32(python_grow(1.5)))
    close(jit(grow)(1.5), np.float32(python_grow(1.5)))


def test_both_modes_to_second_order():
    check(grow, 1.5, batched=False)


def test_constants_and_several_carries():
    def f(w, x):
        return while_loop(
            lambda c: c[0] < 4,
            lambda c: (c[0] + 1, jnp.sin(c[1]) * w + c[2], c[2] * w),
            (0, x, x * 2),
        )[1:]

    check(f, np.array([0.9, 0.4]), np.array([0.3, -0.2]))


def test_each_lane_stops_alone():
    xs = np.array([1.0, 1.7, 40.0, 0.9], np.float32)
    close(vmap(grow)(xs), np.float32([python_grow(x) for x in xs]), 1e-5)
    close(vmap(grad(grow))(xs), np.float32([float(grad(grow)(float(x))) for x in xs]), 1e-5)
    close(grad(lambda x: vmap(grow)(x).sum())(xs), vmap(grad(grow))(xs))
    close(
        jit(vmap(vmap(grow)))(xs.reshape(2, 2)),
        np.float32([python_grow(x) for x in xs]).reshape(2, 2),
        1e-5,
    )


def test_lanes_share_a_condition():
    def f(x):
        return while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]

    closed = verified(vmap(f), np.ones(4, np.float32))
    (loop,) = [e for e in closed.eqns if e.primitive.name == "while"]
    assert loop.params["cond_jaxpr"].out_avals[0].shape == ()
    check(f, np.array([0.5, 0.7]))


def test_traced_bounds():
    def f(n, x):
        return fori_loop(0, n, lambda i, c: c * x + i, x)

    assert primitives_of(make_jaxpr(f)(3, 1.0))[-1] == "while"
    for n in (0, 1, 7):
        close(grad(lambda x: jit(f)(n, x))(0.9), grad(lambda x: f(n, x))(0.9), 1e-5)


def test_inside_scan_and_around_it():
    check(
        lambda x: scan(
            lambda c, _: (while_loop(lambda v: v < 2.0, lambda v: v * v + x, c), None),
            x,
            None,
            length=2,
        )[0],
        1.2,
        batched=False,
    )
    check(
        lambda x: while_loop(
            lambda c: c.sum() < 9.0,
            lambda c: scan(lambda d, _: (d * x, None), c, None, length=2)[0],
            x,
        ),
        np.array([1.2, 1.4]),
        batched=False,
    )


def test_forward_over_reverse_is_symmetric():
    def g(x):
        return jvp(grad(grow), (x,), (1.0,))[1]

    close(g(1.5), grad(grad(grow))(1.5), 1e-5)
