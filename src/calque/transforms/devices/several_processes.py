"""Arrays over the devices of several processes: what is asked of whoever has the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core.arrays import ArrayImpl, to_numpy
from calque.core.devices import number_of_processes
from calque.core.trace import value_if_known
from calque.machine.state import Hook, process
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding, Sharding
from calque.transforms.devices.specs import PartitionSpec


def _alone(*_: Any, **options: Any) -> Any:
    raise RuntimeError("nothing knows arrays over several processes: import calque")


# one made of the parts of this process, and these parts of it
spanning: Final[Hook[Callable[..., Any]]] = process.hook("arrays of several processes", _alone)
own_parts: Final[Hook[Callable[[Any, Sharding], Any]]] = process.hook(
    "parts in this process", _alone
)
# an array brought to where a sharding says, which is in other processes, too, or was
brought: Final[Hook[Callable[..., Any]]] = process.hook("arrays brought to processes", _alone)


def values_of(x: Any) -> np.ndarray:
    """The elements of an operand for the host, where a size or an error depends on them: those of
    other processes are brought here, all of which ask for them."""
    known = value_if_known(x)
    if isinstance(known, ArrayImpl) and spans(known._extra):
        known = brought.call(
            known, NamedSharding(known._extra.mesh, PartitionSpec()), checked=False
        )
    return to_numpy(known)


def spans(sharding: Sharding | None) -> bool:
    """Whether arrays with this sharding have elements in other processes."""
    if number_of_processes() == 1 or sharding is None:
        return False
    if isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh):
        return False  # no devices are known
    return not sharding.is_fully_addressable
