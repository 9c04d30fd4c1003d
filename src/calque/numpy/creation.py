"""Making arrays: from values, filled, in ranges."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core import errors, pytrees, trace_state
from calque.core.arrays import (
    Array,
    ArrayImpl,
    adopted,
    from_numpy,
    repeated,
    to_array,
    to_numpy,
)
from calque.core.avals import ShapedArray
from calque.core.dims import Dim, value_of
from calque.core.dtypes import (
    PYTHON_SCALARS,
    as_dtype,
    canonicalize,
    float0,
    is_complex,
    is_extended,
    is_integer,
    promote,
)
from calque.core.primitives import do
from calque.core.trace import origin, typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike, ShapeLike, SupportsShape
from calque.machine.caches import Table
from calque.numpy.calls.marks import python_only, seldom_taught
from calque.numpy.indexing.found_sizes import extent, is_traced_integer
from calque.numpy.promotion import (
    as_operand,
    check_arraylike,
    convert,
    python_scalar,
    result_dtype,
)
from calque.numpy.signatures import AnyFunction, OutSharding, Placement
from calque.transforms.devices.sharding_arrays import device_put, placed_like, put_as_asked
from calque.transforms.devices.types import lenient
from calque.transforms.functions import debug_nans


def canonical_shape(shape: Any, what: str = "Shapes") -> tuple[int, ...]:
    """A tuple of Python ints, and of sizes that the program finds where integers are traced."""
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    if isinstance(shape, (np.ndarray, ArrayImpl)) and np.ndim(shape) == 1:
        dims = tuple(np.asarray(shape))
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
        ) from error


def placed(f: AnyFunction) -> AnyFunction:
    """A function whose result goes where its keywords `device` or `out_sharding` say."""

    @functools.wraps(f)
    def make(*args: Any, **kwargs: Any) -> Any:
        device, target = kwargs.get("device"), kwargs.get("out_sharding")
        if device is None and target is None:
            return f(*args, **kwargs)
        with lenient():
            out = f(*args, **kwargs)
        return put_as_asked(out, target) if device is None else device_put(out, device)

    return make  # type: ignore[return-value]


def full_of(shape: Any, value: Any) -> Any:
    """An array filled with an operand of rank 0: at once, without a program, where nothing is
    traced."""
    shape = canonical_shape(shape)
    for d in shape:
        if d < 0:
            raise TypeError(f"sizes of a shape must be non-negative, got {shape}")
    if trace_state.is_evaluating() and not isinstance(value, Tracer) and not debug_nans.active():
        x = to_array(value)
        if x._extra is None and not is_extended(x.dtype):
            aval = x.aval
            return repeated(x, ShapedArray(shape, aval.dtype, aval.weak_type))
    return do.broadcast_in_dim(value, shape=shape, broadcast_dimensions=())


def _filled(shape: Any, n: int, dtype: Any) -> Any:
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
    if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool):
        raise TypeError(
            f"{dtype!r} is not understood as a dtype. Did you accidentally write"
            f" `calque.numpy.{name}({shape}, {dtype})` when you meant"
            f" `calque.numpy.{name}(({shape}, {dtype}))`?"
        )
    return result_dtype(dtype, canonicalize(float))


@seldom_taught
@placed
def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of zeros, float32 unless `dtype` says otherwise.

    >>> import calque.numpy as jnp
    >>> jnp.zeros(3)
    Array([0., 0., 0.], dtype=float32)"""
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
    """An array of ones, float32 unless `dtype` says otherwise.

    >>> import calque.numpy as jnp
    >>> jnp.ones((2,), int)
    Array([1, 1], dtype=int32)"""
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
    """As `zeros`: programs are deterministic, so nothing is left uninitialised."""
    return zeros(shape, _dtype_of("empty", shape, dtype))


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
    """An array filled with a value, which may be an array that broadcasts.

    >>> import calque.numpy as jnp
    >>> jnp.full((2,), 7.0)
    Array([7., 7.], dtype=float32, weak_type=True)"""
    check_arraylike("full", fill_value)
    target = result_dtype(dtype)
    if is_extended(target) and not is_extended(getattr(fill_value, "dtype", None)):
        return _keys_of_bits(shape, fill_value, target)
    if type(fill_value) is int and target is not None and is_integer(target):
        fill_value = python_scalar(fill_value, target)  # it may be none of the default type
    aval = typeof(fill_value)
    dtype, weak = result_dtype(dtype, aval.dtype), dtype is None and aval.weak_type
    if is_extended(dtype) and type(fill_value) is int:
        value = number(fill_value, dtype)
    else:
        value = convert(fill_value, dtype, weak)
    if aval.shape == ():
        return full_of(shape, value)
    return broadcast_value(value, canonical_shape(shape))


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


