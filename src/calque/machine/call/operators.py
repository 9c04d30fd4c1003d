"""Machine code of a call of an operator: its entry is found in a table, by the types and avals of
all arguments."""

from __future__ import annotations

from calque.machine.call.epochs import epoch_here
from calque.machine.call.layout import (
    HASH_FACTOR,
    NEAR_FRAME,
    CallableObject,
    EntryObject,
    Header,
)
from calque.machine.call.run import (
    COUNT_MASK,
    NOT_MATCHED,
    PyMem_Free,
    PyMem_Malloc,
    ask_python,
    attempt,
)
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i64,
    likely,
    load_ptr,
    lshr,
    memset,
    ptr,
    store_ptr,
)
from calque.machine.objects.array_type import Array, array_type
from calque.machine.objects.pyapi import PyList, PyObject, PyVar

unit = Unit("calque_operators")


@unit.helper
def hash_arguments(args: ptr, count: i64) -> i64:
    """A hash of each argument's aval, or type when it is no Array. `spec.key_of` computes the
    same in Python."""
    h = count
    for i in range(count):
        x = load_ptr(args, 8 * i)
        kind = PyObject(x).type
        word = i64(Array(x).aval) if kind == array_type else i64(kind)
        h = (h ^ word) * HASH_FACTOR
        h = h ^ lshr(h, 29)
    return h


@unit.function
def calque_operator_call(self: ptr, args: ptr, flagged: i64, names: ptr) -> ptr:
    """Look the entry up in the table."""
    near = alloca(NEAR_FRAME)
    count = flagged & COUNT_MASK
    epoch, table, mask = (
        epoch_here(),
        CallableObject(self).table,
        CallableObject(self).mask,
    )
    if likely(epoch != 0 and table != NULL):
        total = count + (PyVar(names).size if names else 0)
        key = hash_arguments(args, total)
        at = key & mask
        entry = load_ptr(table, 8 * at)
        while entry:
            if EntryObject(entry).key == key:
                answer = attempt(entry, args, count, names, epoch, near, 0, NULL)
                if i64(answer) != NOT_MATCHED:
                    return answer
            at = (at + 1) & mask
            entry = load_ptr(table, 8 * at)
    entries = CallableObject(self).entries
    if likely(epoch != 0 and entries != NULL):
        i = 0
        while i < PyVar(entries).size:  # those that choose are the first of the list
            entry = load_ptr(PyList(entries).items, 8 * i)
            if Header(EntryObject(entry).words).choose == NULL:
                break
            answer = attempt(entry, args, count, names, epoch, near, 0, NULL)
            if i64(answer) != NOT_MATCHED:
                return answer
            i += 1
    return ask_python(self, args, count, names)


@unit.function
def calque_rebuild_table(self: ptr) -> i64:
    """Make the table anew from the list of entries; 0 when memory is out (then there is no
    table)."""
    PyMem_Free(CallableObject(self).table)
    CallableObject(self).table = NULL
    entries = CallableObject(self).entries
    size = 8
    while size < 2 * PyVar(entries).size:
        size *= 2
    table = PyMem_Malloc(8 * size)
    if table == NULL:
        return 0
    memset(table, 0, 8 * size)
    for i in range(PyVar(entries).size):
        place(table, size - 1, load_ptr(PyList(entries).items, 8 * i))
    CallableObject(self).table = table
    CallableObject(self).mask = size - 1
    return 1


@unit.function
def calque_extend_table(self: ptr) -> i64:
    """Put the last entry of the list into the table too; 0 when memory is out."""
    entries = CallableObject(self).entries
    count = PyVar(entries).size
    if CallableObject(self).table == NULL or CallableObject(self).mask + 1 < 2 * count:
        return calque_rebuild_table(self)
    place(
        CallableObject(self).table,
        CallableObject(self).mask,
        load_ptr(PyList(entries).items, 8 * (count - 1)),
    )
    return 1


@unit.helper
def place(table: ptr, mask: i64, entry: ptr) -> None:
    if Header(EntryObject(entry).words).choose != NULL:
        return
    at = EntryObject(entry).key & mask
    while load_ptr(table, 8 * at):
        at = (at + 1) & mask
    store_ptr(table, 8 * at, entry)
