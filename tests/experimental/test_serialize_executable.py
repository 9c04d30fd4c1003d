"""Compiled functions as bytes, also for another process."""

import subprocess
import sys

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.experimental.serialize_executable import deserialize_and_load, serialize

CONST = jnp.arange(4.0)


@jax.jit
def layer(x, params):
    y = jax.nn.relu(x @ params["w"]) + CONST
    return {"y": y, "total": lax.scan(lambda c, row: (c + row, c), jnp.zeros(4), y)[0]}


ARGUMENTS = jnp.ones((3, 4)), {"w": jnp.eye(4) * 2}


def test_round_trip():
    compiled = layer.lower(*ARGUMENTS).compile()
    loaded = deserialize_and_load(*serialize(compiled))
    for got, want in zip(jax.tree.leaves(loaded(*ARGUMENTS)), jax.tree.leaves(layer(*ARGUMENTS))):
        np.testing.assert_array_equal(got, want)
    assert loaded.in_tree == compiled.in_tree and loaded.out_tree == compiled.out_tree
    with pytest.raises(TypeError, match=r"Argument types differ(?s:.*)called with float32\[2\]"):
        loaded(jnp.ones(2), ARGUMENTS[1])


LOAD = """
import pickle, sys
from calque.experimental.serialize_executable import deserialize_and_load
import calque.numpy as jnp
compiled = deserialize_and_load(*pickle.loads(bytes.fromhex(sys.argv[1])))
print(float(compiled(jnp.ones(3), 2.0)))
"""


def test_another_process():
    import pickle

    compiled = jax.jit(lambda x, y: (x * y).sum()).lower(jnp.ones(3), 2.0).compile()
    text = pickle.dumps(serialize(compiled)).hex()
    out = subprocess.run([sys.executable, "-c", LOAD, text], capture_output=True, text=True)
    assert out.stdout.strip() == "6.0", out.stderr


def test_what_cannot_be_written_or_loaded():
    def called(x):
        return jax.pure_callback(lambda v: v, x, x)

    with pytest.raises(ValueError, match="cannot be written"):
        serialize(jax.jit(called).lower(jnp.ones(2)).compile())
    written = serialize(jax.jit(lambda x: x + 1).lower(1.0).compile())
    with pytest.raises(ValueError, match=r"compiled for .*, and the backend is 'gpu'"):
        deserialize_and_load(*written, backend="gpu")
    with pytest.raises(ValueError, match=r"was compiled for .*:0, got \['nowhere'\]"):
        deserialize_and_load(*written, execution_devices=["nowhere"])
    (device,) = jax.jit(lambda x: x + 1)(1.0).devices()
    again = deserialize_and_load(*written, backend=device.platform, execution_devices=[device])
    assert again(1.0) == 2
