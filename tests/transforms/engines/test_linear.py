import numpy as np
import pytest

import calque.numpy as jnp
from calque.core.jaxprs import check_jaxpr
from calque.transforms.engines.linear import linearize_jaxpr
from calque.transforms.functions.autodiff import grad, jvp, linear_transpose, linearize, vjp
from calque.transforms.functions.branches import cond
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.loops import scan, while_loop
from calque.transforms.functions.remat import checkpoint
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, primitives_of, reference_backend, values, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_values_run_once_and_the_tape_is_linear():
    calls = []

    def f(x):
        calls.append(1)
        return jnp.sin(x) * x

    _, f_lin = linearize(f, 2.0)
    want = np.sin(2.0) + 2 * np.cos(2.0)
    close([f_lin(1.0), f_lin(3.0), f_lin(0.0)], np.float32([want, 3 * want, 0]).tolist())
    assert len(calls) == 1


def test_linearized_program_and_its_residuals():
    closed = make_jaxpr(lambda x, y: (jnp.sin(x) * y, jnp.exp(y)))(1.0, 2.0)
    lin = linearize_jaxpr(closed, (True, True))
    assert lin.nonzeros == (True, True)
    assert ("in", 1) in lin.sources and (
        "out",
        1,
    ) in lin.sources  # y is an argument, exp(y) a result
    check_jaxpr(lin.primal.jaxpr)
    check_jaxpr(lin.linear.jaxpr)
    assert linearize_jaxpr(closed, (True, True)) is lin


def test_dead_tangents_leave_no_residuals():
    closed = make_jaxpr(lambda x: (jnp.sin(x), 1.0)[1])(1.0)
    lin = linearize_jaxpr(closed, (True,))
    assert lin.nonzeros == (False,) and not lin.linear.eqns and not lin.primal.eqns


def test_gradient_equations_are_few():
    def f(x):
        return (x * x * x).sum()

    names = primitives_of(verified(grad(f), np.ones(3, np.float32)))
    assert names.count("mul") <= 6 and "add_any" in names


def test_linear_in_program_length():
    def chain(n):
        def f(x):
            y = x
            for _ in range(n):
                y = jnp.sin(y) * x
            return y

        return len(make_jaxpr(grad(f))(1.0).eqns)

    a, b, c = chain(10), chain(20), chain(40)
    assert b - a == (c - b) / 2


def test_long_programs_need_no_recursion():
    def f(x):
        y = x
        for _ in range(3000):
            y = y * x
        return y

    closed = make_jaxpr(grad(jit(f)))(1.0)
    assert len(closed.eqns) == 2


def test_residuals_can_leave_jit():
    def f(x, y):
        return jnp.sin(x) * y

    out, f_vjp = jit(lambda x, y: vjp(f, x, y))(1.0, 2.0)
    close(out, np.float32(np.sin(1.0) * 2))
    close(jit(lambda g: g(1.0))(f_vjp), f_vjp(1.0))


def test_linear_transpose():
    close(linear_transpose(lambda x, y: 3 * x + 2 * y, 1.0, 1.0)(2.0), (6.0, 4.0))
    close(
        linear_transpose(jit(lambda x: x[::-1] * 2), np.ones(3, np.float32))(
            np.arange(3, dtype=np.float32)
        ),
        (np.float32([4, 2, 0]),),
    )


def test_what_is_not_linear_is_refused():
    for f in (jnp.sin, lambda x: x * x):
        with pytest.raises(NotImplementedError, match="linear"):
            linear_transpose(f, 1.0)(1.0)
    assert int(linear_transpose(lambda n: 2 * n, 1)(3)[0]) == 6  # integers are, too
    with pytest.raises(TypeError, match="cotangent tree does not match"):
        linear_transpose(lambda x: (x, x), 1.0)(1.0)


def test_vjp_checks_cotangents():
    _, f_vjp = vjp(lambda x: (x, x), 1.0)
    with pytest.raises(ValueError, match="tree structure"):
        f_vjp(1.0)
    with pytest.raises(ValueError, match=r"got f32\[3\], but expected f32\[\]"):
        f_vjp((1.0, np.ones(3, np.float32)))
    assert values(f_vjp((1.0, 2.0)))[0] == 3.0


CALLS = {
    "jit": jit(lambda x, y: jnp.sin(x) * y),
    "checkpoint": checkpoint(lambda x, y: jnp.sin(x) * y),
    "cond": lambda x, y: cond(x > 0, jnp.sin, jnp.cos, x * y),
    "scan": lambda x, y: scan(lambda c, _: (jnp.sin(c) * y + x, c), x, None, length=3)[0],
    "while": lambda x, y: while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, jnp.sin(s[1]) * y), (0, x)
    )[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_values_of_a_rule_that_differentiates_a_call_are_known(name):
    """The rule gives values and tangents out of one call; only the tangents belong on the tape."""
    f = CALLS[name]
    h = custom_jvp(lambda x, y: f(x, y))
    h.defjvp(lambda primals, tangents: jvp(f, primals, tangents))
    out, lin = linearize(h, 1.5, 2.0)
    close(out, f(1.5, 2.0))
    close(lin(1.0, 0.5), jvp(f, (1.5, 2.0), (1.0, 0.5))[1])
    close(grad(grad(h))(1.5, 2.0), grad(grad(f))(1.5, 2.0))
