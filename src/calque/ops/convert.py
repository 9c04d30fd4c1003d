"""Changing the type of values, and identities with a purpose: copy, stop_gradient,
optimization_barrier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calque.core import pytrees, trace_state
from calque.core.arrays import Array, scalar, to_array
from calque.core.avals import ShapedArray
from calque.core.dtypes import (
    PYTHON_SCALARS,
    asked,
    canonicalize,
    iinfo,
    is_complex,
    is_extended,
    is_float,
    is_inexact,
    is_integer,
)
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import VALUES, as_constant, typeof
from calque.core.types import ArrayLike, DType, DTypeLike
from calque.ops.bits import as_unsigned, bit_width
from calque.ops.common import ANY, PLAIN, move, refuse_dtype, tangent_aval
from calque.ops.common import operand as as_operand
from calque.ops.conversions import converted, from_unsigned, real_constant_of
from calque.ops.kinds import linear_unary, not_linear, unary

if TYPE_CHECKING:
    from calque.core.generics import X

# ---------------------------------------------------------------- the dtype of a value


def dtype(x: Any) -> DType:
    """Gives the dtype of a value, or the one that a type stands for.

    Args:
        x: An array, a number, a type, or the name of a dtype.

    Returns:
        A dtype.

    >>> lax.dtype(1.0), lax.dtype(int)
    (dtype('float32'), dtype('int32'))"""
    if x is None:
        raise ValueError(f"Invalid argument to dtype: {x}.")
    if isinstance(x, (type, str, np.dtype)) or is_extended(x):
        return canonicalize(x)
    if (
        not hasattr(x, "dtype")
        and not isinstance(x, PYTHON_SCALARS)
        and not hasattr(x, "__jax_array__")
    ):
        raise TypeError(f"Cannot determine dtype of {x}")
    return typeof(x).dtype


# ---------------------------------------------------------------- convert_element_type


def _convert_meaning(
    x: np.ndarray, *, new_dtype: Any, weak_type: bool, sharding: Any = None
) -> np.ndarray:
    return x.copy() if is_extended(new_dtype) else converted(x, new_dtype)


def _convert_shape(
    x: ShapedArray, *, new_dtype: Any, weak_type: bool, sharding: Any = None
) -> ShapedArray:
    if x.dtype != new_dtype and (is_extended(x.dtype) or is_extended(new_dtype)):
        raise ValueError(
            f"Cannot convert_element_type from {x.dtype.name} to {new_dtype.name}: typed keys"
            " convert to and from integers only by random.key_data and random.wrap_key_data"
        )
    if x.dtype not in PLAIN and x.dtype != new_dtype:
        raise refuse_dtype("convert_element_type", x.dtype, PLAIN)
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = do.convert_element_type(x, **params)
    if type(t) is Zero or not is_inexact(params["new_dtype"]):
        return out, Zero(tangent_aval(typeof(out)))
    return out, do.convert_element_type(t, **params)


def convert_to(x: Any, aval: ShapedArray) -> Any:
    """`x` with the dtype and weak type of `aval`."""
    now = typeof(x)
    if now.dtype == aval.dtype and now.weak_type == aval.weak_type:
        return x
    return do.convert_element_type(x, new_dtype=aval.dtype, weak_type=aval.weak_type)


convert_element_type_p = Primitive(
    "convert_element_type",
    meaning=_convert_meaning,
    shape=_convert_shape,
    jvp=_convert_jvp,
    transpose=linear_unary(lambda ct, aval, **params: convert_to(ct, aval)),
    batch=lambda args, dims, **params: (do.convert_element_type(args[0], **params), dims[0]),
    hidden=("sharding",),
    defaults={"weak_type": False, "sharding": None},
)

# ---------------------------------------------------------------- bitcast_convert_type


def _bitcast_meaning(x: np.ndarray, *, new_dtype: Any) -> np.ndarray:
    x = np.ascontiguousarray(x).reshape(x.shape)
    if bit_width_of(x.dtype) == bit_width_of(new_dtype):
        if x.dtype == new_dtype or is_float(x.dtype) or is_float(new_dtype) or x.dtype.kind in "iu":
            return x.copy() if x.dtype == new_dtype else x.view(new_dtype)
        return from_unsigned(as_unsigned(x), new_dtype)
    if x.dtype.itemsize > new_dtype.itemsize:
        ratio = x.dtype.itemsize // new_dtype.itemsize
        return x.reshape(*x.shape, 1).view(new_dtype).reshape(*x.shape, ratio)
    return x.view(new_dtype).reshape(x.shape[:-1]) if x.size else np.empty(x.shape[:-1], new_dtype)


def bit_width_of(dtype: Any) -> int:
    """How many bits an element has."""
    if dtype.kind == "b" or is_integer(dtype):
        return bit_width(dtype) if dtype.kind != "b" else 8
    return 4 if dtype.name.startswith("float4") else 8 * int(dtype.itemsize)


def _bitcast_shape(x: ShapedArray, *, new_dtype: Any) -> ShapedArray:
    if x.dtype not in PLAIN:
        raise refuse_dtype("bitcast_convert_type", x.dtype, PLAIN)
    if x.dtype == new_dtype:
        return x.strip_weak_type()
    if any(d.kind == "b" or is_complex(d) for d in (x.dtype, new_dtype)):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand"
            f" and destination types match. Got operand dtype={x.dtype.name},"
            f" new_dtype={new_dtype.name}. Consider using the arr.view() method."
        )
    old, new = bit_width_of(x.dtype), bit_width_of(new_dtype)
    if old == new:
        return ShapedArray(x.shape, new_dtype)
    if min(old, new) < 8:
        raise NotImplementedError(
            f"the primitive bitcast_convert_type from {x.dtype.name} to {new_dtype.name}: types of"
            " less than a byte convert only to types of their own width; the function"
            " lax.bitcast_convert_type takes them apart"
        )
    return ShapedArray(_regrouped(x, new_dtype), new_dtype)


def _regrouped(x: ShapedArray, new_dtype: Any) -> tuple[Any, ...]:
    """The shape of the bits of `x` as elements of another width."""
    old, new = bit_width_of(x.dtype), bit_width_of(new_dtype)
    if old > new:
        return (*x.shape, old // new)
    if not x.shape or x.shape[-1] * old != new:
        last = x.shape[-1] if x.shape else 1
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype.name} of size {old} bits"
            f" to {new_dtype.name} of size {new} bits, but {last} * {old} != {new}: the last"
            " dimension must hold one new element"
        )
    return x.shape[:-1]


def _bitcast_batch(args: Sequence[Any], dims: Sequence[int], *, new_dtype: Any) -> tuple[Any, int]:
    (x,), (d,) = args, dims
    if d == typeof(x).ndim - 1 and bit_width_of(typeof(x).dtype) != bit_width_of(new_dtype):
        x, d = move(x, d, 0), 0
    return do.bitcast_convert_type(x, new_dtype=new_dtype), d


def _bitcast_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    out = do.bitcast_convert_type(primals[0], **params)
    return out, Zero(tangent_aval(typeof(out)))


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    meaning=_bitcast_meaning,
    shape=_bitcast_shape,
    jvp=_bitcast_jvp,
    transpose=not_linear("bitcast_convert_type"),
    batch=_bitcast_batch,
)

# ---------------------------------------------------------------- identities

copy_p = unary(
    "copy",
    ANY,
    lambda x: x.copy(),
    lambda t, x, out: do.copy(t),
    transpose=linear_unary(lambda ct, aval: do.copy(ct)),
)
# its derivative is none, but as a map of values it is linear: a rule that is to be transposed may
# hold it
stop_gradient_p = unary(
    "stop_gradient", ANY, lambda x: x.copy(), None, transpose=linear_unary(lambda ct, aval: ct)
)


def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    out = do.optimization_barrier(*primals)
    moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    ts = list(tangents)
    if moving:
        for i, t in zip(moving, do.optimization_barrier(*[tangents[i] for i in moving])):
            ts[i] = t
    return out, ts


def _barrier_transpose(cts: Sequence[Any], *args: Any) -> list[Any]:
    return [ct if type(x) is UndefinedPrimal else None for ct, x in zip(cts, args)]


optimization_barrier_p = Primitive(
    "optimization_barrier",
    meaning=lambda *xs: [x.copy() for x in xs],
    shape=lambda *avals: list(avals),
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    batch=lambda args, dims: (do.optimization_barrier(*args), list(dims)),
    multiple_results=True,
)

# ---------------------------------------------------------------- public functions


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Gives the values in another dtype.

    Args:
        operand: Numbers.
        new_dtype: The dtype. Floats become integers by truncation; out of range they saturate, and
            NaN becomes 0. Integers wrap around.

    Returns:
        An array of the shape of `operand`, not weakly typed.

    >>> lax.convert_element_type(jnp.array([1.7, -1.7]), jnp.int32)
    Array([ 1, -1], dtype=int32)"""
    return converted_to(operand, asked(new_dtype), weak_type=False)


