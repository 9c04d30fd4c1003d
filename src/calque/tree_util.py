"""Pytrees: nested containers of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from calque.core import guards as _guards
from calque.core import pytrees
from calque.core.containers import (
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from calque.core.key_paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    SequenceKey,
    keystr,
)
from calque.core.pytrees import PyTreeDef, tree_map, treedef_tuple

if TYPE_CHECKING:
    from calque.core.generics import Asked

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


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Gives the leaves of a tree and its structure.

    Args:
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        A pair (list of leaves, PyTreeDef).

    >>> jax.tree.flatten({"a": 1, "b": (2, 3)})
    ([1, 2, 3], PyTreeDef({'a': *, 'b': (*, *)}))"""
    return pytrees.flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Asked:  # type: ignore[type-var]
    """Makes the tree of a structure, with new leaves.

    Args:
        treedef: The structure of a tree.
        leaves: The leaves, in order.

    Returns:
        A tree.

    >>> jax.tree.unflatten(jax.tree.structure({"a": 0, "b": [0]}), [1, 2])
    {'a': 1, 'b': [2]}"""
    return pytrees.unflatten(treedef, leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Gives the leaves of a tree, in order. Dicts are ordered by their keys; None has no leaves.

    Args:
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        A list.

    >>> jax.tree.leaves({"b": [2, 3], "a": 1, "c": None})
    [1, 2, 3]"""
    return pytrees.leaves(tree, is_leaf)


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Gives the structure of a tree.

    Args:
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        A PyTreeDef.

    >>> jax.tree.structure([1, (2, 3)])
    PyTreeDef([*, (*, *)])"""
    return pytrees.structure(tree, is_leaf)


def tree_flatten_with_path(
    tree: Any, is_leaf: IsPathLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Gives the leaves of a tree with their paths, and its structure.

    Args:
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.
        is_leaf_takes_path: Whether `is_leaf` is called with the path first.

    Returns:
        A pair (list of pairs (path, leaf), PyTreeDef). A path is a tuple of keys.

    >>> jax.tree.flatten_with_path({"a": [5]})[0]
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
    """Gives the leaves of a tree with their paths.

    Args:
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.
        is_leaf_takes_path: Whether `is_leaf` is called with the path first.

    Returns:
        A list of pairs (path, leaf). A path is a tuple of keys.

    >>> jax.tree.leaves_with_path({"a": [5]})
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]"""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsPathLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Asked:  # type: ignore[type-var]
    """Applies a function to the leaves of a tree, and to their paths.

    Args:
        f: The function of the path, the leaf, and what the other trees have in the same place.
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        *rest: Further trees, of which `tree` is the beginning.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.
        is_leaf_takes_path: Whether `is_leaf` is called with the path first.

    Returns:
        A tree of the results.

    >>> jax.tree.map_with_path(lambda path, x: (jax.tree_util.keystr(path), x), {"a": [5]})
    {'a': [("['a'][0]", 5)]}"""
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
    """Tells whether all leaves are true.

    Args:
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        A bool.

    >>> jax.tree.all({"a": True, "b": [1, 2]})
    True"""
    return all(tree_leaves(tree, is_leaf))


_NONE = object()


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NONE, is_leaf: IsLeaf = None
) -> Asked:  # type: ignore[type-var]
    """Folds the leaves of a tree from the left.

    Args:
        function: A function of what was found so far and the next leaf.
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        initializer: What to begin with; left out, it is the first leaf.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        What was found last.

    >>> jax.tree.reduce(lambda a, b: a + b, {"a": 1, "b": (2, 3)})
    6"""
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
) -> Asked:  # type: ignore[type-var]
    """Folds the leaves of a tree as a balanced binary tree, which loses fewer digits in sums.

    Args:
        operation: An associative function of two values.
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        identity: The result for a tree without leaves; left out, that is an error.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        The result.

    >>> jax.tree.reduce_associative(lambda a, b: a + b, {"a": 1, "b": (2, 3)})
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
) -> Asked:  # type: ignore[type-var]
    """Turns a tree of trees inside out.

    Args:
        outer_treedef: The structure of the outer tree.
        inner_treedef: The structure of each inner tree; None takes that of the first one.
        pytree_to_transpose: The tree.

    Returns:
        A tree of the inner structure, with trees of the outer structure as leaves.

    >>> jax.tree.transpose(jax.tree.structure([0, 0]), None, [(1, 2), (3, 4)])
    ([1, 3], [2, 4])"""
    values, found = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    n = inner_treedef.num_leaves
    if len(values) != outer_treedef.num_leaves * n:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"Mismatch\n{found}\n != \n{expected}")
    return inner_treedef.unflatten(outer_treedef.unflatten(values[i::n]) for i in range(n))


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Asked:  # type: ignore[type-var]
    """Repeats the leaves of a tree for all leaves that another tree has below them.

    Args:
        prefix_tree: The tree that the other one begins with.
        full_tree: The other tree.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        A tree of the structure of `full_tree`.

    >>> jax.tree.broadcast({"a": 0, "b": 1}, {"a": (2, 3), "b": [4]})
    {'a': (0, 0), 'b': [1]}"""
    return tree_structure(full_tree, is_leaf).unflatten(
        pytrees.prefix_broadcast(prefix_tree, full_tree, is_leaf)
    )


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Tells whether no item is a container.

    Args:
        iterable: The items.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        A bool.

    >>> jax.tree_util.all_leaves([1, "x"]), jax.tree_util.all_leaves([1, [2]])
    (True, False)"""
    return all(tree_structure(x, is_leaf).is_leaf() for x in iterable)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Gives the structures directly below a structure.

    Args:
        treedef: The structure of a tree.

    Returns:
        A list of PyTreeDefs.

    >>> jax.tree_util.treedef_children(jax.tree.structure([1, (2, 3)]))
    [PyTreeDef(*), PyTreeDef((*, *))]"""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Tells whether a structure is that of a single leaf.

    Args:
        treedef: The structure of a tree.

    Returns:
        A bool.

    >>> jax.tree_util.treedef_is_leaf(jax.tree.structure(1))
    True"""
    return treedef.is_leaf()


