"""Arrays made of numbers, sequences and other arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Number
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.adopting import refuse_masked
from calque.core.arrays import (
    Array,
    ArrayImpl,
    adopted,
    from_numpy,
    to_numpy,
)
from calque.core.dims import Dim, value_of
from calque.core.dtypes import (
    PYTHON_SCALARS,
    asked,
    canonicalize,
    float0,
    is_extended,
    is_integer,
    promote,
)
from calque.core.primitives import do
from calque.core.trace import as_constant, typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.calls.marks import python_only
from calque.numpy.creation import placed
from calque.numpy.promotion import (
    check_arraylike,
    convert,
    is_arraylike,
)
from calque.numpy.signatures import OutSharding, Placement
from calque.ops.conversions import converted, exact_constant
from calque.transforms.devices.program_devices import check_stays
from calque.transforms.devices.several_processes import spans
from calque.transforms.devices.sharding_arrays import device_put

MOST_AXES: Final = 32  # of a NumPy array, whichever NumPy it is


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
    """An array made of numbers, nested sequences of them, or another array.

    Args:
        object: a number, a nested sequence of numbers and arrays with equal lengths (a list, a
            range, a deque), an array of any library that speaks NumPy's protocols, or an object
            with `__jax_array__`. Of a masked array the values are copied, without the mask.
        dtype: of the elements; None is the dtype that the values have together. A number of
            Python's that an integer dtype cannot hold is an error.
        *args: `copy`, `order` and `ndmin` by position, which is deprecated.
        copy: whether the values are copied; an array of calque is immutable and never needs it.
        order: "K", "C" or None. Arrays are row-major.
        ndmin: how many axes the result has at least; new ones come first.
        device: where the array lies: a device or a sharding. None is the default device.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array. Python numbers without `dtype` make a weakly typed array if they are scalars.
    Differs from NumPy:
        Python floats become float32 and ints int32 unless x64 is on. Order "F", dtype object and
        texts are refused.

    >>> jnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)"""
    if args:
        named = _named_by_place(args, {"copy": copy, "order": order, "ndmin": ndmin})
        return array(object, dtype, device=device, out_sharding=out_sharding, **named)
    if order not in (None, "C", "K"):
        raise NotImplementedError(
            f"order must be 'K', 'C' or None: arrays are always row-major; got {order!r}"
        )
    dtype = None if dtype is None else asked(dtype)
    if hasattr(object, "__jax_array__") and not isinstance(object, (ArrayImpl, Tracer)):
        object = object.__jax_array__()
    out = _array(object, dtype, copy)
    if device is not None:
        check_stays(out, device, "array")
    if out is not object:
        out = as_constant(out)
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
        values = exact_constant("array", x, target)
        return from_numpy(values, weak_type=dtype is None and not isinstance(x, bool))
    if isinstance(x, (np.ndarray, np.generic)):
        if not copy:  # as JAX: a copy is made of what is there, whatever the mask says
            refuse_masked(x)
        return _of_numpy(x, dtype)
    if _has_elements(x):
        return _of_numpy(np.asarray(x), dtype)
    if isinstance(x, Sequence) and not isinstance(x, (str, bytes)):
        return _from_sequence(x, dtype)
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if isinstance(x, bytes) and dtype == float0:  # as NumPy shows such an element
        return np.asarray(x, float0)
    if dtype is not None and isinstance(x, Number):  # a Decimal, a Fraction
        return _of_numpy(np.asarray(x), dtype)
    raise TypeError(f"Unexpected input type for array: {type(x)}")


def _of_numpy(x: Any, dtype: Any) -> Any:
    """The values of a NumPy array, which its owner may change later: they are copied once."""
    values = _np_array(x, dtype)
    return from_numpy(values) if np.may_share_memory(values, x) else adopted(values)


def _has_elements(x: Any) -> bool:
    """Whether NumPy knows how to ask `x` for its elements: by a protocol for arrays, or in its
    memory, as `array.array` and `bytearray` give it."""
    if isinstance(x, (str, bytes, list, tuple)):
        return False
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return True
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def _copied(x: Any) -> Any:
    if spans(x._extra):
        return do.copy(x)
    plain = not is_extended(x.dtype) and canonicalize(x.dtype) == x.dtype
    out = from_numpy(to_numpy(x), x.aval.weak_type) if plain and x.ndim <= MOST_AXES else do.copy(x)
    return out if x._extra is None else device_put(out, x._extra)


def _np_array(x: Any, dtype: Any) -> np.ndarray:
    a = np.asarray(x)
    if a.dtype.kind in ("SU" if dtype is not None else "OSUMm") or (
        a.dtype.kind == "V" and dtype is None and a.dtype.names
    ):
        raise TypeError(
            f"Value of dtype {a.dtype} is not a valid array type: only numeric and bool dtypes are"
            " supported" + (": give the dtype of the elements" if a.dtype.kind in "OMm" else "")
        )
    if not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    if dtype is None:
        return a if a.flags.c_contiguous else np.ascontiguousarray(a).reshape(a.shape)
    with np.errstate(all="ignore"):
        return a.astype(dtype, copy=False)


def _from_sequence(x: Sequence[Any], dtype: Any) -> Any:
    """Nested lists: of concrete leaves by NumPy at once, of tracers by stacking."""
    x = x if isinstance(x, (list, tuple)) else list(x)
    leaves = pytrees.leaves(x, is_leaf=lambda v: v is None or not isinstance(v, (list, tuple)))
    if any(v is None for v in leaves):
        raise ValueError("None is not a valid value for jnp.array")
    if any(type(v) not in PYTHON_SCALARS and _stands_for_a_value(v) for v in leaves):
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
            return adopted(_of_numbers(x, leaves, dtype))
        return adopted(_nested(x, dtype))


def _of_numbers(x: Any, leaves: Sequence[Any], dtype: Any) -> np.ndarray:
    """A nested list of Python's numbers; what `dtype` cannot hold is refused."""
    if is_integer(dtype) and dtype.kind not in "iu":
        for v in leaves:
            exact_constant("array", v, dtype)
    try:
        plain = np.array(x) if dtype.kind != "f" else np.array(x, np.float64)
        return np.asarray(x, dtype) if dtype.kind in "iu" else plain.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        for v in leaves:
            exact_constant("array", v, dtype)
        raise


