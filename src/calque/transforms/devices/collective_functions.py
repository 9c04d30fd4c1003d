"""The collectives as functions of pytrees, in the names of lax."""

import math
from collections.abc import Callable, Sequence
from typing import Any

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

# ---------------------------------------------------------------- for users


def _each(fun: Callable[[Any], Any], tree: Any) -> Any:
    return pytrees.tree_map(lambda x: fun(operand(x)), tree)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of `x` over the members of the axis; of a Python number, the number times their
    count.

    >>> calque.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([3., 3., 3.], dtype=float32)"""
    names = names_of(axis_name)
    groups = checked_groups(axis_index_groups, axis_name, "psum", equal=False)

    def one(v: Any) -> Any:
        if isinstance(v, PYTHON_SCALARS) and not any(isinstance(n, int) for n in names):
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


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of `x` over the members of the axis."""
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


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum of `x` over the members of the axis."""
    names = names_of(axis_name)
    groups = checked_groups(axis_index_groups, axis_name, "pmax", equal=False)
    return _each(lambda v: _extreme(pmax_p, v, names, groups), x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum of `x` over the members of the axis."""
    names = names_of(axis_name)
    groups = checked_groups(axis_index_groups, axis_name, "pmin", equal=False)
    return _each(lambda v: _extreme(pmin_p, v, names, groups), x)


def _extreme(p: Collective, x: Any, names: Names, groups: Groups) -> Any:
    if len(names) > 1:
        refuse_groups(groups, p.name, names)
    x, names = positions_reduced(x, names, f"reduce_{p.name[1:]}")
    return p.bind(made_varying(x, names), axes=names, axis_index_groups=groups) if names else x


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: Any = None,
) -> Any:
    """The values of all members along a new dimension `axis`, or joined along it with `tiled`."""
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
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum over the axis, of which each member keeps its part along `scatter_dimension`."""
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
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Each member sends part i of its value along `split_axis` to member i, and joins what it gets
    along `concat_axis`."""
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


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along (source, destination) pairs; members that nobody sends to get zeros."""
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


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value that the member `source` of the axis has, for all of them."""
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
    """Half of a `ppermute`, for GPUs only."""
    raise _sent("psend")


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Half of a `ppermute`, for GPUs only."""
    raise _sent("precv")


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Member i gets the value of member `perm[i]`."""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The named axis and the dimension `axis` change places."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def axis_index(axis_name: Any) -> Any:
    """The position of this member along the axis, from 0; along several axes, counted through them
    in order."""
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
    """The number of members of the axis."""
    return size_of(axis_name)
