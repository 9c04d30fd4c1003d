"""Arrays made of parts, and parts of arrays."""

import numpy as np
import pytest

import calque
from calque import numpy as jnp
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.errors import UnexpectedTracerError
from calque.sharding import Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from tests.transforms.devices.four_devices import four_devices


def row():
    return NamedSharding(Mesh(np.array(calque.devices()[:4]), ("i",)), P("i"))


@four_devices
def test_arrays_are_made_of_parts_on_their_devices():
    parts = [calque.device_put(jnp.full(2, float(k)), d) for k, d in enumerate(calque.devices())]
    made = ArrayImpl(ShapedArray((8,), np.float32), row(), parts[:4], committed=True)
    np.testing.assert_array_equal(made, [0, 0, 1, 1, 2, 2, 3, 3])
    assert made.sharding == row() and len(made._arrays) == 4
    other = ShapedArray((8,), np.int32)
    with pytest.raises(
        ValueError, match=r"must have matching dtypes\. Got float32, expected int32"
    ):
        ArrayImpl(other, row(), parts[:4], committed=True)
    with pytest.raises(ValueError, match=r"must have one shard each\. An argument array had 4"):
        calque.make_array_from_single_device_arrays((8,), row(), [made] * 4)
    shifted = NamedSharding(Mesh(np.array(calque.devices()[:2]), ("i",)), P("i"))
    with pytest.raises(ValueError, match=r"devices \{0, 1\} that are not present in per-device"):
        calque.make_array_from_single_device_arrays((4,), shifted, parts[2:4])


def test_parts_must_be_arrays_at_hand():
    x = jnp.arange(4.0)
    with pytest.raises(TypeError, match="`arrays` argument must be a list or tuple"):
        calque.make_array_from_single_device_arrays((4,), x.sharding, x)
    with pytest.raises(ValueError, match="requires a list of concrete arrays"):
        calque.jit(lambda v: calque.make_array_from_single_device_arrays((4,), x.sharding, [v]))(x)
    with pytest.raises(ValueError, match="it must match the dtype of the addressable shards"):
        calque.make_array_from_single_device_arrays((4,), x.sharding, [x], dtype=jnp.int32)
    with pytest.raises(UnexpectedTracerError, match="cannot be called within a traced context"):
        calque.jit(lambda v: calque.make_array_from_callback((4,), x.sharding, lambda i: v[i]))(x)
    assert not x.addressable_shards[0].data.committed


def test_process_data_takes_devices_and_shapes():
    data = {"a": np.arange(10).reshape(2, 5)}
    out = calque.make_array_from_process_local_data(calque.devices()[0], data, {"a": (2, 5)})
    np.testing.assert_array_equal(out["a"], data["a"])
    with pytest.raises(ValueError, match="on a single process"):
        calque.make_array_from_process_local_data(calque.devices()[0], data, (2, 8))


@four_devices
def test_copies_and_likes_stay_where_the_model_is():
    x = calque.device_put(jnp.arange(8.0), row())
    assert jnp.array(x, copy=True).sharding == jnp.zeros_like(x).sharding == row()
    compiled = calque.jit(lambda v: v * 2).lower(x).compile()
    assert compiled.input_shardings == ((row(),), {}) and compiled.output_shardings == row()


def test_the_buffer_protocol_shows_the_memory():
    x = jnp.arange(6, dtype=jnp.int16).reshape(2, 3)
    view = memoryview(x)
    assert view.shape == (2, 3) and view.readonly and view.tobytes() == np.asarray(x).tobytes()
    x.delete()
    assert view.tobytes() == np.arange(6, dtype=np.int16).tobytes()
    with pytest.raises(RuntimeError, match="deleted"):
        memoryview(x)
    with pytest.raises(BufferError, match="Buffers of type BF16 are not supported"):
        memoryview(jnp.ones(2, jnp.bfloat16))
    np.testing.assert_array_equal(np.asarray(jnp.ones(2, jnp.bfloat16)), [1, 1])


def test_a_dtype_that_is_given_is_that_of_the_parts():
    s = calque.sharding.SingleDeviceSharding(calque.devices()[0])
    host = np.arange(4.0)
    x = calque.make_array_from_callback((4,), s, lambda i: host[i], dtype=np.float32)
    assert x.dtype == np.float32 and x.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"must match .*dtype=float16 and shard dtype=float32"):
        calque.make_array_from_callback((4,), s, lambda i: host[i], dtype=np.float16)
