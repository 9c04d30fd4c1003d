"""Arrays as text, in the form that MLIR itself prints: dense<[1.000000e+00, 2.000000e+00]>."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calque.core.dtypes import finfo

_HEX_FROM: Final = 101  # arrays of so many elements are written as the bytes in memory


def dense(x: np.ndarray) -> str:
    """The data of a constant.

    >>> from calque.xla.text.constants import dense
    >>> dense(np.float32([1, 0.1])), dense(np.zeros(7, "int8"))
    ('dense<[1.000000e+00, 1.000000e-01]>', 'dense<0>')"""
    if x.size == 0:
        return "dense<>"
    flat = x.reshape(-1)
    if _is_splat(flat):
        return f"dense<{number(flat[0])}>"
    if x.size >= _HEX_FROM and x.dtype.kind != "b" and x.dtype.itemsize * x.size == x.nbytes:
        little = np.ascontiguousarray(x).tobytes()
        return f'dense<"0x{little.hex().upper()}">'
    return f"dense<{_nested(x)}>"


def _is_splat(flat: np.ndarray) -> bool:
    """Whether all elements are the same bits."""
    if flat.size == 1:
        return True
    width = flat.dtype.itemsize
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(-1, width)
    return bool((raw == raw[0]).all())


def _nested(x: np.ndarray) -> str:
    if x.ndim == 0:
        return number(x[()])
    return f"[{', '.join(_nested(part) for part in x)}]"


def number(v: Any) -> str:
    """An element of an array."""
    kind = v.dtype.kind
    if kind == "b":
        return "true" if v else "false"
    if kind == "c":
        return f"({_float(v.real)},{_float(v.imag)})"
    if kind in "iu" or v.dtype.name.startswith(("int", "uint")):
        return str(int(v))
    return _float(v)


def _float(v: Any) -> str:
    """Six digits where they are enough, all that matter where they are not; the bits of NaN and of
    infinities."""
    dtype, number = v.dtype, float(v)
    if np.isfinite(number):
        digits = 2 + (_mantissa_bits(dtype) + 1) * 59 // 196
        for text in (_scientific(number, 6), _plain(number, digits)):
            if text and np.asarray(float(text)).astype(dtype).tobytes() == v.tobytes():
                return text
    bits = int.from_bytes(v.tobytes(), "little")
    return f"0x{bits:0{2 * dtype.itemsize}X}"


def _mantissa_bits(dtype: Any) -> int:
    return int(finfo(dtype).nmant)


def _decimal(number: float, digits: int) -> tuple[str, int]:
    """(the first digits of |number| without zeros at the end, the power of ten of the last one).

    Rounded as LLVM does it: exactly, but that most of what is too long is cut off before."""
    numerator, denominator = abs(number).as_integer_ratio()
    power = 0
    while denominator > 1:  # n / 2 = 5 n / 10
        numerator, denominator, power = numerator * 5, denominator >> 1, power - 1
    enough = (digits * 196 + 58) // 59
    tens = max(numerator.bit_length() - enough, 0) * 59 // 196
    text, power = str(numerator // 10**tens), power + tens
    text, power = _without_zeros(text, power)
    if len(text) > digits:
        power += len(text) - digits
        rounded = int(text[:digits]) + (text[digits] >= "5")
        text, power = _without_zeros(str(rounded), power)
    return text, power


def _without_zeros(text: str, power: int) -> tuple[str, int]:
    short = text.rstrip("0") or "0"
    return short, power + len(text) - len(short)


def _sign(number: float) -> str:
    return "-" if np.signbit(number) else ""


def _scientific(number: float, digits: int) -> str:
    """1.100000e+00"""
    if number == 0:
        return f"{_sign(number)}0.000000e+00"
    text, power = _decimal(number, digits)
    exponent = power + len(text) - 1
    return f"{_sign(number)}{text[0]}.{text[1:]:0<{digits}}e{exponent:+03d}"


def _plain(number: float, digits: int) -> str:
    """0.333333343, with an exponent where that would be long; nothing where there would be no
    point in it."""
    text, power = _decimal(number, digits)
    sign, first = _sign(number), power + len(text) - 1
    if power >= 0 and (power > 3 or len(text) + power > digits):
        return f"{sign}{text[0]}.{text[1:] or '0'}E+{first}"
    if power >= 0:
        return ""
    if first >= 0:
        return f"{sign}{text[: first + 1]}.{text[first + 1 :]}"
    if -first > 3:
        return f"{sign}{text[0]}.{text[1:] or '0'}E{first}"
    return f"{sign}0.{'0' * (-first - 1)}{text}"
