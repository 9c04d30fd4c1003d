"""Machine code that takes the memory of donated arguments: it becomes that of results, or scratch.

Nobody else may see that memory. Where somebody does (a NumPy view, another Array, a run of another
thread), or where the argument is no Array, its bytes are copied first; a donated Array is deleted
all the same. Either all that must be allocated is, or nothing has happened."""

from __future__ import annotations

from calque.machine.driver.interpreter import Header
from calque.machine.lang.unit import (
    NULL,
    Unit,
    i1,
    i64,
    load_i64,
    load_ptr,
    memcpy,
    memset,
    ptr,
    store_ptr,
)
from calque.machine.objects.array_type import (
    Array,
    array_object,
    array_type,
    fresh_array,
    is_sole_owner,
    mark_deleted,
    refuse,
)
from calque.machine.objects.pyapi import (
    PyErr_NoMemory,
    PyObject,
    decref,
    none,
    runtime_error,
    xdecref,
)

unit = Unit("calque_donation")

PyMem_Malloc = unit.extern("PyMem_Malloc", ptr, i64)
PyMem_Free = unit.extern("PyMem_Free", None, ptr)
TRIPLE = 24  # input, output or -1, bytes


@unit.helper
def is_array(x: ptr) -> i1:
    return PyObject(x).type == array_type


@unit.helper
def give_back_claims(table: ptr, count: i64, inputs: ptr, objects: ptr) -> None:
    for n in range(count):
        j = load_i64(table, 8 + TRIPLE * n)
        x = load_ptr(objects, 8 * j)
        if is_array(x):
            Array(x).data = load_ptr(inputs, 8 * j)


@unit.function
def claim(table: ptr, n_in: i64, inputs: ptr, objects: ptr) -> i64:
    """Take the pointers out of the donated Arrays, so that an Array that is given twice shows; 0
    with an exception set."""
    count = load_i64(table, 0)
    for n in range(count):
        x = load_ptr(objects, 8 * load_i64(table, 8 + TRIPLE * n))
        if is_array(x):
            if Array(x).data == NULL:
                give_back_claims(table, n, inputs, objects)
                refuse(
                    runtime_error,
                    "Attempt to donate the same buffer twice in one call, as in f(donate(a),"
                    " donate(a)): pass a copy.",
                )
                return 0
            Array(x).data = NULL
    for j in range(n_in):
        x = load_ptr(objects, 8 * j)
        if is_array(x) and Array(x).data == NULL and not is_donated(table, j):
            give_back_claims(table, count, inputs, objects)
            refuse(
                runtime_error,
                "Attempt to use a buffer that was donated in the same call, as in f(donate(a), a):"
                " pass a copy.",
            )
            return 0
    return 1


@unit.helper
def is_donated(table: ptr, index: i64) -> i1:
    for n in range(load_i64(table, 0)):
        if load_i64(table, 8 + TRIPLE * n) == index:
            return i1(1)
    return i1(0)


@unit.helper
def may_take(x: ptr) -> i1:
    return is_array(x) and is_sole_owner(x)


@unit.function
def make_places(program: ptr, table: ptr, objects: ptr, places: ptr) -> i64:
    """An Array for each donated input: without memory where it will get the input's, else with a
    block of its own."""
    for n in range(load_i64(table, 0)):
        j, k = load_i64(table, 8 + TRIPLE * n), load_i64(table, 16 + TRIPLE * n)
        aval = load_ptr(Header(program).out_avals, 8 * k) if k >= 0 else none
        if may_take(load_ptr(objects, 8 * j)):
            place = array_object(aval, NULL, NULL, NULL)
        else:
            place = fresh_array(aval, load_i64(table, 24 + TRIPLE * n))
        store_ptr(places, 8 * n, place)
        if place == NULL:
            return 0
    return 1


