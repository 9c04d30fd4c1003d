"""Programs as bytes for other processes, in JAX's names: `export(jit(f))(args).serialize()` gives
what `deserialize` loads, here or in JAX: StableHLO as bytes, which jaxlib writes and reads."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from calque.xla.exporting.exported import CALLING_CONVENTIONS as _CONVENTIONS
from calque.xla.exporting.exported import DisabledSafetyCheck, Exported, exporter, read
from calque.xla.exporting.written import Node, maker, register_node

minimum_supported_calling_convention_version, maximum_supported_calling_convention_version = (
    _CONVENTIONS
)


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Makes a function that exports a jitted function for arguments of given shapes and dtypes.

    Args:
        fun_jit: The function, a result of `jit`.
        platforms: One of "cpu", "cuda", "rocm" and "tpu", in a list; None is the CPU.
        disabled_checks: Checks that are left out.

    Returns:
        A function of arguments, or of ShapeDtypeStructs in their place, that gives an Exported.

    Raises:
        ValueError: The function is not jitted, or calls Python on the host.

    Differs from JAX:
        One platform, one device, and fixed sizes: export once for each."""
    return exporter(fun_jit, platforms, disabled_checks)


def deserialize(blob: bytes | bytearray) -> Exported:
    """Reads a program that `Exported.serialize` has written, here or in JAX.

    Args:
        blob: The bytes. Load only what you trust: a program may call what is in jaxlib.

    Returns:
        An Exported.

    Raises:
        ValueError: The bytes hold no program.
        NotImplementedError: It has free sizes, or effects."""
    return read(blob)


def _fixed(what: str) -> NoReturn:
    raise NotImplementedError(
        f"export.{what}: programs are exported for fixed sizes; export one for each size that is"
        " needed"
    )


def symbolic_shape(
    shape_spec: str | None, *, constraints: Sequence[str] = (), scope: Any = None, like: Any = None
) -> NoReturn:
    """Refused: sizes are numbers."""
    _fixed("symbolic_shape")


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: Any = None
) -> NoReturn:
    """Refused: sizes are numbers."""
    _fixed("symbolic_args_specs")


class SymbolicScope:
    """The names of sizes that `symbolic_shape` would take. None can be made."""

    def __init__(self, constraints_str: Sequence[str] = ()):
        _fixed("SymbolicScope")


def is_symbolic_dim(p: Any) -> bool:
    """Whether this is a size that stands for any number. None is: `is_symbolic_dim(3)` is False."""
    return False


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type:
    """Says how trees with nodes of a class are written and read.

    Args:
        nodetype: The class, which is registered as a node of trees.
        serialized_name: The name by which it is known in the bytes.
        serialize_auxdata: A function of the auxiliary data of a node that gives bytes.
        deserialize_auxdata: Its inverse.
        from_children: Makes a node of auxiliary data and children; None takes the function that it
            was registered with.

    Returns:
        The class.

    Raises:
        ValueError: The class, or the name, was registered before."""
    make = maker(nodetype) if from_children is None else from_children
    register_node(Node(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, make))
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Says that trees with these named tuples may be written and read.

    Args:
        nodetype: The class of named tuples.
        serialized_name: The name by which it is known in the bytes.

    Returns:
        The class."""
    fields: Any = getattr(nodetype, "_fields", None)
    if not (issubclass(nodetype, tuple) and isinstance(fields, tuple)):
        raise ValueError(
            "Use `jax.export.register_pytree_node_serialization` for types other than"
            " `collections.namedtuple`."
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=lambda names, children: nodetype(**dict(zip(names, children))),
    )


def default_export_platform() -> str:
    """The platform that programs are exported for when none is named: 'cpu'."""
    return "cpu"


__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape",
]  # fmt: skip
