"""The structures of pytrees: nested containers of arrays, in JAX's form. None is an empty
container; dicts are sorted by key, also those that are made.

`machine.objects.trees` says how a structure is written."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from calque.core.key_paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    SequenceKey,
)
from calque.core.lazy import LazyModule
from calque.machine.call.trees import NONE, Structure, apart, is_named, kinds, trees
from calque.machine.state import process

T = TypeVar("T")

json = LazyModule("json")

_registered_classes: Final[set[type]] = process.container("classes of containers", set())
# classes that name their children
_keys_of: Final[dict[type, Callable[[Any], Any]]] = process.container("names of children", {})


class PyTreeDef:
    """The structure of a tree: a tree with a star for each leaf. It can be compared and hashed.

    Args:
        code: The structure as the functions over trees write it.
        num_leaves: How many leaves it has; None lets them be counted.

    >>> jax.tree.structure({"a": 1, "b": (2, 3)}).num_leaves
    3"""

    __slots__ = ("_code", "_hash", "num_leaves")

    def __init__(self, code: Structure, num_leaves: int | None = None):
        self._code = code
        self._hash: int | None = None
        self.num_leaves: int = leaves_of(code) if num_leaves is None else num_leaves

    @property
    def num_nodes(self) -> int:
        return sum(1 for _ in nodes_of(self._code))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Makes the tree of this structure.

        Args:
            leaves: The leaves, in order.

        Returns:
            A tree."""
        return trees.unflatten(self._code, self.num_leaves, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Gives the parts of a tree that stand where this structure has leaves.

        Args:
            tree: A tree that begins with this structure.

        Returns:
            A list.

        Raises:
            ValueError: It does not; the error says where."""
        parts = trees.follow(self._code, tree)
        if parts is None:
            raise ValueError(_unlike(self, tree) or f"{tree!r} does not begin as {self} does")
        return parts

    def children(self) -> list[PyTreeDef]:
        """Gives the structures directly below.

        Returns:
            A list of PyTreeDefs."""
        code, found = self._code, list[PyTreeDef]()
        at = min(3, len(code))
        while at < len(code):
            end = _end(code, at)
            found.append(PyTreeDef(code[at:end]))
            at = end
        return found

    def node_data(self) -> tuple[Any, Any] | None:
        """Tells what the outermost container is.

        Returns:
            A pair (type, auxiliary data); None for a leaf."""
        if self.is_leaf():
            return None
        kind, aux = self._code[:2]
        return kind, auxiliary(kind, aux)

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
        values = [x for x, _ in zip(leaves, range(self.num_leaves))]
        made = values if f_leaf is None else [f_leaf(x) for x in values]
        return fold(
            self._code, made, lambda kind, aux, parts: f_node(tuple(parts), auxiliary(kind, aux))
        )

    def serialize_using_proto(self) -> bytes:
        """Writes a structure of tuples, lists, dicts with strings as keys, and None.

        Returns:
            Bytes."""
        nodes: list[tuple[Any, ...]] = []
        for node in nodes_of(self._code):
            kind, aux, count = (None, None, 0) if node is None else node
            if kind not in _WRITTEN:
                raise ValueError(f"{self}: only tuples, lists, dicts and None can be written")
            if kind is dict and not all(isinstance(k, str) for k in aux or ()):
                raise TypeError(f"{self}: only dicts whose keys are strings can be written")
            nodes.append((_WRITTEN.index(kind), count, aux))
        return json.dumps(nodes).encode()

    @staticmethod
    def deserialize_using_proto(registry: Any, data: bytes) -> PyTreeDef:
        """Reads the structure that `serialize_using_proto` has written.

        Args:
            registry: Not used: only Python's own containers can be written.
            data: The bytes.

        Returns:
            A PyTreeDef."""
        code: list[Any] = []
        for number, count, keys in json.loads(data):
            kind = _WRITTEN[number]
            aux = None if keys is None else tuple(keys)
            code += [None] if kind is None else [kind, aux, count]
        return PyTreeDef(tuple(code))

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Gives this structure with another one in place of each leaf.

        Args:
            inner: The other structure.

        Returns:
            A PyTreeDef."""
        code: list[Any] = []
        for node in nodes_of(self._code):
            code += inner._code if node is None else node
        return PyTreeDef(tuple(code))

    @property
    def type(self) -> Any:
        return self._code[0]

    def is_leaf(self) -> bool:
        """Tells whether this is the structure of a single leaf.

        Returns:
            A bool."""
        return self._code[0] is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return False
        try:
            return self._code == other._code
        except Exception as e:
            raise ValueError(
                "Exception raised while checking equality of metadata fields of pytree. Make sure"
                " that metadata fields can be hashed and that their comparison gives a bool: arrays"
                f" belong among the children. {type(e).__name__}: {e}"
            ) from e

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash(self._code)
            except TypeError:  # auxiliary data that is compared only
                shapes = tuple([n if n is None else (n[0], n[2]) for n in nodes_of(self._code)])
                self._hash = hash(shapes)
        return self._hash

    def __reduce__(self) -> Any:
        return _known, (self._code,)

    def __repr__(self) -> str:
        return f"PyTreeDef({self.text()})"

    def text(self) -> str:
        """Gives the structure as text, with a star for each leaf.

        Returns:
            A string."""
        return fold(self._code, ["*"] * self.num_leaves, _node_text)


_WRITTEN: Final = (None, NONE, tuple, list, dict)  # by their numbers in bytes


def _known(code: Structure) -> PyTreeDef:
    """The structure that was pickled, of classes that are containers here, too."""
    for node in nodes_of(code):
        if node is not None and not is_node_type(node[0]):
            raise ValueError(
                f"the structure has containers of {node[0]}, which is not registered in this"
                " process: register it as a pytree first"
            )
    return PyTreeDef(code)


def nodes_of(code: Structure) -> Iterator[tuple[Any, Any, int] | None]:
    """The containers (class, auxiliary data, number of children) from the root on, and None for
    each leaf."""
    at = 0
    while at < len(code):
        if code[at] is None:
            yield None
            at += 1
        else:
            yield code[at : at + 3]  # type: ignore[misc]
            at += 3


def leaves_of(code: Structure) -> int:
    """How many leaves a structure has."""
    return sum(node is None for node in nodes_of(code))


def _end(code: Structure, at: int) -> int:
    """Where the part ends that begins at a place."""
    missing = 1
    while missing:
        missing -= 1
        if code[at] is None:
            at += 1
        else:
            missing += code[at + 2]
            at += 3
    return at


def fold(code: Structure, leaves: list[T], join: Callable[[Any, Any, list[T]], T]) -> T:
    """What is made of a structure from the leaves up: `join` gets the class of a container, its
    auxiliary data, and what was made of its children."""
    plan, stack = [*nodes_of(code)], list[list[Any]]()
    pending: list[Any] = []
    values = iter(leaves)
    made: Any = None
    for node in plan:
        if node is not None and node[2]:
            stack.append([*node, pending])
            pending = []
            continue
        made = next(values) if node is None else join(node[0], node[1], [])
        pending.append(made)
        while stack and len(pending) == stack[-1][2]:
            kind, aux, _, above = stack.pop()
            made = join(kind, aux, pending)
            above.append(made)
            pending = above
    return made  # type: ignore[no-any-return]


def _node_text(kind: Any, aux: Any, parts: list[str]) -> str:
    inner = ", ".join(parts)
    if kind is NONE:
        return "None"
    if kind is tuple:
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    if kind is list:
        return f"[{inner}]"
    if kind is dict:
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(aux, parts)) + "}"
    named = not is_registered(kind)
    shown = kind.__name__ if named else auxiliary(kind, aux)
    return f"CustomNode({'namedtuple' if named else kind.__name__}[{shown}], [{inner}])"


