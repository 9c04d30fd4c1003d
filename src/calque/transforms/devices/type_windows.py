"""How shardings in types follow through operations that change the sizes of dimensions: slices,
windows, convolutions, and those that pick elements along one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.transforms.devices.abstract_mesh import AbstractMesh
from calque.transforms.devices.types import ShardingTypeError, entries_of, is_lenient, parts_of

Entries = list[Any]  # what a spec says of each dimension
Avals = Sequence[ShapedArray]
Params = dict[str, Any]
Rule = Callable[[str, Avals, ShapedArray, Params, AbstractMesh], Entries]


def _fitting(
    name: str, aval: ShapedArray, entries: Entries, out: ShapedArray, mesh: AbstractMesh
) -> Entries:
    """The entries, where they divide the dimensions of the result."""
    for n, e in zip(out.shape, entries):
        if n % parts_of(mesh, e) and not is_lenient():
            raise ShardingTypeError(
                f"{name} on sharded dims where out dim ({n}) is not divisible by mesh axes"
                f" ({parts_of(mesh, e)}) with spec ({e}) is not implemented. Got input"
                f" type={aval.str_short()} and output shape={out.shape}"
            )
    return [e if n % parts_of(mesh, e) == 0 else None for e, n in zip(entries, out.shape)]


def _resized(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """Dimensions of other sizes stay split, if they can be."""
    entries = entries_of(avals[0])
    same = [old == new for old, new in zip(avals[0].shape, out.shape)]
    found = _fitting(name, avals[0], [None if k else e for k, e in zip(same, entries)], out, mesh)
    return [e if k else f for k, e, f in zip(same, entries, found)]


def _like_the_last(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    return _fitting(name, avals[-1], entries_of(avals[-1]), out, mesh)


def whole_along(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """Along one dimension elements are compared or combined in order: it is whole."""
    entries, k = entries_of(avals[0]), params["axis"]
    if entries[k] is not None and not is_lenient():
        raise ShardingTypeError(
            f"{name}: input should be unsharded over the axis being reduced. Got input"
            f" type={avals[0].str_short()} and axis={k}. Reshard it, so that this axis is whole"
        )
    return [None if i == k else e for i, e in enumerate(entries)]


def _convolved(
    name: str, avals: Avals, out: ShapedArray, params: Params, mesh: AbstractMesh
) -> Entries:
    """Batches and places are split as those of the left side, features as those of the kernel; the
    features that are summed over are whole."""
    numbers = params["dimension_numbers"]
    left, kernel = entries_of(avals[0]), entries_of(avals[1])
    rows, weights, results = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    split = [left[rows[1]], *(kernel[k] for k in weights[1:])]
    if any(e is not None for e in split) and not is_lenient():
        raise ShardingTypeError(
            f"{name}: the features that are summed over, and the dimensions of the window, must not"
            f" be split. Got lhs={avals[0].str_short()} and rhs={avals[1].str_short()}"
        )
    found: Entries = [None] * out.ndim
    found[results[0]], found[results[1]] = left[rows[0]], kernel[weights[0]]
    for k, target in zip(rows[2:], results[2:]):
        found[target] = left[k]
    return _fitting(name, avals[0], found, out, mesh)


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("slice", "dynamic_slice", "pad", "split"), _resized),
    **{
        f"reduce_window{kind}": _resized
        for kind in ("", "_sum", "_max", "_min", "_prod", "_and", "_or", "_xor")
    },
    **{f"select_and_{kind}_add": _like_the_last for kind in ("scatter", "gather")},
    "top_k": whole_along,
    "conv_general_dilated": _convolved,
}