def converted_to(x: Any, dtype: Any, weak_type: bool) -> Any:
    """Any value with this dtype and weak type; itself if it has them."""
    if isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic) and not is_extended(dtype):
        return as_constant(scalar(_python_converted(x, dtype), dtype, weak_type))
    x = as_operand(x)
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        if isinstance(x, VALUES):
            return x
        if isinstance(x, np.ndarray) and not trace_state.is_evaluating():
            return to_array(x)  # a constant of the program, and no operation
    if is_complex(aval.dtype) and not is_complex(dtype) and getattr(dtype, "kind", "") != "b":
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=3,
        )
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type, sharding=None)


def _python_converted(x: Any, dtype: Any) -> np.ndarray:
    if isinstance(x, int) and is_integer(dtype) and not iinfo(dtype).min <= x <= iinfo(dtype).max:
        wrapped = np.asarray(x % 2**64, np.uint64)
        return from_unsigned(wrapped, dtype)
    return real_constant_of("convert_element_type", x, dtype)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reads the bits of an array as another type.

    Args:
        operand: An array.
        new_dtype: The dtype. A narrower one adds a last dimension, a wider one takes it away.

    Returns:
        An array.

    >>> lax.bitcast_convert_type(1.0, jnp.int32)
    Array(1065353216, dtype=int32)"""
    x, dtype = as_operand(operand), asked(new_dtype)
    aval = typeof(x)
    if aval.dtype == dtype and not aval.weak_type:
        return to_array(x)
    if _within_bytes(aval.dtype, dtype):
        return _regrouped_bits(x, dtype)
    return bitcast_convert_type_p.bind(x, new_dtype=dtype)


def _within_bytes(old: Any, new: Any) -> bool:
    """Do elements of one of these dtypes share a byte, and have another width than the other's?"""
    if old not in PLAIN or any(d.kind == "b" or is_complex(d) for d in (old, new)):
        return False
    widths = bit_width_of(old), bit_width_of(new)
    return min(widths) < 8 and widths[0] != widths[1]


