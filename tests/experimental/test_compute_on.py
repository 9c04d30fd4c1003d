"""On which processor of a device something is computed."""

import pytest

import calque
import calque.numpy as jnp
from calque.experimental.compute_on import compute_on, compute_on2

DEVICE = calque.memory.Space.Device


def test_blocks_and_decorators():
    with compute_on("device_host"):
        assert calque.jit(lambda x: x + 1)(1) == 2

    @compute_on("gpu_stream:1")
    def f(x):
        return x * 2

    assert calque.jit(f)(2) == 4


def test_functions():
    f = compute_on2(lambda x, y: {"sum": x + y}, compute_type="device_host",
                    out_memory_spaces=DEVICE)  # fmt: skip
    assert calque.jit(f)(1.0, 2.0)["sum"] == 3 and calque.grad(lambda x: f(x, x)["sum"])(1.0) == 2

    @compute_on2(compute_type="device", out_memory_spaces=(DEVICE, DEVICE))
    def g(x):
        return x, x + 1

    assert calque.vmap(g)(jnp.arange(2))[1].tolist() == [1, 2] and g.__name__ == "g"


def test_refusals():
    with pytest.raises(ValueError, match="Invalid compute type 'nowhere'"), compute_on("nowhere"):
        pass
    with pytest.raises(TypeError, match="must be a string"), compute_on(3):
        pass
    with pytest.raises(TypeError, match="out_memory_spaces takes members"):
        compute_on2(jnp.sin, compute_type="device", out_memory_spaces="host")