def _like(a: Any, value: Any, dtype: Any, shape: Any, name: str) -> Any:
    check_arraylike(name, a)
    aval = typeof(a)
    out = full(aval.shape if shape is None else shape, value, result_dtype(dtype, aval.dtype))
    if dtype is None and aval.weak_type:
        out = do.convert_element_type(out, new_dtype=aval.dtype, weak_type=True)
    return out if shape is not None else placed_like(out, a)


@placed
def zeros_like(
    a: ArrayLike | SupportsShape,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Zeros with the shape and dtype of `a`."""
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
    """Ones with the shape and dtype of `a`."""
    return _like(a, 1, dtype, shape, "ones_like")


@placed
def empty_like(
    prototype: ArrayLike | SupportsShape,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """As `zeros_like`."""
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
    """`fill_value` with the shape and dtype of `a`."""
    return _like(a, fill_value, dtype, shape, "full_like")


# ---------------------------------------------------------------- from values


@python_only
@placed
def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of numbers, nested sequences of numbers or arrays, or another array.

    >>> import calque.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)"""
    if args:
        named = _named_by_place(args, {"copy": copy, "order": order, "ndmin": ndmin})
        return array(object, dtype, device=device, out_sharding=out_sharding, **named)
    if order not in (None, "C", "K"):
        raise NotImplementedError(
            f"order must be 'K', 'C' or None: arrays are always row-major; got {order!r}"
        )
    dtype = None if dtype is None else canonicalize(as_dtype(dtype))
    if hasattr(object, "__jax_array__") and not isinstance(object, (ArrayImpl, Tracer)):
        object = object.__jax_array__()
    out = _array(object, dtype, copy)
    missing = ndmin - out.ndim
    return do.reshape(out, new_sizes=(1,) * missing + tuple(out.shape)) if missing > 0 else out


def _named_by_place(args: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `array` that NumPy takes by position too, by name."""
    if len(args) > len(named):
        raise TypeError(f"array() takes at most 5 positional arguments, got {2 + len(args)}")
    defaults = {"copy": True, "order": "K", "ndmin": 0}
    for name in list(named)[: len(args)]:
        if named[name] != defaults[name]:
            raise TypeError(f"array() got multiple values for argument {name!r}")
    warnings.warn(
        "Passing the copy, order, and ndmin arguments to jnp.array by position is deprecated: name"
        " them",
        DeprecationWarning,
        stacklevel=4,
    )
    return {**named, **dict(zip(named, args))}


def _array(x: Any, dtype: Any, copy: bool) -> Any:
    if type(x) is Dim:
        x = value_of(x)
    if isinstance(x, (ArrayImpl, Tracer)):
        own = typeof(x)
        if dtype is not None and dtype != own.dtype:
            return do.convert_element_type(x, new_dtype=dtype)
        if own.weak_type and dtype is not None:
            return do.convert_element_type(x, new_dtype=own.dtype)
        return do.copy(x) if copy and isinstance(x, Tracer) else _copied(x) if copy else x
    if type(x) is Dim:
        return _array(value_of(x), dtype, copy)
    if isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic):
        target = dtype if dtype is not None else typeof(x).dtype
        if isinstance(x, complex) and not is_complex(target):
            raise TypeError(
                f"array: the complex number {x} does not become {target}; take its real part"
            )
        return from_numpy(_np_array(x, target), weak_type=dtype is None and not isinstance(x, bool))
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if isinstance(x, (np.ndarray, np.generic)):
        return _of_numpy(x, dtype)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__") or _is_buffer(x):
        return _of_numpy(np.asarray(x), dtype)
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    raise TypeError(f"Unexpected input type for array: {type(x)}")


def _of_numpy(x: Any, dtype: Any) -> Any:
    """The values of a NumPy array, which its owner may change later: they are copied once."""
    values = _np_array(x, dtype)
    return from_numpy(values) if np.may_share_memory(values, x) else adopted(values)


def _is_buffer(x: Any) -> bool:
    """Whether `x` gives its memory, as `array.array` and `bytearray` do."""
    if isinstance(x, (str, bytes)):
        return False
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def _copied(x: Any) -> Any:
    out = do.copy(x) if is_extended(x.dtype) else from_numpy(to_numpy(x), x.aval.weak_type)
    return out if x._extra is None else device_put(out, x._extra)


def _np_array(x: Any, dtype: Any) -> np.ndarray:
    a = np.asarray(x)
    if a.dtype.kind in "OSUMm" or (a.dtype.kind == "V" and dtype is None and a.dtype.names):
        raise TypeError(
            f"Value of dtype {a.dtype} is not a valid array type: only numeric and bool dtypes are"
            " supported"
        )
    if not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    if dtype is None:
        return a if a.flags.c_contiguous else np.ascontiguousarray(a).reshape(a.shape)
    if a.dtype.kind in "iu" and isinstance(x, int):
        return np.asarray(x, dtype) if np.dtype(dtype).kind in "iu" else a.astype(dtype)
    with np.errstate(all="ignore"):
        return a.astype(dtype, copy=False)


def _from_sequence(x: Sequence[Any], dtype: Any) -> Any:
    """Nested lists: of concrete leaves by NumPy at once, of tracers by stacking."""
    leaves = pytrees.leaves(x, is_leaf=lambda v: v is None or not isinstance(v, (list, tuple)))
    if any(v is None for v in leaves):
        raise ValueError("None is not a valid value for jnp.array")
    if any(_stands_for_a_value(v) for v in leaves):
        return _from_sequence(_with_values(x), dtype)
    if not leaves:
        return adopted(np.array(x, dtype if dtype is not None else canonicalize(float)))
    if dtype is None:
        try:
            avals = list(map(typeof, leaves))
        except OverflowError as error:
            raise OverflowError(f"Python int too large for an array: {error}") from None
        dtype, _ = promote(tuple([(a.dtype, a.weak_type) for a in avals]))
    if is_extended(dtype) or any(isinstance(v, Tracer) for v in leaves):
        return _stacked(x, dtype)
    with np.errstate(all="ignore"):
        if all(type(v) in PYTHON_SCALARS for v in leaves):
            plain = np.array(x) if dtype.kind != "f" else np.array(x, np.float64)
            return adopted(np.asarray(x, dtype) if dtype.kind in "iu" else plain.astype(dtype))
        return adopted(_nested(x, dtype))


def _stands_for_a_value(x: Any) -> bool:
    if type(x) is Dim:
        return True
    return hasattr(x, "__jax_array__") and not isinstance(x, (ArrayImpl, Tracer))


def _with_values(x: Any) -> Any:
    """A nested list with free sizes as numbers of the running program, and the values of objects
    that hold one."""
    if isinstance(x, (list, tuple)):
        return [_with_values(v) for v in x]
    if not _stands_for_a_value(x):
        return x
    return value_of(x) if type(x) is Dim else x.__jax_array__()


def _nested(x: Any, dtype: Any) -> np.ndarray:
    if isinstance(x, (list, tuple)):
        return np.stack([_nested(v, dtype) for v in x]) if x else np.zeros((0,), dtype)
    return np.asarray(to_numpy(x)).astype(dtype)


def _stacked(x: Any, dtype: Any) -> Any:
    if not isinstance(x, (list, tuple)):
        return convert(x, dtype)
    parts = [_stacked(v, dtype) for v in x]
    shapes = [typeof(p).shape for p in parts]
    if any(s != shapes[0] for s in shapes):
        raise ValueError(
            f"array: all parts of a nested sequence must have equal shapes, got {shapes}"
        )
    lifted = [
        do.broadcast_in_dim(p, shape=(1, *s), broadcast_dimensions=tuple(range(1, len(s) + 1)))
        for p, s in zip(parts, shapes)
    ]
    return lifted[0] if len(lifted) == 1 else do.concatenate(*lifted, dimension=0)


@python_only
@placed
def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """As `array`, without a copy where none is needed.

    >>> import calque.numpy as jnp
    >>> jnp.asarray(3)
    Array(3, dtype=int32, weak_type=True)"""
    return array(a, dtype, copy=bool(copy), order=order)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array.

    >>> import calque.numpy as jnp
    >>> jnp.copy(jnp.arange(2))
    Array([0, 1], dtype=int32)"""
    check_arraylike("copy", a)
    return do.copy(asarray(a, order=order))
