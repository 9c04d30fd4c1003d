"""shard_map with its older signature."""

import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.experimental.shard_map import shard_map

P = calque.sharding.PartitionSpec


def mesh():
    return calque.make_mesh((1, 1), ("x", "y"), (calque.sharding.AxisType.Auto,) * 2)


def test_the_mesh_stands_second():
    f = shard_map(lambda v: lax.psum(v, "x") * 2, mesh(), P("x"), P())
    assert f(jnp.arange(3.0)).tolist() == [0, 2, 4]
    new = calque.shard_map(lambda v: v * 2, mesh=mesh(), in_specs=P("x"), out_specs=P("x"))
    old = shard_map(lambda v: v * 2, mesh(), in_specs=P("x"), out_specs=P("x"))
    x = jnp.arange(3.0)
    assert (old(x) == new(x)).all() and old(x).sharding == new(x).sharding


def test_axes_that_are_not_mapped():
    seen = []

    def f(v):
        seen.append(calque.sharding.get_abstract_mesh().manual_axes)
        return v

    shard_map(f, mesh(), P("x"), P("x"), auto=frozenset({"y"}))(jnp.ones(2))
    shard_map(f, mesh(), P("x"), P("x"))(jnp.ones(2))
    assert seen == [("x",), ("x", "y")]
    with pytest.raises(NameError, match="unbound axis name: y"):
        shard_map(lambda v: lax.psum(v, "y"), mesh(), P(), P(), auto=frozenset({"y"}))(jnp.ones(2))


def test_the_check_of_results_is_an_option():
    def f(v):
        return v + lax.axis_index("x")

    with pytest.raises(ValueError, match="check_vma=False"):
        shard_map(f, mesh(), P(), P())(jnp.ones(2))
    assert shard_map(f, mesh(), P(), P(), check_rep=False)(jnp.ones(2)).tolist() == [1, 1]
