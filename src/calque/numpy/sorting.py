"""Order and search: sort, argsort, searchsorted, nonzero, take, round, views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calque.core.arrays import Array, adopted, is_concrete, to_array
from calque.core.dims import Dim, as_size, is_found, whole
from calque.core.dtypes import (
    canonicalize,
    is_complex,
    is_inexact,
    is_integer,
    is_signed,
    promote,
    real_part,
)
from calque.core.extents import larger
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy import ufuncs
from calque.numpy.calls.marks import python_only
from calque.numpy.indexing import gathering as indexing
from calque.numpy.indexing.found_sizes import places_found
from calque.numpy.moving import flip
from calque.numpy.promotion import (
    as_operand,
    broadcast_shapes,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    convert,
    promote_dtypes,
    refuse_out,
    result_dtype,
)
from calque.numpy.shaping import ravel, reshape, where
from calque.ops.common import check_places, index_operand, scalar_of
from calque.ops.convert import bit_width_of, bitcast_convert_type
from calque.ops.sizes import as_number, index_dtype
from calque.transforms.devices.several_processes import values_of

loops: Any = LazyModule("calque.transforms.functions.loops")


def _along(name: str, a: Any, axis: Any) -> tuple[Any, int]:
    """The operand and the axis, flattened for None."""
    check_arraylike(name, a)
    a = as_operand(a)
    if axis is None:
        return ravel(a), 0
    return a, canonical_axis(axis, typeof(a).ndim)


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in ascending order along an axis. nan comes last; complex numbers go by real
    part, then by imaginary part.

    Args:
        a: an array.
        axis: the axis to sort along; None sorts the flattened array.
        kind: must be None: `stable` says it.
        order: must be None: there are no structured arrays.
        stable: whether equal elements keep their order. The sort is stable in either case.
        descending: whether the largest comes first.
    Returns:
        An array of the same dtype.

    >>> jnp.sort(jnp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)"""
    _no_kind("sort", kind, order)
    a, k = _along("sort", a, axis)
    (out,) = do.sort(a, dimension=k, is_stable=stable, num_keys=1)
    return flip(out, k) if descending else out


def _no_kind(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise TypeError(f"jnp.{name} has no 'kind': use stable=True or stable=False")
    if order is not None:
        raise TypeError(f"jnp.{name} has no 'order' argument: there are no structured arrays")


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions that put the elements in ascending order along an axis.

    Args:
        a: an array.
        axis: the axis to sort along; None sorts the flattened array.
        kind: must be None: `stable` says it.
        order: must be None: there are no structured arrays.
        stable: whether equal elements keep their order. The sort is stable in either case.
        descending: whether the largest comes first.
        dtype: of the positions, an integer dtype; None is the default one.
    Returns:
        An array of positions.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)"""
    _no_kind("argsort", kind, order)
    a, k = _along("argsort", a, axis)
    shape = typeof(a).shape
    of_places = result_dtype(dtype, canonicalize(int))
    if not is_integer(of_places):
        raise TypeError(f"argsort: dtype must be an integer type, got {of_places.name}")
    if dtype is None:
        check_places("argsort", shape[k], of_places)
    if descending:  # ties keep their order: sort the reversed array, then count from the other end
        _, places = do.sort(
            flip(a, k),
            do.iota(dtype=of_places, shape=shape, dimension=k),
            dimension=k,
            is_stable=stable,
            num_keys=1,
        )
        return ufuncs.subtract(np.asarray(shape[k] - 1, of_places), flip(places, k))
    return do.sort(
        a,
        do.iota(dtype=of_places, shape=shape, dimension=k),
        dimension=k,
        is_stable=stable,
        num_keys=1,
    )[1]


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Where values would stand in a sorted array.

    Args:
        a: a sorted array of one axis, or an unsorted one and `sorter`.
        v: the values.
        side: "left" is before elements equal to the value, "right" after them.
        sorter: positions that sort `a`, as `argsort` gives them.
        method: "scan", "scan_unrolled", "sort" or "compare_all": how to search. The result is the
            same.
    Returns:
        Positions between 0 and the size of `a`, in the shape of `v`.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 9]))
    Array([0, 1, 3], dtype=int32)"""
    check_arraylike("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(
            f"{side!r} is an invalid value for keyword 'side'. Expected one of ['left', 'right']."
        )
    if method not in ("scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'.")
    if typeof(a).ndim != 1:
        raise ValueError(f"a should be 1-dimensional, got shape {typeof(a).shape}")
    a, v = promote_dtypes(as_operand(a), as_operand(v))
    if sorter is not None:
        a = indexing.getitem(a, sorter)
    return to_array(_bisect(a, v, side))