def _regrouped_bits(x: Any, dtype: Any) -> Any:
    """The bits of `x` as elements of another width; the first of several has the lowest bits."""
    aval = typeof(x)
    old, new = bit_width_of(aval.dtype), bit_width_of(dtype)
    shape = _regrouped(aval, dtype)
    word = np.dtype(f"uint{max(old, new, 8)}")
    bits = convert_element_type(bitcast_convert_type(x, f"uint{old}"), word)
    parts = shape if old > new else aval.shape
    last = len(parts) - 1
    places = do.broadcast_in_dim(
        (np.arange(max(old, new) // min(old, new)) * min(old, new)).astype(word),
        shape=parts,
        broadcast_dimensions=(last,),
    )
    if old > new:
        whole = do.broadcast_in_dim(bits, shape=parts, broadcast_dimensions=tuple(range(last)))
        mask = do.broadcast_in_dim(
            np.asarray(2**new - 1, word), shape=parts, broadcast_dimensions=()
        )
        bits = do["and"](do.shift_right_logical(whole, places), mask)
    else:
        bits = do.reduce_or(do.shift_left(bits, places), axes=(last,))
    return bitcast_convert_type(convert_element_type(bits, f"uint{new}"), dtype)


def stop_gradient(x: X) -> X:
    """Makes values constants to differentiation.

    Args:
        x: A tree of arrays.

    Returns:
        The same values; their derivative is zero.

    >>> jax.grad(lambda x: lax.stop_gradient(x) * x)(3.0)
    Array(3., dtype=float32, weak_type=True)"""
    return pytrees.tree_map(lambda leaf: stop_gradient_p.bind(as_operand(leaf)), x)


def optimization_barrier(operand: X, /) -> X:
    """Keeps what computes values apart from what uses them: neither is merged into the other.

    Args:
        operand: A tree of arrays.

    Returns:
        The same values.

    >>> lax.optimization_barrier(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)"""
    leaves, tree = pytrees.flatten(operand)
    return (
        tree.unflatten(optimization_barrier_p.bind(*map(as_operand, leaves))) if leaves else operand
    )
