"""Two processes with two devices each: they meet, share arrays, add up; and what is said when
nobody comes. The processes of these tests are started here."""

from __future__ import annotations

import pathlib
import socket
import subprocess
import sys

import pytest

from calque.xla.processes import wait_for_somebody
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import (
    come_to_their_end,
    environment,
    free_address,
    in_both,
    two,
)

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = """
import sys
import numpy as np, calque as jax, calque.numpy as jnp
from calque import lax
from calque.experimental import multihost_utils
address, index = sys.argv[1], int(sys.argv[2])
jax.distributed.initialize(address, num_processes=2, process_id=index)
assert (jax.process_index(), jax.process_count(), jax.process_indices()) == (index, 2, [0, 1])
assert (jax.device_count(), jax.local_device_count()) == (4, 2)
assert [d.process_index for d in jax.devices()] == [0, 0, 1, 1]
assert jax.local_devices() == jax.devices()[2 * index : 2 * index + 2]
mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
rows, whole = jax.NamedSharding(mesh, jax.P("x")), jax.NamedSharding(mesh, jax.P())

own = np.arange(4.0, dtype=np.float32).reshape(2, 2) + 10 * index
x = jax.make_array_from_process_local_data(rows, own)
assert x.shape == (4, 2) and not x.is_fully_addressable and x.sharding == rows
assert [s.device for s in x.addressable_shards] == jax.local_devices()
np.testing.assert_array_equal(np.concatenate([s.data for s in x.addressable_shards]), own)
try:
    np.asarray(x)
except RuntimeError as e:
    assert "non-addressable" in str(e), e
else:
    raise AssertionError("fetched")
expected = np.concatenate([np.arange(4.0).reshape(2, 2) + 10 * i for i in range(2)])

total = jax.jit(lambda v: v.sum())(x)
assert float(total) == expected.sum() and total.is_fully_replicated
summed = lambda v: lax.psum(v, "x")
mapped = jax.shard_map(summed, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P())
np.testing.assert_array_equal(jax.jit(mapped)(x), expected.sum(0, keepdims=True))
y = jax.jit(lambda v: v * 2, donate_argnums=0)(jax.jit(lambda v: v + 1)(x))
np.testing.assert_array_equal(jax.jit(lambda v: v, out_shardings=whole)(y), (expected + 1) * 2)
z = jax.make_array_from_callback((4, 2), rows, lambda i: expected[i].astype(np.float32))
np.testing.assert_array_equal(multihost_utils.process_allgather(z, tiled=True), expected)
placed = jax.device_put(expected.astype(np.float32), rows)
np.testing.assert_array_equal(multihost_utils.process_allgather(placed, tiled=True), expected)
np.testing.assert_array_equal(np.asarray(jax.device_put(np.ones(3), whole)), np.ones(3))

assert multihost_utils.process_allgather(np.int32(index)).tolist() == [0, 1]
assert multihost_utils.broadcast_one_to_all(np.float32(index + 5)) == 5
assert multihost_utils.broadcast_one_to_all(np.float32(index), is_source=index == 1) == 1
multihost_utils.sync_global_devices("a place")
try:
    multihost_utils.assert_equal(np.float32(index), "they differ")
except AssertionError as e:
    assert "they differ" in str(e), e
else:
    raise AssertionError("they are equal")
local = jax.jit(lambda v: v + 1)(np.float32(index))  # a program of each by itself
assert float(local) == index + 1 and local.devices() == {jax.local_devices()[0]}
jax.distributed.shutdown()
print("whole", index)
"""


@needs_jaxlib
def test_two_processes() -> None:
    come_to_their_end(two(SCRIPT))


