"""Small arguments that another engine reads in memory that is written anew by each call.

A `Stage` has one buffer of the engine on memory of the host. A call that brings an ndarray or a
number writes it there and gives that buffer, which takes nanoseconds; a new buffer takes the engine
microseconds. The memory may be written once the run that read it last is done: the stage keeps a
result of that run, which is asked `is_ready`. Until then, and while another thread has the stage,
arguments are brought the long way. A stage whose result was given away, or whose run failed, makes
itself a new buffer; one that has to do so often gives up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.machine.call.layout import SCALAR_KINDS
from calque.machine.call.match import float_type, int_type, py_true, store_float, store_int
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i64,
    layout,
    load_i64,
    load_ptr,
    memcpy,
    ptr,
    sizeof,
    store_ptr,
)
from calque.machine.objects.array_type import is_plain_ndarray, refuse, tuple_type
from calque.machine.objects.foreign import PyObject_Init, PyObject_VectorcallMethod, foreign_buffer
from calque.machine.objects.pyapi import (
    FLAGS_DEFAULT,
    FLAGS_NO_NEW,
    VECTORCALL_OFFSET_FLAG,
    NdArray,
    PyDescr,
    PyErr_Clear,
    PyErr_NoMemory,
    PyErr_Occurred,
    PyFloat,
    PyObject,
    PyTuple,
    PyVar,
    TypeSpec,
    decref,
    make_builtin,
    make_type,
    new_reference,
    none,
    type_error,
    xdecref,
)

unit = Unit("calque_staging")

Stage = layout(
    "Stage",
    refcount=i64,
    type=ptr,
    buffer=ptr,  # NULL until one is needed
    data=ptr,  # its memory
    nbytes=i64,  # of an argument; -1 where none is staged any more
    width=i64,  # bytes of an element
    scalar=ptr,  # NumPy's type of the elements
    kind=i64,  # of a number, -1 where arguments are arrays
    last=ptr,  # a result of the run that read it last (a `Foreign`), NULL when that is done
    taken=i64,  # 1 from writing until the run is under way
    lost=i64,  # how many buffers were given up
    make=ptr,  # gives (buffer, its address), or None where there is no such memory
    ready=ptr,  # the name of the method that asks whether a buffer is computed
)
PATIENCE = 8  # buffers that a stage may lose

PyObject_Malloc = unit.extern("PyObject_Malloc", ptr, i64)
PyObject_Free = unit.extern("PyObject_Free", None, ptr)
PyObject_Vectorcall = unit.extern("PyObject_Vectorcall", ptr, ptr, ptr, i64, ptr)
PyLong_AsSsize_t = unit.extern("PyLong_AsSsize_t", i64, ptr)
stage_type = unit.cell("calque_stage_type", ptr, 0)


@unit.helper
def retire(stage: ptr) -> None:
    """Forget the buffer, which nobody knows to be free; the engine keeps its memory as long as it
    needs that."""
    buffer, last = Stage(stage).buffer, Stage(stage).last
    Stage(stage).buffer = NULL
    Stage(stage).last = NULL
    Stage(stage).lost = Stage(stage).lost + 1
    if Stage(stage).lost >= PATIENCE:
        Stage(stage).nbytes = -1
    xdecref(buffer)
    xdecref(last)


@unit.function
def is_free(stage: ptr) -> i64:
    """Whether the run that read the memory last is done."""
    last = Stage(stage).last
    if last == NULL:
        return 1
    place, result = alloca(16), foreign_buffer(last)
    answer = NULL
    if result:
        store_ptr(place, 8, result)
        answer = PyObject_VectorcallMethod(
            Stage(stage).ready, place + 8, 1 | VECTORCALL_OFFSET_FLAG, NULL
        )
    if answer == NULL:  # the result was given away, or its run failed
        PyErr_Clear()
        retire(stage)
        return 0
    is_done = answer == py_true
    decref(answer)
    if not is_done:
        return 0
    Stage(stage).last = NULL
    decref(last)
    return 1


@unit.function
def opened(stage: ptr) -> i64:
    """Whether the stage has a buffer, made now if need be; 0 may come with an exception."""
    if Stage(stage).buffer:
        return 1
    made = PyObject_Vectorcall(Stage(stage).make, NULL, 0, NULL)
    if made == NULL:
        return 0
    if made == none:
        Stage(stage).nbytes = -1
    elif PyObject(made).type != tuple_type or PyVar(made).size != 2:
        refuse(type_error, "a stage is made of a buffer and its address")
    else:
        address = PyLong_AsSsize_t(load_ptr(PyTuple.at(made).items, 8))
        if not PyErr_Occurred():
            Stage(stage).data = ptr(address)
            Stage(stage).buffer = new_reference(load_ptr(PyTuple.at(made).items, 0))
    decref(made)
    return 1 if Stage(stage).buffer else 0


@unit.function
def is_like(stage: ptr, x: ptr) -> i64:
    """Whether an argument has the bytes of this stage: a plain ndarray, or a number where it is
    one."""
    kind = PyObject(x).type
    if kind in (float_type, int_type):
        return i64(Stage(stage).kind >= 0)
    if not is_plain_ndarray(x) or PyDescr(NdArray(x).descr).scalar_type != Stage(stage).scalar:
        return 0
    nbytes = Stage(stage).width
    for axis in range(i64(NdArray(x).nd)):
        nbytes *= load_i64(NdArray(x).dims, 8 * axis)
    return i64(nbytes == Stage(stage).nbytes)


@unit.function
def written(stage: ptr, x: ptr) -> i64:
    """Write an argument that `is_like` it; 0 where a number does not fit."""
    kind, data = PyObject(x).type, Stage(stage).data
    if kind == float_type:
        return i64(store_float(Stage(stage).kind, data, PyFloat(x).value, 0.0))
    if kind == int_type:
        return i64(store_int(Stage(stage).kind, data, x))
    memcpy(data, NdArray(x).data, Stage(stage).nbytes)
    return 1


@unit.function
def staged(stage: ptr, x: ptr) -> ptr:
    """A new reference to the buffer, whose memory has this argument now; NULL where that cannot be,
    without an exception but for those of `make`. Who got it says `settle` when the run is under
    way, from a thread that never let another one in between."""
    if Stage(stage).taken or Stage(stage).nbytes < 0 or not is_like(stage, x):
        return NULL
    Stage(stage).taken = 1  # other threads may come while we ask
    if is_free(stage) and opened(stage) and written(stage, x):
        return new_reference(Stage(stage).buffer)
    Stage(stage).taken = 0
    return NULL


@unit.function
def settle(stage: ptr, given: ptr, last: ptr, failed: i64) -> None:
    """What became of a run that was given this buffer: `last` is a result, NULL when there was no
    run. Buffers of others are not the stage's."""
    if stage == NULL or given == NULL or Stage(stage).buffer != given:
        return
    if failed:
        retire(stage)
    else:
        Stage(stage).last = new_reference(last) if last else NULL
    Stage(stage).taken = 0


