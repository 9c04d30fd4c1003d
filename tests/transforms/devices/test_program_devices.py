"""Programs run on the devices of their arguments, and all that they say of meshes agrees."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.program_devices import (
    IncompatibleDevicesError,
    check_context,
    check_stays,
    common,
    described,
    of_read,
)
from tests.transforms.devices.four_devices import four_devices


def over(*sizes):
    devices = np.array(calque.devices()[: int(np.prod(sizes))]).reshape(sizes)
    return Mesh(devices, tuple("xy"[: len(sizes)]), (AxisType.Auto,) * len(sizes))


def test_types_are_described_by_their_whole_names():
    assert described(calque.typeof(jnp.ones((2, 3)))) == "float32[2,3]"
    assert common([None], [calque.typeof(1.0)], "f") is None


@four_devices
def test_arguments_and_constraints_of_a_program_are_on_the_same_devices():
    first = calque.device_put(jnp.ones((4, 2)), calque.devices()[0])
    two, four = NamedSharding(over(2), P("x")), NamedSharding(over(2, 2), P("x", "y"))
    split = calque.device_put(jnp.ones((4, 2)), two)

    def constrained(v):
        return lax.with_sharding_constraint(v, four)

    message = r"argument v of constrained with shape float32\[4,2\] and with device ids \[0\]"
    with pytest.raises(
        ValueError, match=message + r".*sharding_constraint inside jit.*\[0, 1, 2, 3\]"
    ):
        calque.jit(constrained)(first)
    with pytest.raises(IncompatibleDevicesError, match=r"argument v of .*jit inside jit"):
        calque.jit(lambda v: calque.jit(jnp.sin, in_shardings=four)(v))(split)
    with pytest.raises(IncompatibleDevicesError, match="argument v of"):
        calque.jit(lambda v: calque.device_put(v, four))(split)
    with pytest.raises(IncompatibleDevicesError, match=r"\[0, 1\].*\[0, 1, 2, 3\]"):
        calque.jit(jnp.sin, in_shardings=two, out_shardings=four)(jnp.ones((4, 2)))
    assert calque.jit(constrained)(jnp.ones((4, 2))).sharding == four  # placed nowhere before


@four_devices
def test_arrays_are_not_brought_to_other_devices_but_by_device_put():
    first, second = calque.devices()[:2]
    x = calque.device_put(jnp.arange(4), first)
    for make in (jnp.array, jnp.asarray):
        with pytest.raises(ValueError, match=r"device ids \[0\].*device ids \[1\]"):
            make(x, device=second)
        assert make(jnp.arange(4), device=second).devices() == {second}
    assert calque.device_put(x, second).devices() == {second}
    assert jnp.zeros_like(x, device=second).devices() == {second}
    check_stays(x, SingleDeviceSharding(first), "f")
    turned = Mesh(over(2).devices[::-1], ("x",), (AxisType.Auto,))
    split = calque.device_put(x, NamedSharding(over(2), P("x")))
    check_stays(split, NamedSharding(turned, P("x")), "f")
    with pytest.raises(IncompatibleDevicesError):
        check_stays(split, NamedSharding(turned, P("x")), "f", ordered=True)


@four_devices
def test_where_arguments_are_that_nobody_reads_does_not_matter():
    x, y = (calque.device_put(jnp.arange(3), d) for d in calque.devices()[:2])
    assert calque.jit(lambda a, b: a + 1)(x, y).devices() == {calque.devices()[0]}
    closed = calque.make_jaxpr(lambda a, b: a + 1)(x, y)
    assert of_read(closed, (x.sharding, y.sharding)) == (x.sharding, None)
    assert of_read(closed, (None, None)) == (None, None)


@four_devices
def test_functions_with_a_device_bring_their_arguments_there():
    first, second, third = calque.devices()[:3]
    x, y = calque.device_put(jnp.arange(3), first), calque.device_put(jnp.ones(3), second)
    add = calque.jit(lambda a, b: a + b, device=third)
    for _ in range(2):
        assert add(x, y).devices() == add(1, y).devices() == {third}
    assert x.devices() == {first}


@four_devices
def test_all_results_are_where_the_arguments_were_put():
    x = calque.device_put(1, calque.devices()[2])
    for out in calque.jit(lambda a, b: (a, b, jnp.ones(2)))(x, jnp.arange(2)):
        assert out.committed and out.devices() == {calque.devices()[2]}
    assert not calque.jit(lambda a: (a, jnp.ones(2)))(jnp.ones(1))[1].committed


def test_shardings_that_are_asked_for_are_over_the_mesh_that_is_set():
    kinds = (AxisType.Explicit, AxisType.Auto)
    explicit, auto = (Mesh(np.array(calque.devices()[:1]), ("x",), (k,)) for k in kinds)
    s = NamedSharding(explicit, P("x"))
    asks = (
        lambda: jnp.zeros(4, out_sharding=s),
        lambda: jnp.arange(4.0).reshape(4, out_sharding=s),
    )
    for ask in asks:
        with calque.set_mesh(explicit):
            assert ask().sharding == s
        with calque.set_mesh(auto), pytest.raises(ValueError, match=r"Context mesh .*should match"):
            ask()
    check_context(s, explicit, "f")


@four_devices
def test_devices_in_another_order_are_refused():
    devices = np.array(calque.devices()[:4])
    kinds = (AxisType.Auto,)
    line, turned = (Mesh(d, ("x",), axis_types=kinds) for d in (devices, devices[::-1]))
    host = np.arange(8.0, dtype=np.float32)
    x, y = (calque.device_put(host, NamedSharding(m, P("x"))) for m in (line, turned))
    twice = {"mesh": turned, "in_specs": P("x"), "out_specs": P("x")}
    there = NamedSharding(turned, P("x"))
    for f, args in (
        (lambda a, b: a + b, (x, y)),
        (calque.jit(lambda a, b: a + b), (x, y)),
        (calque.jit(lambda a: a * 2, out_shardings=there), (x,)),
        (calque.jit(lambda a: lax.with_sharding_constraint(a, there)), (x,)),
        (calque.shard_map(lambda a: a * 2, **twice), (x,)),
        (calque.jit(calque.shard_map(lambda a: a * 2, **twice)), (x,)),
    ):
        with pytest.raises(ValueError, match=r"incompatible devices .*\[0, 1, 2, 3\].*\[3, 2"):
            f(*args)
    assert calque.jit(lambda a: a * 2)(y).sharding == there
    assert calque.device_put(x, there).sharding == there
    np.testing.assert_array_equal(calque.shard_map(lambda a: a * 2, **twice)(y), 2 * host)
