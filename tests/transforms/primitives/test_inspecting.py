"""Looking at where values of programs are, on one device."""

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.transforms.primitives.inspecting import Inspection, inspect_sharding_p


def test_a_program_tells_once_and_computes_the_same():
    told = []
    inspection = Inspection(told.append, "here")

    def f(x):
        inspect_sharding_p.bind(x * 2, inspection=inspection)
        return x + 1

    x = np.arange(3.0)
    g = calque.jit(f)
    for _ in range(3):
        assert g(x).tolist() == [1, 2, 3]
    assert told == ["here"]


def test_derivatives_lanes_and_loops_look_at_the_whole_value():
    seen = []
    inspection = Inspection(seen.append, "here")

    def f(x):
        inspect_sharding_p.bind(x, inspection=inspection)
        return (x * x).sum()

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert calque.jit(calque.grad(f))(x).tolist() == (2 * x).tolist()
    assert calque.vmap(f)(x).tolist() == (x * x).sum(1).tolist()
    (avals,) = [
        [v.aval.shape for v in e.invars]
        for e in calque.make_jaxpr(calque.vmap(f))(x).eqns
        if e.primitive is inspect_sharding_p
    ]
    assert avals == [(2, 3)]
    out = calque.jit(lambda v: lax.fori_loop(0, 3, lambda i, c: (f(c), c + 1)[1], v))(jnp.ones(2))
    assert out.tolist() == [4, 4] and seen[0] == "here"
