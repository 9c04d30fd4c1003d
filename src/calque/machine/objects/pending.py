"""Arrays whose elements another engine has, or is still computing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calque.machine.lang.unit import NULL, Unit, i64, load_ptr, ptr, store_ptr
from calque.machine.objects.array_type import (
    Array,
    array_object,
    array_type,
    lend,
    pending_mark,
    refuse,
    tuple_type,
)
from calque.machine.objects.foreign import new_foreign
from calque.machine.objects.pyapi import (
    PyList,
    PyObject,
    PyTuple,
    PyVar,
    decref,
    make_builtin,
    new_reference,
    none,
    type_error,
    xdecref,
)

unit = Unit("calque_pending_arrays")

PyList_New = unit.extern("PyList_New", ptr, i64)
list_type = unit.cell("calque_list_of_owners_type", ptr, id(list))


@unit.function
def _pending_arrays(self: ptr, args: ptr, count: i64) -> ptr:
    """pending_arrays(avals, owners, places): a list of Arrays whose elements these owners have;
    they live at these places, None for nowhere in particular."""
    avals, owners, places = load_ptr(args, 0), load_ptr(args, 8), load_ptr(args, 16)
    if (
        count != 3
        or PyObject(avals).type != tuple_type
        or PyObject(owners).type != list_type
        or PyObject(places).type != tuple_type
        or PyVar(owners).size != PyVar(avals).size
        or PyVar(places).size != PyVar(avals).size
    ):
        return refuse(type_error, "pending_arrays takes a tuple, a list and a tuple, all as long")
    made = PyList_New(PyVar(avals).size)
    for i in range(PyVar(avals).size if made else 0):
        owner = new_reference(load_ptr(PyList(owners).items, 8 * i))
        array = array_object(load_ptr(PyTuple.at(avals).items, 8 * i), NULL, NULL, owner)
        if array == NULL:
            decref(owner)
            decref(made)
            return NULL
        place = load_ptr(PyTuple.at(places).items, 8 * i)
        Array(array).extra = new_reference(pending_mark if place == none else place)
        store_ptr(PyList(made).items, 8 * i, array)
    return made


@unit.function
def pending_array(aval: ptr, buffer: ptr, where: ptr, place: ptr, maker: ptr) -> ptr:
    """An Array whose elements this buffer of another engine has, which is `where` there; it lives
    at this place, None for nowhere in particular. With a `maker` it makes the buffer when that is
    asked for. NULL with an exception set."""
    owner = new_foreign(buffer, where, maker)
    if owner == NULL:
        return NULL
    array = array_object(aval, NULL, NULL, owner)
    if array == NULL:
        decref(owner)
    else:
        Array(array).extra = new_reference(pending_mark if place == none else place)
    return array


@unit.function
def _set_owner(self: ptr, args: ptr, count: i64) -> ptr:
    """set_owner(array, owner), or set_owner(array, buffer, where): what keeps the memory of an
    Array alive from now on; a buffer of another engine with where it is there."""
    if count not in (2, 3) or PyObject(load_ptr(args, 0)).type != array_type:
        return refuse(type_error, "set_owner takes an Array and an object")
    x, owner = load_ptr(args, 0), load_ptr(args, 8)
    former = lend(x)  # its block is the new owner's to keep
    if former == NULL:
        return NULL
    owner = new_foreign(owner, load_ptr(args, 16), NULL) if count == 3 else new_reference(owner)
    if owner:
        before = Array(x).owner
        Array(x).owner = owner
        xdecref(before)
    decref(former)
    return new_reference(none) if owner else NULL


pending_arrays: Callable[[tuple[Any, ...], list[Any], tuple[Any, ...]], list[Any]] = make_builtin(
    _pending_arrays
)
set_owner: Callable[..., None] = make_builtin(_set_owner)
