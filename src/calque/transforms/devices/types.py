"""What types say of where values are: along which explicit mesh axes each dimension is split, and
how a value inside `shard_map` relates to the manual axes.

A `ShapedArray` has a `MeshPlace`, or None: then it says nothing, and may be joined with any. Places
follow the operands through every equation that is recorded (`type_rules`); programs are compiled
without them.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

from calque.core.avals import ShapedArray, stated
from calque.core.config import config
from calque.core.trace_state import Tracer
from calque.machine.caches import Interned
from calque.machine.state import PerThread
from calque.transforms.devices.abstract_mesh import AbstractMesh, AxisType
from calque.transforms.devices.mesh import Mesh, ambient_mesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.specs import PartitionSpec, names_in

_LIMIT: Final = 10_000
Axes = frozenset[Hashable]
NO_AXES: Final[Axes] = frozenset()


class ShardingTypeError(Exception):
    """Operands whose shardings do not go together."""


class ManualAxisType:
    """How a value inside `shard_map` relates to the mesh axes that are mapped. It is immutable.

    Args:
        varying: Axes along which each member has its own value.
        unreduced: Axes over which the values of members have still to be added.
        reduced: Axes over which those of the cotangent have.

    >>> jax.sharding.ManualAxisType(varying={"x"}).varying
    frozenset({'x'})"""

    __slots__ = ("__weakref__", "reduced", "unreduced", "varying")

    varying: Axes
    unreduced: Axes
    reduced: Axes

    def __new__(
        cls,
        *,
        varying: Iterable[Hashable] = NO_AXES,
        unreduced: Iterable[Hashable] = NO_AXES,
        reduced: Iterable[Hashable] = NO_AXES,
    ) -> ManualAxisType:
        key = (frozenset(varying), frozenset(unreduced), frozenset(reduced))
        found = _manual.get(key)
        return _new_manual(key) if found is None else found

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"manual axis types are immutable: cannot set {name}")

    def update(self, **changes: Any) -> ManualAxisType:
        """Gives the type with some of its axes replaced.

        Args:
            **changes: New axes by name: `varying`, `unreduced`, `reduced`.

        Returns:
            A ManualAxisType."""
        own = {n: getattr(self, n) for n in ("varying", "unreduced", "reduced")}
        return ManualAxisType(**{**own, **changes})

    def to_ct_mat(self) -> ManualAxisType:
        """Gives the type of cotangents.

        Returns:
            A ManualAxisType."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    @property
    def empty(self) -> bool:
        return not self.vur

    @property
    def vur(self) -> Axes:
        """All the axes it speaks of."""
        return self.varying | self.unreduced | self.reduced

    def invarying(self, mesh: AbstractMesh | Mesh) -> Axes:
        """Gives the axes along which the value is the same.

        Args:
            mesh: The mesh.

        Returns:
            A frozenset of names."""
        return frozenset(mesh.manual_axes) - self.vur

    def _key(self) -> tuple[Axes, ...]:
        return self.varying, self.unreduced, self.reduced

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ManualAxisType) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = (
            f"{n}={{{', '.join(sorted(map(repr, getattr(self, n))))}}}"
            for n in ("varying", "unreduced", "reduced")
            if getattr(self, n)
        )
        return f"ManualAxisType({', '.join(parts)})"

    def __reduce__(self) -> Any:
        return _manual_of, self._key()


_manual: Final[Interned[tuple[Axes, ...], ManualAxisType]] = Interned(
    "manual axis types", "sets of axes that there are"
)


def _manual_of(varying: Axes, unreduced: Axes, reduced: Axes) -> ManualAxisType:
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


def _new_manual(key: tuple[Axes, ...]) -> ManualAxisType:
    names = ("varying", "unreduced", "reduced")
    for i, j in ((0, 1), (0, 2), (1, 2)):
        if key[i] & key[j]:
            raise ValueError(
                f"{names[i]} and {names[j]} cannot have common mesh axes. Got"
                f" {names[i]}={set(key[i])} and {names[j]}={set(key[j])}:"
                f" {sorted(map(str, key[i] & key[j]))} cannot be both {names[i]} and {names[j]}"
            )
    self = object.__new__(ManualAxisType)
    for name, axes in zip(names, key):
        object.__setattr__(self, name, axes)
    _manual.made += 1
    return _manual.setdefault(key, self)


EMPTY_MANUAL: Final = ManualAxisType()


# ---------------------------------------------------------------- places


