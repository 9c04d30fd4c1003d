"""What functions of NumPy that factories make look like, and the kinds of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, SupportsIndex, TypeVar

from calque.core.arrays import Array
from calque.core.devices import Device
from calque.core.types import ArrayLike, DTypeLike
from calque.transforms.devices.sharding import Sharding
from calque.transforms.devices.specs import PartitionSpec

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

# of folds: axes of the array, or names of mapped axes
FoldAxes = SupportsIndex | str | Sequence[SupportsIndex | str]
Placement = Device | Sharding | None
OutSharding = Sharding | PartitionSpec | None


class Unary(Protocol):
    __name__: str

    def __call__(self, x: ArrayLike, /) -> Array: ...


class UnaryWithOut(Protocol):
    __name__: str

    def __call__(self, x: ArrayLike, /, out: None = None) -> Array: ...


class Binary(Protocol):
    __name__: str

    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...


class SumLike(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        axis: FoldAxes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array: ...


class NanSumLike(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        axis: FoldAxes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...


class Extreme(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        axis: FoldAxes | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...


class Truth(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        axis: FoldAxes | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...


class Position(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        axis: int | None = None,
        out: None = None,
        keepdims: bool | None = None,
    ) -> Array: ...


class Running(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array: ...


class Quantile(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        q: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: ArrayLike | None = None,
    ) -> Array: ...


class Median(Protocol):
    def __call__(
        self,
        a: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array: ...
