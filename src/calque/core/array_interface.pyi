"""What arrays offer, for type checkers: the methods that the library attaches to arrays and to
tracers (`numpy/methods/attaching.py`). A test holds this declaration equal to what is attached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

import numpy as np

if TYPE_CHECKING:
    from calque.core.arrays import Array
    from calque.core.avals import ShapedArray
    from calque.core.devices import Device
    from calque.core.types import ArrayLike, Axes, DTypeLike, Shape, ShapeLike

class Updates:
    """`x.at[index]`: reads and updates of places; every update gives a new array."""

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: ArrayLike | None = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives `x[index]`, with a choice of what places outside give."""
    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with a function applied to the places, as often as these are named."""
    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with values written to the places."""
    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with values added at the places, as often as these are named."""
    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with values subtracted at the places."""
    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with the places multiplied by values."""
    def mul(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with the places multiplied by values."""
    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with the smaller of element and value at the places."""
    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Gives the array with the larger of element and value at the places."""
    def divide(self, values: ArrayLike, **options: Any) -> Array:
        """Gives the array with the places divided by values."""
    def power(self, values: ArrayLike, **options: Any) -> Array:
        """Gives the array with the places raised to a power."""

class IndexForUpdates:
    """`x.at`."""

    def __getitem__(self, index: Any) -> Updates: ...

