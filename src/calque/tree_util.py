"""Pytrees: nested containers of arrays."""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from calque.core import pytrees
from calque.core.pytrees import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    keystr,
    tree_map,
    treedef_tuple,
)

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "build_tree",
    "default_registry", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node",
    "keystr",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class",
    "register_static", "tree_all", "tree_broadcast", "tree_flatten", "tree_flatten_with_path",
    "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

IsLeaf = Callable[[Any], bool] | None
IsPathLeaf = Callable[..., bool] | None
KeyEntry = TypeVar("KeyEntry")
T = TypeVar("T", bound=type)


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree and its structure.

    >>> from calque import tree_util
    >>> tree_util.tree_flatten({"a": 1, "b": (2, 3)})
    ([1, 2, 3], PyTreeDef({'a': *, 'b': (*, *)}))"""
    return pytrees.flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves."""
    return pytrees.unflatten(treedef, leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in order."""
    return pytrees.leaves(tree, is_leaf)


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree."""
    return pytrees.structure(tree, is_leaf)


def tree_flatten_with_path(
    tree: Any, is_leaf: IsPathLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """(path, leaf) pairs of a tree and its structure. With `is_leaf_takes_path`, `is_leaf` gets a
    path and a value.

    >>> from calque import tree_util
    >>> tree_util.tree_flatten_with_path({"a": [5]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]"""
    if not is_leaf_takes_path or is_leaf is None:
        return pytrees.flatten_with_path(tree, is_leaf)
    cut = _cut_at_leaves(tree, is_leaf, ())
    pairs, treedef = pytrees.flatten_with_path(cut)
    return [
        (path, leaf.value if isinstance(leaf, _Leaf) else leaf) for path, leaf in pairs
    ], treedef


class _Leaf:
    """Hides a value from flattening."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def _cut_at_leaves(tree: Any, is_leaf: Callable[[KeyPath, Any], bool], path: KeyPath) -> Any:
    """The tree with what `is_leaf` accepts hidden in leaves."""
    if is_leaf(path, tree):
        return _Leaf(tree)
    if not pytrees.is_node_type(type(tree)):
        return tree
    children, _, keys = pytrees.one_level(tree)
    shallow = pytrees.structure(tree, is_leaf=lambda x: x is not tree)
    return shallow.unflatten(_cut_at_leaves(c, is_leaf, (*path, k)) for c, k in zip(children, keys))


def tree_leaves_with_path(
    tree: Any, is_leaf: IsPathLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) pairs of a tree."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsPathLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """As `tree_map`; `f` also gets the path of each leaf first."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    try:
        others = [treedef.flatten_up_to(r) for r in rest]
    except ValueError:
        for other in rest:
            why = pytrees.difference(tree, other, None, "tree_map_with_path tree")
            if why:
                raise ValueError(why) from None
        raise
    return treedef.unflatten(f(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others))


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


_NONE = object()


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NONE, is_leaf: IsLeaf = None
) -> Any:
    """Leaves folded from the left."""
    values = tree_leaves(tree, is_leaf)
    return (
        functools.reduce(function, values)
        if initializer is _NONE
        else functools.reduce(function, values, initializer)
    )


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _NONE,
    is_leaf: IsLeaf = None,
) -> Any:
    """Leaves folded as a balanced binary tree.

    >>> from calque import tree_util
    >>> tree_util.tree_reduce_associative(lambda x, y: x + y, {"a": 1, "b": (2, 3)})
    6"""
    values = tree_leaves(tree, is_leaf)
    if values:
        return _folded(operation, values)
    if identity is _NONE:
        raise TypeError("Must specify identity for parallel reduction of empty sequence.")
    return identity


def _folded(operation: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return operation(_folded(operation, values[:half]), _folded(operation, values[half:]))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """A tree of trees turned inside out.

    >>> from calque import tree_util
    >>> tree_util.tree_transpose(tree_util.tree_structure([0, 0]), None, [(1, 2), (3, 4)])
    ([1, 3], [2, 4])"""
    values, found = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    n = inner_treedef.num_leaves
    if len(values) != outer_treedef.num_leaves * n:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"Mismatch\n{found}\n != \n{expected}")
    return inner_treedef.unflatten(outer_treedef.unflatten(values[i::n]) for i in range(n))


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The leaves of a prefix repeated for all leaves below them."""
    return tree_structure(full_tree, is_leaf).unflatten(
        pytrees.prefix_broadcast(prefix_tree, full_tree, is_leaf)
    )


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every item is a leaf."""
    return all(tree_structure(x, is_leaf).is_leaf() for x in iterable)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures directly below."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether this is the structure of a single leaf."""
    return treedef.is_leaf()


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of this structure from the leaves of nested sequences."""
    return treedef.unflatten(tree_leaves(xs))


def is_tree_node(typ: type) -> bool:
    """Whether instances of this class are containers."""
    return pytrees.is_node_type(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The children of a container and its auxiliary data.

    >>> from calque import tree_util
    >>> tree_util.flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)"""
    children, aux, _ = pytrees.one_level(tree)
    return children, aux


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """The (key, child) pairs of a container and its auxiliary data."""
    children, aux, keys = pytrees.one_level(tree)
    return list(zip(keys, children)), aux


