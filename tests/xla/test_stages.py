"""What a lowered function shows in terms of XLA."""

import subprocess
import sys

import pytest

import calque as jax
import calque.numpy as jnp
from calque.xla import jaxlib
from tests.xla.mlir import needs_jaxlib


def test_stablehlo_is_the_default() -> None:
    lowered = jax.jit(jnp.sin).lower(1.0)
    assert lowered.as_text() == lowered.as_text("stablehlo")
    assert "stablehlo.sine" in lowered.as_text()
    assert lowered.as_text("jaxpr") == str(lowered.compiler_ir("jaxpr"))


def test_unknown_dialects_are_refused() -> None:
    with pytest.raises(ValueError, match="the dialects are 'stablehlo', 'hlo' and 'jaxpr'"):
        jax.jit(jnp.sin).lower(1.0).as_text("mhlo")
    with pytest.raises(ValueError, match="got 'loops'"):
        jax.jit(jnp.sin).lower(1.0).compiler_ir("loops")


@needs_jaxlib
def test_hlo_and_objects_of_jaxlib() -> None:
    lowered = jax.jit(lambda x: jnp.sin(x) + 1).lower(1.0)
    assert "HloModule jit__lambda" in lowered.as_text("hlo")
    assert "stablehlo.sine" in str(lowered.compiler_ir("stablehlo"))
    assert "sine(" in lowered.compiler_ir("hlo").as_hlo_text()


def test_without_jaxlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise jaxlib.XlaUnavailable(f"XLA needs jaxlib, which is not installed: {jaxlib.REMEDY}")

    lowered = jax.jit(jnp.sin).lower(1.0)
    monkeypatch.setattr(jaxlib, "jaxlib", missing)
    with pytest.raises(RuntimeError, match=r"pip install calque\[xla\]"):
        lowered.as_text("hlo")
    assert "stablehlo.sine" in lowered.as_text()


PLAIN = """
import sys, calque, calque.numpy as jnp
calque.jit(jnp.sin)(1.0)
assert "stablehlo.sine" in calque.jit(jnp.sin).lower(1.0).as_text()
assert not [m for m in sys.modules if m.partition(".")[0] in ("jaxlib", "jax")], sys.modules
"""
QUICK = """
import sys, calque, calque.numpy as jnp
calque.jit(jnp.sin)(1.0)
assert not [m for m in sys.modules if m.startswith("calque.xla")]
"""


@pytest.mark.parametrize("script", [PLAIN, QUICK], ids=["plain", "quick"])
def test_nothing_of_xla_is_imported_unless_asked_for(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True)


def test_maps_over_several_devices_are_programs_of_parts():
    mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
    P = jax.sharding.PartitionSpec
    x = jax.ShapeDtypeStruct((4, 4), "float32", sharding=jax.NamedSharding(mesh, P("x")))

    def text(**options):
        f = jax.shard_map(lambda v: jnp.sin(v), mesh=mesh, **options)
        return jax.jit(f).trace(x).lower(lowering_platforms=("cpu",)).as_text()

    whole = text(in_specs=P("x", "y"), out_specs=P("x", "y"))
    assert "mhlo.num_partitions = 4" in whole
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>' in whole
    assert 'out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"}' in whole
    assert "stablehlo.sine" in whole and "tensor<2x2xf32>" in whole
    part = text(in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    assert 'in_shardings=[<@mesh, [{"x", ?}, {?}]>]' in part and 'manual_axes={"x"}' in part
