"""Refs given to vmap, checkpoint, branches, scan, jvp, make_jaxpr and custom rules; cotangents that
are added to Refs."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.ref import new_ref


def put(r, value):
    r[...] = value


def doubled(r):
    r[...] = r[...] * 2


def test_lanes_have_rows_of_a_ref():
    r, shared = new_ref(jnp.arange(6.0).reshape(2, 3)), new_ref(jnp.array(10.0))

    def lane(x, r, shared):
        r[0] = r[1] * x + shared[...]
        return x + r[...].sum()

    got = calque.vmap(lane, in_axes=(0, 1, None))(jnp.arange(3.0), r, shared)
    assert r[...].tolist() == [[10, 14, 20], [3, 4, 5]]
    assert got.tolist() == [13, 19, 27]
    calque.jit(calque.vmap(calque.vmap(doubled)))(r)
    assert r[...].tolist() == [[20, 28, 40], [6, 8, 10]]
    calque.vmap(lambda r: put(r, 1.0), in_axes=0)(r_all := new_ref(jnp.zeros(4)))
    assert r_all[...].tolist() == [1] * 4
    with pytest.raises(ValueError, match="every lane would write"):
        calque.vmap(put, in_axes=(None, 0))(shared, jnp.arange(3.0))
    with pytest.raises(ValueError, match="the same Ref twice"):
        calque.vmap(lambda a, b: None)(r_all, r_all)


def test_lanes_choose_what_they_write():
    r = new_ref(jnp.zeros(4))

    def step(x, r):
        return lax.cond(x > 1, lambda: put(r, x * x), lambda: None)

    calque.vmap(step)(jnp.arange(4.0), r)
    assert r[...].tolist() == [0, 0, 4, 9]

    def loss(x, r):
        return (put(r, r[...] + 1), x * x * r[...])[1]

    assert calque.vmap(calque.grad(loss))(jnp.arange(4.0), r).tolist() == [0, 2, 20, 60]


def test_checkpointed_functions_touch_refs():
    log = new_ref(jnp.array(1.0))

    def f(x, r=log):
        r[...] = r[...] + 1
        return jnp.sin(x) * r[...]

    for g, count in (
        (lambda x: calque.checkpoint(f)(x), 1),
        (lambda x: calque.checkpoint(f)(x, log), 1),
        (lambda x: calque.checkpoint(f)(x, r=log), 1),
        (lambda x: lax.scan(lambda c, _: (calque.checkpoint(f)(c), None), x, length=2)[0], 2),
    ):
        for transform in (
            lambda g: g,
            calque.jit,
            calque.grad,
            lambda g: calque.jit(calque.grad(g)),
        ):
            put(log, 1.0)
            transform(g)(0.5)
            assert float(log[...]) == 1 + count  # written once, whatever is computed again
    put(log, 1.0)
    np.testing.assert_allclose(calque.grad(calque.checkpoint(f))(0.5), 2 * np.cos(0.5), rtol=1e-6)


def test_branches_and_rows_of_scans():
    r = new_ref(jnp.array(1.0))
    for p, want in ((True, 5), (False, 6)):
        for choose in (
            lax.cond,
            calque.jit(lambda p, *fs: lax.cond(p, *fs), static_argnums=(1, 2)),
        ):
            choose(p, lambda r: put(r, 5.0), lambda r: put(r, 6.0), r)
            assert float(r[...]) == want
    assert float(lax.switch(1, [lambda r, x: x, lambda r, x: r[...] * x], r, 2.0)) == 12
    rows = new_ref(jnp.ones((3, 2)))

    def step(c, x):
        doubled(x["r"])
        return c + x["r"][...].sum() * x["k"], x["k"]

    last, ks = lax.scan(step, 0.0, {"r": rows, "k": jnp.arange(3.0)})
    assert (float(last), ks.tolist(), rows[...].tolist()) == (12, [0, 1, 2], [[2, 2]] * 3)


def test_several_refs_in_nested_control_flow():
    """A Ref that an inner construct wrote is read after it, and others are written then."""
    a, b, c = (new_ref(jnp.array(0.0)) for _ in range(3))

    def body(i, x):
        lax.cond(x > 0, lambda: put(a, a[...] + x), lambda: put(b, b[...] - x))
        put(c, a[...] * 2 + b[...])
        return x - c[...]

    last = calque.jit(lambda x: lax.fori_loop(0, 3, body, x))(1.0)
    assert [float(v) for v in (last, a[...], b[...], c[...])] == [-11, 1, 5, 7]


def test_gradients_are_stashed():
    @calque.custom_vjp
    def stash(r, x):
        return x

    stash.defvjp(
        lambda r, x: (x, {"r": r, "n": 1}), lambda kept, ct: (put(kept["r"], ct), (None, ct))[1]
    )

    def loss(x, r):
        return stash(r, jnp.sin(x)) ** 2

    for g in (calque.grad(loss), calque.jit(calque.grad(loss))):
        r = new_ref(jnp.array(0.0))
        np.testing.assert_allclose(g(1.0, r), 2 * np.sin(1) * np.cos(1), rtol=1e-6)
        np.testing.assert_allclose(r[...], 2 * np.sin(1), rtol=1e-6)
    lanes = new_ref(jnp.zeros(2))
    calque.vmap(calque.grad(loss))(jnp.array([1.0, 2.0]), lanes)
    np.testing.assert_allclose(lanes[...], 2 * np.sin([1, 2]), rtol=1e-6)


def test_tangents_of_refs():
    r, t = new_ref(jnp.array(3.0)), new_ref(jnp.array(1.0))

    def f(x, r):
        r[...] = r[...] * x
        return r[...] + 1

    assert [float(v) for v in calque.jvp(f, (2.0, r), (1.0, t))] == [7, 5]
    assert (float(r[...]), float(t[...])) == (6, 5)
    _, _, aux = calque.jvp(lambda x, r: (x, r[...]), (2.0, r), (1.0, t), has_aux=True)
    assert float(aux) == 6
    with pytest.raises(TypeError, match="the tangent of a Ref is a Ref"):
        calque.jvp(f, (2.0, r), (1.0, 1.0))


def test_programs_of_functions_of_refs():
    r = new_ref(jnp.ones(2))
    closed = calque.make_jaxpr(lambda r, x: (doubled(r), x + 1)[1])(r, 2.0)
    assert [a.shape for a in closed.in_avals] == [(2,), ()] and [
        a.shape for a in closed.out_avals
    ] == [(), (2,)]
    assert r[...].tolist() == [1, 1]


def test_a_ref_is_not_reached_by_two_ways():
    """As an argument it is another Ref, so one that is closed over, too, would be told what it held
    before."""
    r, other = new_ref(jnp.float32(1.0)), new_ref(jnp.float32(7.0))

    @calque.jit
    def both(y):
        y[...] = 2.0
        return r[...]

    @calque.jit
    def inside_a_loop(y):
        return lax.fori_loop(0, 2, lambda i, s: s + r[...], y[...])

    for f in (both, inside_a_loop, calque.jit(lambda y: both(y))):
        for _ in range(2):
            with pytest.raises(ValueError, match="both closed over and passed as the argument y"):
                f(r)
    assert r[...] == 1.0
    assert both(other) == 1.0 and other[...] == 2.0  # another one is welcome
    rows = new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match="both closed over and passed as an argument"):
        calque.vmap(lambda y: y[...] + rows[0])(rows)
    with pytest.raises(ValueError, match="both closed over and passed as an argument"):
        lax.scan(lambda c, y: (c + rows[0], y[...]), 0.0, rows)
    with pytest.raises(ValueError, match="twice, as both y and z"):
        calque.jit(lambda y, z: put(y, z[...]))(r, r)
    assert calque.jit(lambda y: y[...] + 1)(r) == 2.0
