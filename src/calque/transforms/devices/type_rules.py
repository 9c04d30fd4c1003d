"""How what types say of mesh axes follows through equations: the sharding of each result along
explicit axes, what varies along manual ones, and what has still to be added.

Where operands do not go together, or leave open how the result is split, the rules raise what
users of JAX expect; inside `types.lenient()` such a result is taken as whole on every device,
because it is going to be placed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import Dim
from calque.core.dtypes import PYTHON_SCALARS
from calque.core.jaxprs import subjaxprs
from calque.core.primitives import Primitive, do
from calque.core.trace import Typing, placed_typeof, typing
from calque.core.trace_state import Tracer
from calque.transforms.devices.abstract_mesh import AbstractMesh
from calque.transforms.devices.mesh import EMPTY, ambient_mesh, checks_variance, devices_of
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_arrays import constraint, mesh_of_specs
from calque.transforms.devices.sharding_arrays import placed as put_on
from calque.transforms.devices.sharding_propagation import RULES as LENIENT_RULES
from calque.transforms.devices.sharding_propagation import Entries
from calque.transforms.devices.specs import DuplicateSpecError, PartitionSpec, names_in
from calque.transforms.devices.type_lanes import lane_axes, on_lanes
from calque.transforms.devices.type_sums import joined_kind, sums
from calque.transforms.devices.type_whole import RULES as WHOLE_RULES
from calque.transforms.devices.type_whole import scattered
from calque.transforms.devices.type_windows import RULES as WINDOW_RULES
from calque.transforms.devices.type_windows import Rule
from calque.transforms.devices.types import (
    EMPTY_MANUAL,
    Axes,
    ManualAxisType,
    MeshPlace,
    ShardingTypeError,
    entries_of,
    in_mesh_order,
    is_lenient,
    lenient,
    mat_of,
    of_explicit_axes,
    parts_of,
    place_of,
    typed,
)
from calque.transforms.engines.axes import AxisPrimitive, Collective

Params = dict[str, Any]
Avals = Sequence[ShapedArray]


def _mesh_of(name: str, avals: Avals, mesh: AbstractMesh) -> AbstractMesh:
    """The mesh of the operands; that of the place where they meet, if they have none."""
    found: AbstractMesh | None = None
    for a in avals:
        if isinstance(a.place, MeshPlace):
            if mesh.manual_axes and a.place.mesh.axis_names == mesh.axis_names:
                return mesh  # values from around a `shard_map`, of another kind of axes
            if found is not None and a.place.mesh != found:
                raise ValueError(
                    f"Mesh for all inputs should be equal. Got one mesh: {found} and another mesh:"
                    f" {a.place.mesh}"
                )
            found = a.place.mesh
    if found is None:
        return mesh
    here = EMPTY if is_lenient() or name == "sharding_constraint" else ambient_mesh()
    if not here.empty and here.shape_tuple != found.shape_tuple:
        raise ValueError(
            f"For primitive {name}, context mesh {here} should match the aval mesh {found}. Set"
            " that mesh by calque.set_mesh, or bring the array to the present one by device_put"
        )
    return found


def _mesh_asked(asked: Any, mesh: AbstractMesh) -> AbstractMesh:
    """The mesh of the sharding that a constraint asks for, outside of `shard_map`."""
    if not isinstance(asked, NamedSharding) or mesh.manual_axes or asked.mesh.empty:
        return mesh
    return asked.mesh.abstract_mesh


# ---------------------------------------------------------------- entries of specs


def _elementwise(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """Dimensions are split as those of the operands, which agree where they are split."""
    whole = [a for a in avals if a.ndim == out.ndim]
    found: Entries = []
    for k in range(out.ndim):
        named = {e for a in whole if (e := entries_of(a)[k]) is not None}
        if len(named) > 1 and not is_lenient():
            shown = ", ".join(str(tuple(entries_of(a))) for a in whole)
            raise ShardingTypeError(f"{name} got incompatible shardings for broadcasting: {shown}.")
        found.append(next((e for a in whole if (e := entries_of(a)[k]) is not None), None))
    return found


def _dot(name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh) -> Entries:
    (contract_l, contract_r), (batch_l, batch_r) = params["dimension_numbers"]
    left, right = entries_of(avals[0]), entries_of(avals[1])
    if not is_lenient():
        for what, i, j in (
            ("lhs batch dimensions and rhs batch dimensions to have the", batch_l, batch_r),
            ("contracting dimensions to have", contract_l, contract_r),
        ):
            a, b = tuple(left[k] for k in i), tuple(right[k] for k in j)
            if any(x is not None and y is not None and x != y for x, y in zip(a, b)):
                raise ShardingTypeError(
                    f"dot_general requires {what} consistent sharding, got {a} and {b}."
                )
        a, b = tuple(left[k] for k in contract_l), tuple(right[k] for k in contract_r)
        if any(x is not None and y is not None for x, y in zip(a, b)):
            raise ShardingTypeError(
                "Contracting dimensions are sharded and it is ambiguous how the output should be"
                " sharded. Please specify the output sharding via the `out_sharding` parameter. Got"
                f" lhs_contracting_spec={a} and rhs_contracting_spec={b}"
            )
    return LENIENT_RULES["dot_general"]([left, right], avals, out, params)


def _concatenated(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    placed = [a for a in avals if a.place is not None]
    if not placed:
        return [None] * out.ndim
    found = _agreed([entries_of(a) for a in placed])
    if found is None and not is_lenient():
        shown = ", ".join(str(a.sharding) for a in avals)
        raise ShardingTypeError(
            f"All operands should have the same sharding. Got shardings {shown}"
        )
    k = params["dimension"]
    return [
        None if i == k and n % parts_of(mesh, e) else e
        for i, (e, n) in enumerate(zip(found or entries_of(placed[0]), out.shape))
    ]


def _agreed(found: Sequence[Entries]) -> Entries | None:
    """What entries say together; None if they do not agree. One that says nothing agrees."""
    joined: Entries = []
    for column in zip(*found):
        named = {e for e in column if e is not None}
        if len(named) > 1:
            return None
        joined.append(next(iter(named), None))
    return joined


def _selected(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    which, *cases = avals
    placed = [c for c in cases if c.place is not None and c.ndim]
    if not placed:
        return entries_of(which) if which.ndim else [None] * out.ndim
    first = _agreed([entries_of(c) for c in placed])
    if first is None:
        if not is_lenient():
            shown = ", ".join(str(c.sharding) for c in cases)
            raise ShardingTypeError(f"select cases must have the same shardings, got [{shown}].")
        first = entries_of(placed[0])
    if not is_lenient():
        if which.ndim and _agreed([entries_of(which), first]) is None:
            raise ShardingTypeError(
                "select `which` must be scalar or have the same sharding as cases, got `which`"
                f" sharding {which.sharding} but case sharding {cases[0].sharding}."
            )
    return first


def _reshaped(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """A dimension that is split may be cut into several, or several become one: the axes are dealt
    out from the first on. One such change at a time; all else is said to need `out_sharding`."""
    old, new, entries = avals[0].shape, out.shape, entries_of(avals[0])
    if all(e is None for e in entries):
        return [None] * len(new)
    groups = _groups(old, new)
    changes = [g for g in _without_ones(old, new) if len(g[0]) > 1 or len(g[1]) > 1]
    fits = groups is not None and params.get("dimensions") is None and len(changes) <= 1
    if groups is not None and fits and all(len(r) == 1 or len(c) == 1 for r, c in changes):
        found: Entries = [None] * len(new)
        for rows, columns in groups:
            names = [n for i in rows for n in names_in(entries[i])]
            last = max([i for i in rows if entries[i] is not None], default=-1)
            whole = [i for i in rows if i < last and entries[i] is None and old[i] != 1]
            dealt = None if whole else _dealt(names, [new[j] for j in columns], mesh)
            if dealt is None:
                break
            for j, e in zip(columns, dealt):
                found[j] = e
        else:
            return found
    if is_lenient():  # what the first of each group can carry
        rule = LENIENT_RULES["reshape"]
        kept = rule([entries], avals, out, params)
        return [e if n % parts_of(mesh, e) == 0 else None for e, n in zip(kept, new)]
    raise ShardingTypeError(
        "This reshape is not supported. Please specify the sharding of the output via the"
        " `out_sharding` argument of jax.lax.reshape. Got operand type:"
        f" {avals[0].str_short()}, new sizes: {tuple(new)}"
    )


def _dealt(
    names: Sequence[Hashable], sizes: Sequence[int], mesh: AbstractMesh
) -> list[tuple[Hashable, ...]] | None:
    """The axes, in order, over dimensions of these sizes; None if they do not fit."""
    found: list[tuple[Hashable, ...]] = []
    left = list(names)
    for size in sizes:
        own: list[Hashable] = []
        parts = 1
        while left and size % (parts * mesh.shape[left[0]]) == 0:
            parts *= mesh.shape[left[0]]
            own.append(left.pop(0))
        if left and size != 1 and parts != size:
            return None
        found.append(tuple(own))
    return None if left else found


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """Dimensions before and after that hold the same elements, in groups; None if there is no such
    way."""
    found, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        rows, columns = ([i], []) if i < len(old) else ([], [j])
        a = b = 1
        if rows:
            a, i = old[i], i + 1
        else:
            b, j = new[j], j + 1
        while a != b:
            if a > b and j < len(new):
                b, j = b * new[j], j + 1
                columns.append(j - 1)
            elif a < b and i < len(old):
                a, i = a * old[i], i + 1
                rows.append(i - 1)
            else:
                return None
        found.append((rows, columns))
    return found


def _without_ones(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The groups, without dimensions of one element."""
    groups = _groups([n for n in old if n != 1], [n for n in new if n != 1])
    return groups or []


