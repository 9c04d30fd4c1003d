"""Pytrees: nested containers of arrays, taken apart, made, and compared; `treedefs` has their
structures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from calque.core.key_paths import KeyPath
from calque.core.treedefs import (
    PyTreeDef,
    is_node_type,
    is_registered,
    maker,
    one_level,
    paths_of,
    register,
)
from calque.machine.call.trees import trees
from calque.machine.lazy import LazyModule

if TYPE_CHECKING:
    from calque.core.generics import Asked

difflib, textwrap = LazyModule("difflib"), LazyModule("textwrap")  # used in messages alone


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    values, code = trees.flatten(tree, is_leaf)
    return values, PyTreeDef(code, len(values))


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    return trees.unflatten(treedef._code, treedef.num_leaves, leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    return trees.leaves(tree, is_leaf)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    return flatten(tree, is_leaf)[1]


def tree_map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Asked:  # type: ignore[type-var]
    """Applies a function to the leaves of a tree, and to what other trees have in the same places.

    Args:
        f: The function; it gets one value from each tree.
        tree: A tree: tuples, lists, dicts, None and registered classes around leaves.
        *rest: Further trees, of which `tree` is the beginning.
        is_leaf: A function that says of a container whether it counts as a leaf; None takes none
            for one.

    Returns:
        A tree of the results.

    >>> jax.tree.map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]})
    {'x': 11, 'y': [22]}"""
    values, code = trees.flatten(tree, is_leaf)
    others = []
    for other in rest:
        parts = trees.follow(code, other)
        if parts is None:
            raise ValueError(difference(tree, other, is_leaf, "tree_map tree"))
        others.append(parts)
    if not callable(f):
        raise TypeError(
            f"{type(f).__name__!r} object is not callable: tree.map takes the function first, then"
            " the trees"
        )
    return trees.unflatten(code, len(values), map(f, values, *others))  # type: ignore[no-any-return]


LEAF = PyTreeDef((None,), 1)


def treedef_tuple(treedefs: Sequence[PyTreeDef]) -> PyTreeDef:
    """Gives the structure of a tuple of trees.

    Args:
        treedefs: The structures of the trees.

    Returns:
        A PyTreeDef.

    >>> jax.tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure([2])])
    PyTreeDef((*, [*]))"""
    code: list[Any] = [tuple, None, len(treedefs)]
    for treedef in treedefs:
        code += treedef._code
    return PyTreeDef(tuple(code))


# ---------------------------------------------------------------- key paths


def flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The leaves with their paths, and the structure. Only here are classes asked for keys."""
    values, treedef = flatten(tree, is_leaf)
    if not values:
        return [], treedef
    return list(zip(_paths(tree, is_leaf, ()), values, strict=True)), treedef


def _paths(tree: Any, is_leaf: Callable[[Any], bool] | None, path: KeyPath) -> Iterator[KeyPath]:
    if (is_leaf is not None and is_leaf(tree)) or not is_node_type(type(tree)):
        yield path
    elif tree is not None:
        children, _, keys = one_level(tree)
        for key, child in zip(keys, children, strict=True):
            yield from _paths(child, is_leaf, (*path, key))


def prefix_broadcast(
    prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The leaves of `prefix` repeated for the leaves of `tree` that lie below each."""
    out: list[Any] = []
    values, code = trees.flatten(prefix, is_leaf)
    subtrees = trees.follow(code, tree)
    if subtrees is None:
        raise ValueError(difference(prefix, tree, is_leaf, "broadcast_prefix prefix_tree"))
    for value, subtree in zip(values, subtrees, strict=True):
        out += [value] * len(leaves(subtree))
    return out


# ---------------------------------------------------- one level, and what differs between two trees


def difference(
    prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None = None, place: str = "tree"
) -> str | None:
    """Where `full` does not begin as `prefix` does, and how; None where it does."""
    return next(differences(prefix, full, is_leaf, place), None)


def differences(
    prefix: Any,
    full: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    name: str = "tree",
    path: str = "",
) -> Iterator[str]:
    """Every place where `full` does not begin as `prefix` does, and how."""
    if (is_leaf is not None and is_leaf(prefix)) or not is_node_type(type(prefix)):
        return
    found = _difference_here(prefix, full)
    if found is not None:
        what, how = found
        yield (
            f"pytree structure error: different {what} at key path\n    {name}{path}\nAt that key"
            f" path, the prefix pytree {name} has a subtree of type{how}"
        )
        return
    (left, _, keys), (right, *_) = one_level(prefix), one_level(full)
    for key, a, b in zip(keys, left, right):
        yield from differences(a, b, is_leaf, name, path + str(key))


def _difference_here(prefix: Any, full: Any) -> tuple[str, str] | None:
    """What is different in the outermost containers, and how."""
    if type(prefix) is not type(full):
        return "types", (
            f"\n    {type(prefix)}\nbut at the same key path the full pytree has a subtree of"
            f" different type\n    {type(full)}."
        )
    (left, left_aux, keys), (right, right_aux, right_keys) = one_level(prefix), one_level(full)
    if len(left) != len(right):
        kind = type(prefix).__name__
        if isinstance(prefix, dict):
            return "numbers of pytree children", (
                f"\n    {type(prefix)}\nwith {len(left)} child keys\n    {_listed(keys)}\nbut at"
                " the same key path the full pytree has a subtree of the same type but with"
                f" {len(right)} child keys\n    {_listed(right_keys)}\nso the symmetric"
                " difference on key sets is\n   "
                f" {_listed(k for k in (*keys, *right_keys) if (k in keys) != (k in right_keys))}"
            )
        return f"lengths of {kind}", (
            f" {kind} of length {len(left)}, but the full pytree has a subtree of the same type"
            f" but of length {len(right)}."
        )
    if (left_aux,) != (right_aux,):
        return "pytree metadata", (
            f"\n    {type(prefix)}\nwith metadata\n    {left_aux}\nbut at the same key path the"
            f" full pytree has a subtree of the same type but with metadata\n    {right_aux}\nso"
            f" the diff in the metadata at these pytree nodes is\n{_changes(left_aux, right_aux)}"
        )
    return None


def _changes(left: Any, right: Any) -> str:
    """What differs, line by line, in the printed forms of two values."""
    lines = difflib.ndiff(str(left).splitlines(), str(right).splitlines())
    return str(textwrap.indent("\n".join(lines), "    "))


def _listed(keys: Iterable[Any]) -> str:
    return " ".join(str(k.key) for k in keys)


__all__ = [
    "LEAF",
    "PyTreeDef",
    "difference",
    "differences",
    "flatten",
    "flatten_with_path",
    "is_node_type",
    "is_registered",
    "leaves",
    "maker",
    "one_level",
    "paths_of",
    "prefix_broadcast",
    "register",
    "structure",
    "tree_map",
    "treedef_tuple",
    "unflatten",
]
