"""Which random keys have been used up.

A `KeyCell` remembers which elements of an array of keys are used up; arrays and variables that hold
the same keys are views of one cell. `calque_debug_key_reuse` and the analysis of programs
(`transforms.functions.key_reuse`) speak of keys in these terms."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.dtypes import is_extended
from calque.core.errors import KeyReuseError
from calque.machine.caches import Table
from calque.machine.call.arrays import ArrayImpl

MOST: Final = 100_000  # arrays of keys that are remembered
WORDS: Final = (2, 4)  # the words of a raw key


def is_key(aval: Any) -> bool:
    """Whether values of this type are typed keys."""
    return is_extended(getattr(aval, "dtype", None))


def is_tracked(aval: Any) -> bool:
    """Whether values of this type may be keys, typed or raw."""
    if is_key(aval):
        return True
    dtype = getattr(aval, "dtype", None)
    return dtype == np.uint32 and len(aval.shape) > 0 and aval.shape[-1] in WORDS


def shape_of(aval: Any) -> tuple[int, ...]:
    """The shape of the array of keys; of free sizes (), as if they were one key."""
    shape = aval.shape if is_key(aval) else aval.shape[:-1]
    return tuple(shape) if all(type(n) is int for n in shape) else ()


class KeyCell:
    """Keys, which of them are used up, and how and where that was done last."""

    __slots__ = ("how", "used", "where")

    def __init__(self, shape: tuple[int, ...], used: Any = False):
        self.used = np.broadcast_to(np.asarray(used, bool), shape).copy()
        self.how, self.where = "", ""


class Keys(NamedTuple):
    """A view of a cell: the place in it of each element. None: all elements, in no known order."""

    cell: KeyCell
    places: np.ndarray | None

    @property
    def used(self) -> np.ndarray:
        """Which elements are used up."""
        if self.places is None:
            return np.asarray(self.cell.used.any())
        return np.asarray(self.cell.used.reshape(-1)[self.places])

    def use(self, mask: Any, how: str, where: str) -> bool:
        """Use up the elements in the mask. False: one of them has been used before."""
        if self.places is None or not _fits(mask, self.places.shape):
            places: Any = slice(None)
        else:
            places = self.places[np.broadcast_to(mask, self.places.shape)]
        flat = self.cell.used.reshape(-1)
        if flat[places].any():
            return False
        flat[places] = True
        if np.any(mask):
            self.cell.how, self.cell.where = how, where
        return True

    def seen_as(self, shape: tuple[int, ...]) -> Keys:
        """The same keys in an array of this shape."""
        places = self.places
        if places is None or places.shape == shape:
            return self
        if places.size == np.prod(shape):
            return Keys(self.cell, places.reshape(shape))
        return Keys(self.cell, np.broadcast_to(places, shape) if _fits(places, shape) else None)


def _fits(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether x can be broadcast to the shape."""
    try:
        return np.broadcast_shapes(np.shape(x), shape) == shape
    except ValueError:
        return False


def new(aval: Any, used: Any = False) -> Keys:
    """Keys of their own."""
    shape = shape_of(aval)
    if np.ndim(used) and np.shape(used) != shape:
        used = np.any(used)
    cell = KeyCell(shape, used)
    return Keys(cell, np.arange(cell.used.size).reshape(shape))


def reused(beginning: str, keys: Keys, how: str, where: str) -> KeyReuseError:
    """The error of a key that is used a second time."""
    cell = keys.cell
    before = f"{cell.how} used it at {cell.where}" if cell.how else "it was used up before"
    return KeyReuseError(
        f"{beginning} A random key is reused: {before}, and now {how} at {where}. The same key"
        " gives the same numbers. Split it first, key, sub = random.split(key), and use each part"
        " once; random.clone(key) says that reuse is meant."
    )


# ---------------------------------------------------------------- arrays


class _Remembered(NamedTuple):
    """An array of keys, kept so that its address stays its own."""

    array: Any
    keys: Keys


_arrays: Final[Table[int, _Remembered]] = Table("random keys that are used up", MOST)


def keys_of(array: Any, aval: Any) -> Keys:
    """The keys in an array, remembered from now on."""
    known = _arrays.find(id(array))
    if known is None:
        known = _Remembered(array, new(aval))
        _arrays[id(array)] = known
    return known.keys


def remember(array: Any, keys: Keys) -> None:
    """The array holds these keys."""
    _arrays[id(array)] = _Remembered(array, keys)


def is_used(array: Any) -> bool:
    """Whether one of the keys in the array is known to be used up."""
    known = _arrays.get(id(array))
    return known is not None and bool(known.keys.used.any())


setattr(ArrayImpl, "_consumed", property(is_used))  # noqa: B010 (libraries ask under this name)
