"""PartitionSpec: what each dimension of an array is split along, in names of mesh axes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final, NoReturn

from calque.machine.caches import Interned


class DuplicateSpecError(ValueError):
    """A mesh axis stands in two dimensions of one PartitionSpec."""


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()

Entries = tuple[Any, ...]
_Key = tuple[Entries, frozenset[Hashable], frozenset[Hashable]]
_LIMIT: Final = 4096
_interned: Final[Interned[_Key, PartitionSpec]] = Interned("partition specs", _LIMIT)


def _canonical(entry: Any) -> Any:
    if isinstance(entry, (tuple, list)):
        if any(isinstance(e, (tuple, list)) for e in entry):
            raise ValueError(
                "A tuple inside PartitionSpec cannot contain a nested tuple. Got partition:"
                f" {entry}"
            )
        if not entry:
            return None
        return entry[0] if len(entry) == 1 else tuple(entry)
    return entry


def _axes(option: str, given: Any) -> frozenset[Hashable]:
    if not isinstance(given, (set, frozenset)):
        if given != ():
            raise TypeError(f"PartitionSpec: {option} must be a set of mesh axes, got {given!r}")
        return frozenset()
    if None in given:
        raise ValueError(f"{option} cannot contain None: its elements are names of mesh axes")
    return frozenset(given)


class PartitionSpec:
    """Says for each dimension of an array which mesh axes it is split along. `P` is a shorter name.

    There is one object for equal specs.

    Args:
        *entries: For each dimension the name of a mesh axis, a tuple of several names, or None for
            none.
        unreduced: Names of axes over which the parts are still to be added.
        reduced: Names of axes over which the parts of the cotangent are still to be added.

    >>> jax.P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))"""

    __slots__ = ("__weakref__", "partitions", "reduced", "unreduced")

    UNCONSTRAINED = UNCONSTRAINED

    partitions: Entries
    unreduced: frozenset[Hashable]
    reduced: frozenset[Hashable]

    def __new__(cls, *entries: Any, unreduced: Any = (), reduced: Any = ()) -> PartitionSpec:
        key = (
            tuple([_canonical(e) for e in entries]),
            _axes("unreduced", unreduced),
            _axes("reduced", reduced),
        )
        found = _interned.get(key)
        return _made(key) if found is None else found

    def __init_subclass__(cls, **options: Any) -> NoReturn:
        raise TypeError("Subclassing `jax.P` is prohibited.")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"partition specs are immutable: cannot set {name}")

    def __len__(self) -> int:
        return len(self.partitions)

    def _plain(self, what: str) -> Entries:
        if self.unreduced or self.reduced:
            raise ValueError(
                f"{what} of a PartitionSpec would lose its unreduced and reduced axes: use those of"
                f" spec.partitions; the spec is {self}"
            )
        return self.partitions

    def __iter__(self) -> Iterator[Any]:
        return iter(self._plain("the elements"))

    def __getitem__(self, i: Any) -> Any:
        return self._plain("elements")[i]

    def _joins(self, other: Any, method: str) -> bool:
        if not isinstance(other, tuple):
            return False
        for option in ("unreduced", "reduced"):
            if getattr(self, option):
                raise TypeError(
                    f"{other}, a tuple, cannot be joined with {self}, which has {option} in"
                    f" `{method}` of PartitionSpec."
                )
        return True

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self.partitions,
                *other.partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if self._joins(other, "__add__"):
            return PartitionSpec(*self.partitions, *other)
        return NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        if self._joins(other, "__radd__"):
            return PartitionSpec(*other, *self.partitions)
        return NotImplemented

    def index(self, value: Any) -> int:
        """Gives the dimension with an entry.

        Args:
            value: The entry: a name, a tuple of names, or None.

        Returns:
            An int."""
        return self.partitions.index(_canonical(value))

    def count(self, value: Any) -> int:
        """Counts the dimensions with an entry.

        Args:
            value: The entry: a name, a tuple of names, or None.

        Returns:
            An int."""
        return self.partitions.count(_canonical(value))

    def __repr__(self) -> str:
        parts = [", ".join(map(repr, self.partitions))] if self.partitions else []
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(map(repr, sorted(axes, key=str)))}}}")
        comma = "," if len(self.partitions) == 1 and len(parts) == 1 else ""
        return f"P({', '.join(parts)}{comma})"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PartitionSpec) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> _Key:
        return self.partitions, self.unreduced, self.reduced

    def update(
        self,
        partitions: Iterable[Any] | None = None,
        unreduced: Any = None,
        reduced: Any = None,
    ) -> PartitionSpec:
        """Gives the spec with some of its attributes replaced.

        Args:
            partitions: New entries; None keeps the old ones.
            unreduced: New names; None keeps the old ones.
            reduced: New names; None keeps the old ones.

        Returns:
            A PartitionSpec.

        >>> jax.P("x").update(partitions=("x", "y"))
        P('x', 'y')"""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def to_ct_spec(self) -> PartitionSpec:
        """Gives the spec of cotangents: what was reduced has still to be added, and the reverse.

        Returns:
            A PartitionSpec."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def padded(self, ndim: int) -> Entries:
        """Gives what the spec says of each dimension of an array.

        Args:
            ndim: The number of dimensions.

        Returns:
            A tuple of so many entries."""
        return self.partitions + (None,) * (ndim - len(self.partitions))

    def __copy__(self) -> PartitionSpec:
        return self

    def __deepcopy__(self, memo: Any) -> PartitionSpec:
        return self

    def __reduce__(self) -> Any:
        return _spec, (self.partitions, self.unreduced, self.reduced)


def _spec(
    entries: Entries, unreduced: frozenset[Hashable], reduced: frozenset[Hashable]
) -> PartitionSpec:
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


def _made(key: _Key) -> PartitionSpec:
    if key[1] or key[2]:
        _check_apart(*key)
    self = object.__new__(PartitionSpec)
    for name, value in zip(("partitions", "unreduced", "reduced"), key):
        object.__setattr__(self, name, value)
    if len(_interned) >= _LIMIT:  # equality goes by content: forgetting costs no meaning
        _interned.clear()
    _interned.made += 1
    return _interned.setdefault(key, self)


def _check_apart(
    entries: Entries, unreduced: frozenset[Hashable], reduced: frozenset[Hashable]
) -> None:
    if unreduced & reduced:
        raise ValueError(
            "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got unreduced:"
            f" {set(unreduced)} and reduced: {set(reduced)}"
        )
    used = {n for e in entries for n in names_in(e)}
    for option, axes in (("unreduced", unreduced), ("reduced", reduced)):
        if used & axes:
            raise ValueError(
                f"partitions cannot overlap with {option} axes passed to PartitionSpec. Got"
                f" partitions: {entries} and {option} axes: {set(axes)}"
            )


P = PartitionSpec


def names_in(entry: Any) -> tuple[Hashable, ...]:
    """The mesh axes of one entry of a spec."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def names_of_spec(spec: PartitionSpec) -> set[Hashable]:
    """The mesh axes that dimensions are split along."""
    return {n for e in spec.partitions for n in names_in(e)}
