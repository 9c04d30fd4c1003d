"""Functions of `lax` whose keyword `out_sharding` or `sharding` says where the result lives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from calque.core.devices import Device
from calque.transforms.devices.sharding import NamedSharding, Sharding
from calque.transforms.devices.sharding_arrays import device_put, placed_like, put_as_asked
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.devices.types import lenient

NAMES = (
    "broadcast", "broadcast_in_dim", "broadcasted_iota", "conv_general_dilated", "dot",
    "dot_general", "empty", "full", "full_like", "ragged_dot",
    "ragged_dot_general", "reduce", "reduce_sum", "reshape", "rng_bit_generator",
)  # fmt: skip


def _is_of_compiler(target: Any) -> bool:
    """Whether a sharding is over a mesh whose axes types do not speak of."""
    return isinstance(target, NamedSharding) and not target.mesh.explicit_axes


def placing(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its sharding obeyed: the value is computed as without it, then placed."""
    parameters = list(inspect.signature(f).parameters)
    keyword = "sharding" if "sharding" in parameters else "out_sharding"
    position = parameters.index(keyword)

    @functools.wraps(f)
    def placed(*args: Any, **kwargs: Any) -> Any:
        target = args[position] if len(args) > position else kwargs.pop(keyword, None)
        if target is None:
            out = f(*args[:position], **kwargs)
            if f.__name__ != "full_like":
                return out
            return placed_like(out, args[0] if args else kwargs["x"])
        with lenient():
            out = f(*args[:position], **kwargs)
        if not isinstance(target, (Sharding, PartitionSpec, Device)):
            raise TypeError(
                f"`{keyword}` of {f.__name__} takes a NamedSharding or a PartitionSpec, got"
                f" {target!r} of type {type(target).__name__}"
            )
        if f.__name__ == "rng_bit_generator":
            key, bits = out
            return [key, device_put(bits, target)]
        if keyword == "sharding" and _is_of_compiler(target):
            return device_put(out, target)
        return put_as_asked(out, target, f.__name__)

    return placed
