"""The primitive `device_put`: a traced value in the memory of the host, or in that of its device.

Where a value is, a program says as a whole: `sharding_propagation` follows it, as it follows
shardings. On calque's own engine all memory is one, and the primitive does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.arrays import to_array
from calque.core.devices import Space
from calque.core.primitives import Primitive, Zero
from calque.core.trace_state import Tracer
from calque.ops.common import zero_like
from calque.transforms.devices.sharding import in_space
from calque.transforms.devices.sharding_arrays import located, moved, sharding_of


def in_memory(x: Any, space: Space) -> Any:
    """`x` in this memory: an array at once, a traced value when the program runs."""
    if space is Space.Any:
        return x
    if isinstance(x, Tracer):
        return device_put_p.bind(x, space=space)
    array = to_array(x)
    return located(array, in_space(sharding_of(array), space))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, space: Space) -> Any:
    out = in_memory(primals[0], space)
    (t,) = tangents
    return out, (zero_like(out) if type(t) is Zero else in_memory(t, space))


def _transpose(ct: Any, x: Any, *, space: Space) -> list[Any]:
    """Cotangents are computed with on the device, and stay there."""
    return [Zero(x.aval) if type(ct) is Zero else in_memory(ct, Space.Device)]


device_put_p = Primitive(
    "device_put",
    meaning=lambda x, *, space: x,
    shape=lambda x, *, space: x,
    jvp=_jvp,
    transpose=_transpose,
    batch=lambda args, dims, *, space: (in_memory(args[0], space), dims[0]),
)

moved.install(in_memory)
