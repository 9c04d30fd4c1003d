"""Arrays that lie alike."""

import pytest

import calque
import calque.numpy as jnp
from calque.experimental.shard_alike import shard_alike
from calque.sharding import NamedSharding, PartitionSpec


def placed(n=4):
    mesh = calque.make_mesh((1,), ("i",))
    return calque.device_put(jnp.ones(n), NamedSharding(mesh, PartitionSpec("i")))


def test_the_other_follows():
    x = placed()
    for pair in (shard_alike(x, jnp.zeros(4)), shard_alike(jnp.zeros(4), x)):
        assert [a.sharding for a in pair] == [x.sharding, x.sharding]
    a, b = shard_alike([jnp.ones(2)], [jnp.zeros(2)])
    assert a[0].tolist() == [1, 1] and b[0].tolist() == [0, 0]


def test_traced_values():
    f = calque.jit(lambda x: shard_alike(x, x * 2)[1])
    assert f(placed()).tolist() == [2] * 4
    assert calque.grad(lambda x: shard_alike(x, x * 2)[1])(1.0) == 2


def test_refusals():
    with pytest.raises(ValueError, match="Trees should be equal"):
        shard_alike([1.0], (1.0,))
    with pytest.raises(ValueError, match="shapes of `x` and `y` must be the same"):
        shard_alike(jnp.ones(2), jnp.ones(3))