def _bisect(a: Any, v: Any, side: str) -> Any:
    """Every value halves its interval at once; the number of rounds follows from the size."""
    n, shape = typeof(a).shape[0], typeof(v).shape
    dtype = index_dtype(n - 1)  # the results are at most n
    low = broadcast_to(as_number(0, dtype), shape)
    high = broadcast_to(as_number(n, dtype), shape)
    last = as_number(larger(n - 1, 0), dtype)

    def halved(_: Any, bounds: Any) -> Any:
        low, high = bounds
        mid = do.shift_right_logical(do.add(low, high), as_number(1, dtype))
        at = indexing.getitem(a, do.min(mid, last), "fill" if is_found(n) else None)
        right = _before(at, v) if side == "left" else do.not_(_before(v, at))
        right = do.and_(right, do.lt(low, high))
        return do.select_n(right, low, do.add(mid, as_number(1, dtype))), do.select_n(
            right, mid, high
        )

    if isinstance(n, Dim):
        bits = np.asarray(np.iinfo(dtype).bits, dtype)
        return loops.fori_loop(0, do.sub(bits, do.clz(as_number(n, dtype))), halved, (low, high))[0]
    for k in range(n.bit_length()):
        low, high = halved(k, (low, high))
    return low


def _before(x: Any, y: Any) -> Any:
    """x < y in the order of sorting: nan after everything."""
    less = x < y
    if not is_inexact(typeof(x).dtype):
        return less
    return ufuncs.logical_or(
        less, ufuncs.logical_and(ufuncs.isnan(y), ufuncs.logical_not(ufuncs.isnan(x)))
    )


@python_only
def nonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]:
    """The places of the elements that are not 0.

    Args:
        a: an array with at least one axis.
        size: how many places to return: more are left out, fewer filled up. None returns all, which
            a program finds while it runs; `vmap` needs a number.
        fill_value: what fills the places up: a number, or one for each axis; None is 0. A float
            makes the places floats.
    Returns:
        A tuple with an array of positions for each axis, in the order of the elements.
    Differs from NumPy:
        An array of rank 0 is refused.

    >>> jnp.nonzero(jnp.array([[0, 5], [7, 0]]))
    (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))"""
    check_arraylike("nonzero", a)
    a = as_operand(a)
    if typeof(a).ndim == 0:
        raise ValueError(
            "nonzero of an array of rank 0 is not allowed: use jnp.nonzero(jnp.atleast_1d(a))"
        )
    dtype = canonicalize(int)
    _check_fill(fill_value, typeof(a).ndim)
    if size is None:
        if not is_concrete(a):
            return places_found(a, "jnp.nonzero")
        check_places("nonzero", max(typeof(a).shape), dtype)
        return tuple(adopted(i.astype(dtype)) for i in np.nonzero(values_of(a)))
    return _nonzero_of_size(a, as_size(size, "nonzero: size"), fill_value, dtype)


def _check_fill(fill_value: Any, ndim: int) -> None:
    """What stands where no places are left: one index, or one for each axis."""
    fills = (
        fill_value if isinstance(fill_value, tuple) else (fill_value,) * (fill_value is not None)
    )
    check_arraylike("nonzero", *fills)
    if any(typeof(f).ndim for f in fills) or (
        isinstance(fill_value, tuple) and len(fill_value) != ndim
    ):
        raise ValueError(
            f"nonzero: fill_value must be a scalar or a tuple of length {ndim}, got {fill_value!r}"
        )


def _nonzero_of_size(a: Any, size: int, fill_value: Any, dtype: Any) -> Any:
    shape = typeof(a).shape
    mask = ravel(
        a if typeof(a).dtype == np.dtype(bool) else do.ne(a, scalar_of(typeof(a).dtype, 0))
    )
    n = typeof(mask).shape[0]
    check_places("nonzero", n, dtype)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(shape)
    if n == 0:
        return tuple(
            broadcast_to(convert(0 if f is None else f, _dtype_filled(f, dtype)), (size,))
            for f in fills
        )
    rank = do.cumsum(
        do.convert_element_type(mask, new_dtype=dtype),
        axis=0,
        reverse=False,
    )
    total = indexing.getitem(rank, n - 1)
    order = do.iota(dtype=dtype, shape=(size,), dimension=0)
    found = convert(_bisect(rank, do.add(order, np.ones((), dtype)), "left"), dtype)
    flat = do.min(found, as_number(n - 1, dtype))
    valid = do.lt(order, total)
    out = []
    stride = n
    for d, f in zip(shape, fills):
        stride //= d
        place = do.rem(do.div(flat, as_number(stride, dtype)), as_number(d, dtype))
        f = 0 if f is None else f
        filled = _dtype_filled(f, dtype)
        filler = broadcast_to(convert(f, filled), (size,))
        out.append(do.select_n(valid, filler, convert(place, filled)))
    return tuple(out)


