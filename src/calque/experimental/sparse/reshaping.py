"""BCOO arrays reshaped, cut, joined, repeated and summed."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.experimental.sparse.base import chosen, columns, per_batch
from calque.experimental.sparse.bcoo import BCOO, checked, in_bounds
from calque.experimental.sparse.layouts import (
    bcoo_sum_duplicates,
    bcoo_transpose,
    bcoo_update_layout,
)
from calque.numpy.signatures import OutSharding
from calque.transforms.functions.vmap import vmap


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Sums a BCOO array over dimensions. Indices are dropped; values of the same place stay apart.

    Args:
        mat: The array.
        axes: The dimensions.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense()
    Array([1., 1., 1.], dtype=float32)"""
    mat = checked("bcoo_reduce_sum", mat)
    over = sorted({operator.index(a) for a in axes})
    if any(not 0 <= a < mat.ndim for a in over):
        raise ValueError(
            f"bcoo_reduce_sum: axes {tuple(axes)} are out of bounds for shape {mat.shape}"
        )
    n, s = mat.n_batch, mat.n_sparse
    batch = [a for a in over if a < n]
    order = (*[i for i in range(n) if i not in batch], *batch, *range(n, mat.ndim))
    mat = bcoo_update_layout(bcoo_transpose(mat, permutation=order), n_batch=n - len(batch))
    kept = [k for k in range(mat.n_sparse) if k >= len(batch) and k - len(batch) + n not in over]
    dense = tuple(a - n - s + 1 for a in over if a >= n + s)

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        there = in_bounds(i, mat.sparse_shape)
        d = jnp.where(
            jnp.reshape(there, there.shape + (1,) * (d.ndim - 1)), d, jnp.zeros((), d.dtype)
        )
        return jnp.sum(d, axis=dense, dtype=d.dtype), chosen(i, kept)

    shape = tuple(mat.shape[j] for j, i in enumerate(order) if i not in over)
    return BCOO(per_batch(one, mat.n_batch, mat.data, mat.indices), shape=shape)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Takes dimensions of size 1 away from a BCOO array.

    Args:
        arr: The array.
        dimensions: The dimensions.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_squeeze(sparse.empty((1, 3)), dimensions=(0,)).shape
    (3,)"""
    arr = checked("bcoo_squeeze", arr)
    gone = [operator.index(d) for d in dimensions]
    if any(not 0 <= d < arr.ndim or arr.shape[d] != 1 for d in gone):
        raise ValueError(
            f"bcoo_squeeze: dimensions {tuple(gone)} of shape {arr.shape} must be of size 1"
        )
    out = bcoo_reduce_sum(arr, axes=gone)
    unique = arr.unique_indices and out.n_sparse > 0 and not any(d < arr.n_batch for d in gone)
    return BCOO(
        (out.data, out.indices),
        shape=out.shape,
        indices_sorted=arr.indices_sorted and unique,
        unique_indices=unique,
    )


def bcoo_reshape(
    mat: BCOO,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: OutSharding = None,
) -> BCOO:
    """Gives a BCOO array other sizes; batch, sparse and dense dimensions each among themselves.

    Args:
        mat: The array.
        new_sizes: The new sizes.
        dimensions: The order in which to read the dimensions; None reads them as they are.
        sharding: Must be None.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_reshape(sparse.eye(2), new_sizes=(4,)).todense()
    Array([1., 0., 0., 1.], dtype=float32)"""
    mat = checked("bcoo_reshape", mat)
    if sharding is not None:
        raise NotImplementedError("bcoo_reshape: sharding is not supported for sparse arrays")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = tuple(operator.index(n) for n in new_sizes)
    if math.prod(sizes) != mat.size:
        raise TypeError(
            f"bcoo_reshape: the total size must be unchanged, got new_sizes {sizes} for shape"
            f" {mat.shape}"
        )
    n = _prefix("batch", sizes, mat.batch_shape, mat)
    m = _prefix("dense", sizes[::-1], mat.dense_shape[::-1], mat)
    batch, places, dense = sizes[:n], sizes[n : len(sizes) - m], sizes[len(sizes) - m :]
    if math.prod(places) != math.prod(mat.sparse_shape):
        raise NotImplementedError(
            f"bcoo_reshape: {mat.shape} to {sizes} mixes batch, sparse and dense dimensions; see"
            " update_layout"
        )
    data = jnp.broadcast_to(mat.data, mat.batch_shape + mat.data.shape[mat.n_batch :])
    indices = jnp.broadcast_to(mat.indices, mat.batch_shape + mat.indices.shape[mat.n_batch :])
    there = in_bounds(indices, mat.sparse_shape)
    if mat.sparse_shape and places:
        flat = sum(c * w for c, w in zip(columns(indices), _strides(mat.sparse_shape)))
        moved = jnp.stack([flat // w % size for w, size in zip(_strides(places), places)], axis=-1)
        indices = jnp.where(there[..., None], moved, jnp.array(places)).astype(indices.dtype)
    else:
        data = jnp.where(
            jnp.reshape(there, there.shape + (1,) * mat.n_dense), data, jnp.zeros((), data.dtype)
        )
        indices = jnp.zeros((*there.shape, len(places)), indices.dtype)
    parts = (
        jnp.reshape(data, (*batch, mat.nse, *dense)),
        jnp.reshape(indices, (*batch, mat.nse, len(places))),
    )
    return BCOO(
        parts, shape=sizes, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices
    )


def _strides(sizes: Sequence[int]) -> list[int]:
    return [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]


def _prefix(what: str, sizes: Sequence[int], old: Sequence[int], mat: BCOO) -> int:
    """How many leading sizes make up the old ones."""
    if not old:
        return 0
    for k in range(1, len(sizes) + 1):
        if math.prod(sizes[:k]) == math.prod(old):
            return k
    raise NotImplementedError(
        f"bcoo_reshape: cannot mix {what} dimensions with others in the shape {mat.shape}; see"
        " update_layout"
    )


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Turns the order of elements of a BCOO array around.

    Args:
        operand: The array.
        dimensions: The dimensions along which it is turned.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_rev(sparse.eye(2), (0,)).todense().tolist()
    [[0.0, 1.0], [1.0, 0.0]]"""
    mat = checked("bcoo_rev", operand)
    over = {operator.index(d) for d in dimensions}
    n, s = mat.n_batch, mat.n_sparse
    data = jnp.flip(
        mat.data, tuple(d for d in over if d < n) + tuple(d - s + 1 for d in over if d >= n + s)
    )
    indices = jnp.flip(mat.indices, tuple(d for d in over if d < n))
    turned = np.array([n + k in over for k in range(s)], bool)
    if turned.any():
        sizes = jnp.array(mat.sparse_shape, indices.dtype)
        there = in_bounds(indices, mat.sparse_shape)[..., None]
        indices = jnp.where(jnp.asarray(turned) & there, sizes - 1 - indices, indices)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def bcoo_broadcast_in_dim(
    mat: BCOO,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: OutSharding = None,
) -> BCOO:
    """Gives a BCOO array more or larger dimensions.

    Args:
        mat: The array.
        shape: The shape of the result.
        broadcast_dimensions: For each dimension of `mat` the one of the result that it becomes.
        sharding: Must be None.

    Returns:
        A BCOO array.

    >>> a = sparse.eye(2)
    >>> sparse.bcoo_broadcast_in_dim(a, shape=(2, 2, 3), broadcast_dimensions=(0, 1)).nse
    6"""
    mat = checked("bcoo_broadcast_in_dim", mat)
    if sharding is not None:
        raise NotImplementedError(
            "bcoo_broadcast_in_dim: sharding is not supported for sparse arrays"
        )
    sizes, at = tuple(map(operator.index, shape)), tuple(map(operator.index, broadcast_dimensions))
    if (
        len(at) != mat.ndim
        or list(at) != sorted(set(at))
        or any(not 0 <= a < len(sizes) for a in at)
    ):
        raise ValueError(
            f"bcoo_broadcast_in_dim: broadcast_dimensions {at} must be increasing places of"
            f" {mat.shape} in {sizes}"
        )
    if any(mat.shape[k] not in (1, sizes[a]) for k, a in enumerate(at)):
        raise ValueError(
            f"bcoo_broadcast_in_dim: shape {mat.shape} does not broadcast to {sizes} at {at}"
        )
    n, s = mat.n_batch, mat.n_sparse
    first = at[n - 1] + 1 if n else 0
    last = at[n + s] if mat.n_dense else len(sizes)
    batch, places, dense = sizes[:first], sizes[first:last], sizes[last:]

    def lead(x: Any) -> Any:
        return lax.broadcast_in_dim(
            x, tuple(x.shape[at.index(k)] if k in at else 1 for k in range(first)) + x.shape[n:],
            (*at[:n], *range(first, first + x.ndim - n))
        )  # fmt: skip

    data, indices = lead(mat.data), lead(mat.indices)
    inner = tuple(a - last + first + 1 for a in at[n + s :])
    data = lax.broadcast_in_dim(
        data, (*data.shape[: first + 1], *dense), (*range(first + 1), *inner)
    )
    rows = {a - first: k for k, a in enumerate(at[n : n + s])}

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        return _repeated(d, i, places, rows, mat.sparse_shape)

    return BCOO(per_batch(one, first, *_whole(data, indices, batch)), shape=sizes)


