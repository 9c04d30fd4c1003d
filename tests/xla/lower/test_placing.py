"""Shardings as text."""

import os
import subprocess
import sys

from tests.xla.mlir import assert_canonical, needs_jaxlib

SCRIPT = """
import calque as jax, calque.numpy as jnp
from calque.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)
def f(a):
    split = jax.lax.with_sharding_constraint(jnp.sin(a), NamedSharding(mesh, P("x", None)))
    spec = P(("x", "y"), P.UNCONSTRAINED)
    return jax.lax.with_sharding_constraint(split, NamedSharding(mesh, spec))
print(jax.jit(f).lower(jnp.ones((4, 4))).as_text())
"""


def text() -> str:
    command = [sys.executable, "-c", SCRIPT]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    environment = {**os.environ, **flags}
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_constraints_name_axes_of_a_mesh_of_the_module() -> None:
    shown = text()
    assert 'sdy.mesh @mesh = <["x"=2, "y"=2]>' in shown and "num_partitions = 4" in shown
    assert 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<4x4xf32>' in shown
    assert '<@mesh, [{"x", "y"}, {?}]>' in shown


@needs_jaxlib
def test_mlir_prints_the_same() -> None:
    assert_canonical(text())
