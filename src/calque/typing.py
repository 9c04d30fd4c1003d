"""Types for annotations: what counts as an array, as a shape, as a dtype."""

from calque.core.arrays import Array
from calque.core.types import ArrayLike, DType, DTypeLike, Shape, ShapeLike

__all__ = ["Array", "ArrayLike", "DType", "DTypeLike", "Shape", "ShapeLike"]