class MeshPlace:
    """What a type says: a spec over the explicit axes of a mesh, and a manual axis type. Interned,
    so that equality is identity."""

    __slots__ = ("mat", "mesh", "spec")

    mesh: AbstractMesh
    spec: PartitionSpec  # one entry for each dimension
    mat: ManualAxisType

    def __init__(self, mesh: AbstractMesh, spec: PartitionSpec, mat: ManualAxisType):
        self.mesh, self.spec, self.mat = mesh, spec, mat

    @property
    def sharding(self) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec)

    def cotangent(self) -> MeshPlace:
        """The place of cotangents: what was reduced has still to be added, and the reverse."""
        return self.updated(spec=self.spec.to_ct_spec(), mat=self.mat.to_ct_mat())

    def updated(
        self,
        spec: PartitionSpec | None = None,
        mat: ManualAxisType | None = None,
        mesh: AbstractMesh | None = None,
    ) -> MeshPlace:
        return place_of(
            self.mesh if mesh is None else mesh,
            self.spec if spec is None else spec,
            self.mat if mat is None else mat,
        )

    def of_rank(self, rank: int) -> MeshPlace:
        """The place of a value of another rank, of whose dimensions nothing is said."""
        return self.updated(spec=self.spec.update(partitions=(None,) * rank))

    def with_entries(self, entries: Sequence[Any]) -> MeshPlace:
        return self.updated(spec=self.spec.update(partitions=entries))

    def text(self, shape: Sequence[Any]) -> str:
        """The shape with the axes of each dimension, and what is said beyond it:
        [4@x,2]{V:y, U:z}."""
        sizes = []
        for n, entry in zip(shape, self.spec.partitions):
            names = ",".join(map(str, names_in(entry)))
            sizes.append(f"{n}@({names})" if isinstance(entry, tuple) else f"{n}@{names}")
            if not names:
                sizes[-1] = str(n)
        parts = []
        for letter, axes in (
            ("V", self.mat.varying),
            ("U", self.mat.unreduced | self.spec.unreduced),
            ("R", self.mat.reduced | self.spec.reduced),
        ):
            found = in_mesh_order(self.mesh, axes)
            listed = ",".join(map(str, found))
            if found:
                parts.append(f"{letter}:({listed})" if len(found) > 1 else f"{letter}:{listed}")
        return f"[{','.join(sizes)}]" + (f"{{{', '.join(parts)}}}" if parts else "")

    def __reduce__(self) -> Any:
        return place_of, (self.mesh, self.spec, self.mat)


_places: Final[Interned[tuple[Any, ...], MeshPlace]] = Interned("places in types", _LIMIT)


def place_of(mesh: AbstractMesh, spec: PartitionSpec, mat: ManualAxisType) -> MeshPlace:
    """The one place that says this; without axes of size 1, where the configuration says so."""
    if config.remove_size_one_mesh_axis_from_type:
        spec, mat = _without_ones(mesh, spec, mat)
    key = (mesh, spec, mat)
    found = _places.get(key)
    if found is None:
        _places.made += 1
        found = _places.setdefault(key, MeshPlace(*key))
    return found


def _without_ones(
    mesh: AbstractMesh, spec: PartitionSpec, mat: ManualAxisType
) -> tuple[PartitionSpec, ManualAxisType]:
    ones = frozenset(n for n, size in mesh.shape_tuple if size == 1)
    entries = [tuple(n for n in names_in(e) if n not in ones) for e in spec.partitions]
    return (
        spec.update(
            partitions=entries, unreduced=spec.unreduced - ones, reduced=spec.reduced - ones
        ),
        mat.update(
            varying=mat.varying - ones, unreduced=mat.unreduced - ones, reduced=mat.reduced - ones
        ),
    )


