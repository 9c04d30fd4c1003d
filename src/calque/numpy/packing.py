"""Bits in bytes: packbits, unpackbits."""

from __future__ import annotations

from typing import Final

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import is_integer
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.numpy import reductions
from calque.numpy.creation import zeros
from calque.numpy.joining import concatenate
from calque.numpy.promotion import array_of, canonical_axis, convert
from calque.numpy.shaping import moveaxis, ravel, reshape

__all__ = ["packbits", "unpackbits"]

_SHIFTS: Final = {
    "big": np.arange(7, -1, -1, dtype=np.uint8),
    "little": np.arange(8, dtype=np.uint8),
}


def _shifts(name: str, bitorder: str) -> np.ndarray:
    try:
        return _SHIFTS[bitorder]
    except KeyError:
        raise ValueError(
            f"'order' must be either 'little' or 'big': jnp.{name} got bitorder={bitorder!r}"
        ) from None


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Bits packed into bytes, eight to each.

    Args:
        a: integers or bools; anything but 0 is a set bit.
        axis: the axis to pack along, whose end is filled with zeros; None packs the flattened
            array.
        bitorder: "big" puts the first bit highest in the byte, "little" lowest.
    Returns:
        An array of uint8.

    >>> jnp.packbits(jnp.array([0, 0, 0, 0, 0, 1, 0, 1]))
    Array([5], dtype=uint8)"""
    a = array_of("packbits", a)
    if not is_integer(a.dtype) and a.dtype != np.dtype(bool):
        raise TypeError(
            f"Expected an input array of integer or boolean data type, got {a.dtype.name}"
        )
    shifts = _shifts("packbits", bitorder)
    x, k = (ravel(a), 0) if axis is None else (a, canonical_axis(axis, a.ndim))
    bits = moveaxis(convert(x != 0, np.dtype("uint8")), k, -1)
    rest = -bits.shape[-1] % 8
    if rest:
        bits = concatenate([bits, zeros((*bits.shape[:-1], rest), np.uint8)], axis=-1)
    bits = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    weights = np.left_shift(np.uint8(1), shifts)
    packed = reductions.sum(bits * weights, axis=-1, dtype=np.uint8)
    return moveaxis(packed, -1, k)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Bytes taken apart into bits.

    Args:
        a: an array of uint8.
        axis: the axis to unpack along; None unpacks the flattened array.
        count: how many bits to return; if negative, how many to leave out at the end. None returns
            all.
        bitorder: "big" takes the highest bit of a byte first, "little" the lowest.
    Returns:
        Zeros and ones, as uint8.

    >>> jnp.unpackbits(jnp.array([5], jnp.uint8))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)"""
    a = array_of("unpackbits", a)
    if a.dtype != np.dtype("uint8"):
        raise TypeError(f"Expected an input array of unsigned byte data type, got {a.dtype.name}")
    shifts = _shifts("unpackbits", bitorder)
    x, k = (ravel(a), 0) if axis is None else (a, canonical_axis(axis, a.ndim))
    x = moveaxis(x, k, -1)
    wide = do.broadcast_in_dim(x, shape=(*x.shape, 8), broadcast_dimensions=tuple(range(x.ndim)))
    bits = (wide >> shifts) & np.uint8(1)
    bits = reshape(bits, (*x.shape[:-1], x.shape[-1] * 8))
    if count is not None:
        count = whole(count, "unpackbits: count")
        if count > bits.shape[-1]:
            bits = concatenate(
                [bits, zeros((*bits.shape[:-1], count - bits.shape[-1]), np.uint8)], axis=-1
            )
        bits = bits[..., :count]
    return moveaxis(bits, -1, k)
