"""Programs as bytes for other processes, in JAX's names: `export(jit(f))(args).serialize()` gives
what `deserialize` loads, here or in JAX: StableHLO as bytes, which jaxlib writes and reads."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import guards as _guards
from calque.core import pytrees
from calque.core.trace import typeof
from calque.transforms.functions.shapes import ShapeDtypeStruct
from calque.xla.exporting.checks import DisabledSafetyCheck
from calque.xla.exporting.exported import CALLING_CONVENTIONS as _CONVENTIONS
from calque.xla.exporting.exported import Exported, exporter, read
from calque.xla.exporting.scopes import SymbolicScope, is_named, scope_for, shape_of
from calque.xla.exporting.written import Node, maker, register_node

minimum_supported_calling_convention_version, maximum_supported_calling_convention_version = (
    _CONVENTIONS
)


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Sequence[tuple[Any, Callable[..., Any]]] | None = None,
) -> Callable[..., Exported]:
    """Makes a function that exports a jitted function for arguments of given shapes and dtypes.

    Args:
        fun_jit: The function, a result of `jit`.
        platforms: Those that it is for, in a list: "cpu", "cuda", "rocm", "tpu", or a name that
            only its caller knows; None is the CPU.
        disabled_checks: Checks that are left out.
        _override_lowering_rules: Pairs of a primitive and a rule that builds its MLIR for this
            export.

    Returns:
        A function of arguments, or of ShapeDtypeStructs in their place, that gives an Exported.

    Raises:
        ValueError: The function is not jitted, or calls Python on the host.
        NotImplementedError: An operation has no form for sizes that stand for any number.

    Differs from JAX:
        Some operations have no form for free sizes: Fourier transforms, factors of matrices, random
        numbers of keys that are not of threefry2x32.

    >>> exported = jax.export.export(jax.jit(jnp.sin))(jnp.ones(3))  # doctest: +SKIP
    >>> exported.call(jnp.zeros(3))  # doctest: +SKIP
    Array([0., 0., 0.], dtype=float32)"""
    return exporter(fun_jit, platforms, disabled_checks, _override_lowering_rules)


def deserialize(blob: bytes | bytearray) -> Exported:
    """Reads a program that `Exported.serialize` has written, here or in JAX.

    Args:
        blob: The bytes. Load only what you trust: a program may call what is in jaxlib.

    Returns:
        An Exported.

    Raises:
        ValueError: The bytes hold no program.
        NotImplementedError: It has effects.

    >>> blob = jax.export.export(jax.jit(jnp.sin))(1.0).serialize()  # doctest: +SKIP
    >>> jax.export.deserialize(blob).call(0.0)  # doctest: +SKIP
    Array(0., dtype=float32)"""
    return read(blob)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Any = None,
) -> tuple[Any, ...]:
    """Makes a shape with sizes that stand for any number: for `export`, in a ShapeDtypeStruct.

    Args:
        shape_spec: The sizes as text, such as "a, 2*b, 3"; `_` and `...` are taken from `like`, and
            None is all of it.
        constraints: What is known of them, as texts such as "a >= 3".
        scope: Where their names stand, in place of `constraints`; None is a scope of its own.
        like: A shape, or what has one, that gives what is left out.

    Returns:
        A tuple of sizes. Arithmetic with them gives sizes; comparisons are answered from what is
        known of them.

    Raises:
        ValueError: The text is no shape, or does not fit `like`.

    >>> a, b = jax.export.symbolic_shape("a, 2*b")
    >>> a + b, a >= 1, a == b
    (2*b + a, True, False)"""
    chosen = scope_for(scope, constraints, "symbolic_shape")
    return shape_of(shape_spec, chosen, getattr(like, "shape", like))


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Makes the shapes and dtypes of arguments whose sizes may stand for any number.

    Args:
        args: A tree of arrays, or of what has a shape and a dtype.
        shapes_specs: A tree of texts, as `symbolic_shape` takes them, or the first levels of one;
            None leaves shapes as they are. It may be a list where `args` is a tuple.
        constraints: What is known of the sizes, as texts such as "a >= 3".
        scope: Where their names stand, in place of `constraints`; None is a scope of its own.

    Returns:
        The tree with a ShapeDtypeStruct in the place of each array.

    >>> jax.export.symbolic_args_specs((jnp.ones((2, 3)), jnp.ones(3)), ("a, _", None))
    (ShapeDtypeStruct(shape=(a, 3), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))"""
    leaves, tree = pytrees.flatten(args)
    if isinstance(shapes_specs, list) and isinstance(args, tuple):
        shapes_specs = tuple(shapes_specs)
    specs = pytrees.prefix_broadcast(shapes_specs, args, lambda x: x is None)
    chosen = scope_for(scope, constraints, "symbolic_args_specs")
    made = [
        ShapeDtypeStruct(shape_of(spec, chosen, np.shape(x)), typeof(x).dtype)
        for x, spec in zip(leaves, specs, strict=True)
    ]
    return pytrees.unflatten(tree, made)


def is_symbolic_dim(p: Any) -> bool:
    """Whether this is a size that stands for any number.

    Args:
        p: A size.

    Returns:
        A bool.

    >>> jax.export.is_symbolic_dim(3), jax.export.is_symbolic_dim(jax.export.symbolic_shape("a")[0])
    (False, True)"""
    return is_named(p)


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
        ValueError: The class, or the name, was registered before.

    >>> class Pair:
    ...     def __init__(self, *parts): self.parts = parts
    >>> _ = jax.tree_util.register_pytree_node(
    ...     Pair, lambda p: (p.parts, None), lambda _, parts: Pair(*parts))
    >>> _ = jax.export.register_pytree_node_serialization(  # doctest: +SKIP
    ...     Pair, serialized_name="Pair",
    ...     serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None)"""
    make = maker(nodetype) if from_children is None else from_children
    register_node(Node(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, make))
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Says that trees with these named tuples may be written and read.

    Args:
        nodetype: The class of named tuples.
        serialized_name: The name by which it is known in the bytes.

    Returns:
        The class.

    >>> import collections
    >>> Point = collections.namedtuple("Point", "x y")
    >>> register = jax.export.register_namedtuple_serialization
    >>> _ = register(Point, serialized_name="Point")  # doctest: +SKIP"""
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
    """The platform that programs are exported for when none is named.

    Returns:
        "cpu".

    >>> jax.export.default_export_platform()
    'cpu'"""
    return "cpu"


__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape",
]  # fmt: skip

_guards.guard_public(globals())
