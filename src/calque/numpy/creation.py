"""Arrays of a shape filled with a value."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from calque.core import errors, trace_state
from calque.core.arrays import (
    Array,
    ArrayImpl,
    adopted,
    as_it_is,
    repeated,
    to_array,
)
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import (
    as_dtype,
    canonicalize,
    float0,
    is_extended,
    is_integer,
)
from calque.core.origins import origin
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike, ShapeLike, SupportsShape
from calque.machine.caches import Table
from calque.numpy.calls.marks import seldom_taught
from calque.numpy.indexing.found_sizes import extent, is_traced_integer
from calque.numpy.promotion import (
    as_operand,
    check_arraylike,
    convert,
    python_scalar,
    result_dtype,
)
from calque.numpy.signatures import AnyFunction, OutSharding, Placement
from calque.ops.conversions import real_constant_of
from calque.transforms.devices.sharding_arrays import device_put, placed_like, put_as_asked
from calque.transforms.devices.types import lenient
from calque.transforms.functions import debug_nans


def canonical_shape(shape: Any, what: str = "Shapes") -> tuple[int, ...]:
    """A tuple of Python ints, and of sizes that the program finds where integers are traced."""
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    if isinstance(shape, (np.ndarray, ArrayImpl)):
        dims = tuple(np.asarray(shape)) if np.ndim(shape) == 1 else dims
    elif dims is not shape and _is_sequence(shape):  # of a class of the user's
        dims = tuple(shape)
    try:
        return tuple(
            [d if type(d) is int else extent(d, "a shape with a traced size") for d in dims]
        )
    except (TypeError, errors.TracerIntegerConversionError) as error:
        if any(map(is_traced_integer, dims)):
            raise
        traced = next((d for d in dims if isinstance(d, Tracer)), None)
        raise TypeError(
            f"{what} must be 1D sequences of concrete values of integer type, got"
            f" {shape if traced is not None else repr(shape)}."
            + (origin(traced) if traced is not None else "")
            + (" Divide sizes by // instead of /." if float in map(type, dims) else "")
        ) from error


def _is_sequence(shape: Any) -> bool:
    own = isinstance(shape, (Tracer, str, dict, set, np.generic))
    return not own and hasattr(shape, "__iter__") and hasattr(shape, "__len__")


def placed(f: AnyFunction) -> AnyFunction:
    """A function whose result goes where its keywords `device` or `out_sharding` say."""

    @functools.wraps(f)
    def make(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return f(*args)
        device, target = kwargs.get("device"), kwargs.get("out_sharding")
        if device is None and target is None:
            return f(*args, **kwargs)
        with lenient():
            out = f(*args, **kwargs)
        return put_as_asked(out, target, f.__name__) if device is None else device_put(out, device)

    return make  # type: ignore[return-value]


def full_of(shape: Any, value: Any) -> Any:
    """An array filled with an operand of rank 0: at once, without a program, where nothing is
    traced."""
    shape = _sizes(shape)
    if trace_state.is_evaluating() and not isinstance(value, Tracer) and not debug_nans.active():
        x = to_array(value)
        if x._extra is None and not is_extended(x.dtype):
            aval = x.aval
            return repeated(x, ShapedArray(shape, aval.dtype, aval.weak_type))
    return do.broadcast_in_dim(value, shape=shape, broadcast_dimensions=())


def _sizes(shape: Any) -> tuple[int, ...]:
    """The sizes of an array to be made."""
    shape = canonical_shape(shape)
    for d in shape:
        if d < 0:
            raise TypeError(f"sizes of a shape must be non-negative, got {shape}")
    return shape


def _filled(shape: Any, n: int, dtype: Any) -> Any:
    x = _numbers.get((n, dtype))
    if x is not None and trace_state.is_evaluating() and not config.here().looks:
        _numbers.counts.hits += 1
        return repeated(x, ShapedArray(_sizes(shape), dtype))
    if is_extended(dtype):
        return _keys_of_bits(shape, n, dtype)
    if dtype == float0:  # tangents of integers: nothing that an operation makes
        return np.zeros(canonical_shape(shape), float0)
    return full_of(shape, number(n, dtype))


def number(n: int, dtype: Any) -> Any:
    """A number as an operand: an array that is kept for the next call, or where a program is traced
    a NumPy one, which is shown. As a random key it is the key whose words are that number."""
    if is_extended(dtype):
        return do.random_wrap(np.full(dtype.impl.key_shape, n, np.uint32), impl=dtype.impl)
    if not trace_state.is_evaluating():
        return np.full((), n, dtype)
    x = _numbers.find((n, dtype))
    if x is None:
        x = _numbers[n, dtype] = adopted(np.full((), n, dtype))
    return x


_numbers: Final[Table[tuple[int, Any], Any]] = Table("numbers as arrays", 1024)


def _dtype_of(name: str, shape: Any, dtype: Any) -> Any:
    """The dtype of `jnp.zeros(shape, dtype)`; a size that stands in its place is told of."""
    if dtype is None:
        return canonicalize(float)
    if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool):
        raise TypeError(
            f"{dtype!r} is not understood as a dtype. Did you accidentally write"
            f" `calque.numpy.{name}({shape}, {dtype})` when you meant"
            f" `calque.numpy.{name}(({shape}, {dtype}))`?"
        )
    return result_dtype(dtype)


@seldom_taught
@placed
def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of zeros.

    Args:
        shape: the size of each axis, a sequence of ints or one int. Under jit a traced int is a
            size too.
        dtype: of the elements; None is float32 (float64 with x64).
        device: where the array lies: a device or a sharding. None is the default device.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array.
    Differs from NumPy:
        There is no `order`. Without x64 a dtype of 64 bits becomes one of 32.

    >>> jnp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)"""
    return _filled(shape, 0, _dtype_of("zeros", shape, dtype))


