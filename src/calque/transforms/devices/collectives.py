"""Operations between the members of a named axis: sums, gathers, permutations, positions.

Under vmap the axis becomes a dimension of the values and each collective an ordinary operation on
it.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, NotApplicable, Zero, do
from calque.core.trace import typeof
from calque.ops.common import front, instantiate, move, scalar_of, zero_like
from calque.transforms.devices.collectives_groups import (
    Groups,
    group_size,
    grouped_along,
    reduced_in_groups,
    rowless,
)
from calque.transforms.devices.variance import made_varying
from calque.transforms.engines import axes
from calque.transforms.engines.axes import Axis, Collective, names_of
from calque.transforms.engines.batching import Dim

Names = tuple[Hashable, ...]
_ALONE = NotApplicable(
    "a collective has a meaning only where its axis is mapped: inside vmap, pmap or shard_map"
)


# ---------------------------------------------------------------- reductions: psum, pmax, pmin


def _reduction(name: str, reduce: str, linear: bool) -> Collective:
    """A collective that reduces over axes; positional axes among them (ints) are dimensions of the
    value."""

    def bind(x: Any, names: Names, groups: Groups = None) -> Any:
        return REGISTRY[name].bind(x, axes=names, axis_index_groups=groups)

    def shape(x: ShapedArray, *, axes: Names, axis_index_groups: Any) -> ShapedArray:
        gone = {a for a in axes if isinstance(a, int)}
        return ShapedArray(
            tuple(d for i, d in enumerate(x.shape) if i not in gone), x.dtype, x.weak_type
        )

    def jvp(
        primals: Sequence[Any], tangents: Sequence[Any], *, axes: Names, axis_index_groups: Any
    ) -> Any:
        (x,), (t,) = primals, tangents
        groups = axis_index_groups
        out = bind(x, axes, groups)
        if type(t) is Zero:
            return out, zero_like(out)
        if linear:
            return out, bind(t, axes, groups)
        here = do.convert_element_type(do.eq(x, out), new_dtype=typeof(x).dtype)
        return out, do.div(
            sum_of_varying(do.mul(t, here), axes, groups), sum_of_varying(here, axes, groups)
        )

    def transpose(ct: Any, x: Any, *, axes: Names, axis_index_groups: Any) -> list[Any]:
        if type(ct) is Zero:
            return [Zero(x.aval)]
        return [bind(ct, axes, axis_index_groups)]

    def batch(
        axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, axes: Names, axis_index_groups: Any
    ) -> Any:
        (x,), (d,) = args, dims
        if axis.name is None or axis.name not in axes:
            return bind(x, axes, axis_index_groups), d
        if axis_index_groups is not None:
            params = {"out_sharding": None} if linear else {}
            return reduced_in_groups(x, d, axis, axis_index_groups, reduce, params)
        others = tuple(a for a in axes if a != axis.name)
        if d is None:
            out = do.mul(x, scalar_of(typeof(x).dtype, axis.size)) if linear else x
        else:
            out = REGISTRY[reduce].bind(x, axes=(d,), **({"out_sharding": None} if linear else {}))
        return (bind(out, others) if others else out), None

    return Collective(
        name,
        lambda params: params["axes"],
        meaning=_ALONE,
        shape=shape,
        jvp=jvp,
        transpose=(
            transpose if linear else NotApplicable(f"{name} is not linear: it has no transpose")
        ),
        batch=batch,
    )


psum_p = _reduction("psum", "reduce_sum", True)
pmax_p = _reduction("pmax", "reduce_max", False)
pmin_p = _reduction("pmin", "reduce_min", False)


def total(x: Any, names: Names, groups: Groups = None) -> Any:
    """The sum over axes. Along those of a `shard_map` it is a value that is known not to vary."""
    return sum_of_varying(made_varying(x, names), names, groups)


def sum_of_varying(x: Any, names: Names, groups: Groups = None) -> Any:
    """`total` of a value, or a tangent, that varies along the axes of a `shard_map`."""
    if groups is not None:  # varies from group to group
        return psum_p.bind(x, axes=names, axis_index_groups=groups)
    checked = tuple(n for n in names if not isinstance(n, int) and axes.find(n).axis.checked)
    others = tuple(n for n in names if n not in checked)
    if others:
        x = psum_p.bind(x, axes=others, axis_index_groups=None)
    return do.psum_invariant(x, axes=checked) if checked else x


# ---------------------------------------------------------------- data movement


def movement(
    name: str,
    shape: Callable[..., ShapedArray],
    along: Callable[..., Any],
    transpose: Callable[..., Any],
    becomes: str | None = "varying",
) -> Collective:
    """A linear collective that moves data. `along(x, axis, **params)` is its meaning for values
    whose first dimension is the axis: it gives the result and its batch dimension."""

    def bind(x: Any, params: dict[str, Any]) -> Any:
        return REGISTRY[name].bind(x, **params)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = bind(primals[0], params)
        (t,) = tangents
        return out, (zero_like(out) if type(t) is Zero else bind(t, params))

    def back(ct: Any, x: Any, **params: Any) -> list[Any]:
        return [Zero(x.aval) if type(ct) is Zero else transpose(ct, **params)]

    def batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> Any:
        (x,), (d,) = args, dims
        if axis.name is not None and axis.name in names_of(params["axis_name"]):
            shape(rowless(typeof(x), d), **params)
            if len(names_of(params["axis_name"])) > 1:
                raise NotImplementedError(
                    f"{name} over several axes at once under vmap: use one axis after the other"
                )
            groups = params.get("axis_index_groups")
            return grouped_along(
                front(x, d, axis.size), axis, groups, lambda rows, own: along(rows, own, **params)
            )
        out = bind(
            x if d is None else move(x, d, typeof(x).ndim - 1), params
        )  # the other dimensions keep their numbers
        return out, None if d is None else typeof(out).ndim - 1

    return Collective(
        name,
        lambda params: names_of(params["axis_name"]),
        becomes=becomes,
        meaning=_ALONE,
        shape=shape,
        jvp=jvp,
        transpose=back,
        batch=batch,
    )


def _gathered_shape(
    x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: Any
) -> ShapedArray:
    shape = list(x.shape)
    if tiled:
        shape[all_gather_dimension] *= axis_size
    else:
        shape.insert(all_gather_dimension, axis_size)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _gather_along(x: Any, axis: Axis, *, all_gather_dimension: int, tiled: bool, **_: Any) -> Any:
    k = all_gather_dimension
    x = move(x, 0, k)
    if tiled:
        shape = typeof(x).shape
        x = _reshaped(x, (*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :]))
    return x, None


def _gather_transpose(
    ct: Any,
    *,
    all_gather_dimension: int,
    axis_index_groups: Any,
    axis_name: Any,
    axis_size: int,
    tiled: bool,
    **_: Any,
) -> Any:
    return do.reduce_scatter(
        ct,
        axis_index_groups=axis_index_groups,
        axis_name=axis_name,
        axis_size=axis_size,
        scatter_dimension=all_gather_dimension,
        tiled=tiled,
    )


gathered = (_gathered_shape, _gather_along)
all_gather_p = movement("all_gather", *gathered, _gather_transpose)


def _scattered_shape(
    x: ShapedArray, *, scatter_dimension: int, axis_size: int, tiled: bool, **_: Any
) -> ShapedArray:
    shape, k = list(x.shape), scatter_dimension
    if tiled:
        if shape[k] % axis_size:
            raise ValueError(
                f"tiled psum_scatter operand scatter dimension size {shape[k]} must be divisible by"
                f" shard_count {axis_size}"
            )
        shape[k] //= axis_size
    else:
        if shape[k] != axis_size:
            raise ValueError(
                f"psum_scatter operand scatter dimension size {shape[k]} must match shard_count"
                f" {axis_size}"
            )
        del shape[k]
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _scatter_along(x: Any, axis: Axis, *, scatter_dimension: int, tiled: bool, **_: Any) -> Any:
    k = scatter_dimension
    total = do.reduce_sum(x, axes=(0,))
    if tiled:
        shape = typeof(total).shape
        total = _reshaped(total, (*shape[:k], axis.size, shape[k] // axis.size, *shape[k + 1 :]))
    return total, k


def _scatter_transpose(
    ct: Any,
    *,
    axis_index_groups: Any,
    axis_name: Any,
    axis_size: int,
    scatter_dimension: int,
    tiled: bool,
    **_: Any,
) -> Any:
    return do.all_gather(
        ct,
        all_gather_dimension=scatter_dimension,
        axis_index_groups=axis_index_groups,
        axis_name=axis_name,
        axis_size=axis_size,
        tiled=tiled,
    )


scattered = (_scattered_shape, _scatter_along)
reduce_scatter_p = movement("reduce_scatter", *scattered, _scatter_transpose)


def _exchanged_shape(
    x: ShapedArray,
    *,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    tiled: bool,
    axis_index_groups: Any,
) -> ShapedArray:
    shape, n = list(x.shape), group_size(axis_name, axis_index_groups)
    if tiled:
        if shape[split_axis] % n:
            raise ValueError(
                f"all_to_all: dimension {split_axis} of size {shape[split_axis]} is not divisible"
                f" by the axis size {n}"
            )
        shape[split_axis] //= n
        shape[concat_axis] *= n
    else:
        if shape[split_axis] != n:
            raise ValueError(
                "all_to_all requires the size of the mapped axis axis_name to equal"
                f" x.shape[split_axis], but they are {n} and {shape[split_axis]} respectively."
            )
        del shape[split_axis]
        shape.insert(concat_axis, n)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _exchange_along(
    x: Any, axis: Axis, *, split_axis: int, concat_axis: int, tiled: bool, **_: Any
) -> Any:
    n = axis.size
    if not tiled:  # the split dimension becomes the axis, the axis the concatenated dimension
        x = move(x, split_axis + 1, 0)
        return move(x, 1, concat_axis + 1), 0
    shape = typeof(x).shape
    s = split_axis + 1
    x = _reshaped(x, (*shape[:s], n, shape[s] // n, *shape[s + 1 :]))
    x = move(x, s, 0)  # (receiver, sender, ...)
    c = concat_axis + 1
    x = move(x, 1, c)
    shape = typeof(x).shape
    return _reshaped(x, (*shape[:c], shape[c] * shape[c + 1], *shape[c + 2 :])), 0


def _exchange_transpose(ct: Any, *, split_axis: int, concat_axis: int, **params: Any) -> Any:
    return do.all_to_all(ct, split_axis=concat_axis, concat_axis=split_axis, **params)


all_to_all_p = movement("all_to_all", _exchanged_shape, _exchange_along, _exchange_transpose)


def _permute_along(x: Any, axis: Axis, *, perm: Sequence[tuple[int, int]], **_: Any) -> Any:
    rows = [None] * axis.size
    source: dict[int, int] = {}
    for src, dst in perm:
        if not (0 <= src < axis.size and 0 <= dst < axis.size) or dst in source:
            raise ValueError(
                f"ppermute sources and destinations must be unique and lie in range({axis.size}),"
                f" got {tuple(perm)}."
            )
        source[dst] = src
    shape = typeof(x).shape
    zeros = instantiate(Zero(ShapedArray((1, *shape[1:]), typeof(x).dtype)))
    parts = [_row(x, source[i]) if i in source else zeros for i in range(len(rows))]
    return (do.concatenate(*parts, dimension=0) if parts else x), 0


def _row(x: Any, i: int) -> Any:
    shape = typeof(x).shape
    rest = (0,) * (len(shape) - 1)
    return do.slice(x, start_indices=(i, *rest), limit_indices=(i + 1, *shape[1:]))


def _reshaped(x: Any, shape: Sequence[int]) -> Any:
    return do.reshape(x, new_sizes=tuple(shape))


ppermute_p = movement(
    "ppermute",
    lambda x, **_: x,
    _permute_along,
    lambda ct, *, axis_name, perm: do.ppermute(
        ct, axis_name=axis_name, perm=tuple((d, s) for s, d in perm)
    ),
)


def _broadcast_along(x: Any, axis: Axis, *, source: int, **_: Any) -> Any:
    if not 0 <= source < axis.size:
        raise ValueError(
            f"pbroadcast: the source {source} is no position of the axis {axis.name!r} of size"
            f" {axis.size}"
        )
    return do.squeeze(_row(x, source), dimensions=(0,)), None


def _broadcast_transpose(ct: Any, *, axis_name: Any, source: int) -> Any:
    """The source gets the sum of all cotangents, the others nothing."""
    names = names_of(axis_name)
    total = psum_p.bind(ct, axes=names, axis_index_groups=None)
    (name,) = names
    here = do.eq(do.axis_index(axis_name=name), scalar_of(np.dtype("int32"), source))
    return do.select_n(here, instantiate(zero_like(total)), total)


pbroadcast_p = movement("pbroadcast", lambda x, **_: x, _broadcast_along, _broadcast_transpose)


# ---------------------------------------------------------------- axis_index


def _index_batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, axis_name: Hashable
) -> Any:
    return do.iota(dtype=np.dtype("int32"), shape=(axis.size,), dimension=0), 0


axis_index_p: Collective = Collective(
    "axis_index",
    lambda params: (params["axis_name"],),
    meaning=_ALONE,
    shape=lambda *, axis_name: ShapedArray((), np.dtype("int32")),
    jvp=lambda primals, tangents, *, axis_name: (
        axis_index_p.bind(axis_name=axis_name),
        zero_like(scalar_of(np.dtype("int32"), 0)),
    ),
    transpose=NotApplicable("axis_index has no operand to transpose in"),
    batch=_index_batch,
)
