"""The parts of arrays that devices hold, as arrays with a leading dimension for each mesh axis; and
functions of parts, batched along these dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from calque.core.primitives import do
from calque.core.trace import typeof
from calque.ops.common import repeated, scalar_of
from calque.transforms.devices.specs import PartitionSpec, names_in, names_of_spec
from calque.transforms.devices.types import ManualAxisType, lenient, mat_of
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import batch


def of_parts(
    body: Callable[..., list[Any]],
    values: Sequence[Any],
    specs: Sequence[PartitionSpec],
    mapped: Sequence[Axis],
    rows: bool = False,
) -> tuple[list[Any], list[list[Hashable]], list[ManualAxisType]]:
    """Results of the function of parts, with the axes that each has a leading dimension for, and
    how each relates to the axes. With `rows`, values that are still to be added have a dimension in
    front for each of their axes, in the order of the mesh."""
    names, sizes = [a.name for a in mapped], {a.name: a.size for a in mapped}
    with lenient():
        parts = [_split(x, s, names, sizes, rows) for x, s in zip(values, specs, strict=True)]
    return _nested(body, mapped, parts, specs)


def whole(
    x: Any,
    varying: list[Hashable],
    spec: PartitionSpec,
    mapped: Sequence[Axis],
    rows: bool = False,
) -> Any:
    """A result put together from its parts: it has a leading dimension for each axis in `varying`.
    One that is still to be added is kept as the sum, with `rows` as rows."""
    sizes = {a.name: a.size for a in mapped}
    ndim, used = typeof(x).ndim - len(varying), names_of_spec(spec)
    kept = [n for n in sizes if rows and n in spec.unreduced]
    for n in spec.unreduced.difference(kept):
        x = _summed(x, varying.index(n) if n in varying else None, sizes[n])
        varying = [v for v in varying if v != n]
    used = used.union(kept)
    for n in [v for v in varying if v not in used]:  # unchecked: what the first member has
        x = _first(x, varying.index(n))
        varying = [v for v in varying if v != n]
    for n in sizes:
        if n in used and n not in varying:
            x = repeated(x, sizes[n])
            varying = [n, *varying]
    return _joined(x, varying, spec, ndim, kept)


def _summed(x: Any, dim: int | None, size: int) -> Any:
    """The sum over the members, which have a dimension if they differ."""
    if dim is None:
        return do.mul(x, scalar_of(typeof(x).dtype, size))
    return do.reduce_sum(x, axes=(dim,))


def _reshaped(x: Any, shape: Sequence[int]) -> Any:
    if typeof(x).shape == tuple(shape):
        return x
    return do.reshape(x, new_sizes=tuple(shape))


def _transposed(x: Any, order: Sequence[int]) -> Any:
    return (
        x if list(order) == list(range(len(order))) else do.transpose(x, permutation=tuple(order))
    )


def _split(
    x: Any, spec: PartitionSpec, names: Sequence[Hashable], sizes: Any, rows: bool = False
) -> Any:
    """The array with a leading dimension for each mesh axis in its spec, in the order of the
    mesh."""
    shape: list[int] = []
    where: dict[Hashable, int] = {}
    local = []
    added = [n for n in names if n in spec.unreduced]
    for n in () if rows else reversed(added):
        x = alone(x, sizes[n])
    ahead = len(added)
    for k, n in enumerate(added):
        where[n] = len(shape)
        shape.append(typeof(x).shape[k])
    spec = spec.update(partitions=(None,) * ahead + spec.partitions)
    entries = spec.padded(typeof(x).ndim)
    for d, entry in list(zip(typeof(x).shape, entries))[ahead:]:
        for n in names_in(entry):
            where[n] = len(shape)
            shape.append(sizes[n])
        local.append(len(shape))
        shape.append(d // math.prod(sizes[n] for n in names_in(entry)))
    return _transposed(_reshaped(x, shape), [where[n] for n in names if n in where] + local)


def alone(x: Any, size: int) -> Any:
    """Summands of a value, one for each member: the first has it, the others zeros."""
    aval = typeof(x)
    zero = scalar_of(aval.dtype, 0)
    row = do.reshape(x, new_sizes=(1, *aval.shape))
    return do.pad(row, zero, padding_config=((0, size - 1, 0), *[(0, 0, 0)] * aval.ndim))


def _joined(
    x: Any,
    varying: Sequence[Hashable],
    spec: PartitionSpec,
    ndim: int,
    rows: Sequence[Hashable] = (),
) -> Any:
    """The inverse of `_split`, behind a dimension for each axis in `rows`."""
    shape = typeof(x).shape
    order = [varying.index(n) for n in rows]
    out = [shape[i] for i in order]
    for k in range(ndim):
        own = [
            varying.index(n) for n in (names_in(spec.partitions[k]) if k < len(spec) else ())
        ] + [len(varying) + k]
        order += own
        out.append(math.prod(shape[i] for i in own))
    return _reshaped(_transposed(x, order), out)


def _first(x: Any, dim: int) -> Any:
    shape = typeof(x).shape
    stop = tuple(1 if k == dim else n for k, n in enumerate(shape))
    row = do.slice(x, start_indices=(0,) * len(shape), limit_indices=stop)
    return do.squeeze(row, dimensions=(dim,))


def _nested(
    body: Callable[..., list[Any]],
    mapped: Sequence[Axis],
    parts: Sequence[Any],
    specs: Sequence[PartitionSpec],
) -> tuple[list[Any], list[list[Hashable]], list[ManualAxisType]]:
    """Results of the function batched over every axis, the first outermost, the axes each has a
    leading dimension for, and how each relates to the axes."""
    used = [names_of_spec(s) | s.unreduced for s in specs]
    varying: list[list[Hashable]] = []
    mats: list[ManualAxisType] = []

    def level(k: int, values: Sequence[Any]) -> list[Any]:
        if k == len(mapped):
            outs = body(*values)
            varying.extend([] for _ in outs)
            mats.extend(mat_of(typeof(x)) for x in outs)
            return outs
        axis = mapped[k]
        dims = [0 if axis.name in u else None for u in used]
        kinds = [_kind(s, axis.name) for s in specs]
        outs, found = batch(lambda *inner: level(k + 1, inner), axis, values, dims, kinds)
        for i, d in enumerate(found):
            if d is not None:
                varying[i].insert(0, axis.name)
                outs[i] = (
                    outs[i] if d == 0 else _transposed(outs[i], _to_front(typeof(outs[i]).ndim, d))
                )
        return outs

    return level(0, parts), varying, mats


def _kind(spec: PartitionSpec, name: Hashable) -> str | None:
    """How an argument that is cut in this way relates to an axis."""
    if name in spec.unreduced:
        return "unreduced"
    if name in spec.reduced:
        return "reduced"
    return "varying" if name in names_of_spec(spec) else None


def _to_front(ndim: int, d: int) -> list[int]:
    return [d, *[k for k in range(ndim) if k != d]]
