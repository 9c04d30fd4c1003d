"""Equations whose bodies find sizes, as functions of NumPy arrays that calque's own engine runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.xla.lower.found_bodies import finds_inside, natively

X = np.array([1, -2, 3, -4], np.float32)


def loop(x: Any, bounds: Any) -> Any:
    return lax.scan(lambda c, t: (c + 1, x[x < t].sum()), 0, bounds)


def test_which_equations_find_sizes_inside() -> None:
    eqns = jax.make_jaxpr(loop)(X, X).eqns
    assert [finds_inside(e) for e in eqns] == [e.primitive.name == "scan" for e in eqns]
    plain = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, x))(X)
    assert not any(map(finds_inside, plain.eqns))


def test_it_gives_what_the_equation_means() -> None:
    closed = jax.make_jaxpr(loop)(X, X)
    (e,) = (e for e in closed.eqns if e.primitive.name == "scan")
    given = {"f32[4]": X, "i32[]": np.int32(0)}
    for times in (1, 2):
        run = natively(e)
        args = [np.asarray(given[v.aval.str_short()]) * times for v in e.invars]
        rounds, sums = run(*args, **e.params)
        assert rounds == 4
        np.testing.assert_allclose(sums, [(X * times)[t * times > X * times].sum() for t in X])


def test_results_that_nobody_reads() -> None:
    closed = jax.make_jaxpr(lambda x: loop(x, jnp.asarray(X))[1])(X)
    (e,) = (e for e in closed.eqns if e.primitive.name == "scan")
    assert (
        len(e.outvars) == 2
        and len(natively(e)(*[np.zeros(v.aval.shape, v.aval.dtype) for v in e.invars])) == 2
    )
