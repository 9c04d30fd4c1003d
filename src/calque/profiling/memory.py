"""The memory of arrays: which arrays live, who holds them, and a profile of that for `pprof`.

Arrays stand in no list, which is a reason why making one costs so little. They are found through
what the collector of garbage knows, and through the frames that are running."""

from __future__ import annotations

import gc
import gzip
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from calque.core.arrays import ArrayImpl, is_deleted
from calque.core.avals import ShapedArray, nbytes
from calque.core.source import is_internal
from calque.machine.frozen import all_objects
from calque.profiling.protobuf import data, number, numbers

# What holds others and may be unknown to the collector, as nothing in it can be in a circle.
# (Objects of their subclasses are always known.)
_PLAIN: Final = (tuple, dict)


class Held(NamedTuple):
    """An array, and who holds it, as a name and a place in a file (line 0: none)."""

    array: Any
    holder: str
    file: str = ""
    line: int = 0


def live_arrays() -> list[Any]:
    """All arrays that something holds."""
    return [h.array for h in held_arrays()]


def held_arrays() -> list[Held]:
    """Each array with one of those that hold it: a variable where there is one."""
    found: dict[int, Held] = {}
    for h in (*_in_frames(), *_in_objects()):
        if not is_deleted(h.array) and isinstance(h.array.aval, ShapedArray):
            found.setdefault(id(h.array), h)
    return list(found.values())


def _in_frames() -> Iterator[Held]:
    """Arrays in the variables of functions that are running, in modules among them."""
    mine = threading.get_ident()
    for thread, top in sys._current_frames().items():
        frame: types.FrameType | None = top
        while frame is not None:
            code = frame.f_code
            if thread != mine or not is_internal(code):
                for name, value in frame.f_locals.items():
                    for array in _inside(value):
                        yield Held(
                            array, f"{name} in {code.co_name}", code.co_filename, frame.f_lineno
                        )
            frame = frame.f_back


def _in_objects() -> Iterator[Held]:
    """Arrays in what the collector knows."""
    for module in list(sys.modules.values()):
        if issubclass(type(module), types.ModuleType):
            for name, value in list(vars(module).items()):
                for array in _unknown_inside(value):
                    holder = f"{name} of the module {module.__name__}"
                    yield Held(array, holder, getattr(module, "__file__", None) or "")
    objects = all_objects()
    for first in range(0, len(objects), _TOGETHER):
        some = objects[first : first + _TOGETHER]
        for o in some if _hold_arrays(some) else ():
            for value in gc.get_referents(o):
                for array in _unknown_inside(value):
                    yield Held(array, _kind(o))


_TOGETHER: Final = 256  # objects that are asked at once: most hold no array


def _hold_arrays(objects: Sequence[Any]) -> bool:
    """Whether any of these objects holds an array, as `_in_objects` looks for them."""
    while objects:
        held = gc.get_referents(*objects)
        kinds = list(map(type, held))
        if ArrayImpl in kinds:
            return True
        objects = [x for x, k in zip(held, kinds) if k in _PLAIN and not gc.is_tracked(x)]
    return False


def _kind(o: Any) -> str:
    t = type(o)
    return (
        f"in a {t.__name__}" if t.__module__ == "builtins" else f"in a {t.__module__}.{t.__name__}"
    )


def _unknown_inside(value: Any) -> Iterator[Any]:
    if type(value) is ArrayImpl:
        yield value
    elif type(value) in _PLAIN and not gc.is_tracked(value):
        yield from _inside(value)


def _inside(value: Any) -> Iterator[Any]:
    """Arrays in containers in containers. (`isinstance` would ask objects of others for their
    `__class__`, which may run their code.)"""
    level, seen = [value], set[int]()
    while level:
        if ArrayImpl in map(type, level):
            yield from [x for x in level if type(x) is ArrayImpl]
        containers = {id(x): x for x in level if issubclass(type(x), (tuple, list, dict))}
        level = gc.get_referents(*[x for i, x in containers.items() if i not in seen])
        seen.update(containers)


class _Tables:
    """Strings, functions and locations of a profile, each with a number."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {"": 0}
        self.places: dict[tuple[str, str, int], int] = {}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def place(self, name: str, file: str = "", line: int = 0) -> int:
        return self.places.setdefault((name, file, line), len(self.places) + 1)


def memory_profile() -> bytes:
    """The arrays that live as a compressed profile for `pprof`: how many and how many bytes, by
    type and by what holds them."""
    tables = _Tables()
    together: dict[tuple[int, int], list[int]] = {}
    for h in held_arrays():
        aval = h.array.aval
        stack = (tables.place(aval.str_short()), tables.place(h.holder, h.file, h.line))
        counts = together.setdefault(stack, [0, 0])
        counts[0] += 1
        counts[1] += nbytes(aval)
    out = [data(1, _value_type(tables, "allocations", "count"))]
    out.append(data(1, _value_type(tables, "space", "bytes")))
    for stack, counts in together.items():
        out.append(data(2, numbers(1, stack) + numbers(2, counts)))
    for (name, file, line), k in tables.places.items():
        function = number(1, k) + number(2, tables.string(name)) + number(4, tables.string(file))
        out.append(data(4, number(1, k) + data(4, number(1, k) + number(2, line))))
        out.append(data(5, function))
    out += [data(6, text) for text in tables.strings]
    out.append(number(9, time.time_ns()))
    return gzip.compress(b"".join(out))


def _value_type(tables: _Tables, kind: str, unit: str) -> bytes:
    return number(1, tables.string(kind)) + number(2, tables.string(unit))