def _dtype_filled(fill: Any, dtype: Any) -> Any:
    """The dtype of places that a number fills up: a float is no place, and makes them floats."""
    aval = None if fill is None else typeof(fill)
    if aval is None or not is_inexact(aval.dtype):
        return dtype
    return promote(((dtype, False), (aval.dtype, aval.weak_type)))[0]


_FAR = np.iinfo(np.int64).max  # beyond the end of any array


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Elements along an axis, by their positions.

    Args:
        a: an array.
        indices: integers of any shape.
        axis: the axis to take from; None takes from the flattened array.
        out: must be None: arrays are immutable.
        mode: for positions outside: "fill" gives `fill_value`, "clip" the element at the nearest
            end (0 for negative ones), "wrap" goes round. None is "fill", where negative positions
            count from the end.
        unique_indices: a promise that no position occurs twice.
        indices_are_sorted: a promise that positions ascend.
        fill_value: for positions outside; None is nan, the lowest integer of signed, the highest of
            unsigned dtypes.
    Returns:
        An array with the axis replaced by the shape of `indices`.
    Differs from NumPy:
        Positions outside are no error; mode "raise" is refused.

    >>> jnp.take(jnp.array([10.0, 20.0, 30.0]), jnp.array([2, 0, 7]))
    Array([30., 10., nan], dtype=float32)"""
    if type(indices) is int:
        indices = np.asarray(min(max(indices, -_FAR), _FAR), np.int64)
    check_arraylike("take", a, indices)
    refuse_out("take", out)
    if mode == "raise":
        raise NotImplementedError(
            "The 'raise' mode to jnp.take is not supported: use mode='fill' or 'clip'."
        )
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode {mode!r} for np.take: use 'fill', 'clip' or 'wrap'.")
    a, k = _along("take", a, axis)
    if typeof(indices).dtype == np.dtype(bool):
        indices = convert(indices, canonicalize(int))
    if not is_integer(typeof(indices).dtype):
        raise ValueError(
            f"take requires indices of integer dtype, got {typeof(indices).dtype.name}"
        )
    if typeof(a).shape[k] == 0 and typeof(indices).size:
        raise IndexError("take: cannot do a non-empty jnp.take() from an empty axis")
    indices = np.asarray(indices) if isinstance(indices, int) else indices
    if mode == "clip":
        is_numpy = isinstance(indices, (np.ndarray, np.generic))
        indices = np.maximum(indices, 0) if is_numpy else ufuncs.maximum(indices, 0)
    index = (*(slice(None),) * k, indices)
    return indexing.getitem(
        a, index, mode or "fill", fill_value, unique_indices, indices_are_sorted
    )


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Elements along an axis by an array of positions, one for each place of the other axes: what
    `argsort` and `argmax` return.

    Args:
        arr: an array.
        indices: integers, with as many axes as `arr` and sizes that broadcast but for the axis.
        axis: the axis to take along; None takes from the flattened array.
        mode: for positions outside: "fill" gives `fill_value`, "clip" the element at the nearest
            end, "promise_in_bounds" promises that there are none. None is "fill".
        fill_value: for positions outside; None is nan, or an extreme integer.
        wrap_negative_indices: whether negative positions count from the end; else they lie outside.
            None is true.
    Returns:
        An array of the shape of `indices`; zeros where the axis has no elements.
    Differs from NumPy:
        Positions outside are no error.

    >>> x = jnp.array([[3, 1], [2, 5]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
    Array([[1, 3],
           [2, 5]], dtype=int32)"""
    check_arraylike("take_along_axis", arr, indices)
    if wrap_negative_indices is None:
        wrap_negative_indices = mode != "promise_in_bounds"
    if mode == "one_hot":  # what the product with rows of a unit matrix gives
        mode, fill_value = "fill", 0
    if not wrap_negative_indices and mode == "promise_in_bounds":
        dtype = typeof(indices).dtype  # none is negative: nothing has to be counted from the end
        if is_signed(dtype):
            indices = convert(indices, np.dtype(f"uint{8 * dtype.itemsize}"))
    elif not wrap_negative_indices:
        # a position beyond the end stands for every negative one
        n = (
            typeof(arr).size
            if axis is None
            else typeof(arr).shape[canonical_axis(axis, typeof(arr).ndim)]
        )
        indices = where(ufuncs.less(indices, 0), 0 if mode == "clip" else n, indices)
    if not is_integer(typeof(indices).dtype):
        raise TypeError(
            f"take_along_axis indices must be of integer type, got {typeof(indices).dtype.name}"
        )
    if axis is None:
        if typeof(indices).ndim != 1:
            raise ValueError(
                "take_along_axis indices must be 1D if axis=None, got shape"
                f" {typeof(indices).shape}"
            )
        return take_along_axis(ravel(arr), indices, 0, mode, fill_value)
    n = typeof(arr).ndim
    if typeof(indices).ndim != n:
        raise ValueError(
            f"indices and arr must have the same number of dimensions; {typeof(indices).ndim}"
            f" vs. {n}"
        )
    k = canonical_axis(axis, n)
    shape, own = typeof(indices).shape, typeof(arr).shape
    full = tuple(own[i] if d == 1 and i != k else d for i, d in enumerate(shape))
    if 0 in own and 0 in full:
        return reshape(arr, full)
    if own[k] == 0:  # there is nothing to take, and JAX takes zeros
        broadcast_shapes("take_along_axis", (*own[:k], 1, *own[k + 1 :]), full)
        return broadcast_to(np.zeros((), typeof(arr).dtype), full)
    broadcast_shapes(
        "take_along_axis", (*own[:k], 1, *own[k + 1 :]), (*full[:k], 1, *full[k + 1 :])
    )
    return indexing.along_axis(
        as_operand(arr), k, index_operand(indices), full, mode or "fill", fill_value
    )


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Numbers rounded to some decimals; halves go to the even digit.

    Args:
        a: an array or a number.
        decimals: how many digits after the point; negative ones round to tens, hundreds and so on.
        out: must be None: arrays are immutable.
    Returns:
        An array of the dtype of `a`; integers are themselves.
    Differs from NumPy:
        Integers are refused where `decimals` is negative.

    >>> jnp.round(jnp.array([1.25, 2.675]), 1)
    Array([1.2, 2.7], dtype=float32)"""
    check_arraylike("round", a)
    refuse_out("round", out)
    a, decimals = as_operand(a), whole(decimals, "round: decimals")
    dtype = typeof(a).dtype
    if is_integer(dtype) or dtype == np.dtype(bool):
        if decimals < 0:
            raise NotImplementedError(
                "integer np.round not implemented for decimals < 0: convert to a float first"
            )
        return to_array(a)
    weak = typeof(a).weak_type
    if is_complex(dtype):
        rounded = do.complex(round(do.real(a), decimals), round(do.imag(a), decimals))
        return convert(rounded, dtype, weak and not (decimals and typeof(a).ndim))
    if decimals == 0:
        return do.round(a, rounding_method=1)
    work = np.dtype("float32") if dtype.itemsize < 4 else dtype
    most = np.finfo(work).maxexp * math.log10(2)
    if decimals > most:  # there are no such digits
        return to_array(a)
    if decimals < -most:
        return convert(do.mul(a, scalar_of(dtype, 0)), dtype, weak)
    factor = np.asarray(10.0 ** abs(decimals)).astype(work)
    x = convert(a, work)
    if decimals > 0:
        out_ = do.div(do.round(do.mul(x, factor), rounding_method=1), factor)
    else:
        out_ = do.mul(do.round(do.div(x, factor), rounding_method=1), factor)
    return convert(out_, dtype, weak)


def view(a: Any, dtype: Any) -> Any:
    """The same bytes read as another dtype."""
    own = typeof(a).dtype
    if own == dtype:
        return a
    if np.dtype(bool) in (own, dtype):
        narrow = np.dtype("uint8")
        a = do.convert_element_type(a, new_dtype=narrow) if own == np.dtype(bool) else a
        out = a if dtype == narrow else view(a, narrow if dtype == np.dtype(bool) else dtype)
        return do.ne(out, np.zeros((), narrow)) if dtype == np.dtype(bool) else out
    old, new = bit_width_of(own), bit_width_of(dtype)
    shape = typeof(a).shape
    if old != new and not shape:
        raise ValueError("view() of a 0-d array is only supported if the itemsize is unchanged.")
    if old < new and shape[-1] % (new // old):
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in"
            f" bytes of the last axis: {own.name} to {dtype.name} with shape {shape}"
        )
    if is_complex(own) or is_complex(dtype):
        viewed = _view_of_parts(a if shape else reshape(a, (1,)), dtype)
        return viewed if shape else reshape(viewed, ())
    if old == new:
        return bitcast_convert_type(a, dtype)
    if old > new:
        return reshape(bitcast_convert_type(a, dtype), (*shape[:-1], -1))
    return bitcast_convert_type(reshape(a, (*shape[:-1], -1, new // old)), dtype)


def _view_of_parts(a: Any, dtype: Any) -> Any:
    """The view of an array with axes where one dtype is complex: a complex number is its real part
    and then its imaginary part."""
    if is_complex(typeof(a).dtype):
        columns = [reshape(part, (*typeof(a).shape, 1)) for part in (do.real(a), do.imag(a))]
        pairs = do.concatenate(*columns, dimension=typeof(a).ndim)
        return view(reshape(pairs, (*typeof(a).shape[:-1], -1)), dtype)
    parts = view(a, real_part(dtype))
    pairs = reshape(parts, (*typeof(parts).shape[:-1], -1, 2))
    return do.complex(pairs[..., 0], pairs[..., 1])
