"""Trees of containers in plain Python, for interpreters whose objects machine code does not know;
and what both ways share: the classes that are containers, and what is rare.

`trees` says what a structure is."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from calque.machine.state import process

Structure = tuple[Any, ...]
Way = tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]  # taken apart, and made
NONE: Final = type(None)
PAIR: Final = (
    "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple"
)


class Functions(NamedTuple):
    """The functions over trees."""

    flatten: Callable[[Any, Callable[[Any], bool] | None], tuple[list[Any], Structure]]
    leaves: Callable[[Any, Callable[[Any], bool] | None], list[Any]]
    unflatten: Callable[[Structure, int, Iterable[Any]], Any]
    follow: Callable[[Structure, Any], list[Any] | None]


def sorted_keys(table: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The keys in order; those that have none by the names of their classes, or as they came."""
    try:
        return tuple(sorted(table))
    except TypeError:
        pass
    try:
        return tuple(
            sorted(table, key=lambda k: (f"{type(k).__module__}.{type(k).__qualname__}", k))
        )
    except TypeError:
        return tuple(table)


def children_of(made: Any) -> tuple[tuple[Any, ...], Any]:
    """What a class says it is flattened to, as a tuple of its children and its auxiliary data."""
    try:
        children, aux = made
    except (TypeError, ValueError):
        raise ValueError(f"{PAIR}, got {made!r}") from None
    if not isinstance(children, Iterable):
        raise ValueError(f"{PAIR} where 'children' is iterable, got {made!r}")
    return tuple(children), aux


def _flat_default(x: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Any]:
    keys = sorted_keys(x)
    return tuple([x[k] for k in keys]), (x.default_factory, keys)


def _made_default(aux: Any, children: Iterable[Any]) -> defaultdict[Any, Any]:
    factory, keys = aux
    return defaultdict(factory, zip(keys, children))


# Containers of the standard library that are taken apart by functions.
kinds: Final[dict[type, Way]] = process.container(
    "ways of containers",
    {
        OrderedDict: (
            lambda x: (tuple(x.values()), tuple(x)),
            lambda keys, children: OrderedDict(zip(keys, children)),
        ),
        defaultdict: (_flat_default, _made_default),
        deque: (lambda x: (tuple(x), x.maxlen), lambda most, children: deque(children, most)),
    },
)


def is_named(kind: type) -> bool:
    """Whether a class is one of named tuples."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def apart(x: Any) -> tuple[tuple[Any, ...], Any] | None:
    """The children of a container and its auxiliary data; None for a leaf."""
    kind = type(x)
    if kind is tuple or kind is list:
        return tuple(x), None
    if kind is dict:
        keys = sorted_keys(x)
        return tuple([x[k] for k in keys]), keys
    if x is None:
        return (), None
    way = kinds.get(kind)
    if way is not None:
        return children_of(way[0](x))
    return (tuple(x), None) if is_named(kind) else None


def together(kind: type, aux: Any, parts: list[Any]) -> Any:
    """The container of some children."""
    if kind is list:
        return parts
    if kind is tuple:
        return tuple(parts)
    if kind is dict:
        return dict(zip(aux, parts))
    if kind is NONE:
        return None
    way = kinds.get(kind)
    return kind(*parts) if way is None else way[1](aux, tuple(parts))


def _visit(x: Any, is_leaf: Any, leaves: list[Any], code: list[Any]) -> None:
    found = None if is_leaf is not None and is_leaf(x) else apart(x)
    if found is None:
        leaves.append(x)
        code.append(None)
        return
    parts, aux = found
    code += (type(x), aux, len(parts))
    for part in parts:
        _visit(part, is_leaf, leaves, code)


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None) -> tuple[list[Any], Structure]:
    """The leaves, and the structure."""
    leaves, code = list[Any](), list[Any]()
    _visit(tree, is_leaf, leaves, code)
    return leaves, tuple(code)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_unflatten(code: Structure, wanted: int, leaves: Iterable[Any]) -> Any:
    """The tree of a structure, and of as many leaves as it has."""
    given = tuple(leaves)
    if len(given) != wanted:
        few = "few" if len(given) < wanted else "many"
        raise ValueError(f"Too {few} leaves for PyTreeDef; expected {wanted}, got {len(given)}")
    return _make(iter(code), iter(given))


def _make(code: Iterator[Any], leaves: Iterator[Any]) -> Any:
    kind = next(code)
    if kind is None:
        return next(leaves)
    aux, count = next(code), next(code)
    return together(kind, aux, [_make(code, leaves) for _ in range(count)])


def tree_follow(code: Structure, tree: Any) -> list[Any] | None:
    """The parts of a tree where a structure has leaves; None where it does not begin like this."""
    parts: list[Any] = []
    return parts if _follow(iter(code), tree, parts) else None


def _follow(code: Iterator[Any], x: Any, parts: list[Any]) -> bool:
    kind = next(code)
    if kind is None:
        parts.append(x)
        return True
    aux, count = next(code), next(code)
    if type(x) is not kind:
        return False
    if kind is dict:
        if len(x) != count or not all(k in x for k in aux):
            return False
        children = [x[k] for k in aux]
    else:
        found = apart(x)
        if found is None or len(found[0]) != count:
            return False
        if found[1] is not aux and found[1] != aux:
            return False
        children = list(found[0])
    return all([_follow(code, child, parts) for child in children])


functions: Final = Functions(tree_flatten, tree_leaves, tree_unflatten, tree_follow)
