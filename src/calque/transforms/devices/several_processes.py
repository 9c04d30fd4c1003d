"""Arrays over the devices of several processes: what is asked of whoever has the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from calque.core.devices import number_of_processes
from calque.machine.state import Hook, process
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding, Sharding


def _alone(*_: Any, **options: Any) -> Any:
    raise RuntimeError("nothing knows arrays over several processes: import calque")


# one made of the parts of this process, and these parts of it
spanning: Final[Hook[Callable[..., Any]]] = process.hook("arrays of several processes", _alone)
own_parts: Final[Hook[Callable[[Any, Sharding], Any]]] = process.hook(
    "parts in this process", _alone
)
# an array brought to where a sharding says, which is in other processes, too, or was
brought: Final[Hook[Callable[..., Any]]] = process.hook("arrays brought to processes", _alone)


def spans(sharding: Sharding | None) -> bool:
    """Whether arrays with this sharding have elements in other processes."""
    if number_of_processes() == 1 or sharding is None:
        return False
    if isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh):
        return False  # no devices are known
    return not sharding.is_fully_addressable
