"""Results of programs over several devices, in JAX's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.transforms.devices.assembling import make_array_from_single_device_arrays
from calque.transforms.devices.mesh import Mesh, consult_mesh, current_mesh

__all__ = ["global_result_handlers", "thread_resources"]


def _array_handler(aval: ShapedArray, sharding: Any, committed: bool) -> Callable[..., Any]:
    """How the pieces of a result become one array. Arrays here are always committed."""
    return lambda pieces: make_array_from_single_device_arrays(aval.shape, sharding, pieces)


# by kind of type: handler(aval, sharding, committed) -> function of the pieces
global_result_handlers: Final[dict[type, Callable[..., Any]]] = {ShapedArray: _array_handler}


class _Resources:
    """What this thread runs programs on."""

    @property
    def env(self) -> _Resources:
        """Itself: the mesh stands one name below."""
        return self

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh of the innermost `with mesh` (or `set_mesh`), empty if there is none."""
        consult_mesh()
        return current_mesh()


thread_resources: Final = _Resources()