def _constrained(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    sharding = params["sharding"]
    if not isinstance(sharding, NamedSharding):
        return [None] * out.ndim
    return list(of_explicit_axes(sharding.spec, mesh).padded(out.ndim))


def _lenient(rule: Callable[..., Entries]) -> Callable[..., Entries]:
    return lambda name, avals, out, params, mesh: rule(
        [entries_of(a) for a in avals], avals, out, params
    )


_RULES: Final[dict[str, Rule]] = {
    **{name: _lenient(rule) for name, rule in LENIENT_RULES.items()},
    "dot_general": _dot,
    "concatenate": _concatenated,
    "select_n": _selected,
    **WINDOW_RULES,
    **WHOLE_RULES,
    "reshape": _reshaped,
    "sharding_constraint": _constrained,
    "call_exported": lambda name, avals, out, params, mesh: [None] * out.ndim,
}


def _spec_entries(
    p: Primitive, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    rule = scattered if p.name.startswith("scatter") else _RULES.get(p.name)
    if rule is not None:
        return rule(p.name, avals, out, params, mesh)
    if avals and all(a.shape in ((), out.shape) for a in avals):
        return _elementwise(p.name, avals, out, params, mesh)
    return [None] * out.ndim


# ---------------------------------------------------------------- results


def _sums_of(aval: ShapedArray) -> tuple[Axes | None, Axes | None]:
    place = aval.place
    if not isinstance(place, MeshPlace) or (aval.ndim == 0 and aval.weak_type and place.mat.empty):
        return None, None
    return place.spec.unreduced | place.mat.unreduced, place.spec.reduced | place.mat.reduced


def _collective(p: Collective, avals: Avals, params: Params) -> ManualAxisType:
    """How the result of a collective relates to the axes."""
    mat = EMPTY_MANUAL
    varying = frozenset[Hashable]().union(*[mat_of(a).varying for a in avals])
    if avals:
        mat = mat_of(avals[0])
    return p.manual_type(mat.update(varying=varying), params)


def _result(
    p: Primitive, avals: Avals, params: Params, out: ShapedArray, mesh: AbstractMesh
) -> ShapedArray:
    if isinstance(p, Collective):
        mat = _collective(p, avals, params)
        unreduced, reduced = mat.unreduced, mat.reduced
        if avals and isinstance(avals[0].place, MeshPlace):
            unreduced |= avals[0].place.spec.unreduced
            reduced |= avals[0].place.spec.reduced
        varying = mat.varying
    else:
        pairs = [_sums_of(a) for a in avals]
        unreduced, reduced = sums(p, [u for u, _ in pairs], [r for _, r in pairs])
        varying = frozenset[Hashable]().union(*[mat_of(a).varying for a in avals])
    if p.name == "sharding_constraint" and isinstance(params["sharding"], NamedSharding):
        spec = of_explicit_axes(params["sharding"].spec, mesh)
        unreduced = (unreduced - set(mesh.explicit_axes)) | spec.unreduced
        reduced = (reduced - set(mesh.explicit_axes)) | spec.reduced
    explicit = frozenset(mesh.explicit_axes)
    entries = [None] * out.ndim if not explicit else _spec_entries(p, avals, out, params, mesh)
    split = {n for e in entries for n in names_in(e)}
    entries = _once(p, avals, out, entries)
    spec = PartitionSpec(
        *entries, unreduced=(unreduced & explicit) - split, reduced=(reduced & explicit) - split
    )
    mat = ManualAxisType(
        varying=varying,
        unreduced=unreduced - explicit - varying,
        reduced=reduced - explicit - varying - unreduced,
    )
    return out.update(place=place_of(mesh, spec, mat))


def _once(p: Primitive, avals: Avals, out: ShapedArray, entries: Entries) -> Entries:
    """The entries, in which every axis stands once."""
    seen: set[Hashable] = set()
    kept: Entries = []
    for e in entries:
        names = names_in(e)
        if seen.intersection(names):
            if not is_lenient():
                shown = ", ".join(a.str_short() for a in avals)
                raise ShardingTypeError(
                    f"{p.name} operation with inputs: {shown} produces an illegally sharded result:"
                    f" {out.str_short()} with the spec {entries}"
                ) from DuplicateSpecError(str(entries))
            e = None
        seen.update(names_in(e))
        kept.append(e)
    return kept


class _Typing(Typing):
    def lenient(self) -> AbstractContextManager[None]:
        return lenient()

    def retyped(self, x: Any, aval: ShapedArray) -> Any:
        return retyped(x, aval)

    def batched(self, aval: ShapedArray, dim: int | None, axis: Any) -> ShapedArray:
        shape, place = aval.shape, aval.place
        if isinstance(place, MeshPlace):
            if axis.checked:  # the members are all there: nothing varies any more
                kinds = ("varying", "unreduced", "reduced")
                rest = {k: getattr(place.mat, k) - {axis.name} for k in kinds}
                place = place.updated(mat=place.mat.update(**rest))
            if dim is not None:
                entries = place.spec.partitions
                place = place.with_entries((*entries[:dim], None, *entries[dim:]))
        if dim is not None:
            shape = (*shape[:dim], axis.size, *shape[dim:])
        return ShapedArray(shape, aval.dtype, aval.weak_type, place)

    def lane_axes(self, values: Sequence[Any], dims: Sequence[Any], spmd: Any) -> Any:
        return lane_axes(values, dims, spmd)

    def on_lanes(self, x: Any, dim: int, lanes: Any) -> Any:
        return on_lanes(x, dim, lanes)

    def row(self, aval: ShapedArray) -> ShapedArray:
        if entries_of(aval)[0] is not None and not is_lenient():
            raise ValueError(
                "0th dimension of all xs should be replicated: a loop takes one row after the"
                f" other. Got {aval.str_short()}"
            )
        return self.without(aval, 0)

    def stacked(self, aval: ShapedArray, length: Any) -> ShapedArray:
        place = aval.place
        if isinstance(place, MeshPlace):
            place = place.with_entries((None, *place.spec.partitions))
        return ShapedArray((length, *aval.shape), aval.dtype, aval.weak_type, place)

    def alike(self, a: ShapedArray, b: ShapedArray) -> bool:
        if is_lenient() or a.place is b.place:
            return True
        left, right = [_said(x) for x in (a, b)]
        return left == right

    def casts(self, a: Any, b: Any) -> tuple[Any, ...]:
        if getattr(b, "place", None) is None:
            return ()
        return in_mesh_order(b.place.mesh, mat_of(b).varying - mat_of(a).varying)

    def of_member(self, aval: ShapedArray, axis: Any, kind: str) -> ShapedArray:
        mesh = axis.mesh
        if mesh is None:
            return aval
        place = aval.place
        if not isinstance(place, MeshPlace):
            place = place_of(mesh, PartitionSpec(*[None] * aval.ndim), EMPTY_MANUAL)
        mat = place.mat.update(**{kind: getattr(place.mat, kind) | {axis.name}})
        return aval.update(place=place.updated(mat=mat, mesh=mesh))

    def without(self, aval: ShapedArray, dim: int) -> ShapedArray:
        shape, place = aval.shape[:dim] + aval.shape[dim + 1 :], aval.place
        if isinstance(place, MeshPlace):
            entries = place.spec.partitions
            place = place.with_entries(entries[:dim] + entries[dim + 1 :])
        return ShapedArray(shape, aval.dtype, aval.weak_type, place)

    def kind(self, primitive: Primitive, kinds: Sequence[str | None], constant: Any) -> str | None:
        return joined_kind(primitive, kinds, constant)

    def ambient(self) -> Any:
        mesh = ambient_mesh()
        return None if mesh.are_all_axes_auto else mesh

    def placed(self, aval: ShapedArray, sharding: Any) -> ShapedArray:
        return typed(aval, sharding)

    def resolved(self, sharding: Any) -> Any:
        if not isinstance(sharding, PartitionSpec):
            return sharding
        mesh = mesh_of_specs()
        if mesh.empty:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be"
                f" empty: {sharding} refers to the mesh of `calque.set_mesh(mesh)`. Or give a"
                " NamedSharding"
            )
        return NamedSharding(mesh, sharding)

    def mesh_of(self, aval: Any) -> Any:
        place = getattr(aval, "place", None)
        return place.mesh if isinstance(place, MeshPlace) else None

    def operands(self, primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
        if len(args) < 2 or isinstance(primitive, AxisPrimitive) or not checks_variance():
            return args
        if any(True for _ in subjaxprs(params)):
            return args
        return agreeing(primitive, args)

    def results(
        self, primitive: Primitive, avals: Avals, params: Params, out: Any, mesh: Any
    ) -> Any:
        if primitive.name == "cond" and out:
            return _joined_branches(out, params["branches"])
        is_scatter = primitive.name.startswith("scatter")  # carries how to combine two numbers
        if not is_scatter and any(True for _ in subjaxprs(params)):
            return _of_programs(out, avals, mesh) if primitive.multiple_results else out
        known = [a for a in avals if isinstance(a, ShapedArray)]
        mesh = _mesh_of(primitive.name, known, mesh)
        if primitive.name == "sharding_constraint":
            mesh = _mesh_asked(params["sharding"], mesh)
        if mesh.are_all_axes_auto:
            return out.without_place() if primitive.name == "sharding_constraint" else out
        if primitive.multiple_results:
            return [
                _result(primitive, known, params, o, mesh) if isinstance(o, ShapedArray) else o
                for o in out
            ]
        return _result(primitive, known, params, out, mesh) if type(out) is ShapedArray else out


def _said(aval: ShapedArray) -> tuple[Any, ...]:
    """What a type says of explicit axes."""
    spec = aval.place.spec if isinstance(aval.place, MeshPlace) else PartitionSpec()
    return tuple(entries_of(aval)), spec.unreduced, spec.reduced


def retyped(x: Any, aval: ShapedArray) -> Any:
    """A value that is split along explicit axes as a type says."""
    place, own = aval.place, placed_typeof(x).place
    if not isinstance(place, MeshPlace) or not place.mesh.explicit_axes:
        return x
    if isinstance(own, MeshPlace) and own.spec == place.spec:
        return x
    if isinstance(x, Tracer):
        return constraint.call(x, place.sharding)
    mesh = devices_of(place.mesh)
    if not isinstance(x, ArrayImpl) or mesh is None:
        return x
    return put_on(x, NamedSharding(mesh, place.spec))


def agreeing(primitive: Primitive, args: Sequence[Any]) -> list[Any]:
    """The operands, all varying along the axes that one of them varies along."""
    mats = [EMPTY_MANUAL if _is_constant(a) else mat_of(a.aval) for a in args]
    joined = frozenset[Hashable]().union(*[m.varying for m in mats])
    if not joined or all(m.varying == joined for m in mats):
        return list(args)
    if not config.auto_pcast:
        raise ValueError(
            f"Primitive {primitive.name} requires varying manual axes to match, but got"
            f" {[set(m.varying) for m in mats]}. Please cast with `jax.lax.pcast`"
            " where that is needed, or set calque_auto_pcast"
        )
    out = []
    for a, m in zip(args, mats):
        missing = joined - m.varying
        if missing and type(a) is not Dim:
            names = in_mesh_order(ambient_mesh(), missing)
            cast = "reduced_vary_cast" if m.reduced == missing else "pvary"
            a = do[cast](a, axes=names)
        out.append(a)
    return out


def _of_programs(out: Sequence[Any], avals: Avals, mesh: AbstractMesh) -> list[Any]:
    """The types of what programs give. Where they do not say what varies, everything may that one
    of the operands does."""
    if not mesh.manual_axes:
        return list(out)
    varying = frozenset[Hashable]().union(
        *[mat_of(a).varying for a in avals if isinstance(a, ShapedArray)]
    )
    mat = ManualAxisType(varying=varying)
    return [
        o.update(place=place_of(mesh, PartitionSpec(*[None] * o.ndim), mat))
        if varying and type(o) is ShapedArray and o.place is None
        else o
        for o in out
    ]


def _joined_branches(out: Sequence[Any], branches: Sequence[Any]) -> list[Any]:
    """The types of what branches give: it varies where it does in one of them."""
    joined = []
    for a, *others in zip(out, *[b.out_avals for b in branches]):
        places = [o.place for o in others if isinstance(getattr(o, "place", None), MeshPlace)]
        if places:
            varying = frozenset[Hashable]().union(*[p.mat.varying for p in places])
            first = places[0]
            a = a.update(place=first.updated(mat=first.mat.update(varying=varying)))
        joined.append(a)
    return joined


def _is_constant(x: Any) -> bool:
    return isinstance(x, PYTHON_SCALARS) or not isinstance(x, Tracer)


typing.value = _Typing()
