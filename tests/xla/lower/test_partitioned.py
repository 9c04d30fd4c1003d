"""Programs that say how they are split: what becomes of them in a module of StableHLO.
tests/xla/test_partitioners.py has them partitioned."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import calque as jax
from calque.experimental.custom_partitioning import custom_partitioning
from calque.sharding import Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.primitives.sharding_rules import factors_of, parsed_rule
from calque.xla.lower.partitioned import automatic
from calque.xla.lower.placing import rule_attribute
from tests.xla.many_devices import in_many
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
of_eight, test_with_many_devices = in_many(8, __file__)


def doubled(rule: Any = "i j -> i j", **said: Any) -> Any:
    f = custom_partitioning(lambda x: x * 2)
    f.def_partition(
        lambda mesh, args, out: (mesh, lambda x: x * 2, out.sharding, (args[0].sharding,)),
        sharding_rule=rule,
        **said,
    )
    return f


def attribute(text: str, ins: Any, outs: Any, **said: Any) -> str:
    return rule_attribute(factors_of(parsed_rule(text, said), ins, outs))


def test_rules_are_written_as_shardy_writes_them() -> None:
    product = [(8, 4), (4, 2)], [(8, 2)]
    head = "#sdy.op_sharding_rule<"
    assert attribute("i k, k j -> i j", *product) == (
        f"{head}([i, j], [j, k])->([i, k]) {{i=8, j=4, k=2}}, custom>"
    )
    kinds: dict[str, Any] = {
        "reduction_factors": ("k",),
        "need_replication_factors": ("i",),
        "permutation_factors": ("j",),
    }
    assert attribute("i k, k j -> i j", *product, **kinds) == (
        f"{head}([i, j], [j, k])->([i, k]) {{i=8, j=4, k=2}} reduction={{j}}"
        " need_replication={i} permutation={k}, custom>"
    )
    assert attribute("(i j) k -> i j k", [(8, 4)], [(2, 4, 4)]) == (
        f"{head}([ij, k])->([i, j, k]) {{i=2, j=4, k=4}}, custom>"
    )
    assert attribute("->", [()], [()]) == f"{head}([])->([]), custom>"
    many = " ".join(f"f{k}" for k in range(20))
    assert "z=2, z_1=2, z_2=2}" in attribute(f"{many} -> {many}", [(2,) * 20], [(2,) * 20])


def test_on_one_device_and_in_exported_programs_the_program_stands_in_its_place() -> None:
    x = np.ones((2, 3), np.float32)
    text = jax.jit(doubled()).lower(x).as_text()
    assert "CustomSPMDPartitioning" not in text and "stablehlo.multiply" in text
    exported = jax.export.export(jax.jit(doubled()))(x)
    assert "CustomSPMDPartitioning" not in exported.mlir_module()


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices("xla_cpu")[:8]).reshape(4, 2), ("x", "y"))


def text_of(f: Any) -> str:
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh(), P("x")))
    return str(jax.jit(f).lower(x).as_text())


@of_eight
def test_on_several_devices_it_is_a_call_with_the_rule() -> None:
    (line,) = [s for s in text_of(doubled()).splitlines() if "CustomSPMD" in s]
    rule = "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>"
    assert re.search(
        r"@CustomSPMDPartitioning\(%arg0\) \{api_version = 2 : i32, backend_config = \"\d+\","
        rf" sdy.sharding_rule = {re.escape(rule)}\}}",
        line,
    )
    assert "sharding_rule" not in text_of(doubled(None))
    inside = jax.shard_map(doubled(), mesh=mesh(), in_specs=P("x", "y"), out_specs=P("x", "y"))
    assert "CustomSPMDPartitioning" not in text_of(inside)


@of_eight
def test_functions_make_rules_of_the_mesh_and_types_of_mlir() -> None:
    seen: list[Any] = []

    def rule(mesh: Any, ins: Any, outs: Any) -> Any:
        seen.append((mesh.axis_names, ins[0].shape, ins[0].rank, str(outs[0])))
        return "i j -> i j", {"need_replication_factors": ("j",)}

    assert "need_replication={j}" in text_of(doubled(rule))
    assert seen[0] == (("x", "y"), [8, 8], 2, "tensor<8x8xf32>")
    with pytest.raises(ValueError, match=r"custom_partitioning at .*must give a text"):
        text_of(doubled(lambda *a: 3))
    with pytest.raises(ValueError, match=r"custom_partitioning at .*operand 0 has rank 1"):
        text_of(doubled("i -> i"))
    with pytest.raises(KeyError, match="mine"):
        text_of(doubled(lambda *a: {}["mine"]))


@of_eight
def test_rules_are_given_a_mesh_with_axes_of_the_compiler() -> None:
    explicit = jax.make_mesh((4, 2), ("x", "y"))
    assert automatic(mesh()) == mesh()
    assert automatic(explicit).auto_axes == ("x", "y")
