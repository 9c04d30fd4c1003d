"""The C type `Array`: an aval, a block of memory and who owns it; its functions are machine code.

An array's memory is a block of `memory` (freed with it), or belongs to `_owner`, which is kept
alive: a NumPy array, a buffer of another engine (`foreign`), or, once somebody looks at the memory
(a NumPy view, another Array), a `Memory` that all of them share. So nobody else sees an array's
memory when it has a block of its own, or the only reference to its `Memory`. A deleted array has no
memory, and a mark in `extra`, where fast paths look anyway. Nothing here looks into avals: who
makes an array says how large it is.

An array whose elements another engine has, or is still computing, is *pending*: it has an owner
and no memory yet, and something in `extra`, a mark at least. Whoever needs its memory calls
`has_memory`, which asks Python to wait and to say where the memory is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i1,
    i32,
    i64,
    layout,
    load_i64,
    load_ptr,
    load_u8,
    ptr,
    signature,
    sizeof,
    store_i64,
    store_ptr,
    unlikely,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.objects.active_runs import is_in_use
from calque.machine.objects.foreign import foreign_buffer, foreign_type
from calque.machine.objects.plain import WHY_DELETED
from calque.machine.objects.pyapi import (
    DESCR_BYTEORDER,
    FLAGS_DEFAULT,
    FLAGS_NO_NEW,
    NDARRAY_ALIGNED,
    NDARRAY_C_CONTIGUOUS,
    NDARRAY_TYPE,
    OBJECT,
    PYSSIZET,
    READONLY,
    ULONGLONG,
    NdArray,
    PyArray_NewFromDescr,
    PyArray_SetBaseObject,
    PyErr_Format,
    PyErr_NoMemory,
    PyErr_Occurred,
    PyErr_SetString,
    PyObject,
    PyObject32,
    PyTuple,
    TypeSpec,
    decref,
    incref,
    make_builtin,
    make_type,
    memory_error,
    new_reference,
    none,
    type_error,
    value_error,
    xdecref,
)
from calque.machine.state import Hook, process

unit = Unit("calque_objects")

Array = layout(
    "Array",
    refcount=i64,
    type=ptr,
    aval=ptr,
    data=ptr,
    owner=ptr,
    block=ptr,
    extra=ptr,
    weak_references=ptr,
)

Memory = layout("Memory", refcount=i64, type=ptr, block=ptr)

array_type = unit.cell("calque_array_type", ptr, 0)
memory_type = unit.cell("calque_memory_type", ptr, 0)
attribute_error = unit.cell("calque_attribute_error", ptr, id(AttributeError))
deleted_mark = unit.cell("calque_deleted_mark", ptr, lambda: id(DELETED))
buffer_source = unit.cell("calque_buffer_source", ptr, lambda: id(_buffer_source))
pending_mark = unit.cell("calque_pending_mark", ptr, lambda: id(PENDING))
wait_for = unit.cell("calque_wait_for", ptr, lambda: id(_wait_for))
report_deleted = unit.cell("calque_report_deleted", ptr, lambda: id(_report_deleted))
subscript_handler = unit.var(
    "calque_subscript_handler", ptr
)  # `subscript` puts the address of a function there
tuple_type = unit.cell("calque_tuple_type", ptr, id(tuple))
ndarray_type = unit.cell("calque_ndarray_type", ptr, NDARRAY_TYPE)
dtype_meta = unit.cell("calque_dtype_meta", ptr, id(type(np.dtype)))
spare_first = unit.var("calque_spare_arrays", ptr)  # freed Array objects, chained through `aval`
spare_count = unit.var("calque_spare_count", i64)
binary_function = signature(ptr, ptr, ptr)
SPARE_LIMIT = 256
MAX_RANK = 64  # of NumPy 2; NumPy 1 refuses more than 32 by itself
ORDER_NATIVE, ORDER_NONE = ord("="), ord("|")
ORDER_HERE = ord(
    "<" if sys.byteorder == "little" else ">"
)  # as arrays have it whose bytes were turned
LARGEST_BLOCK = 1 << 47  # more than any machine has; keeps sizes away from overflow

PyObject_Malloc = unit.extern("PyObject_Malloc", ptr, i64)
PyObject_Free = unit.extern("PyObject_Free", None, ptr)
PyObject_Init = unit.extern("PyObject_Init", ptr, ptr, ptr)
PyObject_ClearWeakRefs = unit.extern("PyObject_ClearWeakRefs", None, ptr)
PyObject_GetBuffer = unit.extern("PyObject_GetBuffer", i32, ptr, ptr, i32)
PyLong_AsSsize_t = unit.extern("PyLong_AsSsize_t", i64, ptr)
PyLong_FromLongLong = unit.extern("PyLong_FromLongLong", ptr, i64)
PyObject_Vectorcall = unit.extern("PyObject_Vectorcall", ptr, ptr, ptr, i64, ptr)


class _Deleted:
    """Stands where an array says where it lives, once it has been deleted."""

    def __repr__(self) -> str:
        return "deleted"


DELETED: _Deleted = _Deleted()


class _Pending:
    """Stands where an array says where it lives, while it has no memory and was placed nowhere."""


PENDING: _Pending = _Pending()


def _report_deleted(array: Any) -> None:
    aval = array.aval
    text = (
        f"{aval.dtype}[{','.join(map(str, aval.shape))}]" if hasattr(aval, "shape") else repr(aval)
    )
    raise RuntimeError(f"Array has been deleted with shape={text}. {WHY_DELETED}")


def _no_source(array: Any) -> Any:
    raise BufferError("nothing knows the elements of arrays: import calque")


# what exports the memory of an array to others: an object with the buffer protocol
buffers: Final[Hook[Callable[[Any], Any]]] = process.hook("buffers of arrays", _no_source)


def _buffer_source(array: Any) -> Any:
    return buffers.call(array)


def _nobody(array: Any) -> Any:
    raise RuntimeError("nothing knows the memory of other engines: import calque")


# the elements of a pending array as an ndarray whose memory its owner keeps
arrivals: Final[Hook[Callable[[Any], Any]]] = process.hook("arrivals of pending arrays", _nobody)


def _wait_for(array: Any) -> Any:
    return arrivals.call(array)


@unit.helper
def array_object(aval: ptr, data: ptr, block: ptr, owner: ptr) -> ptr:
    """A new Array; takes over `block` and a reference to `owner`. NULL with an exception set when
    memory is out."""
    self = load_ptr(spare_first, 0)
    if self:
        store_i64(spare_first, 0, i64(Array(self).aval))
        store_i64(spare_count, 0, load_i64(spare_count, 0) - 1)
        Array(self).refcount = 1
        incref(array_type)
    else:
        self = PyObject_Malloc(64)
        if self == NULL:
            return PyErr_NoMemory()
        PyObject_Init(self, array_type)
    incref(aval)
    Array(self).aval = aval
    Array(self).data = data
    Array(self).owner = owner
    Array(self).block = block
    Array(self).extra = NULL
    Array(self).weak_references = NULL
    return self


@unit.function
def calque_array_dealloc(self: ptr) -> None:
    if Array(self).weak_references:
        PyObject_ClearWeakRefs(self)
    if Array(self).block:
        calque_free(Array(self).block)
    aval, owner, extra = Array(self).aval, Array(self).owner, Array(self).extra
    if load_i64(spare_count, 0) < SPARE_LIMIT:
        Array(self).aval = load_ptr(spare_first, 0)
        store_i64(spare_first, 0, i64(self))
        store_i64(spare_count, 0, load_i64(spare_count, 0) + 1)
    else:
        PyObject_Free(self)
    decref(array_type)
    xdecref(owner)
    xdecref(extra)
    decref(aval)


@unit.helper
def fresh_array(aval: ptr, nbytes: i64) -> ptr:
    """A new Array with a block of its own; NULL with MemoryError set."""
    block = calque_alloc(max(nbytes, 1)) if nbytes < LARGEST_BLOCK else NULL
    if unlikely(block == NULL):
        return PyErr_Format(
            memory_error, "no memory for an array of type %R: %zd bytes", aval, nbytes
        )
    array = array_object(aval, block, block, NULL)
    if unlikely(array == NULL):
        calque_free(block)
    return array


@unit.helper
def refuse(error: ptr, message: ptr) -> ptr:
    """Set an exception and give NULL."""
    PyErr_SetString(error, message)
    return NULL


# ---- who sees the memory ----


@unit.function
def calque_memory_dealloc(self: ptr) -> None:
    calque_free(Memory(self).block)
    PyObject_Free(self)
    decref(memory_type)


@unit.function
def refuse_deleted(x: ptr) -> ptr:
    """Raise what the use of a deleted array raises; gives NULL."""
    place = alloca(16)
    store_ptr(place, 8, x)
    xdecref(PyObject_Vectorcall(report_deleted, place + 8, 1 | (1 << 63), NULL))
    return NULL


@unit.function
def has_memory(x: ptr) -> i1:
    """Whether the memory of an Array can be used; waits for a pending one. False with an exception
    set."""
    if Array(x).extra == NULL or Array(x).data != NULL:
        return i1(1)
    if Array(x).extra == deleted_mark:
        refuse_deleted(x)
        return i1(0)
    place = alloca(16)
    store_ptr(place, 8, x)
    found = PyObject_Vectorcall(wait_for, place + 8, 1 | (1 << 63), NULL)
    if found == NULL:
        return i1(0)
    if Array(x).data == NULL and Array(x).extra != deleted_mark:
        Array(x).data = NdArray(found).data
        if Array(x).extra == pending_mark:
            Array(x).extra = NULL
            decref(pending_mark)
    decref(found)
    return i1(1)


@unit.helper
def owner_of(x: ptr, nobody: ptr) -> ptr:
    """Who keeps the memory of an Array alive, borrowed, or `nobody`: for what another engine has
    its buffer. NULL with an exception set."""
    owner = Array(x).owner
    if owner and PyObject(owner).type == foreign_type:
        return foreign_buffer(owner)
    return owner if owner else nobody


@unit.function
def lend(x: ptr) -> ptr:
    """A new reference to who keeps the memory of an Array alive for others; NULL with an exception
    set."""
    if Array(x).extra == deleted_mark:
        return refuse_deleted(x)
    if Array(x).block:
        memory = PyObject_Malloc(sizeof(Memory))
        if memory == NULL:
            return PyErr_NoMemory()
        PyObject_Init(memory, memory_type)
        Memory(memory).block = Array(x).block
        Array(x).owner = memory
        Array(x).block = NULL
    owner = owner_of(x, x)
    return new_reference(owner) if owner else NULL


@unit.function
def is_sole_owner(x: ptr) -> i1:
    """Whether nobody else can see the memory of an Array."""
    if Array(x).block == NULL:
        owner = Array(x).owner
        if owner == NULL or PyObject(owner).type != memory_type or PyObject32(owner).refcount != 1:
            return i1(0)
    return not is_in_use(x)


@unit.function
def mark_deleted(x: ptr) -> None:
    """Take the memory from an Array. What others see or use of it lives on."""
    if Array(x).extra == deleted_mark:
        return
    extra, block, owner = Array(x).extra, Array(x).block, Array(x).owner
    Array(x).extra = new_reference(deleted_mark)
    Array(x).data = NULL
    if not is_in_use(x):
        if block:
            Array(x).block = NULL
            calque_free(block)
        elif owner and PyObject(owner).type == memory_type:
            Array(x).owner = NULL
            decref(owner)
    xdecref(extra)


@unit.function
def _delete_array(self: ptr, args: ptr, count: i64) -> ptr:
    """delete_array(array): give the memory of an Array back; using it raises from now on."""
    if count != 1 or PyObject(load_ptr(args, 0)).type != array_type:
        return refuse(type_error, "delete_array takes an Array")
    mark_deleted(load_ptr(args, 0))
    return new_reference(none)


# ---- making and looking ----


@unit.function
def _new_array(self: ptr, args: ptr, count: i64) -> ptr:
    """new_array(aval, nbytes): an Array on fresh, uninitialised memory."""
    if count != 2:
        return refuse(type_error, "new_array takes an aval and a number of bytes")
    nbytes = PyLong_AsSsize_t(load_ptr(args, 8))
    if nbytes < 0:
        if PyErr_Occurred():
            return NULL
        return refuse(value_error, "a negative number of bytes")
    return fresh_array(load_ptr(args, 0), nbytes)


@unit.helper
def is_plain_ndarray(x: ptr) -> i64:
    """Whether machine code may read the memory: exact ndarray, C order, aligned, native bytes."""
    if PyObject(x).type != ndarray_type:
        return 0
    wanted = NDARRAY_C_CONTIGUOUS | NDARRAY_ALIGNED
    order = load_u8(NdArray(x).descr, DESCR_BYTEORDER)
    native = order in (ORDER_NATIVE, ORDER_NONE, ORDER_HERE)
    return i64((i64(NdArray(x).flags) & wanted) == wanted and native)


@unit.function
def _wrap_numpy(self: ptr, args: ptr, count: i64) -> ptr:
    """wrap_numpy(aval, ndarray): an Array on the memory of a C-ordered, aligned, native ndarray,
    which it keeps alive."""
    if count != 2:
        return refuse(type_error, "wrap_numpy takes an aval and an ndarray")
    source = load_ptr(args, 8)
    if not is_plain_ndarray(source):
        return refuse(
            type_error,
            "wrap_numpy takes a C-contiguous, aligned numpy.ndarray in native byte order",
        )
    incref(source)
    array = array_object(load_ptr(args, 0), NdArray(source).data, NULL, source)
    if array == NULL:
        decref(source)
    return array


@unit.function
def _share(self: ptr, args: ptr, count: i64) -> ptr:
    """share(array, aval): another Array on the same memory."""
    if count != 2 or PyObject(load_ptr(args, 0)).type != array_type:
        return refuse(type_error, "share takes an Array and an aval")
    source = load_ptr(args, 0)
    owner = lend(source)  # chains of views hold their root only
    if owner == NULL:
        return NULL
    array = array_object(load_ptr(args, 8), Array(source).data, NULL, owner)
    if array == NULL:
        decref(owner)
    elif Array(source).data == NULL:
        Array(array).extra = new_reference(pending_mark)
    return array


@unit.function
def _as_numpy(self: ptr, args: ptr, count: i64) -> ptr:
    """as_numpy(array, dtype, shape): a read-only ndarray on the memory of an Array."""
    if count != 3 or PyObject(load_ptr(args, 0)).type != array_type:
        return refuse(type_error, "as_numpy takes an Array, a dtype and a shape")
    source, descr, shape = load_ptr(args, 0), load_ptr(args, 8), load_ptr(args, 16)
    if PyObject(PyObject(descr).type).type != dtype_meta or PyObject(shape).type != tuple_type:
        return refuse(type_error, "as_numpy takes an Array, a dtype and a tuple of integers")
    rank = PyTuple(shape).size
    if rank > MAX_RANK:
        return refuse(value_error, "NumPy's arrays have at most 64 axes, and this one has more")
    dims = alloca(8 * MAX_RANK)
    for i in range(rank):
        size = PyLong_AsSsize_t(load_ptr(PyTuple.at(shape).items, 8 * i))
        if size < 0:
            return NULL if PyErr_Occurred() else refuse(value_error, "a negative dimension")
        store_i64(dims, 8 * i, size)
    if unlikely(Array(source).data == NULL) and not has_memory(source):
        return NULL
    owner = lend(source)
    if owner == NULL:
        return NULL
    if PyObject(owner).type != memory_type:  # the view of a NumPy array could be made writeable
        decref(owner)
        owner = new_reference(source)
    incref(descr)  # the next call takes it over
    flags: i32 = NDARRAY_C_CONTIGUOUS | NDARRAY_ALIGNED
    view = PyArray_NewFromDescr(
        ndarray_type, descr, i32(rank), dims, NULL, Array(source).data, flags, NULL
    )
    if view == NULL:
        decref(owner)
        return NULL
    if PyArray_SetBaseObject(view, owner) < 0:
        decref(view)
        return NULL
    return view


@unit.function
def calque_get_owner(self: ptr, closure: ptr) -> ptr:
    """`_owner`: who keeps the memory of an Array alive, None for the Array itself."""
    owner = owner_of(self, none)
    return new_reference(owner) if owner else NULL


@unit.function
def calque_no_owner(self: ptr, value: ptr, closure: ptr) -> i32:
    """`_owner = x`, which only `set_owner` does."""
    refuse(attribute_error, "readonly attribute")
    return i32(-1)


@unit.function
def calque_get_extra(self: ptr, closure: ptr) -> ptr:
    """`_extra`: where an Array says it lives; None for nowhere in particular."""
    extra = Array(self).extra
    return new_reference(none if extra in (NULL, pending_mark) else extra)


@unit.function
def calque_set_extra(self: ptr, value: ptr, closure: ptr) -> i32:
    """`_extra = place`, or None."""
    before, mark = Array(self).extra, value
    if value in (NULL, none):
        is_pending = Array(self).data == NULL and before != deleted_mark
        mark = pending_mark if is_pending else NULL
    if mark:
        incref(mark)
    Array(self).extra = mark
    xdecref(before)
    return i32(0)


@unit.function
def calque_array_subscript(self: ptr, index: ptr) -> ptr:
    """mp_subscript, which needs more than is known here."""
    handler = load_ptr(subscript_handler, 0)
    if unlikely(handler == NULL):
        return refuse(type_error, "arrays cannot be indexed before calque is imported")
    return binary_function(handler, self, index)


@unit.function
def calque_array_item(self: ptr, place: i64) -> ptr:
    """sq_item: an element for those who ask for sequences, such as np.lexsort."""
    index = PyLong_FromLongLong(place)
    if index == NULL:
        return NULL
    item = calque_array_subscript(self, index)
    decref(index)
    return item


@unit.function
def calque_array_getbuffer(self: ptr, view: ptr, flags: i32) -> i32:
    """bf_getbuffer: the buffer of the object that exports the memory; it keeps that alive."""
    place = alloca(16)
    store_ptr(place, 8, self)
    source = PyObject_Vectorcall(buffer_source, place + 8, 1 | (1 << 63), NULL)
    if source == NULL:
        store_ptr(view, 8, NULL)  # Py_buffer.obj, as the protocol asks
        return i32(-1)
    result = PyObject_GetBuffer(source, view, flags)
    decref(source)
    return result


_Memory = make_type(
    TypeSpec(
        name="calque.Memory",
        size=Memory.size,
        flags=FLAGS_DEFAULT | FLAGS_NO_NEW,
        doc="The memory of an array at which others look: they keep it alive.",
        slots={"tp_dealloc": calque_memory_dealloc},
    )
)
memory_type.write(id(_Memory))

ArrayImpl: Any = make_type(
    TypeSpec(
        name="calque.ArrayImpl",
        size=Array.size,
        flags=FLAGS_DEFAULT | FLAGS_NO_NEW,
        doc="An immutable array: an aval and the memory that holds its elements.",
        slots={
            "tp_dealloc": calque_array_dealloc,
            "mp_subscript": calque_array_subscript,
            "sq_item": calque_array_item,
            "bf_getbuffer": calque_array_getbuffer,
        },
        members=(
            ("aval", OBJECT, Array.offset("aval"), READONLY),
            ("_ptr", ULONGLONG, Array.offset("data"), READONLY),
            ("_block", ULONGLONG, Array.offset("block"), READONLY),
            ("__weaklistoffset__", PYSSIZET, Array.offset("weak_references"), READONLY),
        ),
        properties={
            "_extra": (calque_get_extra, calque_set_extra),
            "_owner": (calque_get_owner, calque_no_owner),
        },
    )
)
array_type.write(id(ArrayImpl))

new_array: Callable[[Any, int], Any] = make_builtin(_new_array)
wrap_numpy: Callable[[Any, np.ndarray[Any, Any]], Any] = make_builtin(_wrap_numpy)
share: Callable[[Any, Any], Any] = make_builtin(_share)
delete_array: Callable[[Any], None] = make_builtin(_delete_array)
as_numpy: Callable[[Any, np.dtype[Any], tuple[int, ...]], np.ndarray[Any, Any]] = make_builtin(
    _as_numpy
)
