"""The collectives as functions of pytrees, in the names of lax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calque.core import pytrees
from calque.core.dtypes import PYTHON_SCALARS
from calque.core.primitives import REGISTRY, do
from calque.core.trace import typeof
from calque.ops.common import axis_in, operand, scalar_of
from calque.transforms.devices.casts import (
    checked_names,
    gathered_as,
    relation_of_all,
    unreduced_psum_p,
    unreduced_reduce_scatter_p,
)
from calque.transforms.devices.collectives import (
    Names,
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pbroadcast_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    reduce_scatter_p,
    total,
)
from calque.transforms.devices.collectives_groups import Groups, checked_groups, group_size, members
from calque.transforms.devices.collectives_several import (
    gather_over,
    group_gather,
    group_scatter,
    group_sum,
    permute_over,
    scatter_over,
    swap_over,
)
from calque.transforms.devices.variance import made_varying
from calque.transforms.engines import axes
from calque.transforms.engines.axes import Collective, names_of, size_of

if TYPE_CHECKING:
    from calque.core.arrays import Array
    from calque.core.generics import X

# ---------------------------------------------------------------- for users


def _each(fun: Callable[[Any], Any], tree: Any) -> Any:
    return pytrees.tree_map(lambda x: fun(operand(x)), tree)


def psum(x: X, axis_name: Any, *, axis_index_groups: Any = None) -> X:
    """Adds up the values of all members of a mapped axis.

    Args:
        x: A tree of arrays and numbers; a number is multiplied by the count of members;
            those that are true are counted, as int32.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.

    Returns:
        The tree with the results; the same for all members.

    >>> jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([3., 3., 3.], dtype=float32)"""
    names = names_of(axis_name)
    groups = checked_groups(axis_index_groups, axis_name, "psum", equal=False)

    def one(v: Any) -> Any:
        is_number = isinstance(v, PYTHON_SCALARS) and type(v) is not bool
        if is_number and not any(isinstance(n, int) for n in names):
            if groups is None or len({len(g) for g in groups}) == 1:
                return v * group_size(names, groups)
            return do.mul(members(names, groups, typeof(v).dtype), v)
        if typeof(v).dtype == np.dtype(bool):
            v = do.convert_element_type(v, new_dtype=np.dtype("int32"))
        known = checked_names(names, "psum")
        if known and relation_of_all(v, known, "jax.lax.psum") == "unreduced":
            if groups is not None or len(known) < len(names):
                raise NotImplementedError("psum of unreduced values over groups, or other axes too")
            return unreduced_psum_p.bind(v, axes=known)
        if groups is not None and len(names) > 1:
            if len({len(g) for g in groups}) > 1:
                refuse_groups(groups, "psum with groups of several sizes", names)
            return group_sum(made_varying(v, names), names, groups)
        return total(*positions_reduced(v, names, "reduce_sum"), groups)

    return pytrees.tree_map(one, x)


def positions_reduced(x: Any, names: Names, reduce: str) -> tuple[Any, Names]:
    """`x` reduced over those of the axes that are its own dimensions (ints), and the names of the
    others."""
    ndim = typeof(x).ndim
    own = tuple([axis_in("psum", n, ndim) for n in names if isinstance(n, int)])
    if own:
        x = REGISTRY[reduce].bind(
            x, axes=own, **({"out_sharding": None} if reduce == "reduce_sum" else {})
        )
    return x, tuple([n for n in names if not isinstance(n, int)])


def pmean(x: X, axis_name: Any, *, axis_index_groups: Any = None) -> X:
    """Gives the mean of the values of all members of a mapped axis.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.

    Returns:
        The tree with the results; the same for all members.

    >>> jax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([1., 1., 1.], dtype=float32)"""
    groups = checked_groups(axis_index_groups, axis_name, "pmean", equal=False)

    def one(v: Any) -> Any:
        total = psum(v, axis_name, axis_index_groups=groups)
        if isinstance(total, PYTHON_SCALARS):
            return total / group_size(axis_name, groups)
        aval = typeof(total)
        if aval.dtype.kind in "iu":
            total = do.convert_element_type(total, new_dtype=np.dtype("float32"))
        dtype, shape = typeof(total).dtype, typeof(v).shape
        own = math.prod(shape[n] for n in names if isinstance(n, int))
        total = do.div(total, members(named, groups, dtype))
        return total if own == 1 else do.div(total, scalar_of(dtype, own))

    names = names_of(axis_name)
    named = tuple(n for n in names if not isinstance(n, int))
    return pytrees.tree_map(one, x)


def pmax(x: X, axis_name: Any, *, axis_index_groups: Any = None) -> X:
    """Gives the largest of the values of all members of a mapped axis.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.

    Returns:
        The tree with the results; the same for all members.

    >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([2., 2., 2.], dtype=float32)"""
    names = names_of(axis_name)
    groups = checked_groups(axis_index_groups, axis_name, "pmax", equal=False)
    return _each(lambda v: _extreme(pmax_p, v, names, groups), x)


def pmin(x: X, axis_name: Any, *, axis_index_groups: Any = None) -> X:
    """Gives the smallest of the values of all members of a mapped axis.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.

    Returns:
        The tree with the results; the same for all members.

    >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([0., 0., 0.], dtype=float32)"""
    names = names_of(axis_name)
    groups = checked_groups(axis_index_groups, axis_name, "pmin", equal=False)
    return _each(lambda v: _extreme(pmin_p, v, names, groups), x)


def _extreme(p: Collective, x: Any, names: Names, groups: Groups) -> Any:
    if len(names) > 1:
        refuse_groups(groups, p.name, names)
    x, names = positions_reduced(x, names, f"reduce_{p.name[1:]}")
    return p.bind(made_varying(x, names), axes=names, axis_index_groups=groups) if names else x


def all_gather(
    x: X,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: Any = None,
) -> X:
    """Gives every member the values of all members of a mapped axis.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.
        axis: Where the new dimension stands; with `tiled`, the dimension along which they are
            joined.
        tiled: Whether the values are joined along an existing dimension instead of a new one.
        to: What the result is to the axis under `shard_map`: None or "varying", "invarying" or
            "reduced".

    Returns:
        The tree with the results; the same for all members.

    >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2.0))
    Array([[0., 1.],
           [0., 1.]], dtype=float32)"""
    groups = checked_groups(axis_index_groups, axis_name, "all_gather")

    if to not in (None, "varying", "invarying", "reduced"):
        raise ValueError(
            "Got unexpected `to` value for `jax.lax.all_gather`. Allowed `to` values are:"
            f" {{'varying', 'reduced', 'invarying'}}, got {to!r}"
        )

    def one(v: Any) -> Any:
        k = axis % (typeof(v).ndim + (not tiled))
        if to in ("invarying", "reduced") and checked_names(names_of(axis_name), "all_gather"):
            if groups is not None:
                raise NotImplementedError(f"all_gather to={to!r} takes no axis_index_groups")
            return gathered_as(v, names_of(axis_name), k, tiled, to)
        v = made_varying(v, names_of(axis_name))
        if len(names_of(axis_name)) > 1:
            if groups is not None:
                return group_gather(v, names_of(axis_name), groups, k, tiled)
            return gather_over(v, names_of(axis_name), k, tiled)
        return all_gather_p.bind(
            v,
            all_gather_dimension=k,
            axis_index_groups=groups,
            axis_name=names_of(axis_name),
            axis_size=group_size(axis_name, groups),
            tiled=tiled,
        )

    return _each(one, x)


def psum_scatter(
    x: X,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> X:
    """Adds up the values of all members of a mapped axis; each member keeps its part of the sum.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        scatter_dimension: The dimension that is cut into parts.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.
        tiled: Whether the dimension stays, divided by the count of members, instead of going away.

    Returns:
        The tree with the part of this member.

    >>> jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.eye(2))
    Array([1., 1.], dtype=float32)"""
    groups = checked_groups(axis_index_groups, axis_name, "psum_scatter")

    def one(v: Any) -> Any:
        k = scatter_dimension % typeof(v).ndim
        known = checked_names(names_of(axis_name), "psum_scatter")
        if known and relation_of_all(v, known, "jax.lax.psum_scatter") == "unreduced":
            if groups is not None or len(known) > 1:
                raise NotImplementedError(
                    "psum_scatter of unreduced values takes one axis and no axis_index_groups"
                )
            return unreduced_reduce_scatter_p.bind(
                v, axis_name=known, axis_size=size_of(known), scatter_dimension=k, tiled=tiled
            )
        v = made_varying(v, names_of(axis_name))
        if len(names_of(axis_name)) > 1:
            if groups is not None:
                return group_scatter(v, names_of(axis_name), groups, k, tiled)
            return scatter_over(v, names_of(axis_name), k, tiled)
        return reduce_scatter_p.bind(
            v,
            axis_index_groups=groups,
            axis_name=names_of(axis_name),
            axis_size=group_size(axis_name, groups),
            scatter_dimension=k,
            tiled=tiled,
        )

    return _each(one, x)


def all_to_all(
    x: X,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> X:
    """Sends part i of the value of each member to member i, which joins what it gets.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        split_axis: The dimension that is cut into parts, as many as members.
        concat_axis: Where the parts that come in stand as a new dimension; with `tiled`, the
            dimension along which they are joined.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.
        tiled: Whether the dimensions stay, the one divided and the other multiplied by the count of
            members.

    Returns:
        The tree with what this member gets.

    >>> jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)"""
    groups = checked_groups(axis_index_groups, axis_name, "all_to_all")

    def one(v: Any) -> Any:
        split, concat = split_axis % typeof(v).ndim, concat_axis % typeof(v).ndim
        v = made_varying(v, names_of(axis_name))
        if len(names_of(axis_name)) > 1:
            refuse_groups(groups, "all_to_all", names_of(axis_name))
            return swap_over(v, names_of(axis_name), split, concat, tiled)
        return all_to_all_p.bind(
            v,
            axis_index_groups=groups,
            axis_name=axis_name,
            concat_axis=concat,
            split_axis=split,
            tiled=tiled,
        )

    return _each(one, x)


def ppermute(x: X, axis_name: Any, perm: Sequence[tuple[int, int]]) -> X:
    """Sends values from members of a mapped axis to others.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        perm: Pairs (source, destination) of positions. Members that nobody sends to get zeros.

    Returns:
        The tree with what this member gets.

    >>> send = lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> jax.vmap(send, axis_name="i")(jnp.array([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], dtype=float32)"""
    pairs = tuple((int(s), int(d)) for s, d in perm)
    names = names_of(axis_name)

    def one(v: Any) -> Any:
        v = made_varying(v, names)
        return (
            ppermute_p.bind(v, axis_name=names, perm=pairs)
            if len(names) == 1
            else permute_over(v, names, pairs)
        )

    return _each(one, x)


def pbroadcast(x: X, axis_name: Any, source: int) -> X:
    """Gives every member the value of one of them.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis.
        source: The position of that member.

    Returns:
        The tree with the results; the same for all members.

    >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3.0))
    Array([1., 1., 1.], dtype=float32)"""
    names = names_of(axis_name)
    if len(names) > 1:
        raise NotImplementedError(
            f"pbroadcast over several axes at once: {names}; use one axis after the other"
        )
    return _each(
        lambda v: pbroadcast_p.bind(
            made_varying(v, names), axis_name=axis_name, source=int(source)
        ),
        x,
    )


def refuse_groups(groups: Any, what: str, names: Names) -> None:
    """Groups of positions that are counted through several axes, where nothing knows these."""
    if groups is not None:
        raise NotImplementedError(
            f"{what}: axis_index_groups speaks of the positions of one axis, got the axes"
            f" {tuple(names)}"
        )


def _sent(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"{what}: members that wait for each other are operations of a GPU; lax.ppermute sends and"
        " receives at once"
    )


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Would send a value to members that wait for it; raises NotImplementedError.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        perm: Pairs (source, destination) of positions.

    Returns:
        Nothing: it raises.

    Differs from JAX:
        It is an operation of GPUs. `ppermute` sends and receives at once.

    >>> lax.psend(jnp.ones(2), "i", [(0, 1)])
    Traceback (most recent call last):
    NotImplementedError: psend: members that wait for each other are operations of a GPU; ..."""
    raise _sent("psend")


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Would wait for a value that a member sends; raises NotImplementedError.

    Args:
        token: A token.
        out_shape: The shape and dtype of the value.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        perm: Pairs (source, destination) of positions.

    Returns:
        Nothing: it raises.

    Differs from JAX:
        It is an operation of GPUs. `ppermute` sends and receives at once.

    >>> lax.precv(None, None, "i", [(0, 1)])
    Traceback (most recent call last):
    NotImplementedError: precv: members that wait for each other are operations of a GPU; ..."""
    raise _sent("precv")


def pshuffle(x: X, axis_name: Any, perm: Sequence[int]) -> X:
    """Exchanges the values of the members of a mapped axis.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        perm: For each member the position whose value it gets: every position once.

    Returns:
        The tree with what this member gets.

    >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3.0))
    Array([2., 0., 1.], dtype=float32)"""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def pswapaxes(x: X, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> X:
    """Lets the mapped axis and a dimension of the value change places.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.
        axis: The dimension; its size is the count of members.
        axis_index_groups: Lists of positions along the axis that are taken apart from each other;
            None takes all together.

    Returns:
        The tree with what this member gets.

    >>> jax.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)"""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def axis_index(axis_name: Any) -> Array:
    """Gives the position of this member along a mapped axis, from 0.

    Args:
        axis_name: The name of a mapped axis, or a tuple of names, which are counted through in
            order.

    Returns:
        An int32.

    >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.zeros(3, int))
    Array([0, 1, 2], dtype=int32)"""
    names = names_of(axis_name)
    index: Any = None
    for name in names:
        own = axis_index_p.bind(axis_name=name)
        index = (
            own
            if index is None
            else do.add(do.mul(index, scalar_of(np.dtype("int32"), axes.find(name).axis.size)), own)
        )
    return index


def axis_size(axis_name: Any) -> int:
    """Gives the number of members of a mapped axis.

    Args:
        axis_name: The name of a mapped axis, or a tuple of names: of `vmap`, `shard_map` or `pmap`.

    Returns:
        An int.

    >>> jax.vmap(lambda x: x + lax.axis_size("i"), axis_name="i")(jnp.zeros(3, int))
    Array([3, 3, 3], dtype=int32)"""
    return size_of(axis_name)
