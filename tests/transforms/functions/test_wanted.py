"""Which cotangents are wanted, and where they go."""

import functools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.primitives import Zero
from calque.ref import new_ref
from calque.transforms.functions.wanted import (
    DidntWant,
    DontWant,
    GradRef,
    GradValue,
    NotNeeded,
    delivered,
)


def test_cotangents_are_added_to_refs():
    ad = calque.ad
    _, f_vjp = calque.vjp(lambda x, p: x * p["a"], 2.0, {"a": 3.0})
    total = new_ref(jnp.array(10.0))
    found = f_vjp.with_refs(total, {"a": ad.DontWant()})(2.0)
    assert found == (ad.GradRef(), {"a": ad.DidntWant()}) and float(total[...]) == 16
    dx, dp = f_vjp.with_refs(ad.GradValue(), {"a": total})(1.0)
    assert (float(dx), dp, float(total[...])) == (3, {"a": ad.GradRef()}, 18)
    with pytest.raises(ValueError, match="one entry for each argument"):
        f_vjp.with_refs(total)

    @functools.partial(calque.jit)
    def accumulated(xs, r):
        for i in range(3):
            calque.vjp(lambda x: x * x, xs[i])[1].with_refs(r)(1.0)

    sums = new_ref(jnp.array(0.0))
    accumulated(jnp.arange(3.0), sums)
    assert float(sums[...]) == 6


def test_where_one_cotangent_goes():
    ct, total = jnp.float32(2.0), new_ref(jnp.float32(1.0))
    assert delivered(GradValue(), ct) is ct and delivered(None, ct) is ct
    assert delivered(DontWant(), ct) == DidntWant()
    assert delivered(total, ct) == GradRef() and float(total[...]) == 3
    assert delivered(total, Zero(calque.typeof(ct))) == GradRef() and float(total[...]) == 3


def test_what_stands_for_cotangents_leaves_programs():
    @calque.jit
    def f():
        return GradRef(), DidntWant(), NotNeeded()

    assert f() == (GradRef(), DidntWant(), NotNeeded())
    assert calque.tree.leaves(f()) == []


def test_what_is_not_wanted_is_not_computed():
    x = np.arange(3, dtype="f")
    f_vjp = calque.vjp(lambda x, y: calque.numpy.sin(x) * y, x, x)[1]
    for places, count in (((DontWant(), True), 1), ((True, DontWant()), 2), ((True, True), 3)):
        closed = calque.make_jaxpr(f_vjp.with_refs(*places))(x)
        assert [e.primitive.name for e in closed.eqns].count("mul") == count
    assert f_vjp.with_refs(True, DontWant())(x)[0].tolist() == f_vjp(x)[0].tolist()
