"""Eager `x.at[index].add(y)` and its kin as calls that machine code learns: an index is a text that
says of what it consists, and its numbers and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from calque.core.arrays import ArrayImpl
from calque.core.dtypes import is_extended, is_inexact, is_integer

NUMBER: Final = "i"  # a place, a number that differs from call to call
PLACES: Final = "a"  # an array of them
NEW: Final = "n"
REST: Final = "e"
MOST: Final = 1 << 31  # integers beyond are no int32


class IndexCall(NamedTuple):
    """An index: what it consists of, and what of it differs from call to call."""

    layout: str
    parts: Sequence[Any]


def index_of(layout: str, parts: Sequence[Any]) -> tuple[Any, ...]:
    """The index again."""
    given = iter(parts)
    return tuple([_part(word, given) for word in layout.split(",")] if layout else [])


def _part(word: str, given: Any) -> Any:
    if word in (NUMBER, PLACES):
        return next(given)
    if word in (NEW, REST):
        return None if word == NEW else ...
    return slice(*[None if n == "None" else int(n) for n in word.split(":")])


def call_of(array: Any, index: Any) -> IndexCall | None:
    """An index into an array as a call; None where it holds something that calls are not learned
    with, or where a place is asked for in nothing, which is refused only if it is known."""
    if type(array) is not ArrayImpl or array._extra is not None or is_extended(array.dtype):
        return None
    if 0 in array.shape:
        return None
    words: list[str] = []
    parts: list[Any] = []
    for p in index if type(index) is tuple else (index,):
        kind = type(p)
        if kind is slice:
            ends = (p.start, p.stop, p.step)
            if any(n is not None and type(n) is not int for n in ends):
                return None
            words.append(f"{p.start}:{p.stop}:{p.step}")
        elif (kind is int and -MOST <= p < MOST) or (kind is ArrayImpl and is_integer(p.dtype)):
            words.append(NUMBER if kind is int else PLACES)
            parts.append(p)
        elif p is None or p is Ellipsis:
            words.append(NEW if p is None else REST)
        else:
            return None
    return IndexCall(",".join(words), parts)


def suits(array: Any, values: Any) -> bool:
    """Are these values that an update takes as they are, without a word about their dtype?"""
    kind, dtype = type(values), array.dtype
    if kind is ArrayImpl:
        return bool(values.dtype == dtype)
    if kind is int:
        return -MOST <= values < MOST and (is_integer(dtype) or is_inexact(dtype))
    return kind is float and is_inexact(dtype)
