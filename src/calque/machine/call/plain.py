"""The call path in plain Python, for interpreters whose structs machine code does not know: every
call asks Python, and programs are run through ctypes. What `entries` offers, without
entries."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.machine.driver.interpreter import DONATES, Header, calque_run
from calque.machine.objects.plain import (
    DELETED,
    Array,
    Block,
    check,
    delete_array,
    make,
    move,
    new_array,
)
from calque.machine.state import ProcessValue, process

_epoch: Final[ProcessValue[int]] = process.value("epoch of plain calls", 0)


class _Callable:
    """A function that asks Python at every call; as a method it binds."""

    def __init__(self, miss: Callable[[tuple[Any, ...], dict[str, Any]], Any], /) -> None:
        if not callable(miss):
            raise TypeError("the argument must be callable")
        self._miss = miss

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._miss(args, kwargs)

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


class Jitted(_Callable):
    """A function that runs a compiled program."""


Jitted.__name__ = Jitted.__qualname__ = "PjitFunction"  # by which libraries know them


class OpFunction(_Callable):
    """An operator."""


class EntryImpl:
    """Stands for the type of entries; there are none."""


class PythonProgram:
    """Entries are for machine code: see `functions.LEARNS`."""

    def __init__(self, n_in: int, n_out: int, run: Callable[..., Any]) -> None:
        self.n_in, self.n_out, self.run = n_in, n_out, run


def Entry(
    in_spec: Sequence[Any],
    kw_names: Sequence[str],
    program: Any,
    out_spec: Any,
    epoch: int,
    guards: Sequence[tuple[Any, ...]] = (),
    choose: Callable[..., Any] | None = None,
) -> Any:
    """Entries are for machine code: see `functions.LEARNS`."""
    raise NotImplementedError("this interpreter has no call path by machine code")


def add_entry(function: Any, entry: Any) -> None:
    """Entries are for machine code: see `functions.LEARNS`."""
    raise NotImplementedError("this interpreter has no call path by machine code")


def clear_entries(function: Any) -> None:
    """There are none to forget."""


def drop_entries(function: Any, program: Any) -> None:
    """There are none to forget."""


def entry_count(function: Any) -> int:
    """None."""
    return 0


def calls_served() -> int:
    """How many calls machine code has served: none."""
    return 0


def epoch() -> int:
    """The epoch that entries would have to be made for."""
    return _epoch.value


def set_epoch(number: int, *pairs: int) -> None:
    """Note the epoch; those of single threads are for nobody, as there are no entries."""
    _epoch.value = number


# ---- running a program ----


def run_program(program: Any, arrays: Sequence[Any]) -> list[Any]:
    """Run a program on Arrays; a list of Arrays."""
    if type(arrays) not in (list, tuple):
        raise TypeError("run_program takes a program and a list or tuple of Arrays")
    if len(arrays) != program.n_in:
        raise TypeError("the program takes another number of arrays")
    for a in arrays:
        check("run_program", a)
    held = [a._owner for a in arrays]  # others may delete the arrays meanwhile
    inputs = (ctypes.c_void_p * max(len(arrays), 1))(*[a._ptr for a in arrays])
    outputs = (ctypes.c_void_p * max(program.n_out, 1))()
    results: list[Any] = [None] * program.n_out
    held += take_donated(program, arrays, inputs, results)
    for k, (aval, nbytes) in enumerate(program.outputs):
        if results[k] is None:
            results[k] = new_array(aval, nbytes) if nbytes >= 0 else make(aval, 0, None)
        outputs[k] = results[k]._ptr
    failed = calque_run(program.handle, ctypes.addressof(inputs), ctypes.addressof(outputs))
    adopt_blocks(program, outputs, results)
    del held
    if failed:
        raise RuntimeError("a compiled program failed without saying why")
    return results


def adopt_blocks(program: Any, outputs: Any, results: list[Any]) -> None:
    """Results whose size was known only while running: the program has allocated their blocks."""
    for k, (_, nbytes) in enumerate(program.outputs):
        if nbytes < 0 and outputs[k]:
            move(results[k], outputs[k], Block(outputs[k]))


def donations(program: Any) -> list[tuple[int, int, int]]:
    """(input, output or -1, bytes) for each argument whose memory the program takes."""
    if not program.flags & DONATES:
        return []
    address = Header(program.handle).donated
    (count,) = (ctypes.c_int64 * 1).from_address(address)
    words = list((ctypes.c_int64 * (3 * count)).from_address(address + 8))
    return list(zip(words[::3], words[1::3], words[2::3]))


def take_donated(program: Any, arrays: Sequence[Any], inputs: Any, results: list[Any]) -> list[Any]:
    """Copies of the donated arguments, which the program may write and of which some are results;
    the arguments are deleted."""
    donated = donations(program)
    given = [arrays[j] for j, _, _ in donated]
    if len({id(a) for a in given}) < len(given):
        raise RuntimeError(
            "Attempt to donate the same buffer twice in one call, as in f(donate(a), donate(a)):"
            " pass a copy."
        )
    if sum(any(a is g for g in given) for a in arrays) > len(given):
        raise RuntimeError(
            "Attempt to use a buffer that was donated in the same call, as in f(donate(a), a): pass"
            " a copy."
        )
    places = []
    for j, k, nbytes in donated:
        place = new_array(program.outputs[k][0] if k >= 0 else None, nbytes)
        ctypes.memmove(place._ptr, inputs[j] or 0, nbytes)
        inputs[j] = place._ptr
        places.append(place)
        if k >= 0:
            results[k] = place
    for a in given:
        delete_array(a)
    return places


__all__ = ["DELETED", "Array", "Entry", "EntryImpl", "Jitted", "OpFunction", "run_program"]
