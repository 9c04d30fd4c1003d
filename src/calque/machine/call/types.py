"""The C types of the call path: Entry, and the callables Jitted and OpFunction, with garbage
collection and binding."""

from __future__ import annotations

from typing import Any

from calque.machine.call.layout import CallableObject, EntryObject
from calque.machine.call.operators import calque_operator_call
from calque.machine.call.run import calque_jitted_call
from calque.machine.lang.unit import NULL, Unit, i32, i64, load_ptr, ptr, signature
from calque.machine.objects.array_type import PyObject_ClearWeakRefs, refuse, tuple_type
from calque.machine.objects.pyapi import (
    FLAGS_DEFAULT,
    FLAGS_HAVE_GC,
    FLAGS_METHOD_DESCRIPTOR,
    FLAGS_NO_NEW,
    FLAGS_VECTORCALL,
    OBJECT,
    PYSSIZET,
    READONLY,
    ULONGLONG,
    PyBytes,
    PyErr_Occurred,
    PyObject,
    PyTuple,
    PyVar,
    TypeSpec,
    c_address,
    decref,
    incref,
    make_builtin,
    make_type,
    new_reference,
    none,
    type_error,
    xdecref,
)

unit = Unit("calque_callpath_types")

PyType_GenericAlloc = unit.extern("PyType_GenericAlloc", ptr, ptr, i64)
PyObject_GC_UnTrack = unit.extern("PyObject_GC_UnTrack", None, ptr)
PyObject_GC_Del = unit.extern("PyObject_GC_Del", None, ptr)
PyCallable_Check = unit.extern("PyCallable_Check", i32, ptr)
PyMethod_New = unit.extern("PyMethod_New", ptr, ptr, ptr)
PyList_New = unit.extern("PyList_New", ptr, i64)
PyMem_Free = unit.extern("PyMem_Free", None, ptr)
PyLong_AsVoidPtr = unit.extern("PyLong_AsVoidPtr", ptr, ptr)
visit_function = signature(i32, ptr, ptr)

entry_type = unit.cell("calque_entry_type", ptr, 0)
operator_type = unit.cell("calque_operator_type", ptr, 0)
bytes_type = unit.cell("calque_bytes_type", ptr, id(bytes))


@unit.helper
def visit_one(x: ptr, visit: ptr, argument: ptr) -> i32:
    """Py_VISIT."""
    return visit_function(visit, x, argument) if x else i32(0)


# ---- Entry ----


@unit.function
def _new_entry(self: ptr, args: ptr, count: i64) -> ptr:
    """new_entry(words, keeps, key): an entry on the words of a bytes object; `keeps` holds it and
    all it points to."""
    if (
        count != 3
        or PyObject(load_ptr(args, 0)).type != bytes_type
        or PyObject(load_ptr(args, 8)).type != tuple_type
    ):
        return refuse(type_error, "new_entry takes bytes, a tuple and an integer")
    key = PyLong_AsVoidPtr(load_ptr(args, 16))
    if key == NULL and PyErr_Occurred():
        return NULL
    entry = PyType_GenericAlloc(entry_type, 0)
    if entry:
        EntryObject(entry).words = PyBytes.at(load_ptr(args, 0)).data
        EntryObject(entry).keeps = new_reference(load_ptr(args, 8))
        EntryObject(entry).key = i64(key)
    return entry


@unit.function
def calque_entry_traverse(self: ptr, visit: ptr, argument: ptr) -> i32:
    status = visit_one(PyObject(self).type, visit, argument)
    return status if status else visit_one(EntryObject(self).keeps, visit, argument)


@unit.function
def calque_entry_dealloc(self: ptr) -> None:
    kind = PyObject(self).type
    PyObject_GC_UnTrack(self)
    xdecref(EntryObject(self).keeps)
    PyObject_GC_Del(self)
    decref(kind)


# An entry has no tp_clear: a matching call could meet it half cleared. Cycles break at the callable
# that holds it.


# ---- Jitted and OpFunction ----


@unit.function
def calque_callable_new(kind: ptr, args: ptr, keywords: ptr) -> ptr:
    if PyVar(args).size != 1 or (keywords and PyVar(keywords).size):
        return refuse(
            type_error, "expected one argument: the function to call when no entry matches"
        )
    miss = load_ptr(PyTuple.at(args).items, 0)
    if not PyCallable_Check(miss):
        return refuse(type_error, "the argument must be callable")
    self = PyType_GenericAlloc(kind, 0)
    if self == NULL:
        return NULL
    CallableObject(self).vectorcall = (
        calque_operator_call if kind == operator_type else calque_jitted_call
    )
    incref(miss)
    CallableObject(self).miss = miss
    CallableObject(self).entries = PyList_New(0)
    if CallableObject(self).entries == NULL:
        decref(self)
        return NULL
    return self


