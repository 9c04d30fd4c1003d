"""Casts between the relations of values to manual axes."""

import numpy as np
import pytest

import calque
from calque import lax
from calque import numpy as jnp
from calque.sharding import ManualAxisType, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.types import ShardingTypeError
from tests.transforms.devices.four_devices import four_devices


def line():
    return calque.make_mesh((4,), ("x",))


@four_devices
def test_casts_between_relations():
    seen = []

    @calque.shard_map(mesh=line(), in_specs=(P("x"), P()), out_specs=(P(), P("x"), P()))
    def f(v, w):
        summand = lax.pcast(v, "x", to="unreduced")
        shared = lax.pcast(w, "x", to="reduced")
        everyone = lax.all_gather(v, "x", tiled=True, to="invarying")
        seen.extend(calque.typeof(t).mat for t in (summand, shared, everyone))
        with pytest.raises(NotImplementedError, match="unreduced rule for sin"):
            jnp.sin(summand)
        with pytest.raises(ShardingTypeError, match="lhs is unreduced while rhs is not"):
            summand + v
        with pytest.raises(ValueError, match="Unsupported pcast from=invarying"):
            lax.pcast(w, "x", to="unreduced")
        return (
            lax.psum(summand + summand, "x"),
            lax.psum_scatter(summand, "x", tiled=True),
            everyone,
        )

    explicit_x = calque.device_put(jnp.arange(16.0), NamedSharding(line(), P("x")))
    total, scattered, everyone = f(explicit_x, jnp.arange(2.0))
    rows = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(total, 2 * rows.sum(0))
    np.testing.assert_array_equal(scattered, rows.sum(0))
    np.testing.assert_array_equal(everyone, rows.ravel())
    assert seen == [
        ManualAxisType(unreduced={"x"}),
        ManualAxisType(reduced={"x"}),
        ManualAxisType(),
    ]
