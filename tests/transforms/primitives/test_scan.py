import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, linear_transpose, vjp
from calque.transforms.functions.loops import fori_loop, scan
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.scan import bind_counted
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


def test_zero_cotangents_stay_out():
    def f(c, d):
        return scan(lambda c, _: ((c[0] * 2, c[1] * c[1]), None), (c, d), None, length=3)[0][0]

    closed = make_jaxpr(lambda c, d: vjp(f, c, d)[1](1.0)[0])(1.0, 2.0)
    assert eqn_of(closed, -1).params["num_carry"] == 1


def test_zero_rounds():
    check(lambda c, xs: scan(lambda c, x: (c * x, c), c, xs), C, np.zeros((0, 2)))


def test_linear_transpose_with_a_counter():
    def f(x):
        return fori_loop(0, 3, lambda i, c: c * (i + 1.0), x)

    close(linear_transpose(f, 1.0)(2.0), (12.0,))

    def g(xs):
        return scan(lambda c, x: (c + 2 * x, None), 0.0, xs)[0]

    close(linear_transpose(g, np.ones(3, np.float32))(1.0), (np.float32([2, 2, 2]),))


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
@pytest.mark.parametrize("shape", [(), (5,)])
def test_rounds_counted_while_running(reverse, shape):
    """As a scan of the first rows, in every derivative."""
    rng = np.random.default_rng(0)
    w, c, xs = (
        np.float32(0.5),
        np.ones(shape, np.float32),
        rng.standard_normal((9, *shape)).astype(np.float32),
    )

    def step(w, c, x):
        return (jnp.sin(c) * w + x, c * 2)

    body = make_jaxpr(step)(w, c, xs[0])

    def counted(n, w, c, xs):
        out, ys = bind_counted(n, [w], [c], [xs], jaxpr=body, length=9, reverse=reverse)
        return out, ys[:4]

    def plain(w, c, xs):
        return scan(lambda c, x: step(w, c, x), c, xs, reverse=reverse)

    close(jit(counted)(4, w, c, xs), plain(w, c, xs[:4]), 1e-5)
    close(counted(0, w, c, xs)[0], c)

    def total(f):
        return lambda *a: sum(v.sum() for v in f(*a))

    for g in (
        lambda f: grad(f, (0, 1)),
        lambda f: grad(lambda w, c, xs: grad(f)(w, c, xs) ** 2, (0, 1)),
    ):
        got = jit(g(total(lambda w, c, xs: counted(4, w, c, xs))))(w, c, xs)
        close(got, g(total(plain))(w, c, xs[:4]), 1e-4)
    back = grad(total(lambda w, c, xs: counted(4, w, c, xs)), 2)(w, c, xs)
    close(back[:4], grad(total(plain), 2)(w, c, xs[:4]), 1e-5)
    counts = np.array([4, 9, 1], np.int32)
    lanes = vmap(lambda n, c: counted(n, w, c, xs)[0], (0, None))(counts, c)
    close(lanes, np.stack([plain(w, c, xs[:n])[0] for n in counts]), 1e-5)
