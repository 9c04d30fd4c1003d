"""Runs the tests of distribution in a process with four devices."""

import os
import pathlib
import subprocess
import sys

import pytest

import calque

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
FILES = [
    HERE.parent / "jit" / "test_pmap.py",
    *[
        HERE / f"test_{name}.py"
        for name in (
            "sharding",
            "shard_map",
            "single_map",
            "types",
            "assembling",
            "tiles",
            "casts",
            "type_constraints",
            "shard_map_equation",
            "sharding_arrays",
            "sharding_constraint",
            "sharding_propagation",
            "control_propagation",
            "open_results",
            "program_devices",
            "aot_devices",
            "summands",
            "type_rules",
            "type_whole",
            "type_windows",
            "typed_values",
            "unconstrained",
            "variance",
        )
    ],
    ROOT / "tests" / "test_devices.py",
]


@pytest.mark.skipif(calque.device_count() > 1, reason="this is the process with four devices")
def test_on_four_devices():
    env = {**os.environ, "CALQUE_NUM_CPU_DEVICES": "4"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *map(str, FILES),
    ]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


PEER = """
import importlib, sys
import numpy as np
name = sys.argv[1]
jax, jnp = importlib.import_module(name), importlib.import_module(name + ".numpy")
sharding = importlib.import_module(name + ".sharding")
lax, P = jax.lax, sharding.PartitionSpec
mesh = sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
line = sharding.Mesh(np.array(jax.devices()), ("i",))
s = sharding.NamedSharding(mesh, P("x", None))
x = jax.device_put(jnp.arange(16.0).reshape(4, 4), s)
loss = lambda w, v: jnp.mean((v * w) ** 2)
inside = lambda f, out: jax.jit(jax.shard_map(f, mesh=line, in_specs=(P(), P("i")), out_specs=out))(2.0, jnp.arange(8.0))
print(mesh, repr(mesh), s, P("x", ("y",)), P(("x", "y")), jax.make_mesh((2, 2), ("a", "b")))
print(repr(x), x.sharding, x.addressable_shards, x.device, x.is_fully_replicated)
print([y.sharding.spec for y in (jnp.sin(x), x.sum(), x @ x.T, x.T, x[0], x.reshape(16))])
print(s.devices_indices_map((4, 4)), s.shard_shape((4, 4)), s.is_equivalent_to(sharding.NamedSharding(mesh, P("x")), 2))
print(repr(jax.device_put(1.0, jax.devices()[1]).sharding), jax.devices(), jax.devices()[2])
out = jax.pmap(lambda v: lax.psum(v, "i") + v, axis_name="i")(jnp.arange(4.0))
print(out, out.sharding)
print(jax.jit(lambda a: (a + 1, a.sum()), in_shardings=s, out_shardings=(s, None))(jnp.ones((4, 4)))[0].sharding)
print(inside(lambda w, v: jax.grad(loss)(w, v), P()), inside(lambda w, v: lax.pmean(jax.grad(loss)(w, v), "i"), P()))
print(inside(lambda w, v: jax.grad(lambda w: (lax.all_gather(v * w, "i") * v).sum())(w), P()))
print(inside(lambda w, v: jax.grad(lambda v: lax.psum(lax.psum(w * v.sum(), "i") * v.sum(), "i"))(v), P("i")))
"""


@pytest.mark.peer
@pytest.mark.skipif(calque.device_count() > 1, reason="this is the process with four devices")
def test_as_jax():
    pytest.importorskip("jax")
    env = {**os.environ, "CALQUE_NUM_CPU_DEVICES": "4",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}  # fmt: skip

    def run(name):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PEER, name],
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )

    ours, theirs = run("calque"), run("jax")
    assert ours.returncode == 0 and theirs.returncode == 0, ours.stderr + theirs.stderr
    assert ours.stdout == theirs.stdout
