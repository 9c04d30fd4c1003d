"""Abstract values: what is known of an array while a function is traced. Interned, so that equality
is identity."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from calque.core.dims import Dim, as_size
from calque.core.dtypes import short_name, tangent_dtype
from calque.machine.caches import Interned
from calque.machine.once import Turns
from calque.machine.state import Hook, process

_LIMIT: Final = 100_000
ADDRESSABLE: Final = 1 << 47  # bytes of a process
_Kind = tuple[Any, ...]
_kinds: Final[Interned[_Kind, _Kind]] = Interned(
    "ranks and dtypes", "ranks and dtypes that there are"
)
_interned: Final[Interned[tuple[Any, ...], ShapedArray]] = Interned(
    "types of arrays", f"{_LIMIT}, and those that live"
)
_found: Final = _interned.get  # looked up with every operation
_turns: Final = Turns()


class Place(Protocol):
    """What a type says of where values are along the axes of a mesh; None in a type that says
    nothing of it. See `transforms/devices/types.py`."""

    def cotangent(self) -> Place: ...

    def text(self, shape: Sequence[Any]) -> str: ...

    def of_rank(self, rank: int) -> Place | None: ...


def _no_places(shape: tuple[Any, ...], sharding: Any, manual: Any) -> Place | None:
    raise RuntimeError("nothing knows the shardings of types: import calque")


# the place that a sharding and a ManualAxisType give to a type of this shape
stated: Final[Hook[Callable[[tuple[Any, ...], Any, Any], Place | None]]] = process.hook(
    "places in types", _no_places
)


class AbstractValue:
    """What is known of a value while a function is traced: of arrays a `ShapedArray`.

    >>> isinstance(jax.typeof(1.0), type(jax.typeof(1.0)).__base__)
    True"""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """The type of an array: shape, dtype and weak type. There is one object for equal ones.

    Args:
        shape: The size of each dimension.
        dtype: The dtype.
        weak_type: Whether the dtype gives way to that of another operand, as a Python number's
            does.
        place: Where values are, as the library knows it; None says nothing.
        sharding: Where values are, as a sharding, in place of `place`.
        manual_axis_type: How values relate to the axes of `shard_map`, in place of `place`.
        memory_space: Accepted: there is one memory.

    >>> jax.typeof(jnp.ones((2, 3)))
    ShapedArray(float32[2,3])"""

    __slots__ = ("__weakref__", "dtype", "kind", "ndim", "place", "shape", "size", "weak_type")

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    # rank, dtype, weak type, place: one object for each, so that machine code compares pointers
    kind: _Kind
    place: Place | None

    def __new__(
        cls,
        shape: Sequence[int],
        dtype: Any,
        weak_type: bool = False,
        place: Place | None = None,
        *,
        sharding: Any = None,
        manual_axis_type: Any = None,
        memory_space: Any = None,
    ) -> ShapedArray:
        if sharding is not None or manual_axis_type is not None:
            place = stated.call(tuple(shape), sharding, manual_axis_type)
        key: tuple[Any, ...] = (
            (shape, dtype, weak_type) if type(shape) is tuple else (tuple(shape), dtype, weak_type)
        )
        if place is not None:
            key = (*key, place)
        self = _found(key)
        if self is None:
            self = _new(key)
        return self

    def update(
        self,
        shape: Any = ...,
        dtype: Any = ...,
        weak_type: Any = ...,
        place: Any = ...,
        sharding: Any = ...,
        manual_axis_type: Any = ...,
        memory_space: Any = None,
    ) -> ShapedArray:
        """Gives the type with something changed; of another rank it says not where dimensions are.

        Args:
            shape: Another shape.
            dtype: Another dtype.
            weak_type: Another weak type.
            place: Another place.
            sharding: Another sharding.
            manual_axis_type: Another relation to the axes of `shard_map`.
            memory_space: Accepted: there is one memory.

        Returns:
            A ShapedArray. What is left out stays."""
        if shape is ...:
            shape = self.shape
        if place is ...:
            place = self.place
            if place is not None and len(shape) != self.ndim:
                place = place.of_rank(len(shape))
        if sharding is not ... or manual_axis_type is not ...:
            sharding = self.sharding if sharding is ... else sharding
            manual = self.mat if manual_axis_type is ... else manual_axis_type
            place = stated.call(shape, sharding, manual)
        return ShapedArray(
            shape,
            self.dtype if dtype is ... else dtype,
            self.weak_type if weak_type is ... else weak_type,
            place,
        )

    def strip_weak_type(self) -> ShapedArray:
        """Gives the type that is not weak.

        Returns:
            A ShapedArray."""
        return ShapedArray(self.shape, self.dtype, False, self.place) if self.weak_type else self

    def without_place(self) -> ShapedArray:
        """Gives the type that says nothing of where values are.

        Returns:
            A ShapedArray."""
        return self if self.place is None else ShapedArray(self.shape, self.dtype, self.weak_type)

    def to_tangent_aval(self) -> ShapedArray:
        """Gives the type of tangents of such values.

        Returns:
            A ShapedArray."""
        dtype = tangent_dtype(self.dtype)
        return self if dtype is self.dtype else self.update(dtype=dtype, weak_type=False)

    at_least_vspace = to_tangent_aval

    def to_ct_aval(self) -> ShapedArray:
        """Gives the type of cotangents of such values.

        Returns:
            A ShapedArray."""
        aval = self.to_tangent_aval()
        return aval if aval.place is None else aval.update(place=aval.place.cotangent())

    def str_short(self, short_dtypes: bool = True, mesh_axis_types: bool = False) -> str:
        """Gives the type as short text: f32[2,3].

        Args:
            short_dtypes: Whether the dtype is abbreviated.
            mesh_axis_types: Whether JAX would show the types of mesh axes; it changes nothing here.

        Returns:
            A string."""
        name = short_name(self.dtype) if short_dtypes else getattr(self.dtype, "name", self.dtype)
        if self.place is not None:
            return f"{name}{self.place.text(self.shape)}"
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"avals are immutable: cannot set {name}")

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short(False)}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(False)}{weak})"

    def __reduce__(self) -> Any:
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.place)

    if TYPE_CHECKING:  # given by what knows shardings

        @property
        def sharding(self) -> Any: ...

        @property
        def mat(self) -> Any: ...


def _new(key: tuple[Any, ...]) -> ShapedArray:
    shape, dtype, weak, place = key if len(key) == 4 else (*key, None)
    size, long = 1, 0
    for d in shape:
        if type(d) is not int and type(d) is not Dim:
            # NumPy integers and the like hash as the ints that they equal: the aval keeps these
            plain: list[Any] = [as_size(d, "a size of a shape") for d in shape]
            return ShapedArray(plain, dtype, weak, place)
        if d < 0:
            raise TypeError(f"shapes have no negative sizes, got {shape}")
        if type(d) is int and d > ADDRESSABLE:
            long = d
        size *= d
    if long or (type(size) is int and size > ADDRESSABLE):
        _check_counts(shape, dtype, max(size, long))
    if type(weak) is not bool:
        return ShapedArray(shape, dtype, bool(weak), place)
    if isinstance(dtype, (type, str)):  # as users write dtypes
        return ShapedArray(shape, np.dtype(dtype), weak, place)
    rank = len(shape)
    kind: _Kind = (rank, dtype, weak) if place is None else (rank, dtype, weak, place)
    known = _kinds.get(kind)
    if known is None:
        _kinds.made += 1
        known = _kinds.setdefault(kind, kind)
    self: ShapedArray = _bare(ShapedArray)
    _put_shape(self, shape)
    _put_dtype(self, dtype)
    _put_weak_type(self, weak)
    _put_ndim(self, rank)
    _put_size(self, size)
    _put_kind(self, known)
    _put_place(self, place)
    with _turns.taken():  # no second aval of a key that is being forgotten
        if len(_interned) >= _LIMIT:
            _trim()
        _interned.made += 1
        return _interned.setdefault(key, self)


def _check_counts(shape: tuple[Any, ...], dtype: Any, size: int) -> None:
    """Refuse an array whose bytes no 64-bit number counts: what a program never stores may have
    more elements than memory, but no more than can be counted."""
    dtype = np.dtype(dtype) if isinstance(dtype, (type, str)) else dtype
    width = getattr(dtype, "itemsize", 1)
    if size * (width if type(width) is int else 1) >= 1 << 63:
        sizes = ",".join(map(str, shape))
        raise MemoryError(
            f"an array of type {short_name(dtype)}[{sizes}] has {size * width} bytes, more than a"
            " process can address: make its sizes smaller"
        )


_bare: Final = object.__new__
_put_shape, _put_dtype, _put_weak_type, _put_ndim, _put_size, _put_kind, _put_place = [
    vars(ShapedArray)[name].__set__
    for name in ("shape", "dtype", "weak_type", "ndim", "size", "kind", "place")
]


def _trim() -> None:
    """Forget avals that nobody else holds. No variable does here: from 3.14 on a variable may lend
    its reference to a call, which then counts one less."""
    alone = 2  # the table, and the argument
    for key in list(_interned):
        if sys.getrefcount(_interned[key]) <= alone:
            forgotten = [_interned.pop(key)]
            if sys.getrefcount(forgotten[0]) > alone:  # another thread has found it meanwhile
                _interned[key] = forgotten[0]


def nbytes(aval: ShapedArray) -> int:
    """Bytes of the elements; of a symbolic shape those of its hints. MemoryError where no process
    can address so many."""
    n: int = getattr(aval.size, "hint", aval.size) * int(aval.dtype.itemsize)
    if n > ADDRESSABLE:
        raise MemoryError(
            f"an array of type {aval.str_short()} has {n} bytes, more than a process can address"
        )
    return n
