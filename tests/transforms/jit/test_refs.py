"""Jitted functions that touch Refs, given as arguments or closed over."""

import pytest

import calque
import calque.numpy as jnp
from calque.ref import new_ref
from calque.transforms.jit.traced import stats


def counted(f):
    """The result, and how many functions were traced for it."""
    before = stats.traces
    out = f()
    return out, stats.traces - before


def test_refs_among_arguments_are_traced_once_for_their_types():
    @calque.jit
    def f(x, r, *, more):
        r[...] = r[...] * x
        more["r"][0] = x
        return r[...].sum()

    a, b = new_ref(jnp.ones(2)), new_ref(jnp.zeros(3))
    out, first = counted(lambda: f(2.0, a, more={"r": b}))
    assert first and float(out) == 4 and a[...].tolist() == [2, 2] and b[...].tolist() == [2, 0, 0]
    out, again = counted(lambda: f(3.0, a, more={"r": b}))
    assert not again and float(out) == 12 and b[...].tolist() == [3, 0, 0]
    other = new_ref(jnp.ones(2))
    _, again = counted(lambda: f(5.0, other, more={"r": b}))
    assert not again and other[...].tolist() == [5, 5] and a[...].tolist() == [6, 6]
    with pytest.raises(ValueError, match="the same Ref twice"):
        f(1.0, b, more={"r": b})


def test_refs_that_are_closed_over_keep_what_was_written():
    r = new_ref(jnp.zeros(()))

    @calque.jit
    def step(x):
        r[...] = r[...] + x
        return r[...] * 2

    outs, traced = counted(lambda: [float(step(1.0)) for _ in range(3)])
    assert outs == [2, 4, 6] and float(r[...]) == 3
    r[...] = 10.0
    (value, again) = counted(lambda: float(step(1.0)))
    assert value == 22 and not again and traced
    assert float(calque.jit(lambda x: step(x) + step(x))(1.0)) == 24 + 26


def test_static_arguments_keep_their_places():
    r = new_ref(jnp.ones(2))
    f = calque.jit(lambda n, x: r.__setitem__(..., r[...] * n) or x * n, static_argnums=0)
    assert float(f(3, 2.0)) == 6 and r[...].tolist() == [3, 3]
    g = calque.jit(lambda n, r: r.__setitem__(..., r[...] + n), static_argnums=0)
    g(4, r)
    g(5, r)
    assert r[...].tolist() == [12, 12]


def test_a_ref_is_no_result():
    with pytest.raises(ValueError, match="mutable array references cannot be returned"):
        calque.jit(lambda r: r)(new_ref(jnp.ones(2)))