def auxiliary(kind: Any, aux: Any) -> Any:
    """What a node holds besides its children, in JAX's form."""
    return list(aux) if kind is dict else aux


# ---------------------------------------------------------------- containers


_BUILT_IN = frozenset((tuple, list, dict, NONE, OrderedDict, defaultdict, deque))


def is_registered(cls: type) -> bool:
    """Whether instances of `cls` are containers because it is built in or registered itself."""
    return cls in _registered_classes or cls in _BUILT_IN


def is_node_type(cls: type) -> bool:
    """Whether instances of `cls` are containers: also a named tuple that nobody registered."""
    return is_registered(cls) or is_named(cls)


def register(
    cls: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    keys: Callable[[Any], Any] | None = None,
) -> None:
    """Make instances of `cls` containers. `keys(instance)` names the children in key paths."""
    if is_registered(cls):
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {cls}.")
    kinds[cls] = (flatten_func, unflatten_func)
    _registered_classes.add(cls)
    if keys is not None:
        _keys_of[cls] = keys


def maker(cls: type) -> Callable[[Any, Any], Any] | None:
    """What makes an object of a registered class of its auxiliary data and its children."""
    return kinds[cls][1] if cls in _registered_classes else None


def _child_keys(kind: type, aux: Any, count: int) -> list[Any]:
    """What the children of a container are called that names none itself."""
    if kind is defaultdict:
        aux = aux[1]
    if issubclass(kind, dict) and kind in _BUILT_IN:
        return [DictKey(k) for k in aux]
    if kind in (tuple, list, deque):
        return [SequenceKey(i) for i in range(count)]
    if kind not in _registered_classes and is_named(kind):
        return [GetAttrKey(name) for name in kind._fields]  # type: ignore[attr-defined]
    return [FlattenedIndexKey(i) for i in range(count)]


