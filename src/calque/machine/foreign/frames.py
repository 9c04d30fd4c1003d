"""Frames: what a foreign function is called with, made of NumPy arrays and attributes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import c_int, c_void_p
from typing import Any, Final

import numpy as np

from calque.machine.foreign import structs

_WIDE: Final[dict[type, str]] = {
    bool: "bool",
    int: "int64",
    float: "float64",
}
_ALIGNED: Final = 64
_FRAME_SIZE: Final = structs.CallFrame.future.offset


class Kept:
    """Records of C, with what they point to."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def at(self, record: Any) -> int:
        """The address of a record, which lives as long as this does."""
        self._kept.append(record)
        return ctypes.addressof(record)

    def row(self, kind: Any, values: Sequence[Any]) -> int | None:
        """The address of values side by side."""
        return self.at((kind * len(values))(*values)) if values else None

    def data(self, x: np.ndarray) -> int:
        """The address of the elements of an array."""
        self._kept.append(x)
        return int(x.ctypes.data)


def data_type(dtype: Any, what: str) -> int:
    """The number of a dtype in the interface."""
    number = structs.DATA_TYPES.get(str(dtype))
    if number is None:
        raise TypeError(f"{what}: foreign functions do not know the dtype {dtype}")
    return number


def empty_aligned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An array whose elements are aligned as XLA aligns them, without values."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(size + _ALIGNED, np.uint8)
    start = -raw.ctypes.data % _ALIGNED
    return raw[start : start + size].view(dtype).reshape(shape)


def laid_out(x: np.ndarray, order: Sequence[int], *, own: bool = False) -> np.ndarray:
    """The elements of an array in this order of its axes, the slowest first, one after the other
    and aligned; with `own` in memory that nobody else has."""
    turned = x.transpose(order)
    if turned.flags.c_contiguous and turned.ctypes.data % _ALIGNED == 0 and not own:
        return turned
    made = empty_aligned(turned.shape, turned.dtype)
    made[...] = turned
    return made


def _buffer(kept: Kept, elements: np.ndarray, shape: Sequence[int], what: str) -> int:
    return kept.at(
        structs.made(
            structs.Buffer,
            dtype=data_type(elements.dtype, what),
            data=kept.data(elements),
            rank=len(shape),
            dims=kept.row(ctypes.c_int64, shape),
        )
    )


def buffers(kept: Kept, arrays: Sequence[tuple[np.ndarray, Sequence[int]]], what: str) -> Any:
    """Arguments or results: the elements of each and the shape that the function is told."""
    found = [_buffer(kept, x, shape, f"{what} {i}") for i, (x, shape) in enumerate(arrays)]
    return structs.made(
        structs.Values,
        size=len(found),
        types=kept.row(c_int, [structs.BUFFER] * len(found)),
        values=kept.row(c_void_p, found),
    )


# ---------------------------------------------------------------- attributes


def _span(kept: Kept, text: bytes) -> Any:
    return structs.ByteSpan(kept.at(ctypes.create_string_buffer(text)), len(text))


def _value(kept: Kept, name: str, x: Any) -> tuple[int, int]:
    """The kind of an attribute, and the address of its value."""
    if isinstance(x, (str, bytes)):
        return structs.STRING, kept.at(_span(kept, x.encode() if isinstance(x, str) else x))
    if isinstance(x, Mapping):
        return structs.DICTIONARY, kept.at(attributes(kept, x))
    if type(x) in _WIDE or isinstance(x, np.generic):
        elements = np.array(x, _WIDE.get(type(x)))  # an own copy
        number = data_type(elements.dtype, f"attribute {name!r}")
        return structs.SCALAR, kept.at(structs.Scalar(number, kept.data(elements)))
    if not isinstance(x, np.ndarray):
        raise TypeError(
            f"attribute {name!r} of a foreign function is a {type(x).__name__}: numbers, texts,"
            " NumPy arrays and dicts of these can be attributes"
        )
    if x.ndim > 1:
        raise ValueError(
            f"attribute {name!r} of a foreign function is an array of {x.ndim} dimensions: arrays"
            " of one dimension can be attributes, others are passed as arguments"
        )
    elements = np.array(x).reshape(-1)
    number = data_type(elements.dtype, f"attribute {name!r}")
    return structs.ARRAY, kept.at(structs.Array(number, elements.size, kept.data(elements)))


def attributes(kept: Kept, values: Mapping[str, Any]) -> Any:
    """Attributes, in the order of their names."""
    names = sorted(values)
    found = [_value(kept, n, values[n]) for n in names]
    return structs.made(
        structs.Attributes,
        size=len(names),
        types=kept.row(c_int, [kind for kind, _ in found]),
        names=kept.row(c_void_p, [kept.at(_span(kept, n.encode())) for n in names]),
        values=kept.row(c_void_p, [address for _, address in found]),
    )


def frame(api: int, ctx: int, stage: str, args: Any, rets: Any, attrs: Any) -> Any:
    """The frame of a call."""
    return structs.made(
        structs.CallFrame,
        struct_size=_FRAME_SIZE,
        api=api,
        ctx=ctx,
        stage=structs.STAGES.index(stage),
        args=args,
        rets=rets,
        attrs=attrs,
    )
