import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import (
    AbstractDevice,
    ManualAxisType,
    Mesh,
    PartitionSpec,
)
from tests.transforms.devices.four_devices import four_devices

P = PartitionSpec


def mesh(n=1):
    return Mesh(np.array(calque.devices()[:n]), ("x",))


@four_devices
def test_over_devices():
    def f(v, w):
        return {"sum": lax.psum(v, "x"), "own": v * w}

    with calque.set_mesh(mesh(4)):
        out = calque.smap(f, in_axes=(1, None), out_axes={"sum": None, "own": 1}, axis_name="x")(
            jnp.arange(8.0).reshape(2, 4), 2.0
        )
    np.testing.assert_array_equal(out["own"], 2 * np.arange(8.0).reshape(2, 4))
    np.testing.assert_array_equal(out["sum"], [[6.0], [22.0]])


def test_on_one_device():
    with calque.set_mesh(mesh()):

        @calque.smap(in_axes=0, out_axes=0, axis_name="x")
        def double(v):
            return v * 2

        np.testing.assert_array_equal(double(jnp.arange(3.0)), [0, 2, 4])
    with pytest.raises(TypeError, match="in_axes must be None, a dimension from 0 on"):
        calque.smap(lambda v: v, in_axes=-1, out_axes=0, axis_name="x")
    with pytest.raises(TypeError, match="a single axis"):
        calque.smap(lambda v: v, in_axes=0, out_axes=0, axis_name=("x", "y"))


def test_descriptions():
    assert AbstractDevice("TPU v5", 2, "tpu").num_cores == 2
    kind = ManualAxisType(varying={"x"}, unreduced={"y"})
    assert kind == ManualAxisType(varying=["x"], unreduced=["y"]) and "varying={'x'}" in repr(kind)
    with pytest.raises(ValueError, match="both varying and reduced"):
        ManualAxisType(varying={"x"}, reduced={"x"})
