import numpy as np
import pytest

import calque.numpy as jnp
from calque import random
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.loops import fori_loop, scan
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
XS = np.array([[0.4, -0.3], [0.8, 0.1], [0.2, 0.5]])
C = np.array([0.3, -0.6])


def eqn_of(closed, n=0):
    return [e for e in closed.eqns if e.primitive.name == "scan"][n]


@pytest.mark.parametrize("reverse", [False, True])
def test_carry_ys_and_constants(reverse):
    def f(w, c, xs):
        return scan(lambda c, x: (jnp.sin(c * w) + x, c * x * w), c, xs, reverse=reverse)

    check(f, np.array([1.1, 0.7]), C, XS)


def test_keys_as_ys():
    """On the NumPy meanings, too, on which all of these tests run."""

    def split(key, _):
        key, own = random.split(key)
        return key, own

    last, keys = scan(split, random.key(3), None, length=4)
    want, key = [], random.key(3)
    for _ in range(4):
        key, own = random.split(key)
        want.append(random.key_data(own))
    np.testing.assert_array_equal(random.key_data(keys), np.stack(want))
    np.testing.assert_array_equal(random.key_data(last), random.key_data(key))
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(random.gamma(key, x), jit(random.gamma)(key, x))


def test_against_python():
    c, ys = C, []
    for x in XS:
        ys.append(c * x)
        c = np.sin(c) + x
    close(scan(lambda c, x: (jnp.sin(c) + x, c * x), C, XS), (np.float32(c), np.float32(ys)))


def test_integer_carry_and_counters():
    check(
        lambda x: scan(
            lambda c, i: ((c[0] + 1, c[1] * jnp.sin(c[1]) * (c[0] + 1)), i), (0, x), np.arange(3)
        )[0][1],
        C,
    )
    check(lambda x: fori_loop(0, 4, lambda i, c: c * x + i, x), C)


def test_only_some_arguments_are_differentiated():
    def f(xs):
        return scan(lambda c, x: (c + x[0] * 2, x[1]), 0.0, (xs, np.arange(3)))[0]

    check(lambda xs: f(xs[:, 0]), XS)
    check(lambda w: scan(lambda c, _: (c * jnp.cos(w), None), jnp.ones(2), None, length=3)[0], C)


def test_nested_scans_and_calls():
    def inner(c, x):
        return scan(lambda d, y: (jnp.tanh(d * y) + c, d), c, x)

    check(
        lambda c, xs: scan(lambda c, x: (inner(c, xs[:2] * x)[0], inner(c, xs)[1].sum()), c, xs),
        C,
        XS,
    )
    check(lambda c: scan(jit(lambda c, x: (jnp.sin(c), x * c)), c, XS), C)


def test_zero_rounds():
    check(lambda c, xs: scan(lambda c, x: (c * x, c), c, xs), C, np.zeros((0, 2)))


def test_printed_form():
    text = " ".join(
        str(make_jaxpr(lambda x: scan(lambda c, y: (c + y, c), x, np.arange(3.0)))(1.0)).split()
    )
    assert "length=3 num_carry=1 num_consts=0 reverse=False unroll=1" in text


def test_dead_results_are_dropped():
    def f(x):
        (a, b), ys = scan(lambda c, _: ((c[0] * 2, jnp.sin(c[1])), c[1]), (x, x), None, length=3)
        return a

    closed = make_jaxpr(grad(jit(f)))(1.0)
    inner = closed.eqns[-1].params["jaxpr"]
    assert "cos" not in str(inner)
