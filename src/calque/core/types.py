"""The words of annotations: what counts as an array, as a shape, as a dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np

from calque.core.arrays import Array

__all__ = [
    "ArrayLike",
    "Axes",
    "DType",
    "DTypeLike",
    "Shape",
    "ShapeLike",
    "SupportsDType",
    "SupportsShape",
]


class SupportsShape(Protocol):
    """An object with a shape and a dtype, such as a `ShapeDtypeStruct`."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...


class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


DType = np.dtype[Any]
Shape = tuple[int, ...]
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType
ShapeLike = SupportsIndex | Sequence[SupportsIndex]
Axes = SupportsIndex | Sequence[SupportsIndex]