class ArrayInterface:
    """Properties, methods and operators of arrays."""

    __array_priority__: ClassVar[int]
    __hash__: ClassVar[None]  # type: ignore[assignment]

    # ------------------------------------------------------------ what it is

    @property
    def aval(self) -> ShapedArray:
        """The type: a ShapedArray of shape, dtype and weak type."""
    @property
    def shape(self) -> Shape:
        """The size of each axis, a tuple of ints."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements, a NumPy dtype."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements: the product of the sizes."""
    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to that of another operand, as a Python number's does."""
    @property
    def T(self) -> Array:
        """The array with its axes in opposite order; a matrix transposed."""
    @property
    def mT(self) -> Array:
        """The last two axes exchanged: every matrix of a batch transposed."""
    @property
    def real(self) -> Array:
        """The real part; of real numbers the array itself."""
    @property
    def imag(self) -> Array:
        """The imaginary part; of real numbers zeros."""
    @property
    def at(self) -> IndexForUpdates:
        """Updates that give a new array: `x.at[i].set(y)`, `.add(y)`, `.max(y)`, ..."""

    # ------------------------------------------------------------ operators

    def __add__(self, other: ArrayLike, /) -> Array: ...
    def __radd__(self, other: ArrayLike, /) -> Array: ...
    def __sub__(self, other: ArrayLike, /) -> Array: ...
    def __rsub__(self, other: ArrayLike, /) -> Array: ...
    def __mul__(self, other: ArrayLike, /) -> Array: ...
    def __rmul__(self, other: ArrayLike, /) -> Array: ...
    def __truediv__(self, other: ArrayLike, /) -> Array: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Array: ...
    def __floordiv__(self, other: ArrayLike, /) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...
    def __mod__(self, other: ArrayLike, /) -> Array: ...
    def __rmod__(self, other: ArrayLike, /) -> Array: ...
    def __pow__(self, other: ArrayLike, /) -> Array: ...
    def __rpow__(self, other: ArrayLike, /) -> Array: ...
    def __matmul__(self, other: ArrayLike, /) -> Array: ...
    def __rmatmul__(self, other: ArrayLike, /) -> Array: ...
    def __and__(self, other: ArrayLike, /) -> Array: ...
    def __rand__(self, other: ArrayLike, /) -> Array: ...
    def __or__(self, other: ArrayLike, /) -> Array: ...
    def __ror__(self, other: ArrayLike, /) -> Array: ...
    def __xor__(self, other: ArrayLike, /) -> Array: ...
    def __rxor__(self, other: ArrayLike, /) -> Array: ...
    def __lshift__(self, other: ArrayLike, /) -> Array: ...
    def __rlshift__(self, other: ArrayLike, /) -> Array: ...
    def __rshift__(self, other: ArrayLike, /) -> Array: ...
    def __rrshift__(self, other: ArrayLike, /) -> Array: ...
    def __divmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
    def __rdivmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
    def __eq__(self, other: ArrayLike, /) -> Array: ...  # type: ignore[override]
    def __ne__(self, other: ArrayLike, /) -> Array: ...  # type: ignore[override]
    def __lt__(self, other: ArrayLike, /) -> Array: ...
    def __le__(self, other: ArrayLike, /) -> Array: ...
    def __gt__(self, other: ArrayLike, /) -> Array: ...
    def __ge__(self, other: ArrayLike, /) -> Array: ...
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...

    # ------------------------------------------------------------ Python's protocols

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __contains__(self, value: ArrayLike) -> bool: ...
    def __getitem__(self, index: Any) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __copy__(self) -> Array: ...
    def __deepcopy__(self, memo: Any) -> Array: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

    # ------------------------------------------------------------ folds

    def sum(
        self,
        axis: Any = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The sum of the elements, over all axes or some."""
    def prod(
        self,
        axis: Any = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The product of the elements, over all axes or some."""
    def max(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The largest element, over all axes or some; nan if there is one."""
    def min(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The smallest element, over all axes or some; nan if there is one."""
    def mean(
        self,
        axis: Any = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """The arithmetic mean, over all axes or some."""
    def var(
        self,
        axis: Any = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """The variance, over all axes or some: the mean of the squared distances from the mean."""
    def std(
        self,
        axis: Any = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """The standard deviation, over all axes or some: the square root of `var`."""
    def all(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Tells whether all elements are true, over all axes or some."""
    def any(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Tells whether any element is true, over all axes or some."""
    def argmax(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """The position of the largest element."""
    def argmin(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """The position of the smallest element."""
    def cumsum(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The running sum along an axis: each element with all before it."""
    def cumprod(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The running product along an axis: each element with all before it."""
    def ptp(self, axis: Axes | None = None, out: None = None, keepdims: bool = False) -> Array:
        """The distance from the smallest to the largest element, over all axes or some."""

    # ------------------------------------------------------------ products, diagonals

    def dot(
        self,
        b: ArrayLike,
        *,
        precision: Any = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: Any = None,
    ) -> Array:
        """The dot product: for vectors the sum of products, for matrices the matrix product."""
    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """The sum of a diagonal."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """A diagonal of matrices."""

    # ------------------------------------------------------------ shapes, dtypes, order

    def astype(self, dtype: DTypeLike | None, copy: bool = False, device: Any = None) -> Array:
        """Gives the values in another dtype."""
    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """Gives the same bytes as elements of another dtype."""
    def copy(self) -> Array:
        """Gives a copy, in memory of its own."""
    def reshape(
        self,
        *shape: ShapeLike,
        order: str = "C",
        copy: bool | None = None,
        out_sharding: Any = None,
    ) -> Array:
        """Gives the same elements in another shape."""
    def transpose(self, *axes: Axes | None) -> Array:
        """Gives the array with its axes in another order."""
    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """An array with two axes exchanged."""
    def squeeze(self, axis: Axes | None = None) -> Array:
        """An array without axes of size 1."""
    def ravel(self, order: str = "C", *, out_sharding: Any = None) -> Array:
        """All elements of an array along one axis."""
    def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
        """All elements of an array along one axis."""
    def repeat(
        self,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: Any = None,
    ) -> Array:
        """Each element several times in a row."""
    def clip(self, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """Values brought into an interval."""
    def round(self, decimals: int = 0, out: None = None) -> Array:
        """Numbers rounded to some decimals; halves go to the even digit."""
    def conj(self, /) -> Array:
        """The complex conjugate: the imaginary part with the opposite sign."""
    def conjugate(self, /) -> Array:
        """The complex conjugate: the imaginary part with the opposite sign."""
    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """Elements along an axis, by their positions."""
    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """The positions that put the elements in ascending order along an axis."""
    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """The elements in ascending order along an axis."""
    def searchsorted(
        self,
        v: ArrayLike,
        side: str = "left",
        sorter: ArrayLike | None = None,
        *,
        method: str = "scan",
    ) -> Array:
        """Where values would stand in a sorted array."""
    @property
    def flat(self) -> Any:
        """Would iterate over all elements, and raises NotImplementedError: use `x.ravel()`."""
    def compress(
        self,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike | None = 0,
    ) -> Array:
        """Gives the slices along an axis for which a condition holds."""
    def choose(
        self, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
    ) -> Array:
        """Picks each element from one of several arrays; this array says from which."""
    def argpartition(self, kth: int, axis: int = -1) -> Array:
        """Finds positions that bring the `kth` smallest element to its place."""
    def byteswap(self, inplace: bool = False) -> Array:
        """Gives the values whose bytes stand in the opposite order."""
    def nonzero(
        self,
        *,
        size: int | None = None,
        fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
    ) -> tuple[Array, ...]:
        """Finds the positions of the elements that are not zero."""

    # ------------------------------------------------------------ memory

    def item(self, *args: SupportsIndex) -> Any:
        """Gives an element as a Python number."""
    def tolist(self) -> Any:
        """Gives the elements as nested lists of Python numbers."""
    def tobytes(self, order: str = "C") -> bytes:
        """Gives the bytes of the elements."""
    def block_until_ready(self) -> Array:
        """Waits until the array is computed. Only programs on XLA return before they are done."""
    def copy_to_host_async(self) -> None:
        """Begins to copy the array to the host. Its memory is the host's already."""
    def delete(self) -> None:
        """Gives the memory back at once. The array must not be used any more."""
    def is_deleted(self) -> bool:
        """Tells whether the memory of this array was given away, or back."""
    def is_ready(self) -> bool:
        """Tells whether the array is computed. That of a program on XLA may not be, yet."""
    def unsafe_buffer_pointer(self) -> int:
        """Gives the address of the first element."""
    def on_device_size_in_bytes(self) -> int:
        """Gives the bytes that the elements take."""

    # ------------------------------------------------------------ devices

    @property
    def format(self) -> Any:
        """How the array lies in memory, and where."""

    @property
    def device(self) -> Any:
        """The device of the array, or its sharding if it lives on several."""
    @property
    def sharding(self) -> Any:
        """How an array is laid out over devices."""
    @property
    def committed(self) -> bool:
        """Whether the array was placed where it is."""
    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process sees all devices of the array. There is one process: True."""
    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
    @property
    def addressable_shards(self) -> Sequence[Any]:
        """The parts of an array, one for each device of its sharding."""
    @property
    def global_shards(self) -> Sequence[Any]:
        """The parts of an array, one for each device of its sharding."""
    def devices(self) -> set[Device]:
        """The set of devices that the array lives on."""
    def addressable_data(self, index: int) -> Array:
        """Gives the part of the array that one device holds."""
    def to_device(self, device: Any, *, stream: Any = None) -> Array:
        """Gives the array on a device, or with a sharding."""
