"""ragged_all_to_all: members of an axis send each other slices of different sizes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_integer
from calque.core.primitives import NotApplicable, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.common import batch_size, filled, front, instantiate, move, scalar_of, zeros
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from calque.ops.scatter_functions import scatter, scatter_add
from calque.transforms.devices.collectives_groups import rowless
from calque.transforms.devices.variance import made_varying
from calque.transforms.engines.axes import Axis, Collective, names_of, size_of
from calque.transforms.engines.batching import Dim

_INT = np.dtype("int32")
_NAMES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def _shape(
    data: ShapedArray, output: ShapedArray, *places: ShapedArray, axis_name: Any, add: bool
) -> ShapedArray:
    n = size_of(axis_name)
    if (
        data.dtype != output.dtype
        or data.shape[1:] != output.shape[1:]
        or not data.ndim
        or not output.ndim
    ):
        raise ValueError(
            "ragged_all_to_all: operand and output must have the same dtype and the same"
            f" dimensions after the first, got {data.str_short()} and {output.str_short()}"
        )
    for name, p in zip(_NAMES, places, strict=True):
        if (
            not is_integer(p.dtype)
            or p.ndim != 1
            or p.shape != places[0].shape
            or p.shape[0] % n
            or not p.shape[0]
        ):
            raise ValueError(
                f"ragged_all_to_all: {name} must be a vector of integers, as long as the others and"
                f" a multiple of the axis size {n}, got {p.str_short()}"
            )
    return output


def _column(x: Any, k: int, repeat: int) -> Any:
    """Column `k` of a matrix, each element `repeat` times."""
    n = typeof(x).shape[0]
    own = do.slice(x, start_indices=(0, k), limit_indices=(n, k + 1))
    return do.broadcast_in_dim(own, shape=(n, repeat), broadcast_dimensions=(0, 1))


def _row(x: Any, i: int) -> Any:
    shape = typeof(x).shape
    own = do.slice(
        x,
        start_indices=(i,) + (0,) * (len(shape) - 1),
        limit_indices=(i + 1, *shape[1:]),
    )
    return do.squeeze(own, dimensions=(0,))


def _expected(recv: Any, receiver: int, first: int, senders: int, step: int) -> Any:
    """What `receiver` expects in its slices `first`, `first + step`, ...: one from each sender."""
    own = _row(recv, receiver)
    return do.slice(
        own,
        start_indices=(first,),
        limit_indices=(first + step * (senders - 1) + 1,),
        strides=(step,),
    )


def _along(axis: Axis, data: Any, output: Any, places: Sequence[Any], add: bool) -> Any:
    """All members at once: the first dimension is the axis."""
    n, rows = typeof(data).shape[:2]
    rest, size = typeof(data).shape[2:], typeof(output).shape[1]
    starts, sizes, targets, recv = [do.convert_element_type(p, new_dtype=_INT) for p in places]
    each = typeof(starts).shape[1] // n
    flat = do.reshape(data, new_sizes=(n * rows, *rest))
    position = do.iota(dtype=_INT, shape=(n, rows), dimension=1)
    numbers = ScatterDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,))
    outside = filled((n, rows), scalar_of(_INT, size))
    write = scatter_add if add else scatter
    out = []
    for receiver in range(n):
        part = _row(output, receiver)
        for j in range(each):
            k = receiver * each + j
            offset = do.sub(position, _column(starts, k, rows))
            expected = do.reshape(
                _expected(recv, receiver, j, n, each),
                new_sizes=(n, 1),
            )
            count = do.min(_column(sizes, k, rows), _column(expected, 0, rows))
            sent = _within(offset, count)
            where = do.select_n(sent, outside, do.add(offset, _column(targets, k, rows)))
            where = do.reshape(where, new_sizes=(n * rows, 1))
            part = write(part, where, flat, numbers, mode=GatherScatterMode.FILL_OR_DROP)
        out.append(do.reshape(part, new_sizes=(1, size, *rest)))
    return do.concatenate(*out, dimension=0)


def _within(offset: Any, count: Any) -> Any:
    """Whether this row is part of the slice."""
    return do.and_(do.ge(offset, scalar_of(_INT, 0)), do.lt(offset, count))


def _bind(args: Sequence[Any], axis_name: Any, add: bool) -> Any:
    return ragged_all_to_all_p.bind(*args, axis_name=axis_name, add=add)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis_name: Any, add: bool) -> Any:
    out = _bind(primals, axis_name, add)
    if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
        return out, Zero(typeof(out))
    return out, _bind(
        [instantiate(tangents[0]), instantiate(tangents[1]), *primals[2:]], axis_name, add
    )


def _transpose(
    ct: Any, data: Any, output: Any, *places: Any, axis_name: Any, add: bool
) -> list[Any]:
    """What was written goes back to where it came from; elsewhere the cotangent is that of
    `output`."""
    none = [None] * len(places)
    linear = [type(x) is UndefinedPrimal for x in (data, output)]
    if type(ct) is Zero:
        return [Zero(x.aval) if li else None for x, li in zip((data, output), linear)] + none
    starts, sizes, targets, recv = places

    def back(x: Any) -> Any:
        return do.all_to_all(
            x, axis_index_groups=None, axis_name=axis_name, concat_axis=0, split_axis=0, tiled=True
        )

    blank = zeros(data.aval if linear[0] else typeof(data))
    sent = (
        _bind([ct, blank, back(targets), recv, back(starts), sizes], axis_name, True)
        if linear[0]
        else None
    )
    kept = (ct if add else _bind([blank, ct, *places], axis_name, False)) if linear[1] else None
    return [sent, kept, *none]


def _batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, axis_name: Any, add: bool
) -> Any:
    if axis.name is not None and axis.name in names_of(axis_name):
        _shape(*[rowless(typeof(x), d) for x, d in zip(args, dims)], axis_name=axis_name, add=add)
        data, output, *places = [front(x, d, axis.size) for x, d in zip(args, dims)]
        return _along(axis, data, output, places, add), 0
    whole = [x if d is None else move(x, d, 0) for x, d in zip(args, dims)]
    members = range(batch_size(args, dims))
    outs = [
        _bind([x if d is None else _row(x, i) for x, d in zip(whole, dims)], axis_name, add)
        for i in members
    ]
    return do.stack(*outs, axis=0), 0


ragged_all_to_all_p = Collective(
    "ragged_all_to_all",
    lambda params: names_of(params["axis_name"]),
    varies=True,
    hidden=("add",),
    meaning=NotApplicable(
        "a collective has a meaning only where its axis is mapped: inside vmap, pmap or shard_map"
    ),
    shape=_shape,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
)


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Array:
    """Sends slices of different sizes from each member of a mapped axis to others.

    Slice i of a member, `operand[input_offsets[i]:][:send_sizes[i]]`, goes to member `i // (slices
    / members)`, where it is written at `output_offsets[i]`.

    Args:
        operand: What this member sends from, along axis 0.
        output: What the slices that come in are written to.
        input_offsets: Where each slice begins in `operand`, integers.
        send_sizes: The size of each slice, integers.
        output_offsets: Where each slice goes in the `output` of its receiver, integers.
        recv_sizes: The sizes of the slices that come in, integers.
        axis_name: The name of a mapped axis.
        axis_index_groups: Must be None.

    Returns:
        `output` with these slices.

    >>> def send(x):
    ...     one, at = jnp.ones(1, int), jnp.zeros(1, int)
    ...     return lax.ragged_all_to_all(x, jnp.zeros(2), at, one, at + 1, one, axis_name="i")
    >>> jax.vmap(send, axis_name="i")(jnp.array([[3.0, 4.0]]))
    Array([[0., 3.]], dtype=float32)"""
    if axis_index_groups is not None:
        raise NotImplementedError(
            "ragged_all_to_all with axis_index_groups: map over two axes instead, and name the one"
            " within the groups"
        )
    names = names_of(axis_name)
    if len(names) > 1:
        raise NotImplementedError(f"ragged_all_to_all over several axes at once: {names}")
    args = [
        made_varying(as_operand(x), names)
        for x in (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)
    ]
    return ragged_all_to_all_p.bind(*args, axis_name=names[0], add=False)
