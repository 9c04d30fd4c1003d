"""Pytrees: nested containers of arrays, on optree, in JAX's form (None is an empty container, dicts
are sorted by key, also those that are made)."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import optree

from calque.core.dict_order import in_order
from calque.core.key_paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    SequenceKey,
)
from calque.core.lazy import LazyModule
from calque.machine.call.arrays import checked_pair
from calque.machine.daemons import guard_at_exit
from calque.machine.state import process

if TYPE_CHECKING:
    from calque.core.generics import Asked

guard_at_exit(globals(), "optree")  # which forgets all classes then

json = LazyModule("json")

NAMESPACE = "calque"
_registered_classes: Final[set[type]] = process.container("classes of containers", set())
# classes that name their children
_keys_of: Final[dict[type, Callable[[Any], Sequence[Any]]]] = process.container(
    "names of children", {}
)


class PyTreeDef:
    """The structure of a tree: a tree with a star for each leaf. It can be compared and hashed.

    Args:
        spec: The structure as optree has it.

    >>> jax.tree.structure({"a": 1, "b": (2, 3)}).num_leaves
    3"""

    __slots__ = ("_has_dicts", "_making", "_spec")

    def __init__(self, spec: Any):
        self._spec = spec
        self._making: Any = None
        self._has_dicts: bool | None = None

    def _maker(self) -> Any:
        """The structure that makes trees, kept for the next one."""
        if self._making is None:
            self._making = in_order(self._spec)
        return self._making

    @property
    def num_leaves(self) -> int:
        return self._spec.num_leaves

    @property
    def num_nodes(self) -> int:
        return self._spec.num_nodes

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Makes the tree of this structure.

        Args:
            leaves: The leaves, in order.

        Returns:
            A tree."""
        return self._maker().unflatten(leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Gives the parts of a tree that stand where this structure has leaves.

        Args:
            tree: A tree that begins with this structure.

        Returns:
            A list.

        Raises:
            ValueError: It does not; the error says where."""
        if self._has_dicts is None:
            self._has_dicts = any(n[0] in _DICTS for n in self._spec.__getstate__()[0])
        try:
            parts: list[Any] = self._spec.flatten_up_to(tree)
        except ValueError:
            why = _unlike(self, tree)
            if why is None:
                raise
            raise ValueError(why) from None
        if self._has_dicts and (why := _unlike(self, tree)):  # optree takes all dicts for one kind
            raise ValueError(why)
        return parts

    def children(self) -> list[PyTreeDef]:
        """Gives the structures directly below.

        Returns:
            A list of PyTreeDefs."""
        return [PyTreeDef(s) for s in self._spec.children()]

    def node_data(self) -> tuple[Any, Any] | None:
        """Tells what the outermost container is.

        Returns:
            A pair (type, auxiliary data); None for a leaf."""
        kind, _, data, _, custom, *_ = self._spec.__getstate__()[0][-1]
        if kind == _LEAF_KIND:
            return None
        return _node_type(self._spec, custom), _auxiliary(kind, data)

    def walk(
        self,
        f_node: Callable[[tuple[Any, ...], Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Makes the tree again from the leaves up, by functions.

        Args:
            f_node: A function of what was made of the children of a container, and of its auxiliary
                data.
            f_leaf: A function of a leaf; None leaves them as they are.
            leaves: The leaves, in order.

        Returns:
            What was made of the outermost container."""
        values, stack = iter(leaves), list[Any]()
        for kind, arity, data, *_ in self._spec.__getstate__()[0]:
            if kind == _LEAF_KIND:
                x = next(values)
                stack.append(x if f_leaf is None else f_leaf(x))
                continue
            parts = tuple(stack[len(stack) - arity :])
            del stack[len(stack) - arity :]
            stack.append(f_node(parts, _auxiliary(kind, data)))
        return stack[-1]

    def serialize_using_proto(self) -> bytes:
        """Writes a structure of tuples, lists, dicts with strings as keys, and None.

        Returns:
            Bytes."""
        nodes = []
        for kind, arity, data, *_ in self._spec.__getstate__()[0]:
            if kind not in (_LEAF_KIND, _NONE, _TUPLE, _LIST, _DICT):
                raise ValueError(f"{self}: only tuples, lists, dicts and None can be written")
            if kind == _DICT and not all(isinstance(k, str) for k in data):
                raise TypeError(f"{self}: only dicts whose keys are strings can be written")
            nodes.append((kind, arity, data if kind == _DICT else None))
        return json.dumps(nodes).encode()

    @staticmethod
    def deserialize_using_proto(registry: Any, data: bytes) -> PyTreeDef:
        """Reads the structure that `serialize_using_proto` has written.

        Args:
            registry: Not used: only Python's own containers can be written.
            data: The bytes.

        Returns:
            A PyTreeDef."""
        stack: list[Any] = []
        for kind, arity, keys in json.loads(data):
            parts = stack[len(stack) - arity :]
            del stack[len(stack) - arity :]
            made = {_LEAF_KIND: 0, _NONE: None, _TUPLE: tuple(parts), _LIST: parts}
            stack.append(dict(zip(keys, parts)) if kind == _DICT else made[kind])
        return structure(stack[-1])

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Gives this structure with another one in place of each leaf.

        Args:
            inner: The other structure.

        Returns:
            A PyTreeDef."""
        return PyTreeDef(self._spec.compose(inner._spec))

    @property
    def type(self) -> Any:
        return self._spec.type

    def is_leaf(self) -> bool:
        """Tells whether this is the structure of a single leaf.

        Returns:
            A bool."""
        return self._spec.is_leaf()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return False
        try:
            return self._spec == other._spec
        except Exception as e:
            raise ValueError(
                "Exception raised while checking equality of metadata fields of pytree. Make sure"
                " that metadata fields can be hashed and that their comparison gives a bool: arrays"
                f" belong among the children. {type(e).__name__}: {e}"
            ) from e

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._spec)

    def __repr__(self) -> str:
        return f"PyTreeDef({self.text()})"

    def text(self) -> str:
        """Gives the structure as text, with a star for each leaf.

        Returns:
            A string."""
        stack: list[str] = []
        for kind, arity, data, _, custom, *_ in self._spec.__getstate__()[0]:
            parts = stack[len(stack) - arity :]
            del stack[len(stack) - arity :]
            stack.append(_node_text(kind, data, custom, parts))
        return stack[-1]


# The kinds of nodes in the state of an optree.PyTreeSpec, which lists them children first.
(
    _CUSTOM,
    _LEAF_KIND,
    _NONE,
    _TUPLE,
    _LIST,
    _DICT,
    _NAMED_TUPLE,
    _ORDERED,
    _DEFAULT,
    _DEQUE,
    _STRUCT,
) = range(11)
_DICTS: Final = frozenset((_DICT, _ORDERED, _DEFAULT))


def _node_text(kind: int, data: Any, custom: Any, parts: list[str]) -> str:
    inner = ", ".join(parts)
    if kind == _LEAF_KIND:
        return "*"
    if kind == _NONE:
        return "None"
    if kind == _TUPLE:
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    if kind == _LIST:
        return f"[{inner}]"
    if kind == _DICT:
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(data, parts)) + "}"
    name = {
        _NAMED_TUPLE: "namedtuple",
        _ORDERED: "OrderedDict",
        _DEFAULT: "defaultdict",
        _DEQUE: "deque",
    }.get(kind)
    name = name or getattr(custom or data, "__name__", "node")
    shown = data.__name__ if kind in (_NAMED_TUPLE, _STRUCT) else _auxiliary(kind, data)
    return f"CustomNode({name}[{shown}], [{inner}])"


def _auxiliary(kind: int, data: Any) -> Any:
    """What a node holds besides its children, in JAX's form."""
    if kind == _CUSTOM:
        return data
    if kind == _ORDERED:
        return tuple(data)
    if kind == _DEFAULT:
        return data[0], tuple(data[1])
    return data if kind in (_DICT, _DEQUE) else None


def _node_type(spec: optree.PyTreeSpec, custom: Any) -> Any:
    return custom if custom is not None else spec.type


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    leaves, spec = optree.tree_flatten(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE)
    return leaves, PyTreeDef(spec)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    return treedef._maker().unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    return optree.tree_leaves(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    return PyTreeDef(optree.tree_structure(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE))


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
    try:
        values, spec = optree.tree_flatten(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE)
        others = [spec.flatten_up_to(other) for other in rest]
        return in_order(spec).unflatten(map(f, values, *others))  # type: ignore[return-value]
    except TypeError:
        if callable(f):
            raise
        raise TypeError(
            f"{type(f).__name__!r} object is not callable: tree.map takes the function first, then"
            " the trees"
        ) from None
    except ValueError:
        for other in rest:
            why = difference(tree, other, is_leaf, "tree_map tree")
            if why:
                raise ValueError(why) from None
        raise


_LEAF: Any = 0
LEAF = PyTreeDef(optree.tree_structure(_LEAF))


def treedef_tuple(treedefs: Sequence[PyTreeDef]) -> PyTreeDef:
    """Gives the structure of a tuple of trees.

    Args:
        treedefs: The structures of the trees.

    Returns:
        A PyTreeDef.

    >>> jax.tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure([2])])
    PyTreeDef((*, [*]))"""
    return PyTreeDef(
        optree.treespec_tuple([d._spec for d in treedefs], none_is_leaf=False, namespace=NAMESPACE)
    )


def register(
    cls: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    keys: Callable[[Any], Sequence[Any]] | None = None,
) -> None:
    """Make instances of `cls` containers. `keys(instance)` names the children in key paths."""
    if cls in _registered_classes:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {cls}.")

    with warnings.catch_warnings():  # a named tuple may be a container of another kind
        warnings.filterwarnings("ignore", "PyTree type .* is a subclass of", UserWarning)
        optree.register_pytree_node(
            cls,
            checked_pair(flatten_func, _pair),
            unflatten_func,
            namespace=NAMESPACE,
        )
    _registered_classes.add(cls)
    if keys is not None:
        _keys_of[cls] = keys


def _pair(made: Any) -> tuple[tuple[Any, ...], Any]:
    """What a class says it is flattened to, as a tuple of its children and its auxiliary data."""
    try:
        children, aux = made
    except (TypeError, ValueError):
        raise ValueError(f"{_PAIR}, got {made!r}") from None
    if not isinstance(children, Iterable):
        raise ValueError(f"{_PAIR} where 'children' is iterable, got {made!r}")
    return tuple(children), aux


_PAIR = (
    "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple"
)


# ---------------------------------------------------------------- key paths


def _child_key(kind: type, entry: Any) -> Any:
    if issubclass(kind, dict):
        return DictKey(entry)
    if issubclass(kind, (tuple, list, deque)) and not hasattr(kind, "_fields"):
        return SequenceKey(entry)
    if hasattr(kind, "_fields"):
        return GetAttrKey(kind._fields[entry] if isinstance(entry, int) else entry)
    return FlattenedIndexKey(entry)


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
    values, spec = optree.tree_flatten(prefix, is_leaf, none_is_leaf=False, namespace=NAMESPACE)
    try:
        subtrees = spec.flatten_up_to(tree)
    except ValueError:
        raise ValueError(
            difference(prefix, tree, is_leaf, "broadcast_prefix prefix_tree")
        ) from None
    for value, subtree in zip(values, subtrees, strict=True):
        out += [value] * len(leaves(subtree))
    return out


# ---------------------------------------------------- one level, and what differs between two trees


_BUILT_IN = frozenset((tuple, list, dict, type(None), OrderedDict, defaultdict, deque))


def is_registered(cls: type) -> bool:
    """Whether instances of `cls` are containers because it is built in or registered itself."""
    return cls in _registered_classes or cls in _BUILT_IN


def is_node_type(cls: type) -> bool:
    """Whether instances of `cls` are containers: also a named tuple that nobody registered."""
    if is_registered(cls):
        return True
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def one_level(tree: Any) -> tuple[list[Any], Any, list[Any]]:
    """(children, auxiliary data, keys of the children) of a container."""
    if not is_node_type(type(tree)):
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    children, aux, entries, _ = optree.tree_flatten_one_level(
        tree, none_is_leaf=False, namespace=NAMESPACE
    )
    if type(tree) in _registered_classes:
        pass
    elif isinstance(tree, defaultdict):
        aux = (cast(Any, aux)[0], tuple(cast(Any, aux)[1]))
    elif isinstance(aux, list):
        aux = tuple(aux)
    named = _keys_of.get(type(tree))
    keys = [_child_key(type(tree), e) for e in entries] if named is None else list(named(tree))
    return list(children), aux, keys


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
            f" full pytree has a subtree of the same type but with metadata\n    {right_aux}"
        )
    return None


def _listed(keys: Iterable[Any]) -> str:
    return " ".join(str(k.key) for k in keys)


all_leaves = functools.partial(optree.all_leaves, none_is_leaf=False, namespace=NAMESPACE)


_CUSTOM_KINDS: Final = frozenset((_CUSTOM, _STRUCT, _ORDERED, _DEFAULT, _DEQUE))
_KIND_NAMES: Final = {_NONE: "None", _TUPLE: "tuple", _LIST: "list", _DICT: "dict"}


def _unlike(treedef: PyTreeDef, tree: Any) -> str | None:
    """Where a tree does not begin as a structure says, and how; None where it does."""
    kind, arity, data, *_ = treedef._spec.__getstate__()[0][-1]
    if kind == _LEAF_KIND:
        return None
    expected, got = treedef.type, type(tree)
    name = _KIND_NAMES.get(kind) or ("named tuple" if kind == _NAMED_TUPLE else expected.__name__)
    if kind == _NAMED_TUPLE and issubclass(got, tuple) and hasattr(got, "_fields"):
        if got is not expected:
            return f"Named tuple type mismatch: expected type: {expected}, tuple: {tree!r}."
    elif kind in _CUSTOM_KINDS and got is not expected:
        return f"Custom node type mismatch: expected type: {expected}, value: {tree!r}."
    elif got is not expected:
        return f"Expected {name}, got {tree!r}."
    children, aux, _ = one_level(tree)
    if kind == _DICT and set(tree) != set(data):
        return f"Dict key mismatch; expected keys: {data}; present keys: {list(aux)}."
    known = _auxiliary(kind, data)
    if kind in (_CUSTOM, _ORDERED, _DEFAULT) and aux != known:
        return f"Mismatch custom node data: {known!r} != {aux!r}; value: {tree!r}."
    if len(children) != arity:
        what = name.capitalize()
        return f"{what} arity mismatch: {len(children)} != {arity}; {name}: {tree!r}."
    parts = zip(treedef.children(), children)
    return next((why for why in (_unlike(d, x) for d, x in parts) if why), None)
