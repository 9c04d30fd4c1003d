"""Compiled functions as bytes, for other processes of the same version.

The bytes hold the program, not machine code: that is found in the cache on disk or made again.
They are a pickle: load only what you trust."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr
from calque.core.pytrees import PyTreeDef
from calque.core.source import Source
from calque.transforms.jit.stages import Compiled, devices_of, loaded
from calque.transforms.primitives.refs import Ref


class _Pickler(pickle.Pickler):
    """Programs without the places in the user's code, and without what was derived from them."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Source):
            return type(None), ()
        if isinstance(obj, ClosedJaxpr):
            return ClosedJaxpr, (obj.jaxpr, obj.consts)
        return NotImplemented


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """Writes a compiled function, for other processes of the same version.

    Args:
        compiled: What `lower(...).compile()` has given.

    Returns:
        (bytes, structure of the arguments, structure of the results).

    >>> from calque.experimental.serialize_executable import serialize
    >>> compiled = jax.jit(lambda x: 2 * x).lower(1.0).compile()
    >>> type(serialize(compiled)[0])
    <class 'bytes'>"""
    closed = compiled.serializable()
    if any(isinstance(c, Ref) for c in closed.consts):
        raise ValueError(
            f"can't serialize with a closed-over Ref: {compiled.fun_name} captures one"
        )
    out = io.BytesIO()
    try:
        _Pickler(out).dump(
            (closed, compiled.fun_name, compiled.donate_argnums, devices_of(compiled))
        )
    except (pickle.PicklingError, TypeError, AttributeError) as e:
        raise ValueError(
            f"{compiled.fun_name} cannot be written: it holds something that has no pickle, such as"
            f" a callback. {e}"
        ) from e
    return out.getvalue(), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """Reads a compiled function that `serialize` has written.

    The bytes are a pickle: load only what you trust.

    Args:
        serialized: The bytes.
        in_tree: The structure of the arguments.
        out_tree: The structure of the results.
        backend: None, or the platform that the function was compiled for.
        execution_devices: None, or a list of the devices that it was compiled for.

    Returns:
        A Compiled.

    >>> from calque.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = jax.jit(lambda x: 2 * x).lower(1.0).compile()
    >>> deserialize_and_load(*serialize(compiled))(4.0)
    Array(8., dtype=float32, weak_type=True)"""
    closed, name, donated, devices = pickle.loads(serialized)
    platform = devices[0].platform
    if getattr(backend, "platform", backend) not in (None, platform, devices[0].engine):
        raise ValueError(
            f"deserialize_and_load: {name} was compiled for {platform!r}, and the backend is"
            f" {backend!r}"
        )
    if execution_devices is not None and list(execution_devices) != devices:
        raise ValueError(
            f"deserialize_and_load: {name} was compiled for {', '.join(map(str, devices))}, got"
            f" {execution_devices}"
        )
    return loaded(closed, in_tree, out_tree, name, donated)
