"""The form in which exported programs are written: that of JAX, of which this page knows the fields
and their numbers."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import as_dtype, float0
from calque.machine.state import process
from calque.xla.exporting.scopes import Scope

FORMAT: Final[Mapping[str, Any]] = {
    "PyTreeDef": (
        ("kind", "i8"),
        ("children", "[PyTreeDef]"),
        ("children_names", "[string]"),
        ("custom_name", "string"),
        ("custom_auxdata", "bytes"),
    ),
    "AbstractValue": (
        ("kind", "i8"),
        ("shape", "[string]"),
        ("dtype", "i8"),
        ("memory_space", "i8"),
    ),
    "AbstractDevice": (("device_kind", "string"), ("num_cores", "u32"), ("platform", "string")),
    "AbstractMesh": (
        ("axis_sizes", "[u32]"),
        ("axis_names", "[string]"),
        ("axis_types", "[i8]"),
        ("abstract_device", "AbstractDevice"),
    ),
    "PartitionSpecOneAxis": (("axes", "[string]"),),
    "PartitionSpec": (
        ("partitions", "[PartitionSpecOneAxis]"),
        ("reduced", "[string]"),
        ("unreduced", "[string]"),
    ),
    "NamedSharding": (
        ("mesh", "AbstractMesh"),
        ("spec", "PartitionSpec"),
        ("memory_kind", "string"),
        ("abstract_mesh_idx", "u32"),
    ),
    "Sharding": (
        ("kind", "i8"),
        ("hlo_sharding_proto", "bytes"),
        ("named_sharding", "NamedSharding"),
    ),
    "Effect": (("type_name", "string"),),
    "DisabledSafetyCheck": (("kind", "i8"), ("custom_call_target", "string")),
    "Exported": (
        ("serialization_version", "u16"),
        ("function_name", "string"),
        ("in_tree", "PyTreeDef"),
        ("in_avals", "[AbstractValue]"),
        ("out_tree", "PyTreeDef"),
        ("out_avals", "[AbstractValue]"),
        ("nr_devices_short", "i16"),
        ("in_shardings", "[Sharding]"),
        ("out_shardings", "[Sharding]"),
        ("platforms", "[string]"),
        ("ordered_effects", "[Effect]"),
        ("unordered_effects", "[Effect]"),
        ("disabled_checks", "[DisabledSafetyCheck]"),
        ("mlir_module_serialized", "bytes"),
        ("calling_convention_version", "u16"),
        ("module_kept_var_idx", "[u16]"),
        ("uses_global_constants", "bool"),
        ("vjp", "Exported"),
        ("nr_devices", "u32"),
        ("unique_avals", "[AbstractValue]"),
        ("unique_abstract_meshes", "[AbstractMesh]"),
        ("unique_named_shardings", "[NamedSharding]"),
        ("in_avals_idxs", "[u32]"),
        ("out_avals_idxs", "[u32]"),
        ("in_shardings_idxs", "[u32]"),
        ("out_shardings_idxs", "[u32]"),
    ),
}
VERSION: Final = 3  # of the form: what all readers accept
_KINDS: Final = {
    name: i
    for i, name in enumerate(
        [
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "complex64",
            "complex128",
            "bfloat16",
            "int4",
            "uint4",
            "float8_e4m3b11fnuz",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
            "float0",
            "float8_e4m3",
            "float8_e3m4",
            "float8_e8m0fnu",
            "float4_e2m1fn",
            "key<fry>",
            "key<rbg>",
            "key<urbg>",
        ]
    )
}
_NAMES: Final = {i: name for name, i in _KINDS.items()}


# ---------------------------------------------------------------- types


def written_aval(aval: ShapedArray) -> dict[str, Any]:
    """The type of an argument or a result."""
    name = "float0" if aval.dtype == float0 else str(getattr(aval.dtype, "name", aval.dtype))
    if name not in _KINDS:
        raise TypeError(f"exported programs have no arrays of {name}")
    return {
        "kind": 0,
        "shape": list(map(str, aval.shape)),
        "dtype": _KINDS[name],
        "memory_space": 1,
    }


def read_aval(written: Mapping[str, Any], keys: Callable[[str], Any], scope: Scope) -> ShapedArray:
    """The type that was written; `keys` gives the dtype of random keys by its name, `scope` the
    free sizes by theirs."""
    sizes = written["shape"] or []
    name = _NAMES.get(written["dtype"])
    if name is None:
        raise ValueError(f"the program has arrays of an unknown type, number {written['dtype']}")
    if name == "float0":
        dtype: Any = float0
    else:
        dtype = keys(name) if name.startswith("key<") else as_dtype(name)
    shape = tuple(int(d) if d.isdigit() else scope.of_program(d) for d in sizes)
    return ShapedArray(shape, dtype)


# ---------------------------------------------------------------- trees


class Node(NamedTuple):
    """How nodes of a class are written and read."""

    kind: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    make: Callable[[Any, Any], Any]


_by_class: Final[dict[type, Node]] = process.container("nodes of trees that can be exported", {})
_by_name: Final[dict[str, Node]] = process.container("names of nodes that can be exported", {})
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_PLAIN: Final = {type(None): _NONE, tuple: _TUPLE, list: _LIST, dict: _DICT}


def register_node(node: Node) -> None:
    """From now on trees with such nodes can be written and read."""
    if node.kind in _by_class:
        raise ValueError(
            f"Duplicate serialization registration for type `{node.kind}`. Previous registration"
            f" was with serialized_name `{_by_class[node.kind].name}`."
        )
    if node.name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{node.name}`. Previous"
            f" registration was for type `{_by_name[node.name].kind}`."
        )
    _by_class[node.kind] = _by_name[node.name] = node


def maker(kind: type) -> Callable[[Any, Any], Any]:
    """What makes a node of a registered class out of its auxiliary data and its children."""
    made = pytrees.maker(kind)
    if made is None:
        raise ValueError(
            "If `from_children` is not present, you must call first"
            f" `jax.tree_util.register_pytree_node` for `{kind}`"
        )
    return made


def _written_keys(keys: Any) -> bytes:
    if not all(isinstance(k, str) for k in keys):
        raise NotImplementedError(f"keys of an OrderedDict are written as strings, got {keys}")
    return json.dumps(list(keys)).encode()


register_node(
    Node(
        collections.OrderedDict,
        "collections.OrderedDict",
        _written_keys,
        json.loads,
        lambda keys, children: collections.OrderedDict(zip(keys, children)),
    )
)


def written_tree(tree: pytrees.PyTreeDef) -> dict[str, Any]:
    """A structure."""
    data = tree.node_data()
    if data is None:
        return {"kind": _LEAF}
    kind, aux = data
    found: dict[str, Any] = {"kind": _PLAIN.get(kind, _CUSTOM)}
    children = [written_tree(child) for child in tree.children()]
    if children:
        found["children"] = children
    if kind is dict:
        wrong = [k for k in aux if not isinstance(k, str)]
        if wrong:
            raise TypeError(
                "Serialization is supported only for dictionaries with string keys. Found key"
                f" {wrong[0]!r} of type {type(wrong[0])}."
            )
        if children:
            found["children_names"] = list(aux)
    elif kind not in _PLAIN:
        node = _by_class.get(kind)
        if node is None:
            raise ValueError(
                f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use"
                " `export.register_pytree_node_serialization` or"
                " `export.register_namedtuple_serialization`."
            )
        content: Any = node.write(aux)
        if not isinstance(content, (bytes, bytearray)):
            raise ValueError(
                f"The custom serialization function for `{kind}` must return a `bytes` object. It"
                f" returned a {type(content)}."
            )
        found |= {"custom_name": node.name, "custom_auxdata": bytes(content)}
    return found


def read_tree(written: Mapping[str, Any], leaves: Any) -> pytrees.PyTreeDef:
    """The structure that was written; nodes may look at their leaves."""
    return pytrees.structure(_built(written, iter(leaves)))


def _built(written: Mapping[str, Any], leaves: Iterator[Any]) -> Any:
    kind = written["kind"]
    if kind == _LEAF:
        return np.zeros(()) if (leaf := next(leaves, None)) is None else leaf
    children = [_built(child, leaves) for child in written.get("children") or ()]
    if kind == _DICT:
        return dict(zip(written.get("children_names") or (), children))
    if kind == _CUSTOM:
        node = _by_name.get(written["custom_name"])
        if node is None:
            raise ValueError(
                "Cannot deserialize a PyTreeDef containing an unregistered type"
                f" `{written['custom_name']}`. Use `export.register_pytree_node_serialization` or"
                " `export.register_namedtuple_serialization`."
            )
        return node.make(node.read(written["custom_auxdata"] or b""), children)
    if kind not in (_NONE, _TUPLE, _LIST):
        raise ValueError(f"Cannot deserialize PyTreeDef with unknown kind: {kind}")
    return None if kind == _NONE else tuple(children) if kind == _TUPLE else children