def build_tree(treedef: PyTreeDef, xs: Any) -> Asked:  # type: ignore[type-var]
    """Makes the tree of a structure from the leaves of another tree.

    Args:
        treedef: The structure of a tree.
        xs: The other tree.

    Returns:
        A tree.

    >>> jax.tree_util.build_tree(jax.tree.structure({"a": 0, "b": 0}), [[1], (2,)])
    {'a': 1, 'b': 2}"""
    return treedef.unflatten(tree_leaves(xs))


def is_tree_node(typ: type) -> bool:
    """Tells whether instances of a class are containers.

    Args:
        typ: The class.

    Returns:
        A bool.

    >>> jax.tree_util.is_tree_node(list), jax.tree_util.is_tree_node(int)
    (True, False)"""
    return pytrees.is_node_type(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """Gives the children of a container, and what it holds besides.

    Args:
        tree: A container.

    Returns:
        A pair (children, auxiliary data).

    >>> jax.tree_util.flatten_one_level({"a": 1, "b": (2, 3)})
    ([1, (2, 3)], ('a', 'b'))"""
    children, aux, _ = pytrees.one_level(tree)
    return children, aux


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """Gives the children of a container with their keys, and what it holds besides.

    Args:
        tree: A container.

    Returns:
        A pair (pairs of key and child, auxiliary data).

    >>> jax.tree_util.flatten_one_level_with_keys([5])
    ([(SequenceKey(idx=0), 5)], None)"""
    children, aux, keys = pytrees.one_level(tree)
    return list(zip(keys, children)), aux


class Partial(functools.partial):
    """`functools.partial` as a container: its arguments are leaves, its function is structure.

    Args:
        func: The function.
        *args: The first arguments of the function.
        **kwargs: Further arguments by name.

    >>> add = jax.tree_util.Partial(lambda x, y: x + y, 1)
    >>> jax.tree.leaves(add), add(2)
    ([1], 3)"""

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Partial:
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

_guards.guard_public(globals())
