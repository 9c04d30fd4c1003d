"""What shard_map refuses, and what it says then."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.transforms.devices.sharding import PartitionSpec, check_spec, names_in
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
        for name in [n for e in s or () for n in names_in(e)]:
            if name not in manual:
                raise ValueError(
                    f"shard_map {option} argument must refer to an axis marked as manual"
                    f" ({frozenset(manual)}), but:\n\n  {option} refers to {name!r}\n\nCheck the"
                    f" {option} values passed to shard_map."
                )
        if s is not None:
            check_spec(s, manual)


def flat_specs(option: str, specs: Any, tree: Any) -> list[PartitionSpec]:
    """The spec of each leaf of `tree`, from a tree of specs that `tree` begins with."""
    try:
        found = pytrees.prefix_broadcast(specs, tree, is_leaf=_is_spec)
    except ValueError:
        why = pytrees.difference(specs, tree, _is_spec, f"shard_map {option}")
        raise ValueError(why) from None
    return [PartitionSpec() if s is None else s for s in found]


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
        )
    for k, entry in enumerate(spec):
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
        f" {spec} which has length {len(spec)}, but {name}(*args){pytrees.keystr(path)} has shape"
        f" {tuple(shape)}, which has rank {len(shape)} (and {len(shape)} < {len(spec)})\n\nEntries"
        " in out_specs must be of length no greater than the number of axes in the corresponding"
        f" output value.\n\nEither revise the spec to be shorter, or modify '{name}' so that its"
        f" outputs have sufficient rank.{'' if shape else scalar}"
    )


def refuse_varying(
    f: Any, mesh: Any, spec: PartitionSpec, extra: Sequence[Hashable], varying: Sequence[Hashable]
) -> None:
    """A result that may differ along axes over which its spec calls it replicated."""
    allowed = ",".join(str(n) for n in varying if n not in extra)
    raise ValueError(
        f"shard_map applied to the function '{name_of(f)}' was given out_specs which require"
        " replication which can't be statically inferred given the"
        f" mesh:\n\n{_mesh_text(mesh)}\n\nout_specs is {spec} which implies that the corresponding"
        f" output value is only varying across mesh axes {{{allowed}}} and not"
        f" {{{','.join(map(str, varying))}}}, but it was inferred to be possibly varying over"
        f" {{{','.join(map(str, varying))}}}\n\nCheck if these output values are meant to be"
        " replicated over those mesh axes. If not, consider revising the corresponding out_specs"
        " entries. If so, consider disabling the check by passing the check_vma=False argument to"
        " `calque.shard_map`."
    )
