"""shard_map as an equation of a recorded program, and what transformations make of it."""

import numpy as np
import pytest

import calque
from calque import lax
from calque import numpy as jnp
from calque.sharding import Mesh
from calque.sharding import PartitionSpec as P
from tests.transforms.devices.four_devices import four_devices

X = np.arange(1.0, 9.0, dtype=np.float32)


def over(f, ins, outs, **options):
    mesh = Mesh(np.array(calque.devices()[:4]), ("i",))
    return calque.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)


def maps_in(jaxpr):
    return [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "shard_map"]


@four_devices
def test_programs_show_the_map_and_its_types():
    f = over(lambda v, w: v * w + lax.psum(v, "i"), (P("i"), P()), P("i"))
    (e,) = calque.make_jaxpr(f)(X, 2.0).jaxpr.eqns
    assert e.primitive.name == "shard_map" and e.params["out_specs"] == (P("i"),)
    text = str(e.params["jaxpr"])
    assert "f32[2]{V:i}" in text and "pvary[axes=('i',)]" in text and "psum_invariant" in text
    np.testing.assert_array_equal(calque.jit(f)(X, 2.0), f(X, 2.0))


@four_devices
@pytest.mark.parametrize("check", [False, True])
def test_derivatives_of_recorded_maps(check):
    def loss(w, x):
        inner = over(
            lambda w, v: lax.psum(jnp.sin(w * v).sum(), "i"), (P(), P("i")), P(), check_vma=check
        )
        return inner(w, x) ** 2

    want = calque.grad(lambda w, x: jnp.sin(w * x).sum() ** 2, (0, 1))(0.3, X)
    for g in (calque.grad(loss, (0, 1)), calque.jit(calque.grad(loss, (0, 1)))):
        for a, b in zip(g(0.3, X), want):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    jvp = calque.jit(lambda x: calque.jvp(lambda x: loss(0.3, x), (x,), (jnp.ones(8),))[1])(X)
    np.testing.assert_allclose(jvp, want[1].sum(), rtol=1e-5)
    assert len(maps_in(calque.make_jaxpr(calque.grad(loss))(0.3, X))) == 2


@four_devices
def test_residuals_without_dimensions_are_handed_on():
    f = over(lambda v: v * jnp.exp(v.sum()), P("i"), P("i"))
    want = calque.grad(lambda v: f(v).sum())(0.1 * X)
    got = calque.jit(calque.grad(lambda v: f(v).sum()))(0.1 * X)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@four_devices
def test_custom_derivatives_survive_the_map():
    @calque.custom_vjp
    def twice(x):
        return 2.0 * x

    twice.defvjp(lambda x: (twice(x), None), lambda _, ct: (jnp.ones_like(ct),))
    f = over(lambda v: twice(v) * v, P("i"), P("i"))
    for g in (calque.grad, lambda h: calque.jit(calque.grad(h))):
        np.testing.assert_array_equal(g(lambda v: f(v).sum())(X), 1 + 2 * X)


@four_devices
def test_batches_of_recorded_maps():
    f = over(lambda v: v - lax.pmean(v, "i"), P("i"), P("i"))
    rows = np.stack([X, X * X])
    closed = calque.make_jaxpr(calque.vmap(f))(rows)
    (e,) = maps_in(closed)
    assert e.params["in_specs"] == (P(None, "i"),)
    np.testing.assert_allclose(calque.jit(calque.vmap(f))(rows), calque.vmap(f)(rows))


@four_devices
def test_what_nobody_reads_leaves_the_map():
    f = over(lambda a, b: (jnp.sin(a), jnp.cos(b)), (P("i"), P("i")), (P("i"), P("i")))
    closed = calque.make_jaxpr(lambda a, b: calque.jit(f)(a, b)[0])(X, X)
    np.testing.assert_allclose(calque.jit(lambda a, b: f(a, b)[0])(X, X), np.sin(X), rtol=1e-6)
    assert closed.out_avals[0].shape == (8,)


@four_devices
def test_loops_inside_keep_their_types_through_gradients():
    def f(w, x):
        def step(w, a):
            return w - 0.001 * calque.grad(lambda w: (w * a**2).sum())(w), w

        return lax.scan(step, w, x.reshape(2, 1))[0]

    want = 2.0 - 0.001 * float((X**2).sum())
    g = over(f, (P(), P("i")), P())
    for h in (g, calque.jit(g), over(calque.jit(f), (P(), P("i")), P())):
        np.testing.assert_allclose(h(2.0, jnp.asarray(X)), want, rtol=1e-6)
