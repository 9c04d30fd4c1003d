"""Programs compiled ahead of their calls, for devices that are named when they are compiled."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.aot_devices import assigned, check_known, check_sizes
from tests.transforms.devices.four_devices import four_devices


def described(mesh, *spec):
    return calque.ShapeDtypeStruct((4, 2), "float32", sharding=NamedSharding(mesh, P(*spec)))


def abstract(size, name="x"):
    return AbstractMesh((size,), (name,), (AxisType.Auto,))


def test_what_has_devices_needs_no_others():
    assert assigned([None], None) == [None]
    check_known([None])
    check_sizes([None])
    lowered = calque.jit(jnp.sin).lower(1.0)
    assert lowered.compile(device_assignment=calque.devices()[:1])(0.0) == 0


@four_devices
def test_arguments_on_abstract_meshes_get_their_devices_when_they_are_compiled():
    two = calque.devices()[2:4]
    double = calque.jit(lambda x: x * 2)
    lowered = double.trace(described(abstract(2), "x")).lower(lowering_platforms=("cpu",))
    assert "num_partitions = 2" in lowered.as_text()
    with pytest.raises(RuntimeError, match="device_assignment cannot be `None`"):
        lowered.compile()
    with pytest.raises(
        ValueError, match=r"size of abstract mesh 2 .* length of device assignment: 1"
    ):
        lowered.compile(device_assignment=two[:1])
    out = lowered.compile(device_assignment=two)(np.ones((4, 2), np.float32))
    assert out.sharding == NamedSharding(Mesh(np.array(two), ("x",), (AxisType.Auto,)), P("x"))
    with pytest.raises(ValueError, match=r"Passing lowering_platforms .* is required"):
        double.lower(described(abstract(2), "x"))
    with pytest.raises(ValueError, match=r"Passing lowering_platforms .* is required"):
        double.trace(described(abstract(2), "x")).lower()


@four_devices
def test_devices_that_are_named_are_those_of_the_arguments():
    mesh = Mesh(np.array(calque.devices()[:2]), ("x",), (AxisType.Auto,))
    lowered = calque.jit(lambda x, y: (x, y)).lower(
        described(mesh, "x"), described(abstract(2), "x")
    )
    x, y = lowered.compile()(np.ones((4, 2), np.float32), np.ones((4, 2), np.float32))
    assert x.sharding == y.sharding == NamedSharding(mesh, P("x"))
    with pytest.raises(ValueError, match="must match the device_assignment calculated"):
        calque.jit(jnp.sin).lower(described(mesh, "x")).compile(
            device_assignment=calque.devices()[:1]
        )
    with pytest.raises(
        ValueError, match="AbstractMesh size: 4 does not match the device assignment"
    ):
        calque.jit(lambda x, y: x).lower(described(mesh, "x"), described(abstract(4), "x"))


@four_devices
def test_compiled_functions_refuse_arguments_that_are_elsewhere():
    mesh = calque.make_mesh((2, 2), ("x", "y"), (AxisType.Auto,) * 2, devices=calque.devices()[:4])
    host = np.ones((4, 4), np.float32)
    split = calque.device_put(host, NamedSharding(mesh, P("x", "y")))
    alike = calque.device_put(host, NamedSharding(mesh, P(("x",), ("y",))))
    turned = calque.device_put(host, NamedSharding(mesh, P("y", "x")))
    first, last = [calque.device_put(host, d) for d in (calque.devices()[0], calque.devices()[3])]
    f = calque.jit(lambda v: v * 2)
    for given, right, wrong in (
        (split, (split, alike, host), (turned, last)),
        (host, (host, jnp.asarray(host), first), (split, last)),
        (last, (last, host), (first, split)),
    ):
        compiled = f.lower(given).compile()
        for x in right:
            np.testing.assert_array_equal(compiled(x), 2 * host)
        for x in wrong:
            with pytest.raises(ValueError, match=r"disagree .*\nArgument v with shape float32"):
                compiled(x)