def one_level(tree: Any) -> tuple[list[Any], Any, list[Any]]:
    """(children, auxiliary data, keys of the children) of a container."""
    kind = type(tree)
    found = apart(tree)
    if found is None:
        raise ValueError(f"can't tree-flatten type: {kind}")
    children, aux = found
    named = _keys_of.get(kind)
    keys = _child_keys(kind, aux, len(children)) if named is None else list(named(tree))
    return list(children), aux, keys


def paths_of(code: Structure) -> list[KeyPath]:
    """The paths of the leaves of a structure, as far as it knows them: classes are not asked."""

    def join(kind: Any, aux: Any, parts: list[list[KeyPath]]) -> list[KeyPath]:
        keys = _child_keys(kind, aux, len(parts))
        return [(key, *path) for key, part in zip(keys, parts) for path in part]

    return fold(code, [[()] for _ in range(leaves_of(code))], join)


def _unlike(treedef: PyTreeDef, tree: Any) -> str | None:
    """Where a tree does not begin as a structure says, and how; None where it does."""
    if treedef.is_leaf():
        return None
    (expected, data, arity), got = treedef._code[:3], type(tree)
    is_plain = expected in (NONE, tuple, list, dict)
    is_tuple = not is_registered(expected)
    name = "None" if expected is NONE else "named tuple" if is_tuple else expected.__name__
    if is_tuple and is_named(got):
        if got is not expected:
            return f"Named tuple type mismatch: expected type: {expected}, tuple: {tree!r}."
    elif not is_plain and not is_tuple and got is not expected:
        return f"Custom node type mismatch: expected type: {expected}, value: {tree!r}."
    elif got is not expected:
        return f"Expected {name}, got {tree!r}."
    children, aux, _ = one_level(tree)
    if expected is dict and set(tree) != set(data):
        return f"Dict key mismatch; expected keys: {list(data)}; present keys: {list(aux)}."
    if not is_plain and not is_tuple and aux != data:
        return f"Mismatch custom node data: {data!r} != {aux!r}; value: {tree!r}."
    if len(children) != arity:
        what = name.capitalize()
        return f"{what} arity mismatch: {len(children)} != {arity}; {name}: {tree!r}."
    parts = zip(treedef.children(), children)
    return next((why for why in (_unlike(d, x) for d, x in parts) if why), None)
