"""Abstract values: what is known of an array while a function is traced. Interned, so that equality
is identity."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from calque.core.dims import Dim
from calque.core.dtypes import short_name, tangent_dtype
from calque.machine.caches import Interned
from calque.machine.once import Turns

_LIMIT: Final = 100_000
_kinds: Final[Interned[tuple[int, Any, bool], tuple[int, Any, bool]]] = Interned(
    "ranks and dtypes", "ranks and dtypes that there are"
)
_interned: Final[Interned[tuple[Any, Any, bool], ShapedArray]] = Interned(
    "types of arrays", f"{_LIMIT}, and those that live"
)
_found: Final = _interned.get  # looked up with every operation
_turns: Final = Turns()


class AbstractValue:
    """What is known of a value while a function is traced: of arrays a `ShapedArray`."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array. `ShapedArray((2,), np.dtype("float32")) is
    ShapedArray((2,), ...)`."""

    __slots__ = ("__weakref__", "dtype", "kind", "ndim", "shape", "size", "weak_type")

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    kind: tuple[
        int, Any, bool
    ]  # rank, dtype, weak type: one object for each, so that machine code compares pointers

    def __new__(cls, shape: Sequence[int], dtype: Any, weak_type: bool = False) -> ShapedArray:
        key = (
            (shape, dtype, weak_type) if type(shape) is tuple else (tuple(shape), dtype, weak_type)
        )
        self = _found(key)
        if self is None:
            self = _new(key)
        return self

    def update(self, **changes: Any) -> ShapedArray:
        return ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
        )

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The aval of tangents of such values."""
        dtype = tangent_dtype(self.dtype)
        return self if dtype is self.dtype else self.update(dtype=dtype, weak_type=False)

    to_ct_aval = at_least_vspace = to_tangent_aval  # cotangents have the same types

    def str_short(self) -> str:
        return f"{short_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"avals are immutable: cannot set {name}")

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        dtype, sizes = getattr(self.dtype, "name", self.dtype), ",".join(map(str, self.shape))
        return f"ShapedArray({dtype}[{sizes}]{weak})"

    def __reduce__(self) -> Any:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)


def _new(key: tuple[Any, Any, bool]) -> ShapedArray:
    shape, dtype, weak = key
    size = 1
    for d in shape:
        if type(d) is not int and type(d) is not Dim:
            # NumPy integers and the like hash as the ints that they equal: the aval keeps these
            plain: list[Any] = [d if type(d) is Dim else int(d) for d in shape]
            return ShapedArray(plain, dtype, weak)
        if d < 0:
            raise TypeError(f"shapes have no negative sizes, got {shape}")
        size *= d
    if type(weak) is not bool:
        return ShapedArray(shape, dtype, bool(weak))
    rank = len(shape)
    kind = (rank, dtype, weak)
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
    with _turns.taken():  # no second aval of a key that is being forgotten
        if len(_interned) >= _LIMIT:
            _trim()
        _interned.made += 1
        return _interned.setdefault(key, self)


_bare: Final = object.__new__
_put_shape, _put_dtype, _put_weak_type, _put_ndim, _put_size, _put_kind = [
    vars(ShapedArray)[name].__set__
    for name in ("shape", "dtype", "weak_type", "ndim", "size", "kind")
]


def _trim() -> None:
    """Forget avals that nobody else holds: the intern table, the list, the loop variable and the
    argument hold four references."""
    for key, aval in list(_interned.items()):
        if sys.getrefcount(aval) <= 4:
            del _interned[key]
            if sys.getrefcount(aval) > 3:  # another thread has found it meanwhile
                _interned[key] = aval


def nbytes(aval: ShapedArray) -> int:
    """Bytes of the elements; of a symbolic shape those of its hints."""
    return getattr(aval.size, "hint", aval.size) * int(aval.dtype.itemsize)
