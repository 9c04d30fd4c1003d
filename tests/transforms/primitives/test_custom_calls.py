"""Calls with rules of the user: what custom_jvp and custom_vjp have in common."""

import functools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.errors import CustomVJPException, UnexpectedTracerError
from calque.core.primitives import Zero
from calque.transforms.functions.autodiff import grad, jvp, linear_transpose
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.custom_calls import refuse_closures
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([0.3, -0.8, 1.4], np.float32)


def with_jvp(f):
    g = calque.custom_jvp(f)
    g.defjvp(lambda p, t: (g(*p), 3 * t[0]))
    return g


def with_vjp(f):
    g = calque.custom_vjp(f)
    g.defvjp(lambda *a: (f(*a), None), lambda _, ct: (3 * ct,))
    return g


@pytest.mark.parametrize("custom", [with_jvp, with_vjp])
def test_concrete_values_inside_may_be_looked_at(custom):
    """The function is called, not traced, as long as nothing records it."""
    seen = []

    def f(x):
        seen.append(float(x))
        return x * 2 if x > 1 else x

    g = custom(f)
    assert float(g(2.0)) == 4 and float(g(0.5)) == 0.5 and seen == [2.0, 0.5]
    with pytest.raises(calque.errors.ConcretizationTypeError):
        jit(g)(2.0)


@pytest.mark.parametrize(
    "custom, name", [(with_jvp, "custom_jvp_call"), (with_vjp, "custom_vjp_call")]
)
def test_recorded_calls_hold_their_program_and_take_what_it_captures(custom, name):
    def outer(x, w):
        return custom(lambda v: jnp.sin(v) * w)(x)

    closed = verified(outer, 0.5, 2.0)
    (e,) = [e for e in closed.eqns if e.primitive.name == name]
    assert e.params["num_consts"] == 1 and len(e.invars) == 2
    assert primitives_of(e.params["call_jaxpr"]) == ["sin", "mul"]
    close(jit(outer)(0.5, 2.0), np.float32(np.sin(0.5) * 2), 1e-6)
    close(jit(grad(outer))(0.5, 2.0), np.float32(3))


@pytest.mark.parametrize("custom", [with_jvp, with_vjp])
def test_a_rule_says_nothing_of_captured_values(custom):
    """At once or recorded, with and without a tangent of the operand."""

    def alone(w):
        return custom(lambda v: v * w)(1.0)

    def both(w):
        return custom(lambda v: v * w)(w)

    error = CustomVJPException if custom is with_vjp else UnexpectedTracerError
    for f in (alone, both, jit(alone), jit(both), vmap(alone, in_axes=None, axis_size=2)):
        for g in (grad(lambda w, f=f: f(w).sum()), lambda w, f=f: jvp(f, (w,), (1.0,))):
            for h in (g, jit(g)):
                with pytest.raises(error, match="with respect to a closed-over value"):
                    h(2.0)
    for f in (vmap(alone), jit(vmap(alone)), vmap(jit(alone))):  # values it may be
        close(f(X), X)
    refuse_closures("f", [Zero(calque.typeof(1.0))], "custom_jvp")
    with pytest.raises(TypeError, match="custom_jvp function f with respect to a closed-over"):
        refuse_closures("f", [1.0], "custom_jvp")


@pytest.mark.parametrize("custom", [with_jvp, with_vjp])
def test_the_transpose_is_that_of_the_program(custom):
    f = custom(lambda x: 2 * x)
    close(linear_transpose(jit(f), np.float32(0))(np.float32(1)), (np.float32(2),))


@pytest.mark.parametrize("custom", [with_jvp, with_vjp])
def test_batches(custom):
    f = custom(jnp.sin)
    close(vmap(f)(X), np.sin(X), 1e-6)
    close([vmap(grad(f))(X), grad(lambda x: vmap(f)(x).sum())(X)], [np.full(3, 3, "f")] * 2)
    nested = vmap(vmap(jit(f), 1, 1))(np.stack([X, X]).reshape(1, 2, 3))
    close(nested, np.sin(np.stack([X, X]).reshape(1, 2, 3)), 1e-6)


def test_libraries_bind_equations_anew():
    f = calque.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (f(*p), 5 * t[0]))

    def anew(x):
        (e,) = calque.make_jaxpr(f)(x).eqns
        params = e.primitive.get_bind_params(e.params)
        assert params["subfuns"][0].call_wrapped(x) == [2 * x]
        return e.primitive.bind(x, **params)[0]

    assert anew(3.0) == 6.0
    assert calque.jvp(anew, (3.0,), (1.0,))[1] == 5.0


def _with_captured_lanes(kind, x, z):
    """x * sin(z) by a function whose rule reads `x`, a value of the `vmap` around the call."""
    if kind == "jvp":
        g = calque.custom_jvp(lambda y: x * jnp.sin(y))
        g.defjvp(lambda p, t: (g(*p), x * jnp.cos(p[0]) * t[0]))
        return g(z)
    g = calque.custom_vjp(lambda y: x * jnp.sin(y))
    g.defvjp(lambda y: (x * jnp.sin(y), (x, y)), lambda res, ct: (res[0] * jnp.cos(res[1]) * ct,))
    return g(z)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("wrap", [lambda f: f, calque.jit])
def test_rules_read_values_of_a_vmap_that_their_argument_does_not_have(kind, wrap):
    xs = jnp.arange(3.0)

    def f(z):
        return calque.vmap(lambda x: _with_captured_lanes(kind, x, z))(xs)

    np.testing.assert_allclose(wrap(calque.jacrev(f))(1.0), xs * np.cos(1.0), rtol=1e-6)
    zs = jnp.array([1.0, 2.0])
    per_lane = wrap(calque.vmap(calque.grad(lambda z: f(z).sum())))(zs)
    np.testing.assert_allclose(per_lane, 3 * np.cos(zs), rtol=1e-6)
    np.testing.assert_allclose(
        wrap(calque.vmap(f, out_axes=1))(zs), xs[:, None] * np.sin(zs), rtol=1e-6
    )
    if kind == "jvp":
        out, tangent = wrap(lambda z: calque.jvp(f, (z,), (2.0,)))(1.0)
        np.testing.assert_allclose(out, xs * np.sin(1.0), rtol=1e-6)
        np.testing.assert_allclose(tangent, 2 * xs * np.cos(1.0), rtol=1e-6)


def test_lanes_of_an_argument_that_is_not_differentiated_meet_their_own():
    @functools.partial(calque.custom_jvp, nondiff_argnums=(0,))
    def f(x, y):
        return x * y

    f.defjvp(lambda x, p, t: (f(x, *p), x * t[0]))
    xs, ys = jnp.arange(3.0), jnp.arange(3.0) + 1
    out, tangent = calque.jvp(lambda y: calque.vmap(f)(xs, y), (ys,), (jnp.ones(3),))
    assert out.tolist() == [0, 2, 6]
    assert tangent.tolist() == [0, 1, 2]
    both = calque.vmap(calque.vmap(f, (None, 0)), (0, 0), out_axes=1)
    y = jnp.stack([ys, ys])
    out, tangent = calque.jvp(lambda y: both(xs[:2], y), (y,), (jnp.ones((2, 3)),))
    assert out.tolist() == [[0, 1], [0, 2], [0, 3]]
    assert tangent.tolist() == [[0, 1], [0, 1], [0, 1]]
