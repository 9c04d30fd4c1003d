"""What shard_map refuses, and what it says then."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.key_paths import keystr
from calque.transforms.devices.sharding import check_spec
from calque.transforms.devices.specs import PartitionSpec, names_in, names_of_spec
from calque.transforms.devices.types import (
    ManualAxisType,
    MeshPlace,
    in_mesh_order,
    place_of,
)
from calque.transforms.engines.trees import FlatFunction, argument_name, name_of


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def check_specs(option: str, specs: Any, manual: Sequence[Hashable]) -> None:
    """Specs are PartitionSpecs of axes that are mapped."""
    for s in pytrees.leaves(specs, is_leaf=_is_spec):
        if not _is_spec(s):
            raise TypeError(
                f"shard_map {option} argument must be a pytree of `calque.sharding.PartitionSpec`"
                f" instances, but: {option} has the value {s!r} of type {type(s)}"
            )
        for name in () if s is None else names_of_spec(s):
            if name not in manual:
                raise ValueError(
                    f"shard_map {option} argument must refer to an axis marked as manual"
                    f" ({frozenset(manual)}), but:\n\n  {option} refers to {name!r}\n\nCheck the"
                    f" {option} values passed to shard_map."
                )
        if s is not None:
            check_spec(s, manual)


def check_inferred(inferred: bool, mesh: Any, names: Sequence[Hashable]) -> None:
    """Only along explicit axes do types say how arguments are to be cut."""
    if inferred and not set(names) <= set(mesh.explicit_axes) | set(mesh.manual_axes):
        types = dict(zip(mesh.axis_names, mesh.axis_types))
        raise TypeError(
            "shard_map in_specs argument (smap: in_axes) must be a pytree of"
            " `calque.sharding.PartitionSpec` instances: in_axes was not specified when"
            f" axis_name={', '.join(map(str, names))} was of type"
            f" {', '.join(str(types[n]) for n in names)}"
        )


def check_not_split(in_specs: Any, out_specs: Any, split: Sequence[Hashable]) -> None:
    """Mesh axes over which a vmap around splits its dimension are used up."""
    for option, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
        for s in pytrees.leaves(specs, is_leaf=_is_spec):
            if isinstance(s, PartitionSpec) and names_of_spec(s) & set(split):
                raise ValueError(
                    f"vmap spmd_axis_name cannot appear in shard_map {option}:"
                    f" {sorted(map(str, split))} split the dimension of a vmap around it, but"
                    f" {option} has {s}"
                )


def check_sums(option: str, specs: Any, mesh: Any, names: Sequence[Hashable]) -> None:
    """Unreduced and reduced axes are spoken of where all axes are mapped, and explicit outside."""
    for s in pytrees.leaves(specs, is_leaf=_is_spec):
        if not isinstance(s, PartitionSpec) or not (s.unreduced or s.reduced):
            continue
        prefix = option.partition("_")[0]
        if set(names) != set(mesh.axis_names):
            raise NotImplementedError(
                f"unreduced/reduced can only be passed to {prefix}_specs when shard_map is in full"
                f" manual mode. Got mesh axis names {mesh.axis_names}, manual_axes:"
                f" {frozenset(names)}, specs: {s}."
            )
        for what in ("unreduced", "reduced"):
            if not getattr(s, what) <= set(mesh.explicit_axes):
                raise ValueError(
                    f"{what} in {prefix}_specs {s} can only be used when the mesh passed to"
                    " shard_map contains axis names all of type `Explicit`. Got mesh"
                    f" {mesh}"
                )


def own_spec(aval: ShapedArray, names: Sequence[Hashable]) -> PartitionSpec:
    """How the type of an argument says that it is cut along these axes."""
    place = aval.place
    if not isinstance(place, MeshPlace):
        return PartitionSpec()
    entries = [tuple(n for n in names_in(e) if n in names) for e in place.spec.partitions]
    return place.spec.update(partitions=entries)


def check_types(
    mesh: Any, names: Sequence[Hashable], aval: ShapedArray, spec: PartitionSpec
) -> None:
    """Along explicit axes an argument is cut as its type says."""
    place: Any = aval.place
    own = place.spec if isinstance(place, MeshPlace) else PartitionSpec()
    for what in ("unreduced", "reduced"):
        if getattr(spec, what) != getattr(own, what):
            raise ValueError(
                f"in_specs containing {what} {spec} passed to shard_map should be equal to the"
                f" {what} present on the in_aval {aval.str_short()}"
            )
    if place is None or not mesh.are_all_axes_explicit or set(names) != set(mesh.axis_names):
        return
    asked = place_of(place.mesh, spec.update(partitions=spec.padded(aval.ndim)), place.mat).spec
    if asked.partitions != own.partitions:
        raise ValueError(
            f"in_specs passed to shard_map: {spec.update(partitions=spec.padded(aval.ndim))} does"
            f" not match the specs of the input: {own} for arg:"
            f" {aval.str_short(short_dtypes=False)}. `in_specs` is an optional argument so you can"
            " omit specifying it and shard_map will infer the in_specs from the arguments. If you"
            " want to reshard your inputs, you can use `jax.reshard` on the arguments and then pass"
            " those args to shard_map."
        )


def check_sums_of_output(mat: ManualAxisType, spec: PartitionSpec) -> None:
    """What has still to be added is what the out_specs say."""
    same = spec.unreduced - mat.unreduced - mat.varying
    if same:
        raise ValueError(
            "vary_unreduced_cast is a Varying->Unreduced collective: the out_specs"
            f" {spec} call a result unreduced over {sorted(map(str, same))}, along which it does"
            f" not vary; it has {mat}"
        )
    for what, own, said in (
        ("unreduced", mat.unreduced, spec.unreduced),
        ("reduced", mat.reduced, spec.reduced),
    ):
        if own - said or (what == "reduced" and own != said):
            raise ValueError(
                f"out_specs passed to shard_map should be equal to the {what} present on the"
                f" out_aval. Got out_specs={spec} and out_aval with {mat}"
            )


def flat_specs(option: str, specs: Any, tree: Any, f: Any = None) -> list[Any]:
    """The spec of each leaf of `tree`, from a tree of specs that `tree` begins with; None where
    the value is not to be cut, being none of the arrays."""
    try:
        found = pytrees.prefix_broadcast(specs, tree, is_leaf=_is_spec)
    except ValueError:
        why = pytrees.difference(specs, tree, _is_spec, f"shard_map {option}")
        raise ValueError(why) from None
    return found


def _mesh_text(mesh: Any) -> str:
    return (
        f"The mesh given has shape {tuple(mesh.axis_sizes)} with corresponding axis names"
        f" {tuple(mesh.axis_names)}."
    )


def check_input(
    f: Any, mesh: Any, args: Sequence[Any], i: int, aval: ShapedArray, spec: PartitionSpec
) -> None:
    """The argument has the dimensions that its spec speaks of, and they can be cut."""
    if len(spec) > aval.ndim:
        raise ValueError(
            f"shard_map applied to the function '{name_of(f)}' was given an in_specs entry which is"
            " too long to be compatible with the corresponding input value from the"
            f" function:\n\nin_specs is {spec} which has length {len(spec)}, but the passed"
            f" {argument_name(f, args, {}, i)} has shape {_type(aval)}, which has rank {aval.ndim}"
            f" (and {aval.ndim} < {len(spec)})\n\nEntries in in_specs must be of length no greater"
            " than the number of axes in the corresponding input value.\n\nEither revise the spec"
            f" to be shorter, or modify '{name_of(f)}' so that its inputs have sufficient rank."
            + (
                ""
                if aval.ndim
                else " For scalar values (rank 0), consider using an in_specs entry of `P()`."
            )
        )
    for k, entry in enumerate(spec.partitions):
        names = names_in(entry)
        n = math.prod(mesh.shape[name] for name in names)
        if aval.shape[k] % n:
            axes = f"mesh axis {names[0]!r}" if len(names) == 1 else f"mesh axes {names}"
            raise ValueError(
                f"shard_map applied to the function '{name_of(f)}' was given argument arrays with"
                " axis sizes that are not evenly divisible by the corresponding mesh axis"
                f" sizes:\n\n{_mesh_text(mesh)}\n\nthe passed {argument_name(f, args, {}, i)} of"
                f" shape {_type(aval)} corresponds to in_specs of value {spec}, which maps array"
                f" axis {k} (of size {aval.shape[k]}) to {axes} (of size {n}), but {n} does not"
                f" evenly divide {aval.shape[k]}\n\nArray arguments' axis sizes must be evenly"
                " divisible by the mesh axis or axes indicated by the corresponding elements of"
                " the argument's in_specs entry. Consider checking that in_specs are correct, and"
                " if so consider changing the mesh axis sizes or else padding the input and"
                f" adapting '{name_of(f)}' appropriately."
            )


def _type(aval: ShapedArray) -> str:
    return f"{getattr(aval.dtype, 'name', aval.dtype)}[{','.join(map(str, aval.shape))}]"


def check_output(
    flat: FlatFunction, mesh: Any, spec: PartitionSpec, shape: Sequence[int], i: int
) -> None:
    """The result has the dimensions that its spec speaks of."""
    if len(spec) <= len(shape):
        return
    path = pytrees.flatten_with_path(
        pytrees.unflatten(flat.out_tree, range(flat.out_tree.num_leaves))
    )[0][i][0]
    name = flat.__name__
    scalar = (
        "\n\nFor scalar values (rank 0), consider using an out_specs entry of `P()`, where `P ="
        " calque.sharding.PartitionSpec`. In particular, for rank 0 outputs which are not constant"
        " over the mesh, add at least one (singleton) axis to them so that they can be concatenated"
        " using out_specs."
    )
    raise ValueError(
        f"shard_map applied to the function '{name}' was given an out_specs entry which is too long"
        " to be compatible with the corresponding output value from the function:\n\nout_specs is"
        f" {spec} which has length {len(spec)}, but {name}(*args){keystr(path)} has shape"
        f" {tuple(shape)}, which has rank {len(shape)} (and {len(shape)} < {len(spec)})\n\nEntries"
        " in out_specs must be of length no greater than the number of axes in the corresponding"
        f" output value.\n\nEither revise the spec to be shorter, or modify '{name}' so that its"
        f" outputs have sufficient rank.{'' if shape else scalar}"
    )


def refuse_varying(
    f: Any, mesh: Any, spec: PartitionSpec, extra: Sequence[Hashable], varying: Sequence[Hashable]
) -> None:
    """A result that may differ along axes over which its spec calls it replicated."""
    allowed = ",".join(str(n) for n in in_mesh_order(mesh, varying) if n not in extra)
    raise ValueError(
        f"shard_map applied to the function '{name_of(f)}' was given out_specs which require"
        " replication which can't be statically inferred given the"
        f" mesh:\n\n{_mesh_text(mesh)}\n\nout_specs is {spec} which implies that the corresponding"
        f" output value is only varying across mesh axes {{{allowed}}} and not"
        f" {{{','.join(map(str, extra))}}}, but it was inferred to be possibly varying over"
        f" {{{','.join(map(str, in_mesh_order(mesh, varying)))}}}\n\nCheck if these output"
        " values are meant to be replicated over those mesh axes. If not, consider revising the"
        " corresponding out_specs entries. If so, consider disabling the check by passing the"
        " check_vma=False argument to `calque.shard_map`."
    )
