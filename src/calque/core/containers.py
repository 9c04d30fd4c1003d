"""Classes of users as containers of trees: by functions, by methods, by fields."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar, overload

from calque.core import pytrees
from calque.core.key_paths import GetAttrKey

T = TypeVar("T", bound=type)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], Any] | None = None,
) -> None:
    """Makes a class a container.

    Args:
        nodetype: The class.
        flatten_func: Gives (children, auxiliary data) of an instance. The latter is part of the
            structure: it is compared and hashed.
        unflatten_func: Takes the auxiliary data and children, and gives an instance. Children may
            be any objects.
        flatten_with_keys_func: As `flatten_func`, with pairs (key, child). None numbers the
            children.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> flatten = lambda p: ((p.x, p.y), None)
    >>> jax.tree_util.register_pytree_node(Pair, flatten, lambda aux, children: Pair(*children))
    >>> jax.tree.leaves(Pair(1, [2]))
    [1, 2]"""
    keys = (
        None
        if flatten_with_keys_func is None
        else lambda x: [k for k, _ in flatten_with_keys_func(x)[0]]
    )
    pytrees.register(nodetype, flatten_func, unflatten_func, keys)


def register_pytree_node_class(cls: T) -> T:
    """Makes a class a container by its methods; a decorator.

    Args:
        cls: The class. `tree_flatten()` gives (children, auxiliary data), the class method
            `tree_unflatten(aux, children)` an instance.

    Returns:
        The class.

    >>> @jax.tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> jax.tree.map(lambda v: v + 1, Box(1)).x
    2"""
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
    """Makes a class a container whose children have keys.

    Args:
        nodetype: The class.
        flatten_with_keys: Gives (pairs of key and child, auxiliary data) of an instance.
        unflatten_func: Takes the auxiliary data and children, and gives an instance.
        flatten_func: Gives (children, auxiliary data); None takes `flatten_with_keys` for it.

    >>> class One:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> key = jax.tree_util.GetAttrKey("x")
    >>> flatten = lambda o: (((key, o.x),), None)
    >>> jax.tree_util.register_pytree_with_keys(One, flatten, lambda _, c: One(*c))
    >>> jax.tree_util.keystr(jax.tree.leaves_with_path([One(5)])[0][0])
    '[0].x'"""

    def flat(x: Any) -> Any:
        pairs, aux = flatten_with_keys(x)
        return [v for _, v in pairs], aux

    register_pytree_node(nodetype, flatten_func or flat, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: T) -> T:
    """Makes a class a container whose children have keys, by its methods; a decorator.

    Args:
        cls: The class. `tree_flatten_with_keys()` gives (pairs of key and child, auxiliary data),
            the class method `tree_unflatten(aux, children)` an instance.

    Returns:
        The class.

    >>> @jax.tree_util.register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return ((jax.tree_util.GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> jax.tree.leaves_with_path(Named(5))
    [((GetAttrKey(name='x'),), 5)]"""
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
    """Makes instances of a class part of the structure, without leaves; a decorator.

    Args:
        cls: The class; its instances are hashable.

    Returns:
        The class.

    >>> import dataclasses
    >>> @jax.tree_util.register_static
    ... @dataclasses.dataclass(frozen=True)
    ... class Choice:
    ...     name: str
    >>> jax.tree.leaves([Choice("a"), 1])
    [1]"""
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


@overload
def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T: ...


@overload
def register_dataclass(
    nodetype: None = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Callable[[T], T]: ...


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Makes a dataclass, or a class with such attributes, a container; works as a decorator.

    Args:
        nodetype: The class. Left out, a decorator with the other arguments is returned.
        data_fields: The names of the fields that are children; None takes all fields but those
            marked `static`.
        meta_fields: The names of the fields that are part of the structure; None takes those marked
            `static`.
        drop_fields: The names of fields that are left out.

    Returns:
        The class.

    >>> import dataclasses
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> jax.tree.map(lambda v: v * 2, Point(1.0, 2.0))
    Point(x=2.0, y=4.0)"""
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
