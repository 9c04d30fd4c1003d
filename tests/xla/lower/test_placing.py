"""Shardings as text."""

import os
import subprocess
import sys

import calque as jax
import calque.numpy as jnp
from calque import export
from calque.sharding import SingleDeviceSharding
from tests.xla.mlir import assert_canonical, needs_jaxlib, printed

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


CALLBACKS = """
import calque as jax, calque.numpy as jnp
from calque.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding
mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
where = NamedSharding(mesh, P("x"))
last = SingleDeviceSharding(jax.devices()[3])
def f(a):
    jax.debug.callback(print, a)
    return jax.pure_callback(lambda a: a, a, a, sharding=last)
print(jax.jit(f, in_shardings=where, out_shardings=where).lower(jnp.ones(4)).as_text())
"""
ONCE = """
import calque as jax, calque.numpy as jnp, numpy as np
from calque.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices("xla_cpu")), ("x",))
where = NamedSharding(mesh, P("x"))
def f(a):
    return 2 * jax.pure_callback(lambda a: print("called with", np.asarray(a)) or a + 1, a, a)
x = jax.device_put(jnp.arange(4), where)
print("gives", np.asarray(jax.jit(f, in_shardings=where, out_shardings=where)(x)))
"""


PARTITIONED = """
import warnings
import calque as jax, numpy as np
from calque.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices("xla_cpu")), ("x",))
x = jax.device_put(np.arange(4), NamedSharding(mesh, P("x")))
def f(a):
    jax.debug.callback(lambda p: print("called with", p.shape), a, partitioned=True)
    return a + 1
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    jax.block_until_ready(jax.jit(f)(x))
    jax.effects_barrier()
print([str(w.message).partition(":")[2] for w in caught])
"""


def text(script: str = SCRIPT) -> str:
    command = [sys.executable, "-c", script]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    others = {k: v for k, v in os.environ.items() if k != "CALQUE_NUM_CPU_DEVICES"}
    return subprocess.run(
        command, env=others | flags, check=True, capture_output=True, text=True
    ).stdout


def test_constraints_name_axes_of_a_mesh_of_the_module() -> None:
    shown = text()
    assert 'sdy.mesh @mesh = <["x"=2, "y"=2]>' in shown and "num_partitions = 4" in shown
    assert 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<4x4xf32>' in shown
    assert '<@mesh, [{"x", "y"}, {?}]>' in shown


@needs_jaxlib
def test_mlir_prints_the_same() -> None:
    assert_canonical(text())


def test_callbacks_belong_to_one_device() -> None:
    shown = text(CALLBACKS)
    assert "sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>" in shown
    assert "sdy.mesh @maximal_mesh_3 = <[], device_ids=[3]>" in shown
    assert shown.count("sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_3, []>]>") == 1


@needs_jaxlib
def test_callbacks_of_several_devices_run_once() -> None:
    assert_canonical(text(CALLBACKS))
    lines = text(ONCE).splitlines()
    assert lines == ["called with [0 1 2 3]", "gives [2 4 6 8]"]


@needs_jaxlib
def test_callbacks_for_parts_say_that_they_get_the_whole() -> None:
    called, said = text(PARTITIONED).splitlines()
    assert called == "called with (4,)" and said.count("partitioned=True is of no effect") == 1
    assert "calque.shard_map" in said


def moving(x):
    """To the memory of the host, where it is doubled, and back."""
    away = jax.device_put(jnp.sin(x), jax.memory.Space.Host)
    return jax.device_put(away, jax.memory.Space.Device) * 2, away


@needs_jaxlib
def test_moves_between_memories_are_told_to_accelerators():
    here = [f'_xla_buffer_placement = "{kind}"' for kind in ("pinned_host", "device")]
    for platform, moves in (("cuda", 1), ("tpu", 1), ("cpu", 0)):
        text = export.export(jax.jit(moving), platforms=[platform])(jnp.ones(3)).mlir_module()
        assert [text.count(h) for h in here] == [moves, moves]
        assert text.count("@annotate_device_placement") == 2 * moves
        printed(text)


@needs_jaxlib
def test_memories_of_arguments_and_results():
    text = jax.jit(moving).lower(jnp.ones(3)).as_text()
    assert 'jax.result_info = "result[1]", mhlo.memory_kind = "pinned_host"}' in text
    assert text.count("memory_kind") == 1
    host = SingleDeviceSharding(jax.devices("xla_cpu")[0], memory_kind="pinned_host")
    x = jax.device_put(jnp.ones(3), host)
    text = jax.jit(lambda a: a + 1).lower(x).as_text()
    assert '%arg0: tensor<3xf32> {mhlo.memory_kind = "pinned_host"}' in text
    assert text.count("memory_kind") == 2
    compiled = jax.jit(lambda a: a + 1).lower(x).compile()
    program = compiled._executable.loaded
    assert program.loaded.get_output_memory_kinds() == [["pinned_host"]]
    assert compiled(x).sharding == host and compiled(x).tolist() == [2, 2, 2]