def _whole(data: Any, indices: Any, batch: tuple[int, ...]) -> tuple[Any, Any]:
    n = len(batch)
    return jnp.broadcast_to(data, batch + data.shape[n:]), indices


def _repeated(
    d: Any, i: Any, places: Sequence[int], rows: dict[int, int], old: Sequence[int]
) -> tuple[Any, Any]:
    """Elements once for every place along the new and enlarged sparse dimensions."""
    grown = [k for k in range(len(places)) if k not in rows or old[rows[k]] != places[k]]
    count = math.prod(places[k] for k in grown)
    grid = np.indices([places[k] for k in grown]).reshape(len(grown), count)
    there = jnp.repeat(in_bounds(i, tuple(old)), count)
    out = []
    for k, size in enumerate(places):
        if k in grown:
            column = jnp.tile(jnp.asarray(grid[grown.index(k)], i.dtype), i.shape[0])
        else:
            column = jnp.repeat(i[:, rows[k]], count)
        out.append(jnp.where(there, column, size))
    indices = (
        jnp.stack(out, axis=-1).astype(i.dtype) if out else jnp.zeros((there.shape[0], 0), i.dtype)
    )
    return jnp.repeat(d, count, axis=0), indices


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Joins BCOO arrays along a dimension.

    Args:
        operands: The arrays.
        dimension: The dimension.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=1)
    BCOO(float32[2, 4], nse=4)"""
    mats = [checked("bcoo_concatenate", m) for m in operands]
    axis = operator.index(dimension)
    if not mats or not 0 <= axis < mats[0].ndim:
        raise ValueError(
            f"bcoo_concatenate: dimension {axis} is out of bounds for {len(mats)} arrays"
        )
    rest = {m.shape[:axis] + m.shape[axis + 1 :] for m in mats}
    if len(rest) > 1 or len({m.ndim for m in mats}) > 1:
        raise TypeError(
            f"bcoo_concatenate: shapes must agree but along dimension {axis}, got"
            f" {', '.join(str(m.shape) for m in mats)}"
        )
    if len({m.n_dense for m in mats}) > 1:
        raise ValueError(
            "bcoo_concatenate requires inputs to have matching numbers of dense dimensions"
        )
    fewest = min(m.n_batch for m in mats)
    mats = [bcoo_update_layout(m, n_batch=fewest) for m in mats]
    n, s = mats[0].n_batch, mats[0].n_sparse
    shape = (*mats[0].shape[:axis], sum(m.shape[axis] for m in mats), *mats[0].shape[axis + 1 :])
    starts = np.cumsum([0, *(m.shape[axis] for m in mats)])
    if axis < n:
        nse = max(m.nse for m in mats)
        parts = [_with_nse(m, nse) for m in mats]
        data, indices = (jnp.concatenate(p, axis=axis) for p in zip(*parts))
        return BCOO((data, indices), shape=shape)
    whole = [(jnp.broadcast_to(m.data, m.batch_shape + m.data.shape[n:]),
    jnp.broadcast_to(m.indices, m.batch_shape + m.indices.shape[n:])) for m in mats]  # fmt: skip
    data, indices = [d for d, _ in whole], [i for _, i in whole]
    if axis < n + s:
        shifted = []
        for m, i, start in zip(mats, indices, starts):
            step = np.zeros(s, i.dtype)
            step[axis - n] = start
            outside = jnp.array(shape[n : n + s], i.dtype)
            shifted.append(jnp.where(in_bounds(i, m.sparse_shape)[..., None], i + step, outside))
        indices = shifted
    else:
        k = axis - s + 1
        data = [
            jnp.pad(
                d, [(0, 0)] * k + [(int(a), int(shape[axis] - b))] + [(0, 0)] * (d.ndim - k - 1)
            )
            for d, a, b in zip(data, starts, starts[1:])
        ]
    unique = n <= axis < n + s and all(m.unique_indices for m in mats)
    return BCOO(
        (jnp.concatenate(data, axis=n), jnp.concatenate(indices, axis=n)),
        shape=shape,
        unique_indices=unique,
    )


def _with_nse(mat: BCOO, nse: int) -> tuple[Any, Any]:
    """Values and indices of all batches, filled up with padding."""
    n, more = mat.n_batch, nse - mat.nse
    data = jnp.broadcast_to(mat.data, mat.batch_shape + mat.data.shape[n:])
    indices = jnp.broadcast_to(mat.indices, mat.batch_shape + mat.indices.shape[n:])
    if not more:
        return data, indices
    data = jnp.pad(data, [(0, more) if k == n else (0, 0) for k in range(data.ndim)])
    outside = jnp.broadcast_to(
        jnp.array(mat.sparse_shape, indices.dtype), (*mat.batch_shape, more, mat.n_sparse)
    )
    return data, jnp.concatenate([indices, outside], axis=n)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """Gives a part of a BCOO array.

    Args:
        mat: The array.
        start_indices: The first position, for each dimension.
        limit_indices: The position after the last, for each dimension.
        strides: The steps, for each dimension; None means 1.

    Returns:
        A BCOO array.

    >>> a = sparse.bcoo_slice(sparse.eye(3), start_indices=(0, 1), limit_indices=(2, 3))
    >>> a.todense().tolist()
    [[0.0, 0.0], [1.0, 0.0]]"""
    mat = checked("bcoo_slice", mat)
    start, limit = (
        [operator.index(i) for i in start_indices],
        [operator.index(i) for i in limit_indices],
    )
    step = [1] * mat.ndim if strides is None else [operator.index(i) for i in strides]
    if not len(start) == len(limit) == len(step) == mat.ndim:
        raise ValueError(
            f"bcoo_slice: indices must have size mat.ndim={mat.ndim}, got {start}, {limit}, {step}"
        )
    if any(i <= 0 for i in step):
        raise ValueError(f"bcoo_slice: strides must be a sequence of positive integers; got {step}")
    if not all(0 <= a <= b <= size for a, b, size in zip(start, limit, mat.shape)):
        raise ValueError(f"bcoo_slice: invalid indices {start} to {limit} for shape {mat.shape}")
    n, s = mat.n_batch, mat.n_sparse
    cut = [slice(*abc) for abc in zip(start, limit, step)]
    shape = tuple(len(range(*abc)) for abc in zip(start, limit, step))

    def batch(x: Any) -> Any:
        return tuple(
            c if x.shape[k] == mat.shape[k] else slice(None) for k, c in enumerate(cut[:n])
        )

    data = mat.data[(*batch(mat.data), slice(None), *cut[n + s :])]
    indices = mat.indices[batch(mat.indices)]
    low, stride = (np.array(v[n : n + s], indices.dtype) for v in (start, step))
    moved = (indices - low) // stride
    inside = (
        (indices >= low)
        & (indices < np.array(limit[n : n + s], indices.dtype))
        & ((indices - low) % stride == 0)
    )
    return _trimmed(mat, data, moved, jnp.all(inside, axis=-1), shape)


def _trimmed(mat: BCOO, data: Any, moved: Any, inside: Any, shape: tuple[int, ...]) -> BCOO:
    """A part whose elements outside became padding, with no more elements than it has places."""
    n, s = mat.n_batch, mat.n_sparse
    sizes = shape[n : n + s]
    outside = jnp.array(sizes, moved.dtype)
    indices = jnp.where(inside[..., None], moved, outside)
    out = BCOO(
        (data, indices), shape=shape, indices_sorted=False, unique_indices=mat.unique_indices
    )
    return (
        bcoo_sum_duplicates(out, nse=math.prod(sizes)) if s and out.nse > math.prod(sizes) else out
    )


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Gives a part of a BCOO array that begins at positions found while running.

    Args:
        mat: The array.
        start_indices: The first position, for each dimension; it is moved so that the part lies
            inside.
        slice_sizes: The size of the part, for each dimension.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_dynamic_slice(sparse.eye(3), (1, 1), (2, 2)).todense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]"""
    mat = checked("bcoo_dynamic_slice", mat)
    sizes = tuple(operator.index(k) for k in slice_sizes)
    if len(start_indices) != mat.ndim or len(sizes) != mat.ndim:
        raise TypeError(
            f"bcoo_dynamic_slice: {mat.ndim} start indices and sizes are needed for shape"
            f" {mat.shape}"
        )
    if any(not 0 <= k <= size for k, size in zip(sizes, mat.shape)):
        raise TypeError(
            f"bcoo_dynamic_slice: slice_sizes {sizes} do not fit into shape {mat.shape}"
        )
    n, s = mat.n_batch, mat.n_sparse
    start = [_clamped(i, size, k) for i, size, k in zip(start_indices, mat.shape, sizes)]
    data, indices = mat.data, mat.indices
    for k in range(n):
        data, indices = (
            lax.dynamic_slice_in_dim(x, start[k], sizes[k], k) if x.shape[k] == mat.shape[k] else x
            for x in (data, indices)
        )
    for k in range(n + s, mat.ndim):
        data = lax.dynamic_slice_in_dim(data, start[k], sizes[k], k - s + 1)
    if not s:
        return BCOO((data, indices), shape=sizes)
    moved = indices - jnp.stack([i.astype(indices.dtype) for i in start[n : n + s]])
    inside = jnp.all((moved >= 0) & (moved < np.array(sizes[n : n + s], indices.dtype)), axis=-1)
    inside = inside & in_bounds(indices, mat.sparse_shape)
    return _trimmed(mat, data, moved, inside, sizes)