def _stands_for_a_value(x: Any) -> bool:
    """Whether NumPy or the list should see something else in the place of this leaf."""
    if type(x) is Dim:
        return True
    if isinstance(x, (ArrayImpl, Tracer, np.ndarray, np.generic, str, bytes)):
        return False
    return hasattr(x, "__jax_array__") or isinstance(x, Sequence) or _has_elements(x)


def _with_values(x: Any) -> Any:
    """A nested list with free sizes as numbers of the running program, the values of objects that
    hold one, and lists in the place of ranges and other sequences."""
    if isinstance(x, (list, tuple)):
        return [_with_values(v) for v in x]
    if not _stands_for_a_value(x):
        return x
    if type(x) is Dim:
        return value_of(x)
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    return np.asarray(x) if _has_elements(x) else _with_values(list(x))


def _nested(x: Any, dtype: Any) -> np.ndarray:
    if isinstance(x, (list, tuple)):
        return np.stack([_nested(v, dtype) for v in x]) if x else np.zeros((0,), dtype)
    values = np.asarray(to_numpy(x))
    return converted(values, dtype) if isinstance(x, ArrayImpl) else values.astype(dtype)


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


def as_values(name: str, x: Any) -> Any:
    """An operand that may be a nested sequence as well, or anything else that holds elements."""
    if hasattr(x, "__jax_array__") and not isinstance(x, (ArrayImpl, Tracer)):
        return as_values(name, x.__jax_array__())
    if is_arraylike(x):
        return x
    if isinstance(x, (str, bytes)) or not (isinstance(x, Sequence) or _has_elements(x)):
        check_arraylike(name, x)
    return asarray(x)


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
    """An array made of numbers, sequences or another array, without a copy where none is needed.

    Args:
        a: what `array` takes.
        dtype: of the elements; None keeps what `a` has.
        order: "K", "C" or None. Arrays are row-major.
        copy: True copies in any case; None and False only where it is needed.
        device: where the array lies: a device or a sharding. None is the default device.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The array; `a` itself if it is one that fits.
    Differs from NumPy:
        Python floats become float32 and ints int32 unless x64 is on. Order "F" is refused;
        `copy=False` is no error where a copy is needed.

    >>> jnp.asarray((1.0, 2.0))
    Array([1., 2.], dtype=float32)"""
    out = array(a, dtype, copy=bool(copy), order=order)
    if device is not None:
        check_stays(out, device, "asarray")
    return out


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array. Arrays are immutable, so this is seldom needed.

    Args:
        a: what `array` takes.
        order: "K", "C" or None. Arrays are row-major.
    Returns:
        An array with memory of its own.

    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)"""
    check_arraylike("copy", a)
    return do.copy(asarray(a, order=order))
