"""Calls of programs: their rules, their dead code, their equations in place of them."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.core.trace import jaxpr_as_fun
from calque.transforms.functions.autodiff import grad, jvp
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.call import dead_code_of_call, inline_calls, jit_p
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([0.3, -0.8, 1.4], np.float32)


def depth(n):
    """A function of calls in calls."""
    f = jit(lambda x, y: (jnp.sin(x) * y, y))
    for _ in range(n):
        f = jit(lambda x, y, f=f: (f(y, x)[0] + f(x, 2.0)[1], x))
    return f


@pytest.mark.parametrize("n", [0, 1, 3])
def test_derivatives_of_calls_in_calls(n):
    check(lambda x, y: depth(n)(x, y)[0], X, X + 1)


def test_calls_are_replaced_by_their_equations():
    captured = np.arange(3.0, dtype=np.float32)

    def f(x, y):
        a, same = depth(2)(x, y)
        return a, same, jit(lambda v: v)(y), jit(lambda: captured * 2)(), 3.0

    closed = make_jaxpr(f)(X, X + 1)
    opened = inline_calls(closed)
    assert "jit" not in primitives_of(opened) and inline_calls(closed) is opened
    close(jaxpr_as_fun(opened)(X, X + 1), jaxpr_as_fun(closed)(X, X + 1))
    plain = make_jaxpr(jnp.sin)(X)
    assert inline_calls(plain) is plain


def test_what_nobody_reads_leaves_the_call():
    def f(x, y, z):
        return jnp.sin(x) + z, jnp.cos(y), z

    (e,) = make_jaxpr(jit(f))(1.0, 2.0, 3.0).eqns
    kept = dead_code_of_call(e, [False, True, False])
    assert kept.invars == [e.invars[1]] and kept.outvars == [e.outvars[1]]
    assert primitives_of(kept.params["jaxpr"]) == ["cos"]
    assert dead_code_of_call(e, [False, True, False]).params["jaxpr"] is kept.params["jaxpr"]
    donated = e.replace(params={**e.params, "donated_invars": (True, False, True)})
    assert dead_code_of_call(donated, [True, False, False]).params["donated_invars"] == (True, True)


def test_calls_with_nothing_to_do_are_not_recorded():
    closed = make_jaxpr(lambda x, y: jit_p.call(swap, [x, y], {"name": "swap"}))(1.0, 2.0)
    assert closed.eqns == [] and closed.jaxpr.outvars == closed.jaxpr.invars[::-1]


swap = make_jaxpr(lambda x, y: (y, x))(1.0, 2.0)


def test_what_comes_out_of_a_transformation_donates_nothing():
    closed = make_jaxpr(jnp.sin)(np.float32(1))

    def f(x):
        return jit_p.bind(x, jaxpr=closed, name="f", donated_invars=(True,))[0]

    assert make_jaxpr(f)(1.0).eqns[0].params["donated_invars"] == (True,)
    for g, x in ((grad(f), np.float32(1)), (vmap(f), X)):
        calls = [e for e in make_jaxpr(g)(x).eqns if e.primitive is jit_p]
        assert calls and not any("donated_invars" in e.params for e in calls)


def test_zero_tangents_stay_out_of_calls():
    f = jit(lambda x, n: (x * n, n + 1))
    (call,) = make_jaxpr(lambda x, t: jvp(lambda x: f(x, 3), (x,), (t,))[1][0])(1.0, 1.0).eqns
    inner = call.params["jaxpr"]
    assert call.primitive is jit_p and len(inner.in_avals) == 3 and len(inner.out_avals) == 3
