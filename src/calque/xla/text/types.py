"""The types of StableHLO: tensors, of fixed shape but in programs that are exported for any, and
tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import Dim
from calque.core.dtypes import ExtendedDType, float0
from calque.machine.caches import memo

_NAMES: Final = {
    "bool": "i1",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN",
    "float4_e2m1fn": "f4E2M1FN",
}


@memo("names of element types", 256)
def element_name(dtype: Any) -> str:
    """The name of an element type: f32, i1, ui8, complex<f32>.

    >>> from calque.xla.text.types import element_name
    >>> element_name(np.dtype("uint8"))
    'ui8'"""
    name = dtype.name
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("uint"):
        return f"ui{name[4:]}"
    if name.startswith("int"):
        return f"i{name[3:]}"
    raise TypeError(f"XLA has no arrays of {name}")


def is_free(size: Any) -> bool:
    """Whether the number is not known."""
    return type(size) is Dim


def is_named(size: Any) -> bool:
    """Whether this is a free size of a program that is exported for any."""
    return type(size) is Dim and size.symbols.named


@dataclass(frozen=True, slots=True)
class Tensor:
    """The type of an array."""

    shape: tuple[int, ...]
    dtype: Any

    def __str__(self) -> str:
        sizes = "".join("?x" if is_free(d) else f"{d}x" for d in self.shape)
        return f"tensor<{sizes}{element_name(self.dtype)}>"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def with_dtype(self, dtype: Any) -> Tensor:
        return Tensor(self.shape, np.dtype(dtype))

    def with_shape(self, shape: Sequence[int]) -> Tensor:
        return Tensor(tuple(shape), self.dtype)


class _TokenType:
    """The type of what only orders effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


TOKEN: Final = _TokenType()
Type = Tensor | _TokenType


def type_of(aval: ShapedArray) -> Tensor:
    """The tensor that holds values of this type: of keys their words, of float0 booleans."""
    for d in aval.shape:
        if type(d) is not int and not is_named(d):
            raise TypeError(
                f"XLA compiles programs of fixed sizes, but a program has an array of type"
                f" {aval.str_short()}: compile it for given sizes, or give `size=` where the size"
                " is found while the program runs"
            )
    if isinstance(aval.dtype, ExtendedDType):
        inner = aval.dtype.storage[0]  # type: ignore[attr-defined]
        return Tensor(aval.shape + inner.shape, inner.base)
    if aval.dtype == float0:
        return Tensor(aval.shape, np.dtype(bool))
    return Tensor(aval.shape, aval.dtype)


def signature(operands: Iterable[Type], results: Sequence[Type]) -> str:
    """(tensor<f32>, tensor<f32>) -> tensor<f32>"""
    out = ", ".join(map(str, results))
    return f"({', '.join(map(str, operands))}) -> {out if len(results) == 1 else f'({out})'}"
