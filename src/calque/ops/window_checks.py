"""Whether the dimension numbers of a gather or scatter fit its operands: what each list of
dimensions may hold, said with the names that users gave them by."""

from __future__ import annotations

from collections.abc import Sequence

from calque.core.avals import ShapedArray

Shape = tuple[int, ...]


def check_dims(op: str, name: str, dims: Sequence[int], rank: int) -> None:
    """A list of dimensions is in ascending order, without repeats, within a rank."""
    if list(dims) != sorted(dims):
        raise TypeError(f"{name} in {op} op must be sorted; got {dims}")
    check_range(op, name, dims, rank)
    check_distinct(op, name, dims)


def check_range(op: str, name: str, dims: Sequence[int], rank: int) -> None:
    for d in dims:
        if not 0 <= d < rank:
            raise TypeError(f"Invalid {name} set in {op} op; valid range is [0, {rank}); got: {d}.")


def check_distinct(op: str, name: str, dims: Sequence[int]) -> None:
    if len(set(dims)) != len(dims):
        raise TypeError(f"{name} in {op} op must not repeat; got: {dims}.")


def check_apart(op: str, name: str, dims: Sequence[int], other: str, others: Sequence[int]) -> None:
    """Two lists have no dimension in common."""
    if set(dims) & set(others):
        raise TypeError(
            f"{name} and {other} in {op} op must be disjoint; got: {dims} and {others}."
        )


def check_index_map(
    op: str, name: str, kind: str, index_map: Shape, x: ShapedArray, indices: ShapedArray
) -> None:
    """Each entry of an index vector belongs to one dimension of the operand."""
    at = indices.ndim - 1
    if len(index_map) != indices.shape[-1]:
        raise TypeError(
            f"{op.capitalize()} op has {len(index_map)} elements in {name} and the bound of"
            f" dimension index_vector_dim={at} of indices is {indices.shape[-1]}. These two numbers"
            f" must be equal. The indices are {indices.str_short()}"
        )
    for k, d in enumerate(index_map):
        if not 0 <= d < x.ndim:
            raise TypeError(
                f"Invalid {name}{kind}; domain is [0, {x.ndim}), got: {k}->{d} for operand"
                f" {x.str_short()}."
            )
    check_distinct(op, name, index_map)


def check_batching(
    op: str,
    name: str,
    batching: Shape,
    indices_batching: Shape,
    x: ShapedArray,
    indices: ShapedArray,
) -> None:
    """Batching dimensions of the operand and of the indices, `name`, belong together in pairs."""
    title = op.capitalize()
    check_distinct(op, name, indices_batching)
    check_range(op, name, indices_batching, indices.ndim)
    if indices.ndim - 1 in indices_batching:
        raise TypeError(
            f"{title} op cannot have the index vector dimension as a batching dimension; got"
            f" {indices_batching}."
        )
    if len(batching) != len(indices_batching):
        raise TypeError(
            f"{title} op requires equal numbers of operand_batching_dims and {name}, got"
            f" {batching} and {indices_batching}."
        )
    own = tuple([x.shape[d] for d in batching])
    others = tuple([indices.shape[d] for d in indices_batching])
    if own != others:
        raise TypeError(
            f"{title} op requires operand batching dimensions and indices batching dimensions to"
            f" have the same shape, got {own} and {others}."
        )
