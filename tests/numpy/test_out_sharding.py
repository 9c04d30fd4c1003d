"""`out_sharding` and `device` say where results live, in every function that has such a keyword."""

import pytest

import calque
import calque.numpy as jnp
from calque.sharding import SingleDeviceSharding

K, A = calque.random.key(0), jnp.ones((2, 2))
CALLS = {
    "normal": lambda s: calque.random.normal(K, (4,), out_sharding=s),
    "bits": lambda s: calque.random.bits(K, (4,), out_sharding=s),
    "permutation": lambda s: calque.random.permutation(K, 4, out_sharding=s),
    "gamma": lambda s: calque.random.gamma(K, 1.0, (4,), out_sharding=s),
    "matmul": lambda s: jnp.matmul(A, A, out_sharding=s),
    "einsum": lambda s: jnp.einsum("ij,jk", A, A, out_sharding=s),
    "reshape": lambda s: jnp.reshape(A, (4,), out_sharding=s),
    "repeat": lambda s: jnp.repeat(A, 2, 0, out_sharding=s),
    "fftfreq": lambda s: jnp.fft.fftfreq(4, device=s),
    "astype": lambda s: jnp.astype(A, "int32", device=s),
    "initializer": lambda s: calque.nn.initializers.zeros(K, (4,), "float32", s),
}


CALLS["uniform initializer"] = lambda s: calque.nn.initializers.uniform()(K, (4,), "float32", s)


@pytest.mark.parametrize("name", CALLS)
def test_results_live_where_asked(name):
    d = calque.devices()[-1]
    assert CALLS[name](SingleDeviceSharding(d)).devices() == {d}
    with pytest.raises((TypeError, ValueError)):  # what is ignored would take anything
        CALLS[name]("nowhere")


@pytest.mark.parametrize(
    "call",
    [
        lambda spec: jnp.matmul(jnp.ones((2, 2)), jnp.ones((2, 2)), out_sharding=spec),
        lambda spec: jnp.zeros((2, 2), out_sharding=spec),
        lambda spec: calque.lax.dot(jnp.ones(2), jnp.ones(2), out_sharding=spec),
    ],
)
def test_a_spec_without_a_mesh_is_refused_by_its_name(call):
    with pytest.raises(ValueError, match=r"out_sharding P\(\).*needs a mesh.*set_mesh"):
        call(calque.sharding.PartitionSpec())
