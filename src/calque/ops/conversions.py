"""Numbers and NumPy arrays in another dtype, as a program of XLA converts them: NumPy's own way
depends on the processor where a float is outside of an integer type."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calque.core.dtypes import (
    COMPLEX,
    FLOATS,
    iinfo,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_signed,
)

WIDE: Final[dict[Any, Any]] = {
    **{d: np.dtype("float64") for d in FLOATS},
    COMPLEX[0]: np.dtype("complex128"),
    COMPLEX[1]: np.dtype("complex128"),
}


def wide(x: np.ndarray) -> np.ndarray:
    """A floating or complex array in float64 or complex128; integers as they are."""
    return x.astype(WIDE.get(x.dtype, x.dtype))


def from_unsigned(x: np.ndarray, dtype: Any) -> np.ndarray:
    """The low bits of uint64 numbers as integers of `dtype`."""
    if dtype.kind in "iu":
        return np.asarray(x).astype(dtype)
    small = np.asarray(x).astype(np.int64)
    bits = int(iinfo(dtype).bits) if dtype.kind != "b" else 1
    small = small & ((1 << bits) - 1)
    return np.where(
        is_signed(dtype) & (small >> (bits - 1) == 1), small - (1 << bits), small
    ).astype(dtype)


def converted(x: np.ndarray, dtype: Any) -> np.ndarray:
    """`x` in another dtype: integers wrap, floats saturate at the ends of integer types and NaN
    becomes 0."""
    if is_complex(x.dtype) and not is_complex(dtype):
        return x != 0 if dtype.kind == "b" else converted(x.real, dtype)
    if dtype.kind == "b":
        return np.asarray(wide(x) != 0)
    if is_integer(dtype):
        if is_float(x.dtype):
            return _saturated(wide(x), dtype)
        if x.dtype.kind != "b":
            wide_bits = x if x.dtype.kind == "u" else x.astype(np.int64)
            return from_unsigned(wide_bits.astype(np.uint64), dtype)
    narrow = (
        x.dtype.itemsize == dtype.itemsize == 1 and x.dtype.kind != "b"
    )  # between some of these NumPy knows no way
    return (x.astype(np.float32) if narrow else x).astype(dtype)


def _saturated(x: np.ndarray, dtype: Any) -> np.ndarray:
    info = iinfo(dtype)
    low, high = x <= float(info.min), x >= float(info.max)
    inner = np.trunc(np.where(low | high | np.isnan(x), 0, x)).astype(
        np.uint64 if info.max > 2**63 else np.int64
    )
    out = np.where(low, np.asarray(int(info.min)).astype(inner.dtype), inner)
    return np.where(high, np.asarray(int(info.max)).astype(inner.dtype), out).astype(dtype)


def constant_of(value: Any, dtype: Any) -> np.ndarray:
    """A number of Python's or NumPy's in this dtype."""
    x = np.asarray(value)
    with np.errstate(all="ignore"):
        if is_integer(dtype) and is_inexact(x.dtype) and not _is_within(x, dtype):
            return converted(x, dtype)
        return x.astype(dtype)


def _is_within(x: np.ndarray, dtype: Any) -> bool:
    """Whether this is one float within the range of an integer dtype: NumPy is quicker then."""
    info = iinfo(dtype)
    return x.ndim == 0 and x.dtype.kind == "f" and bool(info.min <= float(x) <= info.max)


def real_constant_of(name: str, value: Any, dtype: Any) -> np.ndarray:
    """As `constant_of`, of what the user calls a constant: a complex number of Python's is taken by
    complex dtypes and bools alone, but for nan, as JAX does."""
    if type(value) is complex and not is_complex(dtype) and dtype.kind != "b":
        if value != value:
            return constant_of(value.real, dtype)
        raise TypeError(
            f"{name}: the complex number {value} does not become {dtype.name}; take its real part"
        )
    return constant_of(value, dtype)


def exact_constant(name: str, value: Any, dtype: Any) -> np.ndarray:
    """As `real_constant_of`; what an integer dtype cannot hold is refused."""
    kind = dtype.kind
    if type(value) is int and kind in "iu":
        try:
            return np.asarray(value, dtype)
        except OverflowError:
            _check_range(name, value, dtype)
    if type(value) is float and is_integer(dtype):
        if value != value:
            raise ValueError(
                f"{name}: nan is no integer, and {dtype.name} cannot hold it: give a dtype of"
                " floats, or replace it, for example with jnp.nan_to_num"
            )
        _check_range(name, value, dtype)
    elif type(value) is int and not is_integer(dtype) and kind != "b":
        value = _as_float(name, value, dtype)
    return real_constant_of(name, value, dtype)


def _check_range(name: str, value: Any, dtype: Any) -> None:
    info = iinfo(dtype)
    if not info.min - 1 < value < info.max + 1:
        raise OverflowError(
            f"{name}: {_short(value)} is out of the range of {dtype.name}, which is {info.min} to"
            f" {info.max}: give a wider dtype, or convert an array, for example"
            f" jnp.array(x).astype({dtype.name!r})"
        )


def _short(value: Any) -> str:
    return str(value) if type(value) is float or abs(value) < 10**25 else f"about {value:.3e}"


def _as_float(name: str, value: int, dtype: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(
            f"{name}: an integer of {value.bit_length()} bits is out of the range of {dtype.name}:"
            " give a smaller number, or infinity"
        ) from None
