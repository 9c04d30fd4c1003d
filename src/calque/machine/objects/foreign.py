"""What another engine has of an Array: the owner of its memory there.

`where` is an object that this engine has for the type of the buffer and the devices that it is on:
machine code compares one pointer to know that a buffer is what a program takes. The only result of
a program may not be a buffer yet, but what the engine gave: then `maker` is (name of a method of
that, its argument), which gives a list of one buffer, when somebody asks for it first."""

from __future__ import annotations

from typing import Any, Final

from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i32,
    i64,
    layout,
    load_ptr,
    ptr,
    sizeof,
    store_ptr,
)
from calque.machine.objects.pyapi import (
    FLAGS_DEFAULT,
    FLAGS_NO_NEW,
    VECTORCALL_OFFSET_FLAG,
    PyErr_NoMemory,
    PyErr_SetString,
    PyList,
    PyObject,
    PyTuple,
    PyVar,
    TypeSpec,
    decref,
    make_type,
    new_reference,
    type_error,
    xdecref,
)

unit = Unit("calque_foreign")

Foreign = layout("Foreign", refcount=i64, type=ptr, buffer=ptr, where=ptr, maker=ptr)
foreign_type = unit.cell("calque_foreign_type", ptr, 0)
PyObject_Malloc = unit.extern("PyObject_Malloc", ptr, i64)
PyObject_Free = unit.extern("PyObject_Free", None, ptr)
PyObject_Init = unit.extern("PyObject_Init", ptr, ptr, ptr)
PyObject_VectorcallMethod = unit.extern("PyObject_VectorcallMethod", ptr, ptr, ptr, i64, ptr)
PyGC_Disable = unit.extern("PyGC_Disable", i32)
PyGC_Enable = unit.extern("PyGC_Enable", i32)
list_type = unit.cell("calque_list_of_buffers_type", ptr, id(list))


@unit.function
def new_foreign(buffer: ptr, where: ptr, maker: ptr) -> ptr:
    """An owner for a buffer that is there, `maker` is NULL if it is one; NULL with an exception
    set."""
    self = PyObject_Malloc(sizeof(Foreign))
    if self == NULL:
        return PyErr_NoMemory()
    PyObject_Init(self, foreign_type)
    Foreign(self).buffer = new_reference(buffer)
    Foreign(self).where = new_reference(where)
    Foreign(self).maker = new_reference(maker) if maker else NULL
    return self


@unit.helper
def foreign_buffer(self: ptr) -> ptr:
    """The buffer, borrowed; NULL with an exception set."""
    return Foreign(self).buffer if Foreign(self).maker == NULL else made_buffer(self)


@unit.function
def made_buffer(self: ptr) -> ptr:
    """The buffer, made now. No garbage is collected meanwhile, so no other Python code runs."""
    place, results, maker = alloca(24), Foreign(self).buffer, Foreign(self).maker
    store_ptr(place, 8, results)
    store_ptr(place, 16, load_ptr(PyTuple.at(maker).items, 8))
    collects = PyGC_Disable()
    found = PyObject_VectorcallMethod(
        load_ptr(PyTuple.at(maker).items, 0), place + 8, 2 | VECTORCALL_OFFSET_FLAG, NULL
    )
    if collects:
        PyGC_Enable()
    if found == NULL:
        return NULL
    if PyObject(found).type != list_type or PyVar(found).size != 1:
        PyErr_SetString(type_error, "another engine gives a list of its results")
        decref(found)
        return NULL
    Foreign(self).buffer = new_reference(load_ptr(PyList(found).items, 0))
    Foreign(self).maker = NULL
    decref(found)
    decref(results)
    decref(maker)
    return Foreign(self).buffer


@unit.function
def calque_foreign_dealloc(self: ptr) -> None:
    buffer, where, maker = Foreign(self).buffer, Foreign(self).where, Foreign(self).maker
    PyObject_Free(self)
    decref(foreign_type)
    decref(buffer)
    decref(where)
    xdecref(maker)


_Foreign: Final[Any] = make_type(
    TypeSpec(
        name="calque.Foreign",
        size=Foreign.size,
        flags=FLAGS_DEFAULT | FLAGS_NO_NEW,
        doc="A buffer of another engine, and where it is there.",
        slots={"tp_dealloc": calque_foreign_dealloc},
    )
)
foreign_type.write(id(_Foreign))