def in_mesh_order(mesh: AbstractMesh | Mesh, axes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """These axes in the order of the mesh; others, as of a vmap, come last."""
    known = frozenset(axes)
    first = tuple(n for n in mesh.axis_names if n in known)
    return first + tuple(sorted(known - set(first), key=str))


def of_explicit_axes(spec: PartitionSpec, mesh: AbstractMesh | Mesh) -> PartitionSpec:
    """The part of a spec that types speak of: that of the explicit axes."""
    explicit = frozenset(mesh.explicit_axes)
    entries = []
    for entry in spec.partitions:
        kept = tuple(n for n in names_in(entry) if n in explicit)
        entries.append(kept)
    return PartitionSpec(
        *entries, unreduced=spec.unreduced & explicit, reduced=spec.reduced & explicit
    )


def place_on(
    mesh: AbstractMesh | Mesh, spec: PartitionSpec, mat: ManualAxisType, ndim: int
) -> MeshPlace | None:
    """The place of a value of this rank with this sharding; None where types of values on that mesh
    say nothing: it has no explicit or manual axes."""
    if mesh.are_all_axes_auto and mat.empty:
        return None
    spec = of_explicit_axes(spec, mesh)
    if len(spec) != ndim:
        spec = spec.update(partitions=spec.padded(ndim))
    return place_of(mesh.abstract_mesh, spec, mat)


def entries_of(aval: ShapedArray) -> list[Any]:
    """Along which explicit axes each dimension of values of a type is split."""
    place = aval.place
    return list(place.spec.partitions) if isinstance(place, MeshPlace) else [None] * aval.ndim


def parts_of(mesh: AbstractMesh | Mesh, entry: Any) -> int:
    """Into how many parts an entry of a spec cuts a dimension."""
    return math.prod(mesh.shape[name] for name in names_in(entry))


def _stated(
    shape: tuple[Any, ...], sharding: Any, manual: ManualAxisType | None
) -> MeshPlace | None:
    mat = EMPTY_MANUAL if manual is None else manual
    if sharding is None or sharding.mesh.empty:
        if not mat.empty:
            raise ValueError(f"manual_axis_type={mat} needs a sharding, which knows the mesh")
        return None
    mesh = sharding.mesh
    if isinstance(mesh, Mesh):
        raise ValueError(
            f"Mesh of an aval must be an AbstractMesh. Got {mesh} of type {type(mesh)}"
        )
    types = dict(zip(mesh.axis_names, mesh.axis_types))
    for name in mat.vur:
        if types.get(name, AxisType.Manual) is not AxisType.Manual:
            raise ValueError(
                "Axes mentioned in `manual_axis_type` field of ShapedArray should be of type"
                f" `Manual`. Got manual_axis_type={mat} with axis: {name} of type {types[name]}"
            )
    if len(sharding.spec) > len(shape):
        raise ValueError(
            "Length of sharding.spec must be equal to aval's ndim. Got sharding.spec"
            f" {sharding.spec}, aval.ndim {len(shape)} and sharding {sharding}"
        )
    place = place_on(mesh, sharding.spec, mat, len(shape))
    if place is not None:
        check_divisible(place, shape)
    return place


def typed(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """The type of arrays with this sharding."""
    if not isinstance(sharding, NamedSharding) or aval.place is not None:
        return aval
    if not sharding.mesh.explicit_axes:
        return aval
    return aval.update(place=place_on(sharding.mesh, sharding.spec, EMPTY_MANUAL, aval.ndim))


def check_divisible(place: MeshPlace, shape: Sequence[Any]) -> None:
    """The explicit axes divide the dimensions that they split."""
    for k, (entry, n) in enumerate(zip(place.spec.partitions, shape)):
        parts = 1
        for name in names_in(entry):
            parts *= place.mesh.shape[name]
        if parts != 1 and n % parts:
            raise ValueError(
                f"Sharding spec {entry} implies that array axis {k} is partitioned {parts} times,"
                f" but does not evenly divide the dimension size {n}. Got shape: {tuple(shape)} and"
                f" sharding {place.sharding}"
            )


stated.install(_stated)


# ---------------------------------------------------------------- what types say to users


def _sharding(aval: ShapedArray) -> NamedSharding:
    """What a type says of where values are."""
    place = aval.place
    if place is None:
        return NamedSharding(ambient_mesh(), PartitionSpec(*[None] * aval.ndim))
    assert isinstance(place, MeshPlace)
    return place.sharding


def mat_of(aval: Any) -> ManualAxisType:
    """How values of a type relate to manual axes."""
    place = aval.place
    return EMPTY_MANUAL if place is None else place.mat  # type: ignore[no-any-return]


for _name, _value in {
    "sharding": property(_sharding, doc="Along which mesh axes each dimension is split."),
    "mat": property(mat_of, doc="How values relate to the manual axes around them."),
    "manual_axis_type": property(mat_of, doc="As `mat`."),
    "vma": property(lambda aval: mat_of(aval).varying, doc="The manual axes values vary along."),
    "memory_space": property(lambda aval: None, doc="The memory: there is one."),
}.items():
    setattr(ShapedArray, _name, _value)
for _name in ("mat", "vma"):
    setattr(Tracer, _name, property(operator.attrgetter(f"aval.{_name}")))


# ---------------------------------------------------------------- where rules are lenient


class _State(PerThread, name="leniency of rules for shardings"):
    lenient: int = 0


_state = _State()


@contextlib.contextmanager
def lenient() -> Iterator[None]:
    """Shardings that are ambiguous inside are no error: what is computed is placed afterwards."""
    _state.lenient += 1
    try:
        yield
    finally:
        _state.lenient -= 1


def is_lenient() -> bool:
    return _state.lenient > 0