@seldom_taught
@placed
def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of ones.

    Args:
        shape: the size of each axis, a sequence of ints or one int.
        dtype: of the elements; None is float32 (float64 with x64).
        device: where the array lies: a device or a sharding. None is the default device.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array.
    Differs from NumPy:
        There is no `order`. Without x64 a dtype of 64 bits becomes one of 32.

    >>> jnp.ones(3, dtype=int)
    Array([1, 1, 1], dtype=int32)"""
    return _filled(shape, 1, _dtype_of("ones", shape, dtype))


@seldom_taught
@placed
def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array to be overwritten. It holds zeros: programs give the same result every time, so
    nothing is left without a value.

    Args:
        shape: the size of each axis, a sequence of ints or one int.
        dtype: of the elements; None is float32 (float64 with x64).
        device: where the array lies: a device or a sharding. None is the default device.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array of zeros.
    Differs from NumPy:
        The elements are zeros, not what happened to be in memory. There is no `order`.

    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)"""
    return _filled(shape, 0, _dtype_of("empty", shape, dtype))


@seldom_taught
@placed
def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array filled with a value.

    Args:
        shape: the size of each axis, a sequence of ints or one int.
        fill_value: a number, or an array that broadcasts to `shape`. Floats beyond the range of an
            integer dtype take its nearest end.
        dtype: of the elements; None is that of `fill_value`.
        device: where the array lies: a device or a sharding. None is the default device.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array. It is weakly typed where a Python number decides its dtype.
    Differs from NumPy:
        There is no `order`.

    >>> jnp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)"""
    return _full(shape, fill_value, result_dtype(dtype))


def _full(shape: Any, fill_value: Any, target: Any) -> Array:
    """A value everywhere, as an element of this dtype; None is that of the value."""
    check_arraylike("full", fill_value)
    if is_extended(target) and not is_extended(getattr(fill_value, "dtype", None)):
        return _keys_of_bits(shape, fill_value, target)
    if type(fill_value) is int and target is not None and is_integer(target):
        fill_value = python_scalar(fill_value, target)  # it may be none of the default type
    aval = typeof(fill_value)
    dtype, weak = (aval.dtype, aval.weak_type) if target is None else (target, False)
    if is_extended(dtype) and type(fill_value) is int:
        value = number(fill_value, dtype)
    elif type(fill_value) is complex and not weak:
        value = as_it_is(real_constant_of("fill_value", fill_value, dtype))
    else:
        value = convert(fill_value, dtype, weak)
    if aval.shape == ():
        return full_of(shape, value)
    return to_array(broadcast_value(value, canonical_shape(shape)))


def _keys_of_bits(shape: Any, word: Any, dtype: Any) -> Any:
    """Random keys that are made of one word, everywhere."""
    words = (*canonical_shape(shape), *dtype.impl.key_shape)
    return do.random_wrap(full(words, word, np.uint32), impl=dtype.impl)


def broadcast_value(value: Any, shape: tuple[int, ...]) -> Any:
    value = as_operand(value)
    own = typeof(value).shape
    if own == shape:
        return value
    lead = len(shape) - len(own)
    if lead < 0 or any(a not in (1, b) for a, b in zip(own, shape[lead:])):
        raise ValueError(f"Incompatible shapes for broadcasting: {own} to {shape}")
    keep = [i for i, n in enumerate(own) if n == shape[lead + i]]
    value = do.reshape(value, new_sizes=tuple(own[i] for i in keep))
    return do.broadcast_in_dim(
        value, shape=shape, broadcast_dimensions=tuple(lead + i for i in keep)
    )


def _has_shape_alone(a: Any) -> bool:
    """Whether it is no array of ours or NumPy's but says its shape and dtype: they are enough, and
    what it would be converted to is not asked for."""
    if isinstance(a, (Array, np.ndarray, np.generic)) or hasattr(a, "aval"):
        return False
    return hasattr(a, "shape") and hasattr(a, "dtype")


def _like(a: Any, value: Any, dtype: Any, shape: Any, name: str) -> Any:
    if _has_shape_alone(a):
        aval = ShapedArray(canonical_shape(a.shape), canonicalize(as_dtype(a.dtype)))
    else:
        check_arraylike(name, a)
        aval = typeof(a)
    out = _full(aval.shape if shape is None else shape, value, result_dtype(dtype, aval.dtype))
    if dtype is None and aval.weak_type:
        out = do.convert_element_type(out, new_dtype=aval.dtype, weak_type=True)
    return placed_like(out, a)


@placed
def zeros_like(
    a: ArrayLike | SupportsShape,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Zeros with the shape and dtype of an array.

    Args:
        a: an array, or anything with a `shape` and a `dtype`.
        dtype: of the result; None is that of `a`.
        shape: of the result; None is that of `a`.
        device: where the array lies: a device or a sharding. None is the device of `a`.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array.
    Differs from NumPy:
        There is no `order` and no `subok`.

    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)"""
    return _like(a, 0, dtype, shape, "zeros_like")


