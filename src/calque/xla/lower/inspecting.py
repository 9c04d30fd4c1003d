"""Shardings of values inside of programs, which XLA tells when it has placed them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from calque.core.jaxprs import Eqn
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.primitives.inspecting import Inspection
from calque.xla import jaxlib
from calque.xla.chosen_shardings import named
from calque.xla.lower.callbacks import custom_call
from calque.xla.lower.foreign_calls import quoted
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

TARGET = "InspectSharding"  # a call that XLA's partitioner knows, and takes out


@equation_rule("inspect_sharding")
def inspect_sharding(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    inspection: Inspection = e.params["inspection"]
    mesh = b.state.manual or b.state.mesh
    if b.state.exporting or (b.state.partitions_asked > 1 and not b.state.is_compiled):
        return []  # a text for readers
    if b.state.partitions_asked == 1 or not isinstance(mesh, Mesh):
        inspection.on_one_device()
        return []
    if b.state.manual is not None:  # each device has a part of its own
        inspection.tell(NamedSharding(mesh, PartitionSpec()))
        return []
    told = Told(inspection, mesh, x.shape, str(e.source))
    b.state.inspections.append(told)
    key = jaxlib.jaxlib().client.encode_inspect_sharding_callback(told)
    attributes = {
        "api_version": "1 : i32",
        "backend_config": quoted(key),
        "has_side_effect": "true",
    }
    custom_call(b, TARGET, [x.tensor], [x], attributes)
    return []


class Told:
    """What XLA calls with the tiles of a value: an error that it shows, where this raises."""

    def __init__(self, inspection: Inspection, mesh: Mesh, shape: Sequence[int], source: str):
        self.inspection, self.mesh, self.shape, self.source = inspection, mesh, shape, source

    def __call__(self, tiles: Any) -> None:
        found = named(tiles, self.mesh, self.shape)
        if found is None:
            warnings.warn(
                f"inspect_array_sharding at {self.source}: XLA cuts the array as {tiles}, which no"
                " PartitionSpec says: the function is not called",
                stacklevel=2,
            )
            return
        self.inspection.tell(found)
