"""Bits, and what is made of them directly: uniform floats, integers, truth values."""

from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dims import is_symbolic
from calque.core.dtypes import (
    asked,
    canonicalize,
    finfo,
    iinfo,
    is_complex,
    is_float,
    is_integer,
    is_signed,
)
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DType, DTypeLike, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import broadcast_shapes, broadcast_to, check_arraylike, convert
from calque.numpy.signatures import OutSharding
from calque.ops.conversions import constant_of
from calque.ops.convert import bitcast_convert_type, optimization_barrier
from calque.ops.sizes import as_number
from calque.ops.special import multiply_add
from calque.random.keys import wrapped


def float_dtype(name: str, dtype: DTypeLike | None) -> DType:
    d = canonicalize(float) if dtype is None else asked(dtype)
    if not is_float(d):
        raise ValueError(
            f"dtype argument to `{name}` must be a float dtype, got {d.name}:"
            " randint draws integers"
        )
    return d


def int_dtype(name: str, dtype: DTypeLike | None) -> DType:
    d = canonicalize(int) if dtype is None else asked(dtype)
    if not is_integer(d):
        raise (TypeError if name == "randint" else ValueError)(
            f"dtype argument to `{name}` must be an integer dtype, got {d.name}: uniform"
            " draws floats"
        )
    return d


def scalar(value: ArrayLike, dtype: DType) -> np.ndarray:
    return np.asarray(value).astype(dtype)


def parameter_shape(name: str, shape: ShapeLike | None, *parameters: ArrayLike) -> tuple[int, ...]:
    """The shape of the result: as asked for, or that of the parameters together."""
    check_arraylike(name, *parameters)
    shapes = [typeof(p).shape for p in parameters]
    wanted = None if shape is None else canonical_shape(shape)
    try:
        common = broadcast_shapes(name, *shapes, *([] if wanted is None else [wanted]))
    except TypeError as e:
        raise ValueError(str(e)) from None
    if wanted is not None and common != wanted:
        raise ValueError(
            f"{name}: parameters of shapes {shapes} do not broadcast to shape {wanted}"
        )
    return common


def parameter(x: ArrayLike, dtype: DType, shape: tuple[int, ...] | None = None) -> Array:
    """A parameter as an array of this dtype, and of this shape if one is given."""
    array = to_array(convert(x, dtype))
    return array if shape is None else broadcast_to(apart(array), shape)


def apart(x: Any) -> Array:
    """A number that XLA does not multiply with the constants around it: products by it are rounded
    one by one, as where it is an argument. Arrays are left alone; calque's own compiler knows the
    number all the same."""
    return optimization_barrier(x) if typeof(x).shape == () else x


def random_bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    return do.random_bits(key, bit_width=width, shape=shape)


