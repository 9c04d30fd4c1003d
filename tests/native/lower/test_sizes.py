"""What is known about the numbers that index expressions take."""

import numpy as np

import calque
import calque.numpy as jnp
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import const, ex, var


def test_bounds_of_an_index_chosen_by_comparing_floats():
    """Only what is compared as integers bounds a choice: floats have no interval."""
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    z = np.arange(9, dtype=np.int32) % 3

    @calque.jit
    def counts(limit):
        return jnp.bincount(jnp.where(x < limit, 1, z), length=3)

    np.testing.assert_array_equal(
        counts(np.float32(0.5)), np.bincount(np.where(x < 0.5, 1, z), minlength=3)
    )


def test_bounds_of_an_index_chosen_by_comparing_integers():
    z = np.arange(9, dtype=np.int32) % 3
    got = calque.jit(lambda z: jnp.zeros(4).at[jnp.where(z < 2, z, 3)].add(1.0))(z)
    np.testing.assert_array_equal(got, [3, 3, 0, 3])


def test_sizes_small_ones_are_baked() -> None:
    s = Sizes()
    assert s.dim(16).op == "const" and s.dim(17).op == "var"
    assert s.dim(17) is s.dim(17) and s.value(s.dim(1000)) == 1000
    assert s.dim(-3).attr == -3


def test_sizes_decide_by_the_values_behind_the_symbols() -> None:
    s = Sizes()
    i = var("i", s.dim(999))
    assert s.decide("lt", ex("add", i, const(1)), s.dim(1000)) is True
    assert s.decide("lt", ex("add", i, const(2)), s.dim(1000)) is None
    assert s.decide("ge", i, s.dim(2000)) is False
    assert Sizes(known=False).decide("lt", i, s.dim(1000)) is None


def test_fixed_sizes_are_those_of_every_call() -> None:
    """Free sizes have hints only; where every shape is served, nothing is fixed."""
    s = Sizes()
    s.dim(100), s.dim(3)
    s.values["n0"] = 64
    s.free.add("n0")
    assert s.fixed() == {"s100": 100}
    unknown = Sizes(known=False)
    unknown.dim(100)
    assert unknown.fixed() == {}
