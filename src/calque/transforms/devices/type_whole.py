"""How shardings in types follow through operations that need some dimensions whole on every device:
sorting, running results, factors of matrices, places that are read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.core.avals import ShapedArray
from calque.core.dims import is_found
from calque.transforms.devices.abstract_mesh import AbstractMesh
from calque.transforms.devices.sharding_propagation import RULES as LENIENT_RULES
from calque.transforms.devices.specs import PartitionSpec, names_in
from calque.transforms.devices.type_windows import Avals, Entries, Params, Rule, whole_along
from calque.transforms.devices.types import (
    EMPTY_MANUAL,
    ShardingTypeError,
    check_divisible,
    entries_of,
    is_lenient,
    parts_of,
    place_of,
)


def _sorted(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    k = params["dimension"]
    columns = list(zip(*map(entries_of, avals)))
    found = [next((e for e in column if e is not None), None) for column in columns]
    if found[k] is not None and not is_lenient():
        raise ShardingTypeError(
            f"Arguments to sort must be unsharded over the sorting dimension. Got {_shown(avals)}"
            f" and sorting dimension={k}. Reshard them, so that it is whole"
        )
    if any(len({*column} - {None}) > 1 for column in columns) and not is_lenient():
        raise ShardingTypeError(
            f"Arguments to sort must have equal shardings, got: {_shown(avals)}"
        )
    return [None if i == k else e for i, e in enumerate(found)]


def _of_matrices(rank: int) -> Rule:
    """Operations on many matrices, or vectors: the last `rank` dimensions of the operands."""

    def rule(
        name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
    ) -> Entries:
        batch = avals[0].ndim - rank
        for i, a in enumerate(avals):
            if any(e is not None for e in entries_of(a)[batch:]) and not is_lenient():
                raise ShardingTypeError(
                    f"Input {i} to {name} must be unsharded on non-batch dimensions, but got"
                    f" {a.str_short()}. Reshard it, so that each matrix is whole"
                )
        first = entries_of(avals[0])[:batch]
        if any(entries_of(a)[:batch] != first for a in avals[1:]) and not is_lenient():
            raise ShardingTypeError(
                f"All inputs to {name} must have the same batch sharding, but got {_shown(avals)}"
            )
        return [*first, *[None] * out.ndim][: out.ndim]

    return rule


def _solved(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """The rows of the result are split as those of the triangle, or its columns."""
    a, b = map(entries_of, avals)
    left, turned = params["left_side"], params["transpose_a"]
    if a[:-2] != b[:-2] and not is_lenient():
        raise ShardingTypeError(
            f"All inputs to {name} must have the same batch sharding, but got {_shown(avals)}"
        )
    rows, columns = a[-2:], b[-2:]
    for what, entry, aval in (
        ("a", rows[left ^ turned], avals[0]),
        ("b", columns[not left], avals[1]),
    ):
        if entry is not None and not is_lenient():
            raise ShardingTypeError(
                f"triangular solve input `{what}` must be unsharded on the contracting axis, but"
                f" got {aval.str_short()} with left_side={left} and transpose_a={turned}"
            )
    found = [rows[turned], columns[1]] if left else [columns[0], rows[not turned]]
    return [*b[:-2], *found]


def _gathered(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    found = LENIENT_RULES["gather"]([entries_of(a) for a in avals], avals, out, params)
    used = {n for e in found for n in names_in(e)}
    lost = {n for a in avals for e in entries_of(a) for n in names_in(e)} - used
    batch = params["dimension_numbers"].start_indices_batching_dims
    asks = any(e is not None for k, e in enumerate(entries_of(avals[1])) if k not in batch)
    if (lost or asks) and not is_lenient():
        sized = ""
        if any(is_found(n) for n in avals[1].shape):
            sized = (
                ". How many indices there are is found while the program runs: on devices of XLA"
                " give what finds them a static size=, too"
            )
        raise ShardingTypeError(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather"
            " indexing as out sharding could not be resolved unambiguously (or would require"
            f" collectives on inputs). Got operand={avals[0].str_short()},"
            f" indices={avals[1].str_short()}{sized}"
        )
    return found


def scattered(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """The operand's, where each part can be written by itself: windows are whole or as wide as the
    operand, and all parts get all updates. Batches are split as one of the three is."""
    operand, indices, updates = map(entries_of, avals)
    numbers = params["dimension_numbers"]
    inside = iter(numbers.update_window_dims)
    outside = [k for k in range(len(updates)) if k not in numbers.update_window_dims]
    found, fits = list(operand), True
    asked = {*range(len(indices))} - {*numbers.scatter_indices_batching_dims}
    for k, j in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims):
        named = {operand[k], indices[j], updates[outside[j]]} - {None}
        fits = fits and len(named) <= 1
        found[k] = next(iter(named), None)
    for k, entry in enumerate(operand):
        if k in numbers.inserted_window_dims:
            fits = fits and entry is None
        elif k not in numbers.operand_batching_dims:
            u = next(inside)
            is_whole = avals[2].shape[u] == avals[0].shape[k]
            fits = fits and (updates[u] == entry or (is_whole and updates[u] is None))
            fits = fits and (is_whole or entry is None)
    fits = fits and all(indices[j] is None for j in asked)
    fits = fits and all(updates[outside[j]] is None for j in asked if j < len(outside))
    if not fits and not is_lenient():
        raise ShardingTypeError(_UPDATES.format(name, _shown(avals)))
    return found


_UPDATES: Final = (
    "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the {}"
    " update as out sharding could not be resolved unambiguously (or would require collectives on"
    " inputs). Got {}"
)


def _updated(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """A part that is written is split as what it is written to."""
    operand, update = map(entries_of, avals[:2])
    if operand != update and not is_lenient():
        raise ShardingTypeError(
            f"{name} operand sharding must be equal to update sharding, got {_shown(avals[:2])}."
            " Reshard one of them; `.at[...].set(..., out_sharding=)` says where its result is"
        )
    return operand


def _transformed(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """Lines that are no longer as long as they were must still be cut into equal parts."""
    entries = entries_of(avals[0])
    if is_lenient():
        return [e if n % parts_of(mesh, e) == 0 else None for e, n in zip(entries, out.shape)]
    check_divisible(place_of(mesh, PartitionSpec(*entries), EMPTY_MANUAL), out.shape)
    return entries


def _recast(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """Wider elements become several in a last dimension, or the reverse."""
    return [*entries_of(avals[0]), None][: out.ndim]


def _shown(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(a.str_short() for a in avals)


RULES: Final[dict[str, Rule]] = {
    "sort": _sorted,
    **{f"cum{op}": whole_along for op in ("sum", "prod", "max", "min", "logsumexp")},
    **{
        name: _of_matrices(2)
        for name in ("cholesky", "lu", "qr", "householder_product", "eigh", "eig", "svd")
    },
    "lu_pivots_to_permutation": _of_matrices(1),
    "triangular_solve": _solved,
    "gather": _gathered,
    "dynamic_update_slice": _updated,
    "fft": _transformed,
    "bitcast_convert_type": _recast,
}
