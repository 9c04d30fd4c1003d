"""How shardings in types follow through windows, convolutions and picked elements."""

import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.types import ShardingTypeError
from tests.transforms.devices.four_devices import four_devices

pytestmark = four_devices


@pytest.fixture
def mesh():
    mesh = calque.make_mesh((2, 2), ("x", "y"))
    with calque.set_mesh(mesh):
        yield mesh


def ones(shape, *entries):
    return calque.device_put(jnp.ones(shape), P(*entries))


def spec_of(f, *args):
    """The spec of the result while tracing, which is that of the result, with gradients alike."""
    (out,) = calque.make_jaxpr(f)(*args).out_avals
    assert calque.jit(f)(*args).sharding.spec == out.sharding.spec
    grad = calque.jit(calque.grad(lambda x: f(x, *args[1:]).sum()))(args[0])
    assert grad.sharding.spec == args[0].sharding.spec
    return out.sharding.spec


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 1), (1, 2, 1), "SAME")


@pytest.mark.parametrize("entries", [("x", "y", None), ("x", None, "y"), (("x", "y"), None, None)])
def test_windows_keep_what_still_fits(mesh, entries):
    assert spec_of(pooled, ones((4, 8, 2), *entries)) == P(*entries)
    with pytest.raises(ShardingTypeError, match="is not divisible by mesh axes"):
        calque.jit(pooled)(ones((4, 2, 2), None, "x", None))


def test_convolutions_keep_batches_and_places(mesh):
    def f(x, w):
        numbers = ("NWC", "WIO", "NWC")
        return lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=numbers)

    w = ones((3, 2, 6))
    assert spec_of(f, ones((4, 8, 2), "x", "y", None), w) == P("x", "y", None)
    by_features = ones((3, 2, 6), None, None, "y")
    assert calque.jit(f)(ones((4, 8, 2), "x"), by_features).sharding.spec == P("x", None, "y")
    with pytest.raises(ShardingTypeError, match="features that are summed over"):
        calque.jit(f)(ones((4, 8, 2), None, None, "x"), w)


def test_pieces_and_the_largest(mesh):
    x = ones((4, 8), "x", None)
    assert spec_of(lambda v: lax.split(v, (4, 4), axis=1)[1], x) == P("x", None)
    assert spec_of(lambda v: lax.split(v, (2, 2), axis=0)[0], x) == P("x", None)
    assert spec_of(lambda v: lax.top_k(v, 3)[0], x) == P("x", None)
    with pytest.raises(ShardingTypeError, match="split on sharded dims"):
        calque.jit(lambda v: lax.split(v, (1, 3), axis=0))(x)
    with pytest.raises(ShardingTypeError, match="input should be unsharded over the axis"):
        calque.jit(lambda v: lax.top_k(v, 3))(ones((4, 8), None, "y"))


def test_loops_take_rows_of_what_is_whole(mesh):
    def f(x):
        return lax.scan(lambda c, row: (c, row * 2), 0.0, x)[1]

    assert calque.jit(f)(ones((4, 8), None, "x")).sharding.spec == P(None, "x")
    with pytest.raises(ValueError, match="0th dimension of all xs should be replicated"):
        calque.jit(f)(ones((4, 8), "x"))


def test_programs_are_made_ready_for_arrays_that_are_gone(mesh):
    x = ones((4, 8), "x")
    f = calque.jit(lambda v: v + 1, donate_argnums=0)
    assert f(x).sharding == NamedSharding(mesh, P("x", None)) and x.is_deleted()
    assert f.lower(x).compile()(ones((4, 8), "x")).shape == (4, 8)