@unit.function
def calque_callable_traverse(self: ptr, visit: ptr, argument: ptr) -> i32:
    status = visit_one(PyObject(self).type, visit, argument)
    if status == 0:
        status = visit_one(CallableObject(self).entries, visit, argument)
    if status == 0:
        status = visit_one(CallableObject(self).miss, visit, argument)
    if status == 0:
        status = visit_one(CallableObject(self).dict, visit, argument)
    return status


@unit.function
def calque_callable_clear(self: ptr) -> i32:
    """Let go of everything; a call that comes after raises."""
    entries, miss, table = (
        CallableObject(self).entries,
        CallableObject(self).miss,
        CallableObject(self).table,
    )
    dictionary = CallableObject(self).dict
    CallableObject(self).entries = NULL
    CallableObject(self).miss = NULL
    CallableObject(self).table = NULL
    CallableObject(self).dict = NULL
    PyMem_Free(table)
    xdecref(entries)
    xdecref(miss)
    xdecref(dictionary)
    return 0


@unit.function
def calque_callable_dealloc(self: ptr) -> None:
    kind = PyObject(self).type
    PyObject_GC_UnTrack(self)
    if CallableObject(self).weak_references:
        PyObject_ClearWeakRefs(self)
    calque_callable_clear(self)
    PyObject_GC_Del(self)
    decref(kind)


@unit.function
def calque_callable_bind(self: ptr, instance: ptr, kind: ptr) -> ptr:
    """tp_descr_get: a bound method, or itself when taken from the class."""
    if instance in (NULL, none):
        return new_reference(self)
    return PyMethod_New(self, instance)


# ---- the Python side of the types ----

new_entry = make_builtin(_new_entry)

EntryImpl: Any = make_type(
    TypeSpec(
        name="calque.Entry",
        size=EntryObject.size,
        flags=FLAGS_DEFAULT | FLAGS_HAVE_GC | FLAGS_NO_NEW,
        doc=(
            "What one kind of arguments means for a jitted function: what to match, what to run,"
            " what to give back."
        ),
        slots={"tp_dealloc": calque_entry_dealloc, "tp_traverse": calque_entry_traverse},
        members=(
            ("_words", ULONGLONG, EntryObject.offset("words"), READONLY),
            ("_keeps", OBJECT, EntryObject.offset("keeps"), READONLY),
        ),
    )
)
entry_type.write(id(EntryImpl))


def _callable_type(name: str, doc: str) -> type:
    return make_type(
        TypeSpec(
            name=f"calque.{name}",
            size=CallableObject.size,
            flags=FLAGS_DEFAULT | FLAGS_HAVE_GC | FLAGS_VECTORCALL | FLAGS_METHOD_DESCRIPTOR,
            doc=doc,
            slots={
                "tp_new": calque_callable_new,
                "tp_call": c_address("PyVectorcall_Call"),
                "tp_dealloc": calque_callable_dealloc,
                "tp_traverse": calque_callable_traverse,
                "tp_clear": calque_callable_clear,
                "tp_descr_get": calque_callable_bind,
            },
            members=(
                ("__vectorcalloffset__", PYSSIZET, CallableObject.offset("vectorcall"), READONLY),
                ("__dictoffset__", PYSSIZET, CallableObject.offset("dict"), READONLY),
                (
                    "__weaklistoffset__",
                    PYSSIZET,
                    CallableObject.offset("weak_references"),
                    READONLY,
                ),
                ("_entries", OBJECT, CallableObject.offset("entries"), READONLY),
                ("_miss", OBJECT, CallableObject.offset("miss"), READONLY),
            ),
            dict_access=True,
        )
    )


Jitted: Any = _callable_type(  # libraries know jitted functions by the name of their type
    "PjitFunction",
    "PjitFunction(miss): a function that runs a compiled program when one fits its arguments.",
)
OpFunction: Any = _callable_type(
    "OpFunction",
    "OpFunction(miss): an operator that finds its program by the types of its arguments.",
)
operator_type.write(id(OpFunction))