# ---------------------------------------------------------------- registration


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], Any] | None = None,
) -> None:
    """Make a class a container: `flatten_func(x)` gives (children, auxiliary data),
    `unflatten_func(aux, children)` the way back."""
    keys = (
        None
        if flatten_with_keys_func is None
        else lambda x: [k for k, _ in flatten_with_keys_func(x)[0]]
    )
    pytrees.register(nodetype, flatten_func, unflatten_func, keys)


def register_pytree_node_class(cls: T) -> T:
    """A class decorator: uses the methods `tree_flatten` and `tree_unflatten`."""
    owner: Any = cls
    register_pytree_node(
        cls,
        lambda x: x.tree_flatten(),
        lambda aux, children: owner.tree_unflatten(aux, children),
    )
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], Any] | None = None,
) -> None:
    """As `register_pytree_node`, with a key for each child."""

    def flat(x: Any) -> Any:
        pairs, aux = flatten_with_keys(x)
        return [v for _, v in pairs], aux

    register_pytree_node(nodetype, flatten_func or flat, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: T) -> T:
    """A class decorator: uses the methods `tree_flatten_with_keys` and `tree_unflatten`."""
    owner: Any = cls
    flat = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls,
        lambda x: x.tree_flatten_with_keys(),
        lambda aux, children: owner.tree_unflatten(aux, children),
        flat,
    )
    return cls


def register_static(cls: T) -> T:
    """A class decorator: instances are part of the structure, without leaves. They must be
    hashable."""
    register_pytree_node(cls, lambda x: ((), x), lambda aux, children: aux)
    return cls


def _fields_of(
    cls: Any, data: Sequence[str] | None, meta: Sequence[str] | None, drop: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The names of children and of auxiliary data of a class; those of a dataclass are checked
    against its fields."""
    is_dataclass = dataclasses.is_dataclass(cls)
    if (data is None) != (meta is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is"
            f" specified. Got data_fields={data} meta_fields={meta}."
        )
    if data is None or meta is None:
        if not is_dataclass:
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not"
                f" a dataclass. Got nodetype={cls}."
            )
        fields = [f for f in dataclasses.fields(cls) if f.init]
        data = [f.name for f in fields if not f.metadata.get("static") and f.name not in drop]
        meta = [f.name for f in fields if f.metadata.get("static") and f.name not in drop]
    if set(data) & set(meta):
        raise ValueError(
            "data_fields and meta_fields must not overlap. Overlapping fields:"
            f" {set(data) & set(meta)}."
        )
    if is_dataclass:
        init, given = {f.name for f in dataclasses.fields(cls) if f.init}, {*data, *meta, *drop}
        head = (
            "data_fields and meta_fields must include all dataclass fields with ``init=True`` and"
            " only them."
        )
        if init - given:
            raise ValueError(
                f"{head} Missing fields: {init - given}. Add them to drop_fields to suppress this"
                " error."
            )
        if given - init - set(drop):
            raise ValueError(f"{head} Unexpected fields: {given - init - set(drop)}.")
    return data, meta


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a container: `data_fields` are children, `meta_fields` part of the
    structure."""
    if nodetype is None:
        return functools.partial(
            register_dataclass,
            data_fields=data_fields,
            meta_fields=meta_fields,
            drop_fields=drop_fields,
        )
    data_fields, meta_fields = _fields_of(nodetype, data_fields, meta_fields, drop_fields)
    data, meta = tuple(data_fields), tuple(meta_fields)

    def unflatten(aux: Any, children: Any) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, aux)))

    pytrees.register(
        nodetype,
        lambda x: (tuple(getattr(x, n) for n in data), tuple(getattr(x, n) for n in meta)),
        unflatten,
        lambda x: [GetAttrKey(n) for n in data],
    )
    return nodetype


class Partial(functools.partial):
    """functools.partial as a container: its arguments are children, its function is part of the
    structure.

    >>> from calque import tree_util
    >>> tree_util.tree_leaves(tree_util.Partial(max, 1, 2))
    [1, 2]"""

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Partial":
        if isinstance(
            func, functools.partial
        ):  # its arguments stay inside: they are no children of this one
            func = _Opaque(func)
        return super().__new__(cls, func, *args, **kwargs)


class _Opaque:
    """A partial as a plain function, compared and hashed by what it holds."""

    def __init__(self, func: Any):
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __hash__(self) -> int:
        return hash((self.func.func, self.func.args))

    def __eq__(self, other: object) -> bool:
        held = other.func if isinstance(other, _Opaque) else other
        parts = ("func", "args", "keywords")
        return isinstance(held, functools.partial) and all(
            getattr(self.func, p) == getattr(held, p) for p in parts
        )

    def __repr__(self) -> str:
        return repr(self.func)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)


class _Registry:
    """The table of containers, as an object with methods."""

    flatten = staticmethod(tree_flatten)
    flatten_one_level = staticmethod(flatten_one_level)
    flatten_one_level_with_keys = staticmethod(flatten_one_level_with_keys)
    flatten_with_path = staticmethod(tree_flatten_with_path)
    is_node = staticmethod(is_tree_node)
    register_node = staticmethod(register_pytree_node)
    register_dataclass_node = staticmethod(register_dataclass)


default_registry = _Registry()