@unit.helper
def move_memory(source: ptr, data: ptr, place: ptr) -> None:
    """Give an Array the memory of a donated one."""
    Array(place).data = data
    Array(place).block = Array(source).block
    Array(place).owner = Array(source).owner
    Array(source).block = NULL
    Array(source).owner = NULL


@unit.function
def hand_over(
    table: ptr, inputs: ptr, objects: ptr, outputs: ptr, results: ptr, places: ptr
) -> None:
    """Move or copy the memory, delete the donated Arrays, and let the run see the new places.
    Cannot fail.

    Scratch takes the place of the argument among `objects`, whose references the caller owns and
    drops after the run.
    """
    for n in range(load_i64(table, 0)):
        j, k = load_i64(table, 8 + TRIPLE * n), load_i64(table, 16 + TRIPLE * n)
        x, place, data = load_ptr(objects, 8 * j), load_ptr(places, 8 * n), load_ptr(inputs, 8 * j)
        if Array(place).data == NULL:
            move_memory(x, data, place)
        else:
            memcpy(Array(place).data, data, load_i64(table, 24 + TRIPLE * n))
        if is_array(x):
            mark_deleted(x)
        store_ptr(inputs, 8 * j, Array(place).data)
        if k >= 0:
            store_ptr(results, 8 * k, place)
            store_ptr(outputs, 8 * k, Array(place).data)
        else:
            store_ptr(objects, 8 * j, place)
            decref(x)


@unit.function
def make_other_results(program: ptr, outputs: ptr, results: ptr) -> i64:
    """The results that take no input's memory."""
    nbytes, avals = Header(program).out_nbytes, Header(program).out_avals
    for k in range(Header(program).n_out):
        if load_ptr(results, 8 * k) == NULL:
            aval, size = load_ptr(avals, 8 * k), load_i64(nbytes, 8 * k)
            array = fresh_array(aval, size) if size >= 0 else array_object(aval, NULL, NULL, NULL)
            if array == NULL:
                return 0
            store_ptr(results, 8 * k, array)
            store_ptr(outputs, 8 * k, Array(array).data)
    return 1


@unit.function
def make_donated_results(
    program: ptr, inputs: ptr, objects: ptr, outputs: ptr, results: ptr
) -> i64:
    """All results of a program that donates, and its inputs where it may write; 0 with an exception
    set, and nothing changed.

    The caller holds references to `objects`, and drops what stands there afterwards."""
    table, n_out = Header(program).donated, Header(program).n_out
    count = load_i64(table, 0)
    memset(results, 0, 8 * n_out)
    places = PyMem_Malloc(8 * count)
    if places == NULL:
        PyErr_NoMemory()
        return 0
    memset(places, 0, 8 * count)
    made = claim(table, Header(program).n_in, inputs, objects)
    if made:
        made = make_places(program, table, objects, places)
        reserve(table, results, places)
        if made:
            made = make_other_results(program, outputs, results)
        if made:
            hand_over(table, inputs, objects, outputs, results, places)
        else:
            give_back_claims(table, count, inputs, objects)
            for k in range(n_out):
                drop(results, k)
            drop_scratch(table, places)
    PyMem_Free(places)
    return made


@unit.helper
def reserve(table: ptr, results: ptr, places: ptr) -> None:
    """Note which results are there already."""
    for n in range(load_i64(table, 0)):
        k = load_i64(table, 16 + TRIPLE * n)
        if k >= 0:
            store_ptr(results, 8 * k, load_ptr(places, 8 * n))


@unit.helper
def drop_scratch(table: ptr, places: ptr) -> None:
    for n in range(load_i64(table, 0)):
        if load_i64(table, 16 + TRIPLE * n) < 0:
            drop(places, n)


@unit.helper
def drop(items: ptr, index: i64) -> None:
    x = load_ptr(items, 8 * index)
    store_ptr(items, 8 * index, NULL)
    xdecref(x)


__all__ = ["make_donated_results"]