@placed
def bits(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws random bits, as unsigned integers.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: An unsigned integer dtype; None means uint32 (uint64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.bits(jax.random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)"""
    typed, _ = wrapped(key, "bits")
    d = canonicalize(np.dtype("uint64")) if dtype is None else asked(dtype)
    if d.kind != "u":
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {d.name}")
    return random_bits(typed, d.itemsize * 8, canonical_shape(shape))


@placed
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers that are evenly distributed from `minval` to below `maxval`.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where enabled).
        minval: The least number; it broadcasts to `shape`.
        maxval: The number above the largest, likewise.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.uniform(jax.random.key(0), (2,))
    Array([0.947667 , 0.97857...], dtype=float32)"""
    typed, _ = wrapped(key, "uniform")
    d = float_dtype("uniform", dtype)
    shape = canonical_shape(shape)
    check_arraylike("uniform", minval, maxval)
    return uniform_between(typed, shape, d, minval, maxval)


def uniform_between(
    key: Array, shape: tuple[int, ...], dtype: DType, low: ArrayLike, high: ArrayLike
) -> Array:
    low, high = parameter(low, dtype), parameter(high, dtype)
    parameter_shape("uniform", shape, low, high)
    info = finfo(dtype)
    nbits, nmant = info.bits, info.nmant
    if nbits not in (8, 16, 32, 64):
        raise TypeError(f"uniform only accepts 8-, 16-, 32-, or 64-bit dtypes; got {dtype.name}")
    drawn = 8 if nmant < 8 else nbits
    unsigned = np.dtype(f"uint{nbits}")
    word = convert(random_bits(key, drawn, shape), unsigned)
    one = np.ones((), dtype).view(unsigned)
    unit = bitcast_convert_type((word >> (drawn - nmant)) | one, dtype) - 1
    low, high = broadcast_one(low, shape), broadcast_one(high, shape)
    width = high - low
    return jnp.maximum(low, product_and_sum(unit, width, low))


def product_and_sum(x: Any, y: Any, z: Any) -> Any:
    """x y + z; in float32 and float64 rounded once, as XLA does with FMA."""
    return multiply_add(x, y, z) if typeof(x).dtype.itemsize >= 4 else x * y + z


def broadcast_one(x: Array, shape: tuple[int, ...]) -> Array:
    return x if typeof(x).shape == () else broadcast_to(x, shape)


@placed
def randint(
    key: ArrayLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws integers that are evenly distributed from `minval` to below `maxval`.

    Args:
        key: A random key.
        shape: The shape of the result.
        minval: The least integer; it broadcasts to `shape`.
        maxval: The integer above the largest, likewise.
        dtype: An integer dtype; None means int32 (int64 where enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.randint(jax.random.key(0), (3,), 0, 10)
    Array([9, 0, 2], dtype=int32)"""
    typed, _ = wrapped(key, "randint")
    d = int_dtype("randint", dtype)
    minval, maxval = (_whole(v) for v in (minval, maxval))
    shape = canonical_shape(shape)
    parameter_shape("randint", shape, minval, maxval)
    top, bottom = int(iinfo(d).max), int(iinfo(d).min)
    if d.itemsize < 4:  # drawn as int32, where one more than the largest value exists
        i32 = np.dtype("int32")
        low, high = clipped(minval, i32, bottom, top), clipped(maxval, i32, bottom, top + 1)
        return convert(_randint(typed, shape, low, high, np.asarray(False), i32), d)
    beyond = (
        np.asarray(maxval > top)
        if isinstance(maxval, int)
        else to_array(maxval) > np.asarray(top, d)
    )
    low, high = clipped(minval, d, bottom, top), clipped(maxval, d, bottom, top)
    return _randint(typed, shape, low, high, beyond, d)


def _whole(v: ArrayLike) -> ArrayLike:
    """A bound as an integer: what is behind its point does not count."""
    if isinstance(v, (bool, int, float)):
        return int(constant_of(v, canonicalize(int)) if isinstance(v, float) else v)
    if is_symbolic((v,)):
        return as_number(v, canonicalize(int))  # type: ignore[no-any-return]
    check_arraylike("randint", v)
    own = typeof(v).dtype
    if is_integer(own):
        return v
    if is_complex(own):
        raise TypeError(f"randint only accepts real bounds, got {own.name}")
    return convert(v, canonicalize(int))


def clipped(v: ArrayLike, dtype: DType, bottom: int, top: int) -> ArrayLike:
    if isinstance(v, int):
        return np.asarray(min(max(v, bottom), top), dtype)
    own = typeof(v).dtype
    if iinfo(own).max > top:
        v = jnp.minimum(v, np.asarray(top, own))
    if iinfo(own).min < bottom:
        v = jnp.maximum(v, np.asarray(bottom, own))
    return convert(v, dtype)


def _randint(key: Any, shape: tuple[int, ...], low: Any, high: Any, beyond: Any, dtype: Any) -> Any:
    """Two words make one of twice the width, so that the remainder is nearly even."""
    width = dtype.itemsize * 8
    unsigned = np.dtype(f"uint{width}")
    high_key, low_key = pair(key)
    upper, lower = random_bits(high_key, width, shape), random_bits(low_key, width, shape)
    low, high = (broadcast_one(to_array(x), shape) for x in (low, high))
    span = high - low
    span = bitcast_convert_type(span, unsigned) if is_signed(dtype) else span
    span = jnp.where(high <= low, scalar(1, unsigned), span)
    span = jnp.where(beyond & (high > low), span + 1, span)
    # of all numbers of the dtype the span comes round to 0: then `rem` leaves the words as they are
    half = do.rem(jnp.broadcast_to(scalar(1 << (width // 2), unsigned), shape), span)
    multiplier = do.rem(half * half, span)
    offset = do.rem(do.rem(upper, span) * multiplier + do.rem(lower, span), span)
    return low + convert(offset, dtype)


def row(x: Array, i: int) -> Array:
    """x[i] of a static i, for keys too."""
    shape = typeof(x).shape
    zeros = (0,) * (len(shape) - 1)
    one = do.slice(x, start_indices=(i, *zeros), limit_indices=(i + 1, *shape[1:]))
    return do.squeeze(one, dimensions=(0,))


def keys_of(key: Array, n: int) -> list[Array]:
    """`n` new keys from one."""
    several = do.random_split(key, shape=(n,))
    return [row(several, i) for i in range(n)]


def pair(key: Array) -> list[Array]:
    """Two keys from one."""
    return keys_of(key, 2)


@placed
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws booleans that are True with some probability.

    Args:
        key: A random key.
        p: The probability, a floating-point number or an array of them.
        shape: The shape of the result; None takes that of `p`.
        mode: "low", or "high", which takes twice the bits for small probabilities.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of booleans.

    >>> jax.random.bernoulli(jax.random.key(0), 0.5, (3,))
    Array([False, False,  True], dtype=bool)"""
    typed, _ = wrapped(key, "bernoulli")
    if mode not in ("low", "high"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    check_arraylike("bernoulli", p)
    dtype = typeof(p).dtype
    if not is_float(dtype):
        raise TypeError(
            f"bernoulli: the probability p must have a floating dtype, got {dtype.name}"
        )
    p = parameter(p, dtype)
    shape = parameter_shape("bernoulli", shape, p)
    p = broadcast_one(p, shape)
    if mode == "high":
        coarse, fine = two_uniforms(typed, shape, dtype)
        return fine * finfo(dtype).eps < p - coarse
    return uniform_between(typed, shape, dtype, 0.0, 1.0) < p


def two_uniforms(key: Array, shape: tuple[int, ...], dtype: DType) -> tuple[Array, Array]:
    """The high and the low part of numbers with twice the bits."""
    both = uniform_between(key, (2, *shape), dtype, 0.0, 1.0)
    return tuple(row(both, i) for i in (0, 1))  # type: ignore[return-value]


def fine_uniforms(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """float32 numbers v in (0, 1/2], of 64 bits cut to the 24 after their first one, and whether
    each stands for 1 - v: what is near 1 has as many digits as what is near 0."""
    words = random_bits(key, 32, (2, *shape))
    high, low = row(words, 0), row(words, 1)
    beyond = high >= np.uint32(1 << 31)
    zero, last = np.uint32(0), np.uint32(31)
    high = jnp.where(beyond, ~high + (low == 0).astype("uint32"), high)
    low = jnp.where(beyond, zero - low, low)
    small = high == 0
    first, rest = jnp.where(small, low, high), jnp.where(small, zero, low)
    zeros = jnp.minimum(do.clz(first), last)
    rest = do.shift_right_logical(rest >> np.uint32(1), last - zeros)
    digits = (do.shift_left(first, zeros) | rest) >> np.uint32(8) | np.uint32(1 << 23)
    exponents = zeros + jnp.where(small, np.uint32(32), zero) + np.uint32(24)
    return jnp.ldexp(digits.astype("float32"), -exponents.astype("int32")), beyond


@placed
def rademacher(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws -1 or 1, equally likely.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: The dtype; None means int32 (int64 where enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.rademacher(jax.random.key(0), (3,))
    Array([-1, -1,  1], dtype=int32)"""
    d = canonicalize(int) if dtype is None else asked(dtype)
    return 2 * convert(bernoulli(key, 0.5, canonical_shape(shape)), d) - 1
