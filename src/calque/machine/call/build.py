"""Machine code that makes the result of a call out of output arrays, by an entry's building
program."""

from __future__ import annotations

from calque.machine.call.layout import Build, State
from calque.machine.lang.unit import (
    NULL,
    Unit,
    i32,
    i64,
    likely,
    load_i64,
    load_ptr,
    ptr,
    signature,
    store_ptr,
)
from calque.machine.objects.pyapi import (
    TYPE_ALLOC,
    PyList,
    PyObject,
    PyTuple,
    decref,
    new_reference,
)

unit = Unit("calque_build")

PyTuple_New = unit.extern("PyTuple_New", ptr, i64)
PyList_New = unit.extern("PyList_New", ptr, i64)
PyDict_Copy = unit.extern("PyDict_Copy", ptr, ptr)
PyDict_SetItem = unit.extern("PyDict_SetItem", i32, ptr, ptr, ptr)
PyObject_CallObject = unit.extern("PyObject_CallObject", ptr, ptr, ptr)
type_alloc = signature(ptr, ptr, i64)


@unit.helper
def build_leaf(state: ptr, pc: ptr) -> ptr:
    """A new reference to an output, an argument or a constant."""
    match load_i64(pc, 0):
        case Build.TAKE:
            place = State(state).results + 8 * load_i64(pc, 8)
            taken = load_ptr(place, 0)
            store_ptr(place, 0, NULL)
            return taken
        case Build.SHARE:
            return new_reference(load_ptr(State(state).results, 8 * load_i64(pc, 8)))
        case Build.INPUT:
            return new_reference(load_ptr(State(state).objects, 8 * load_i64(pc, 8)))
        case _:
            return new_reference(load_ptr(pc, 8))


@unit.function
def build(state: ptr) -> ptr:
    """The object that starts at the cursor; NULL with an exception set."""
    pc = State(state).cursor
    op = load_i64(pc, 0)
    if likely(op <= Build.CONST):
        State(state).cursor = pc + 16
        return build_leaf(state, pc)
    if op == Build.TUPLE:
        State(state).cursor = pc + 16
        made = PyTuple_New(load_i64(pc, 8))
        return fill(state, made, PyTuple.at(made).items, load_i64(pc, 8)) if made else NULL
    if op == Build.LIST:
        State(state).cursor = pc + 16
        made = PyList_New(load_i64(pc, 8))
        return fill(state, made, PyList(made).items, load_i64(pc, 8)) if made else NULL
    if op == Build.NAMED:
        State(state).cursor = pc + 24
        kind = load_ptr(pc, 8)
        made = type_alloc(load_ptr(kind, TYPE_ALLOC), kind, load_i64(pc, 16))
        return fill(state, made, PyTuple.at(made).items, load_i64(pc, 16)) if made else NULL
    State(state).cursor = pc + 24
    if op == Build.CALL:
        return call_python(state, load_ptr(pc, 8), PyTuple_New(load_i64(pc, 16)), load_i64(pc, 16))
    return build_dict(state, PyDict_Copy(load_ptr(pc, 8)), load_i64(pc, 16))


@unit.function
def fill(state: ptr, made: ptr, items: ptr, count: i64) -> ptr:
    """Put `count` objects into a fresh tuple or list; what is not filled stays NULL, so dropping it
    is safe."""
    for i in range(count):
        x = build(state)
        if x == NULL:
            decref(made)
            return NULL
        store_ptr(items, 8 * i, x)
    return made


@unit.function
def call_python(state: ptr, function: ptr, arguments: ptr, count: i64) -> ptr:
    """What a Python function makes of parts of the result."""
    if arguments == NULL or fill(state, arguments, PyTuple.at(arguments).items, count) == NULL:
        return NULL
    made = PyObject_CallObject(function, arguments)
    decref(arguments)
    return made


@unit.function
def build_dict(state: ptr, made: ptr, count: i64) -> ptr:
    """Replace the values of a copy of the template: the table has its size and order already."""
    if made == NULL:
        return NULL
    for _ in range(count):
        key = load_ptr(State(state).cursor, 0)
        State(state).cursor = State(state).cursor + 8
        x = build(state)
        if x == NULL:
            decref(made)
            return NULL
        failed = PyDict_SetItem(made, key, x) < 0
        decref(x)
        if failed:
            decref(made)
            return NULL
    return made


__all__ = ["PyObject", "build"]
