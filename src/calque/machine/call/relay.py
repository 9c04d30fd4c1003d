"""Calls of programs of another engine by machine code: the buffers of the arguments are looked up,
the engine is called, and its results become pending Arrays, without a line of Python.

    Relay(engine, inputs, outputs, donated)

`inputs` has for each operand of the engine's program (which argument it is, where its buffer has
to be, the function that brings another argument there, a stage for small ones or None); `outputs`
for each result (its aval, where its buffer is, where it says it lives). The entries of `functions`
have such a relay for the function of their `PythonProgram`."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from calque.machine.call.staging import settle, staged
from calque.machine.call.types import visit_one
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i32,
    i64,
    layout,
    likely,
    load_i64,
    load_ptr,
    ptr,
    sizeof,
    store_ptr,
)
from calque.machine.objects.array_type import (
    Array,
    array_type,
    deleted_mark,
    mark_deleted,
    refuse,
    tuple_type,
)
from calque.machine.objects.foreign import (
    Foreign,
    PyObject_VectorcallMethod,
    foreign_buffer,
    foreign_type,
    list_type,
)
from calque.machine.objects.pending import pending_array
from calque.machine.objects.pyapi import (
    FLAGS_DEFAULT,
    FLAGS_HAVE_GC,
    FLAGS_NO_NEW,
    FLAGS_VECTORCALL,
    PYSSIZET,
    READONLY,
    VECTORCALL_OFFSET_FLAG,
    PyBytes,
    PyErr_Occurred,
    PyList,
    PyObject,
    PyTuple,
    PyVar,
    TypeSpec,
    c_address,
    decref,
    make_builtin,
    make_type,
    new_reference,
    none,
    slot_offset,
    type_error,
    xdecref,
)
from calque.machine.state import ProcessValue

unit = Unit("calque_relay")

RelayObject = layout("RelayObject", refcount=i64, type=ptr, vectorcall=ptr, words=ptr, keeps=ptr)
Words = layout(
    "Words",
    arguments=i64,  # how many a call has
    execute=ptr,  # takes the list of buffers
    maker=ptr,  # (a method of what it gives, its argument) gives the list of buffers of the results
    failed=ptr,  # (exception, arguments): raises what the user is to see
    watched=ptr,  # what serves the call while somebody watches
    watcher=ptr,  # a ProcessValue, None while nobody does
    value=i64,  # where it keeps that
    constants=ptr,  # a list of buffers that come first
    asked=i64,  # the result that says whether a run is done, for the stages
    inputs=i64,  # how many, of four words each: see above
    outputs=i64,
    donated=i64,  # how many arguments are given away, of a word each
)
INPUT, OUTPUT = 32, 24

PyType_GenericAlloc = unit.extern("PyType_GenericAlloc", ptr, ptr, i64)
PyObject_GC_UnTrack = unit.extern("PyObject_GC_UnTrack", None, ptr)
PyObject_GC_Del = unit.extern("PyObject_GC_Del", None, ptr)
PyObject_Vectorcall = unit.extern("PyObject_Vectorcall", ptr, ptr, ptr, i64, ptr)
PyList_New = unit.extern("PyList_New", ptr, i64)
PyErr_Fetch = unit.extern("PyErr_Fetch", None, ptr, ptr, ptr)
PyErr_NormalizeException = unit.extern("PyErr_NormalizeException", None, ptr, ptr, ptr)
COUNT_MASK = VECTORCALL_OFFSET_FLAG - 1

relay_type = unit.cell("calque_relay_type", ptr, 0)


# ---- a call ----


@unit.helper
def buffer_of(x: ptr, wanted: ptr) -> ptr:
    """A new reference to the buffer of an argument if it is where it has to be, else NULL."""
    if PyObject(x).type != array_type or Array(x).extra == deleted_mark:
        return NULL
    owner = Array(x).owner
    if owner == NULL or PyObject(owner).type != foreign_type or Foreign(owner).where != wanted:
        return NULL
    buffer = foreign_buffer(owner)
    return new_reference(buffer) if buffer else NULL


@unit.function
def gathered(words: ptr, args: ptr) -> ptr:
    """The list of buffers that the engine takes; NULL with an exception set."""
    constants, count = Words(words).constants, Words(words).inputs
    first, place = PyVar(constants).size, alloca(16)
    made = PyList_New(first + count)
    if made == NULL:
        return NULL
    items, known = PyList(made).items, PyList(constants).items
    for i in range(first):
        store_ptr(items, 8 * i, new_reference(load_ptr(known, 8 * i)))
    items, pc = items + 8 * first, words + sizeof(Words)
    for i in range(count):
        x = load_ptr(args, 8 * load_i64(pc, 0))
        buffer, stage = buffer_of(x, load_ptr(pc, 8)), load_ptr(pc, 24)
        if buffer == NULL and stage and not PyErr_Occurred():
            buffer = staged(stage, x)
        if buffer == NULL and not PyErr_Occurred():
            store_ptr(place, 8, x)
            buffer = PyObject_Vectorcall(
                load_ptr(pc, 16), place + 8, 1 | VECTORCALL_OFFSET_FLAG, NULL
            )
        if buffer == NULL:
            settle_all(words, made, NULL, 0)
            decref(made)  # what is not filled is NULL
            return NULL
        store_ptr(items, 8 * i, buffer)
        pc += INPUT
    return made


@unit.function
def settle_all(words: ptr, buffers: ptr, last: ptr, failed: i64) -> None:
    """Tell the stages what became of the run that was given these buffers."""
    items, pc = (
        PyList(buffers).items + 8 * PyVar(Words(words).constants).size,
        words + sizeof(Words),
    )
    for i in range(Words(words).inputs):
        settle(load_ptr(pc, 24), load_ptr(items, 8 * i), last, failed)
        pc += INPUT


@unit.function
def executed(words: ptr, buffers: ptr) -> ptr:
    """The list of the results; NULL with an exception set."""
    place = alloca(24)
    store_ptr(place, 8, buffers)
    given = PyObject_Vectorcall(Words(words).execute, place + 8, 1 | VECTORCALL_OFFSET_FLAG, NULL)
    if given == NULL:
        return NULL
    maker = Words(words).maker
    store_ptr(place, 8, given)
    if likely(Words(words).outputs == 1):  # a buffer is made of it when somebody asks for one
        made = arrays_of(words, place + 8, maker)
        decref(given)
        return made
    store_ptr(place, 16, load_ptr(PyTuple.at(maker).items, 8))
    found = PyObject_VectorcallMethod(
        load_ptr(PyTuple.at(maker).items, 0), place + 8, 2 | VECTORCALL_OFFSET_FLAG, NULL
    )
    decref(given)
    if found == NULL:
        return NULL
    made = NULL
    if PyObject(found).type != list_type or PyVar(found).size != Words(words).outputs:
        refuse(type_error, "another engine gives a list of its results")
    else:
        made = arrays_of(words, PyList(found).items, NULL)
    decref(found)
    return made


@unit.function
def arrays_of(words: ptr, buffers: ptr, maker: ptr) -> ptr:
    """The list of Arrays for these buffers; NULL with an exception set."""
    count = Words(words).outputs
    made = PyList_New(count)
    pc = words + sizeof(Words) + INPUT * Words(words).inputs
    for k in range(count if made else 0):
        array = pending_array(
            load_ptr(pc, 0), load_ptr(buffers, 8 * k), load_ptr(pc, 8), load_ptr(pc, 16), maker
        )
        if array == NULL:
            decref(made)
            return NULL
        store_ptr(PyList(made).items, 8 * k, array)
        pc += OUTPUT
    return made


@unit.function
def failed(words: ptr, args: ptr) -> ptr:
    """Let Python say what went wrong: NULL, with its exception."""
    place, count = alloca(24), Words(words).arguments
    error = alloca(24)
    PyErr_Fetch(error, error + 8, error + 16)
    PyErr_NormalizeException(error, error + 8, error + 16)
    given = PyList_New(count)
    if given:
        for i in range(count):
            store_ptr(PyList(given).items, 8 * i, new_reference(load_ptr(args, 8 * i)))
        store_ptr(place, 8, load_ptr(error, 8))
        store_ptr(place, 16, given)
        answer = PyObject_Vectorcall(
            Words(words).failed, place + 8, 2 | VECTORCALL_OFFSET_FLAG, NULL
        )
        decref(given)
        if answer:
            decref(answer)
            refuse(type_error, "what explains a failure raises")
    for i in range(3):
        xdecref(load_ptr(error, 8 * i))
    return NULL


@unit.function
def calque_relay_call(self: ptr, args: ptr, flagged: i64, names: ptr) -> ptr:
    """The list of the results for these arguments."""
    words = RelayObject(self).words
    if flagged & COUNT_MASK != Words(words).arguments or names != NULL:
        return refuse(type_error, "a relay takes the arguments of its program")
    if load_ptr(Words(words).watcher, Words(words).value) != none:
        return PyObject_Vectorcall(Words(words).watched, args, flagged, NULL)
    buffers = gathered(words, args)
    if buffers == NULL:
        return NULL
    made = executed(words, buffers)
    if made == NULL:
        settle_all(words, buffers, NULL, 1)
    elif Words(words).outputs:
        result = load_ptr(PyList(made).items, 8 * Words(words).asked)
        settle_all(words, buffers, Array(result).owner, 0)
    decref(buffers)
    if made == NULL:
        return failed(words, args)
    pc = words + sizeof(Words) + INPUT * Words(words).inputs + OUTPUT * Words(words).outputs
    for i in range(Words(words).donated):
        x = load_ptr(args, 8 * load_i64(pc, 8 * i))
        if likely(PyObject(x).type == array_type):
            mark_deleted(x)
    return made


# ---- the type ----


@unit.function
def _new_relay(self: ptr, args: ptr, count: i64) -> ptr:
    """new_relay(words, keeps): a relay on the words of a bytes object, which `keeps` holds with all
    that they point to."""
    if count != 2 or PyObject(load_ptr(args, 8)).type != tuple_type:
        return refuse(type_error, "new_relay takes bytes and a tuple")
    made = PyType_GenericAlloc(relay_type, 0)
    if made:
        RelayObject(made).vectorcall = calque_relay_call
        RelayObject(made).words = PyBytes.at(load_ptr(args, 0)).data
        RelayObject(made).keeps = new_reference(load_ptr(args, 8))
    return made


@unit.function
def calque_relay_traverse(self: ptr, visit: ptr, argument: ptr) -> i32:
    status = visit_one(PyObject(self).type, visit, argument)
    return status if status else visit_one(RelayObject(self).keeps, visit, argument)


@unit.function
def calque_relay_dealloc(self: ptr) -> None:
    kind = PyObject(self).type
    PyObject_GC_UnTrack(self)
    xdecref(RelayObject(self).keeps)
    PyObject_GC_Del(self)
    decref(kind)


# As an entry it has no tp_clear: cycles break at the callable that holds both.

_new = make_builtin(_new_relay)
RelayImpl: Final[Any] = make_type(
    TypeSpec(
        name="calque.Relay",
        size=RelayObject.size,
        flags=FLAGS_DEFAULT | FLAGS_HAVE_GC | FLAGS_VECTORCALL | FLAGS_NO_NEW,
        doc="A program of another engine as a function of the arguments, by machine code.",
        slots={
            "tp_call": c_address("PyVectorcall_Call"),
            "tp_dealloc": calque_relay_dealloc,
            "tp_traverse": calque_relay_traverse,
        },
        members=(("__vectorcalloffset__", PYSSIZET, RelayObject.offset("vectorcall"), READONLY),),
    )
)
relay_type.write(id(RelayImpl))


class Engine(NamedTuple):
    """How another engine is called; see `Words`."""

    execute: Any
    maker: tuple[str, list[Any]]
    failed: Any
    watched: Any
    watcher: ProcessValue[Any]
    constants: list[Any]


def Relay(
    arguments: int,
    engine: Engine,
    inputs: Sequence[tuple[int, Any, Any, Any]],
    outputs: Sequence[tuple[Any, Any, Any]],
    donated: Sequence[int] = (),
    asked: int = 0,
) -> Any:
    """A function of so many arguments that gives the list of the results; see the top of this
    file. Stages keep the result `asked` until the next call."""
    for i in (*[i for i, *_ in inputs], *donated):
        if not 0 <= i < arguments:
            raise ValueError(f"there is no argument {i}: a call has {arguments}")
    if type(engine.maker) is not tuple or type(engine.constants) is not list:
        raise TypeError("the maker of a relay is a tuple, its constants are a list")
    if any(stage is not None for *_, stage in inputs) and not 0 <= asked < len(outputs):
        raise ValueError(f"stages ask result {asked} of {len(outputs)}")
    value = slot_offset(ProcessValue, "value", engine.watcher)
    words = [arguments, *map(id, engine[:5]), value, id(engine.constants)]
    words += [asked, len(inputs), len(outputs), len(donated)]
    for i, where, bring, stage in inputs:
        words += [i, id(where), id(bring), 0 if stage is None else id(stage)]
    for parts in outputs:
        words += map(id, parts)
    words += donated
    data = struct.pack(f"{len(words)}q", *words)
    return _new(data, (data, engine, tuple(inputs), tuple(outputs)))


__all__ = ["Engine", "Relay"]