READING = """
import sys, weakref
import ml_dtypes
import numpy as np, calque as jax, calque.numpy as jnp
address, index = sys.argv[1], int(sys.argv[2])
jax.distributed.initialize(address, num_processes=2, process_id=index)
own = jax.local_device_count()
mesh = jax.make_mesh((2, own), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)
each, both, rows, whole = [
    jax.NamedSharding(mesh, p) for p in (jax.P("x"), jax.P(("x", "y")), jax.P("y"), jax.P())
]

def parts(x):
    seen = [np.asarray(s.data) for s in x.addressable_shards]
    assert [s.shape for s in seen] == [x.sharding.shard_shape(x.shape)] * own
    return [s.real.astype(float).tolist() for s in seen]

for dtype in ("float32", "bool", "complex64", ml_dtypes.bfloat16, ml_dtypes.int4):
    # one part for each device, and one for all of a process
    for where, n in ((both, own), (each, 1)):
        x = jax.make_array_from_process_local_data(where, np.ones((n, 3), dtype))
        y = jax.jit(jnp.copy, out_shardings=where)(x)
        assert parts(x) == parts(y) == [[[1.0] * 3]] * own
        none = jax.make_array_from_process_local_data(where, np.ones((n, 0), dtype))
        assert parts(none) == [[[]]] * own and parts(jax.jit(jnp.copy)(none))
        del x, y
    z = jax.jit(jnp.copy, out_shardings=whole)(jax.device_put(np.ones((2, 3), dtype), rows))
    seen, buffer = np.asarray(z), weakref.ref(z._owner)
    assert seen.tolist() == [[1.0] * 3] * 2 and buffer() is not None
    del z, seen
    assert buffer() is None
    gone = jax.jit(jnp.copy, out_shardings=whole)(jax.device_put(np.ones((2, 3), dtype), rows))
    gone.delete()
    try:
        np.asarray(gone)
    except RuntimeError as e:
        assert "deleted" in str(e), e
    else:
        raise AssertionError("read")
jax.distributed.shutdown()
print("whole", index)
"""


@needs_jaxlib
@pytest.mark.parametrize("devices", [1, 2])
def test_what_a_process_has_is_read(devices: int) -> None:
    """Also where it has one device of several, and where its devices hold the same."""
    come_to_their_end(two(READING, devices))


DYING = """
import os, sys
import numpy as np, calque as jax
address, index = sys.argv[1], int(sys.argv[2])
jax.distributed.initialize(
    address, num_processes=2, process_id=index, heartbeat_timeout_seconds=10
)
mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
rows = jax.NamedSharding(mesh, jax.P("x"))
x = jax.make_array_from_process_local_data(rows, np.ones(2, "f4"))
f = jax.jit(lambda v: v.sum())
assert float(f(x)) == 4
if index == 1:
    os._exit(0)
try:
    while True:
        float(f(x))
except RuntimeError as e:
    print("raised", e, flush=True)
os._exit(0)
"""


@needs_jaxlib
def test_a_process_that_dies_is_an_error_for_the_others() -> None:
    first, second = two(DYING)
    try:
        out, error = first.communicate(timeout=200)
        second.communicate(timeout=200)
    finally:
        first.kill()
        second.kill()
    # gloo has seen the connection close, or the service has missed the heartbeats
    assert (
        "raised" in out and "start all of them again" in out
    ) or "tasks have crashed" in error, error[-3000:]


@needs_jaxlib
def test_the_example() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "two_processes.py")],
        env=environment(1),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "process 0 of 2" in done.stdout and "process 1 of 2: 128 rows on 2" in done.stdout


def test_nobody_listens() -> None:
    with pytest.raises(RuntimeError, match=r"nobody listens at 127\.0\.0\.1:\d+ after 0 seconds"):
        wait_for_somebody(free_address(), 0)
    with pytest.raises(ValueError, match="coordinator_address is host:port, got 'nowhere'"):
        wait_for_somebody("nowhere", 1)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        wait_for_somebody(f"127.0.0.1:{s.getsockname()[1]}", 5)


@needs_jaxlib
def test_each_process_has_its_own_processor_beside_the_devices_of_all() -> None:
    in_both("""
        processors = jax.devices("cpu")
        assert processors == jax.local_devices(backend="cpu")
        assert [d.process_index for d in processors] == [index, index]
        y = jax.device_put(numbers, processors[1])
        assert y.devices() == {processors[1]} and (y + 1).tolist() == (numbers + 1).tolist()
        assert jax.device_put(x.addressable_shards[0].data, processors[0]).tolist() == [2 * index]
        with jax.default_device(processors[0]):
            assert (jnp.ones(2) + 1).devices() == {processors[0]}
        raises(lambda: jax.device_put(x, processors[0]), ValueError, "stays on those")
        jax.distributed.shutdown()  # arrays that are there stay over several processes
        assert jax.process_count() == 2 and repr(x) == "Array(shape=(4,), dtype=float32)"
    """)
