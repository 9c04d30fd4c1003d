"""Arrays that are brought to devices of several processes, or from one layout there to another."""

from __future__ import annotations

import numpy as np
import pytest

from calque.transforms.jit.several_processes import of_all
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both


@needs_jaxlib
def test_device_put_brings_elements_from_other_processes() -> None:
    in_both("""
        everything = [numbers.tolist()] * 2
        assert parts(jax.device_put(x, whole)) == everything
        assert parts(lax.with_sharding_constraint(x, whole)) == everything
        assert parts(jax.device_put(jax.device_put(x, whole), rows)) == parts(x)
        square = np.arange(16, dtype=np.float32).reshape(4, 4)
        columns = jax.NamedSharding(mesh, jax.P(None, "x"))
        y = jax.make_array_from_callback((4, 4), rows, lambda i: square[i])
        turned = jax.device_put(y, columns)
        own = range(2 * index, 2 * index + 2)
        assert parts(turned) == [square[:, k : k + 1].tolist() for k in own]
        more = jax.jit(lambda v: v + 1)(turned)
        assert parts(more) == [(square[:, k : k + 1] + 1).tolist() for k in own]
        assert jax.device_put(x, rows) is x and parts(x) == [[float(k)] for k in own]
        back = jax.sharding.Mesh(np.array(jax.devices()[::-1]), ("x",))
        reversed_rows = jax.NamedSharding(back, jax.P("x"))
        z = jax.device_put(x, reversed_rows)
        assert {s.device: s.data.tolist() for s in z.addressable_shards} == {
            d: [3.0 - k] for d, k in zip(jax.local_devices(), own)
        }
        raises(lambda: jax.jit(jnp.add)(x, z), ValueError, "incompatible devices")
        turning = jax.jit(jnp.copy, out_shardings=reversed_rows)
        raises(lambda: turning(x), ValueError, "incompatible devices")
    """)


@needs_jaxlib
def test_what_device_put_cannot_bring_is_refused() -> None:
    in_both("""
        here, first = jax.local_devices()[0], jax.sharding.Mesh(jax.local_devices(), "x")
        y = jax.device_put(x, whole)
        for target in (here, jax.NamedSharding(first, jax.P())):
            raises(lambda: jax.device_put(x, target), ValueError, "stays on those")
            raises(lambda: jax.device_put(y, target), ValueError, "stays on those")
        raises(lambda: jax.device_put(numbers + index, rows), AssertionError, "not the same in")
        placed = jax.device_put(numbers, here)
        raises(lambda: jax.device_put(placed, rows), ValueError, "committed to")
        assert parts(jax.device_put(jnp.arange(4.0), rows)) == parts(x)
        far = jax.device_put(numbers, jax.devices()[3])
        assert len(far.addressable_shards) == index and far.shape == (4,)
        text = "[0., 1., 2., 3.]" if index else "shape=(4,)"
        assert repr(far) == f"Array({text}, dtype=float32)"
    """)


@pytest.mark.parametrize("value", [np.int64(3), np.arange(3.0), np.zeros((2, 0)), np.array(True)])
def test_the_values_of_one_process(value: np.ndarray) -> None:
    found = of_all(np.asarray(value))
    assert found.dtype == value.dtype and np.array_equal(found, np.asarray(value)[None])