@placed
def ones_like(
    a: ArrayLike | SupportsShape,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Ones with the shape and dtype of an array.

    Args:
        a: an array, or anything with a `shape` and a `dtype`.
        dtype: of the result; None is that of `a`.
        shape: of the result; None is that of `a`.
        device: where the array lies: a device or a sharding. None is the device of `a`.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array.
    Differs from NumPy:
        There is no `order` and no `subok`.

    >>> jnp.ones_like(jnp.arange(3))
    Array([1, 1, 1], dtype=int32)"""
    return _like(a, 1, dtype, shape, "ones_like")


@placed
def empty_like(
    prototype: ArrayLike | SupportsShape,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """An array to be overwritten, with the shape and dtype of another. It holds zeros, as that of
    `empty`.

    Args:
        prototype: an array, or anything with a `shape` and a `dtype`.
        dtype: of the result; None is that of `prototype`.
        shape: of the result; None is that of `prototype`.
        device: where the array lies: a device or a sharding. None is the device of `prototype`.
    Returns:
        An array of zeros.
    Differs from NumPy:
        The elements are zeros. There is no `order` and no `subok`.

    >>> jnp.empty_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)"""
    return _like(prototype, 0, dtype, shape, "empty_like")


@placed
def full_like(
    a: ArrayLike | SupportsShape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """A value in the shape and dtype of an array.

    Args:
        a: an array, or anything with a `shape` and a `dtype`.
        fill_value: a number, or an array that broadcasts to the shape.
        dtype: of the result; None is that of `a`.
        shape: of the result; None is that of `a`.
        device: where the array lies: a device or a sharding. None is the device of `a`.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array.
    Differs from NumPy:
        There is no `order` and no `subok`.

    >>> jnp.full_like(jnp.arange(3.0), 0.5)
    Array([0.5, 0.5, 0.5], dtype=float32)"""
    return _like(a, fill_value, dtype, shape, "full_like")


# ---------------------------------------------------------------- from values