def _clamped(start: Any, size: int, length: int) -> Any:
    start = jnp.asarray(start)
    return jnp.clip(jnp.where(start < 0, start + size, start), 0, size - length)


def bcoo_gather(
    operand: BCOO,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """Gives slices of a BCOO array that start at given positions, as `lax.gather`.

    Args:
        operand: The array.
        start_indices: Integers; the last dimension holds the position of one slice. They lie
            inside.
        dimension_numbers: As of `lax.gather`.
        slice_sizes: The size of a slice, for each dimension.
        unique_indices: A promise that changes nothing here.
        indices_are_sorted: A promise that changes nothing here.
        mode: None or "promise_in_bounds".
        fill_value: Must be None.

    Returns:
        A BCOO array.

    >>> rows = lax.GatherDimensionNumbers((1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> sparse.bcoo_gather(sparse.eye(3), jnp.array([[2], [0]]), rows, (1, 3)).todense().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]"""
    mat = checked("bcoo_gather", operand)
    how = (
        lax.GatherScatterMode.from_any(mode)
        if mode is not None
        else lax.GatherScatterMode.PROMISE_IN_BOUNDS
    )
    if how != lax.GatherScatterMode.PROMISE_IN_BOUNDS or fill_value is not None:
        raise NotImplementedError(
            f"bcoo_gather: mode={mode} is not supported for sparse arrays, only promise_in_bounds"
        )
    if getattr(dimension_numbers, "operand_batching_dims", ()):
        raise NotImplementedError(
            "bcoo_gather: operand_batching_dims are not supported for sparse arrays"
        )
    where = jnp.asarray(start_indices)
    lead = where.shape[:-1]
    rows = jnp.reshape(where, (-1, where.shape[-1]))
    axes = tuple(dimension_numbers.start_index_map)

    def one(row: Any) -> BCOO:
        start = [row[axes.index(d)] if d in axes else 0 for d in range(mat.ndim)]
        part = bcoo_dynamic_slice(mat, start, slice_sizes)
        return bcoo_squeeze(part, dimensions=tuple(dimension_numbers.collapsed_slice_dims))

    result = vmap(one)(rows)
    result = bcoo_reshape(
        bcoo_update_layout(result, n_batch=0), new_sizes=(*lead, *result.shape[1:])
    )
    offset = tuple(dimension_numbers.offset_dims)
    order = np.zeros(result.ndim, int)
    order[[*(d for d in range(result.ndim) if d not in offset), *offset]] = np.arange(result.ndim)
    return bcoo_transpose(result, permutation=tuple(int(k) for k in order))