# ---- the type ----


@unit.function
def _new_stage(self: ptr, args: ptr, count: i64) -> ptr:
    """new_stage(nbytes, width, scalar, kind, make, ready)"""
    if count != 6:
        return refuse(type_error, "new_stage takes six arguments")
    made = PyObject_Malloc(sizeof(Stage))
    if made == NULL:
        return PyErr_NoMemory()
    PyObject_Init(made, stage_type)
    Stage(made).buffer = NULL
    Stage(made).last = NULL
    Stage(made).taken = 0
    Stage(made).lost = 0
    Stage(made).nbytes = PyLong_AsSsize_t(load_ptr(args, 0))
    Stage(made).width = PyLong_AsSsize_t(load_ptr(args, 8))
    Stage(made).scalar = new_reference(load_ptr(args, 16))
    Stage(made).kind = PyLong_AsSsize_t(load_ptr(args, 24))
    Stage(made).make = new_reference(load_ptr(args, 32))
    Stage(made).ready = new_reference(load_ptr(args, 40))
    if PyErr_Occurred():
        decref(made)
        return NULL
    return made


@unit.function
def calque_stage_dealloc(self: ptr) -> None:
    buffer, last, scalar = Stage(self).buffer, Stage(self).last, Stage(self).scalar
    make, ready = Stage(self).make, Stage(self).ready
    PyObject_Free(self)
    decref(stage_type)
    xdecref(buffer)
    xdecref(last)
    decref(scalar)
    decref(make)
    decref(ready)


_StageImpl: Final[Any] = make_type(
    TypeSpec(
        name="calque.Stage",
        size=Stage.size,
        flags=FLAGS_DEFAULT | FLAGS_NO_NEW,
        doc="Memory of the host that calls of another engine write anew, and its buffer there.",
        slots={"tp_dealloc": calque_stage_dealloc},
    )
)
stage_type.write(id(_StageImpl))
_new = make_builtin(_new_stage)


def new_stage(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    make: Callable[[], tuple[Any, int] | None],
    ready: str,
) -> Any:
    """A stage for arrays like this, and for numbers where they have no dimension. It has memory
    when it is first needed: `make` gives (buffer, address), whose memory the buffer keeps, 16 bytes
    at least; or None. `ready` is a method of results."""
    kind = -1 if shape else int(SCALAR_KINDS.get(dtype, -1))
    nbytes = math.prod(shape) * dtype.itemsize
    return _new(nbytes, dtype.itemsize, dtype.type, kind, make, ready)


__all__ = ["new_stage", "settle", "staged"]
