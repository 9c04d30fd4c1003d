"""Programs with a batching rule of their own, without the decorator."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, jvp
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.primitives.custom_batching import custom_vmap_call_p
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([0.4, -0.3, 0.8], np.float32)


def bound(f, rule):
    """A function of scalars whose equation holds this flat rule."""

    def call(*args):
        closed = make_jaxpr(f)(*[calque.ShapeDtypeStruct((), calque.typeof(a).dtype) for a in args])
        return custom_vmap_call_p.bind(*args, call=closed, in_tree=None, out_tree=None, rule=rule)

    return call


def asking(log, f, shared=()):
    """A rule that applies `f` to whole batches; results in `shared` are for all lanes."""

    def rule(size, batched, args):
        log.append((size, list(batched)))
        outs = f(*args)
        return list(outs), [any(batched) and i not in shared for i in range(len(outs))]

    return rule


def sine_times(x, y):
    return jnp.sin(x) * y, jnp.cos(y)


def first(x, y):
    return sine_times(x, y)[:1]


def test_the_rule_gets_batches_along_their_first_dimension():
    log = []
    f = bound(sine_times, asking(log, sine_times, shared=(1,)))
    got = vmap(f, (0, None), [0, None])(X, np.float32(2))
    close(got, sine_times(X, np.float32(2)))
    assert log == [(3, [True, False])]
    close(f(np.float32(0.5), np.float32(2)), sine_times(np.float32(0.5), np.float32(2)))
    assert len(log) == 1  # evaluated it is the program


def test_vmap_of_derivatives_asks_the_derivative_of_the_rule():
    log = []
    f = bound(first, asking(log, first))

    def tangent(x, y):
        return jvp(lambda x, y: f(x, y)[0], (x, y), (1.0, 0.5))[1]

    close(vmap(tangent, (0, None))(X, 2.0), np.cos(X) * 2 + np.sin(X) / 2, 1e-6)
    assert log and log[0][0] == 3
    check(lambda x, y: f(x, y)[0], np.array(0.4), np.array(1.3), batched=False)
    close(vmap(grad(lambda x: f(x, np.float32(2))[0]))(X), np.cos(X) * 2, 1e-6)


def test_values_come_from_the_equation_and_derivatives_from_the_program():
    f = bound(lambda x: (x * x,), asking([], lambda x: (x * x + 1,)))
    value, slope = calque.value_and_grad(lambda x: vmap(lambda v: f(v)[0])(x).sum())(X)
    close(value, (X * X + 1).sum(), 1e-6)
    close(slope, 2 * X)


def test_rules_that_return_other_shapes_are_refused():
    def rule(size, batched, args):
        return [args[0][:2]], [True]

    with pytest.raises(ValueError, match=r"rule rule must return .* shape \(3,\) at output 0"):
        vmap(bound(lambda x: (x,), rule))(X)

    def claims(size, batched, args):
        return [args[0]], [False]

    with pytest.raises(ValueError, match=r"shape \(\) at output 0 \(not batched"):
        vmap(bound(lambda x: (x,), claims))(X)


def test_the_shape_of_a_lane_is_what_the_rule_returns():
    z = np.array([2.0, 1.0, 3.0], np.float32)
    f = calque.custom_batching.custom_vmap(lambda x: z + x)
    f.def_vmap(lambda size, batched, xs: (z + 2 * xs, batched[0]))
    assert calque.vmap(f)(np.arange(3.0)).tolist() == [2, 3, 7]
    assert calque.jit(calque.vmap(f))(np.arange(3.0)).tolist() == [2, 3, 7]
