"""Results of programs over several devices, in JAX's names."""

from collections.abc import Callable
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.transforms.devices.assembling import make_array_from_single_device_arrays

__all__ = ["global_result_handlers"]


def _array_handler(aval: ShapedArray, sharding: Any, committed: bool) -> Callable[..., Any]:
    """How the pieces of a result become one array. Arrays here are always committed."""
    return lambda pieces: make_array_from_single_device_arrays(aval.shape, sharding, pieces)


# by kind of type: handler(aval, sharding, committed) -> function of the pieces
global_result_handlers: Final[dict[type, Callable[..., Any]]] = {ShapedArray: _array_handler}
