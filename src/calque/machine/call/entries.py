"""The call path by machine code: callables whose calls run it from the arguments to the results.

`Jitted(miss)` and `OpFunction(miss)` are C types. A call looks for an entry that fits the
arguments; when there is none it returns `miss(args, kwargs)`, which is Python and may compile and
`add_entry` for next time.

An entry is made by `Entry(in_spec, kw_names, program, out_spec, epoch)`. `in_spec` describes the
positional arguments, then the keyword arguments in the order of `kw_names`:

    ("array", aval, i)           an Array with exactly this aval (compared by identity)
    ("pyfloat", dtype, i)        exactly a float, passed as a scalar of dtype; likewise "pyint",
                                 "pybool", "pycomplex"; an int that does not fit does not match
    ("fraction", dtype, i)       a float of which, rounded to dtype, `layout.is_fraction` holds
    ("ndarray", dtype, shape, i) exactly an ndarray, C-contiguous, aligned, in native byte order
    ("kind", aval, i)            an Array whose aval has the `kind` of this one
    ("ndarray_kind", dtype, rank, i)  an ndarray of any shape of this rank
    ("is", obj)  ("eq", obj)     this very object; or a str, int, bool or float of the same type
                                 and value (bits)
    ("none",)  ("tuple", [..])  ("list", [..])  ("namedtuple", cls, [..])  ("dict", {key: ..})

where `i` is the input of the program it feeds; None is an argument that must match and is not used;
numbers from the program's `n_in` upwards are not passed, but can be given back. A dict with str or
int keys matches in any order, others in the order of the spec only. `out_spec` describes the
result:

    ("out", k)  ("input", i)  ("const", obj)  ("none",)
    ("tuple", [..])  ("list", [..])  ("namedtuple", cls, [..])  ("dict", {..})
    ("call", function, [..])     what a Python function makes of the parts

An output whose size the program finds out while running (-1 bytes in its header) comes with the
aval of the header, a mere place holder: give it its own with `("call", function, ...)`, where the
function returns `array_type.share(array, aval)`.

`program` has the attribute `handle`: the address of a program as `driver` runs them. Or it is a
`PythonProgram`, whose function gets the arguments and gives the outputs; its arrays may be
described as ("elsewhere", aval, place, i): an Array with exactly this aval that says it lives at
`place`, or None for one that says nothing.

Arguments of a kind come with `choose`, a Python function of their avals (of ndarrays: of
themselves), in the order of the inputs. It gives the program for such a call, one like `program`
for other sizes, or None: then the entry does not fit. Entries of this sort come after all others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from calque.machine.call import epochs as callpath_epochs
from calque.machine.call import operators
from calque.machine.call import run as callpath_run
from calque.machine.call.layout import Header
from calque.machine.call.spec import PythonProgram, encode, key_of
from calque.machine.call.types import EntryImpl, Jitted, OpFunction, new_entry
from calque.machine.objects.pyapi import make_builtin

JITTED_LIMIT = 128  # entries of a jitted function; one at the end, not used lately, goes
OPERATOR_LIMIT = 4096  # entries of an operator; then it starts afresh
_changing = threading.RLock()  # entries of a function are added and dropped by one thread at a time
CHOOSING_LIMIT = 32  # entries of a function that choose their program

run_program: Callable[[Any, Sequence[Any]], list[Any]] = make_builtin(callpath_run._run_program)
set_epoch: Callable[..., None] = make_builtin(callpath_epochs._set_epoch)


def calls_served() -> int:
    """How many calls of jitted functions machine code has served alone."""
    number: int = callpath_run.calls_served.read()
    return number


def epoch() -> int:
    """The epoch that entries must have been made for, in threads that have none of their own."""
    number: int = callpath_epochs.epoch_now.read()
    return number


def Entry(
    in_spec: Sequence[Any],
    kw_names: Sequence[str],
    program: Any,
    out_spec: Any,
    epoch: int,
    guards: Sequence[tuple[Any, ...]] = (),
    choose: Callable[..., Any] | None = None,
) -> Any:
    """One kind of arguments and what to do with them; `guards` are questions about values that the
    program took as constants: ("item", dict, key, value) for identity, ("cell", cell, value),
    ("list", list, tuple of its items), ("length", dict, number of its items). Where an answer is
    another, the entry does not fit; see the top of this file."""
    if epoch <= 0:
        raise ValueError(f"an epoch is a positive number, not {epoch}")
    words, keeps = encode(in_spec, kw_names, program, out_spec, epoch, guards, choose)
    return new_entry(words, keeps, key_of(in_spec))


def add_entry(function: Any, entry: Any) -> None:
    """Let a Jitted or OpFunction use an entry, before the ones it has."""
    if type(entry) is not EntryImpl:
        raise TypeError(f"expected an Entry, got {type(entry).__name__}")
    entries = _entries(function)
    with _changing:
        if chooses(entry):
            add_choosing(function, entries, entry)
        elif type(function) is OpFunction:
            if len(entries) >= OPERATOR_LIMIT:
                clear_entries(function)
            entries.append(entry)
            if not operators.calque_extend_table(id(function)):
                entries.pop()
                raise MemoryError
        else:
            entries.insert(0, entry)
            if len(entries) > JITTED_LIMIT:
                last = next(i for i in reversed(range(len(entries))) if not chooses(entries[i]))
                del entries[last]


def add_choosing(function: Any, entries: list[Any], entry: Any) -> None:
    """Entries that choose are asked last: those of a Jitted are the last of the list, those of an
    OpFunction the first."""
    places = [i for i, e in enumerate(entries) if chooses(e)]
    if len(places) >= CHOOSING_LIMIT:  # the oldest goes
        del entries[places[-1]]
        places.pop()
    entries.insert(
        places[0] if places else 0 if type(function) is OpFunction else len(entries), entry
    )


def chooses(entry: Any) -> bool:
    """Whether a function chooses the program of the entry."""
    words = Header(entry._words)
    return bool(words.choose) and bool(words.program)


def clear_entries(function: Any) -> None:
    """Forget all entries."""
    entries = _entries(function)
    with _changing:
        dropped = list(entries)
        if type(function) is OpFunction:
            _empty_table(function, entries)
        else:
            entries.clear()
    del dropped  # entries die here, when nothing points to them any more


def drop_entries(function: Any, program: Any) -> None:
    """Forget the entries of a Jitted that run this program."""
    entries = _entries(function)
    with _changing:
        dropped = [e for e in entries if _runs(e, program)]
        entries[:] = [e for e in entries if not _runs(e, program)]
    del dropped


def _runs(entry: Any, program: Any) -> bool:
    """Whether the entry is for this program; those in Python are known by their function."""
    words = Header(entry._words)
    if isinstance(program, PythonProgram):
        return not words.program and words.choose == id(program.run)
    return bool(words.program == program.handle)


def entry_count(function: Any) -> int:
    """How many entries a function has."""
    return len(_entries(function))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_changing.acquire,
        after_in_parent=_changing.release,
        after_in_child=_changing.release,
    )


def _entries(function: Any) -> list[Any]:
    if type(function) not in (Jitted, OpFunction):
        raise TypeError(f"expected a Jitted or an OpFunction, got {type(function).__name__}")
    entries: list[Any] = function._entries
    return entries


def _empty_table(function: Any, entries: list[Any]) -> None:
    entries.clear()
    operators.calque_rebuild_table(id(function))


__all__ = [
    "Entry",
    "EntryImpl",
    "Jitted",
    "OpFunction",
    "PythonProgram",
    "add_entry",
    "calls_served",
    "clear_entries",
    "drop_entries",
    "entry_count",
    "epoch",
    "run_program",
    "set_epoch",
]
