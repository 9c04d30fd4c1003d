"""Shardings follow values through loops and branches on calque's own engine."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from tests.transforms.devices.four_devices import four_devices


def over(*entries):
    mesh = Mesh(np.array(calque.devices("cpu")[:4]).reshape(2, 2), ("x", "y"))
    return NamedSharding(mesh, P(*entries))


def turning(c, _):
    return c.T, c


LOOPS = {
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x), P("x", "y")),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 99, lambda c: c * 2, x), P("x", "y")),
    "carry": (lambda x: lax.scan(lambda c, r: (c + r, r * 2), x[0], x)[0], P("y")),
    "rows": (lambda x: lax.scan(lambda c, r: (c + r, r * 2), x[0], x)[1], P(None, "y")),
    "unplaced": (lambda x: lax.scan(lambda c, r: (c + r, r), jnp.zeros(4), x)[0], P("y")),
    "turning": (lambda x: lax.scan(turning, x, length=2)[0], P()),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, lambda v: v, lambda v: v * 2, x), P("x", "y")),
    "one side": (lambda x: lax.cond(x[0, 0] > 0, lambda v: v.T, lambda v: v, x), P()),
    "nested": (
        lambda x: lax.fori_loop(
            0, 2, lambda i, c: lax.cond(i > 0, lambda v: v + 1, lambda v: v, c), x
        ),
        P("x", "y"),
    ),
}


@four_devices
@pytest.mark.parametrize("name", LOOPS)
def test_results_stay_as_every_round_and_branch_leaves_them(name):
    f, spec = LOOPS[name]
    x = calque.device_put(jnp.ones((4, 4)), over("x", "y"))
    for g in (calque.jit(f), f):
        assert g(x).sharding.is_equivalent_to(over(*spec), g(x).ndim), g(x).sharding
        np.testing.assert_array_equal(g(x), calque.jit(f)(np.ones((4, 4), np.float32)))


@four_devices
def test_a_loop_that_turns_its_carry_has_it_whole():
    x = calque.device_put(jnp.ones((4, 4)), over("x"))
    assert calque.jit(lambda v: lax.scan(turning, v, length=2))(x)[1].sharding.is_fully_replicated
