"""`x[index]` with ints, slices, None and Ellipsis as machine code, for every shape: nothing is
compiled for an index.

What machine code cannot find out by itself it is told: the shape and the element size of an aval
(`learn_source`), and the aval of a result of some shape (`learn_result`). Both stand in tables with
a pair of lines for each hash, where a newer entry takes the place of the older one. Whatever is not
there, and every other kind of index, is left to the function given to `set_fallback`.

A large result that lies in one piece shares the memory of its array, a small one is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from calque.machine.call.epochs import epoch_here
from calque.machine.call.layout import CHECKED, HASH_FACTOR
from calque.machine.call.match import int_type
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i1,
    i64,
    likely,
    load_i32,
    load_i64,
    load_ptr,
    lshr,
    memcpy,
    ptr,
    store_i64,
    store_ptr,
    unlikely,
)
from calque.machine.objects.array_type import (
    Array,
    PyLong_AsSsize_t,
    PyObject_Vectorcall,
    array_object,
    array_type,
    fresh_array,
    lend,
    refuse,
    subscript_handler,
    tuple_type,
)
from calque.machine.objects.pyapi import (
    PyErr_Occurred,
    PyObject,
    PySlice,
    PyTuple,
    PyVar,
    decref,
    incref,
    make_builtin,
    new_reference,
    none,
    type_error,
    xdecref,
)
from calque.machine.objects.strided import calque_strided_copy
from calque.machine.state import process

unit = Unit("calque_subscript")

MAX_RANK = 8  # of arrays and results that machine code indexes
LINES = 1024
PAIR_SHIFT = 55  # of 64 bits of a hash: what is left tells the pairs of lines
LINE = 128  # bytes: aval, then element size or aval of the result, rank, dimensions
SHARED_BYTES = 4096  # results from this size on share memory
COPIED_BYTES = (
    1 << 18
)  # larger copies of elements that lie apart are for kernels that use every thread
_DIMS = 24

sources = unit.var("calque_subscript_sources", i64, LINES * LINE // 8)
results = unit.var("calque_subscript_results", i64, LINES * LINE // 8)
fallback = unit.var("calque_subscript_fallback", ptr)
slice_type = unit.cell("calque_slice_type", ptr, id(slice))
ellipsis = unit.cell("calque_ellipsis", ptr, id(Ellipsis))

PyLong_AsLongLongAndOverflow = unit.extern("PyLong_AsLongLongAndOverflow", i64, ptr, ptr)
PyLong_FromLongLong = unit.extern("PyLong_FromLongLong", ptr, i64)
PyTuple_New = unit.extern("PyTuple_New", ptr, i64)
NOT_BASIC = -1  # no address of an object
NEW_AXIS, WHOLE, AT, SLICE, OTHER = 0, 1, 2, 3, 4


# ---- the tables ----


@unit.helper
def same_dims(line: ptr, dims: ptr, rank: i64) -> i1:
    if load_i64(line, 16) != rank:
        return i1(0)
    for k in range(rank):
        if load_i64(line, _DIMS + 8 * k) != load_i64(dims, 8 * k):
            return i1(0)
    return i1(1)


@unit.helper
def source_pair(aval: ptr) -> ptr:
    return sources + lshr(i64(aval) * HASH_FACTOR, PAIR_SHIFT) * (2 * LINE)


@unit.helper
def source_line(aval: ptr) -> ptr:
    """The line of an aval; NULL where nothing is known of it."""
    line = source_pair(aval)
    if likely(load_ptr(line, 0) == aval):
        return line
    line += LINE
    return line if load_ptr(line, 0) == aval else NULL


@unit.helper
def result_pair(aval: ptr, dims: ptr, rank: i64) -> ptr:
    h = i64(aval) + rank
    for k in range(rank):
        h = (h ^ load_i64(dims, 8 * k)) * HASH_FACTOR
        h = h ^ lshr(h, 29)
    return results + lshr(h * HASH_FACTOR, PAIR_SHIFT) * (2 * LINE)


@unit.helper
def result_line(aval: ptr, dims: ptr, rank: i64) -> ptr:
    """The line of a part of this shape; NULL where nothing is known of it."""
    line = result_pair(aval, dims, rank)
    if likely(load_ptr(line, 0) == aval and same_dims(line, dims, rank)):
        return line
    line += LINE
    return line if load_ptr(line, 0) == aval and same_dims(line, dims, rank) else NULL


@unit.helper
def line_to_write(known: ptr, pair: ptr) -> ptr:
    """The line that a new entry overwrites; the newer entry of a pair moves to its second line."""
    if known != NULL:
        return known
    held = alloca(LINE)
    memcpy(held, pair + LINE, LINE)
    memcpy(pair + LINE, pair, LINE)
    memcpy(pair, held, LINE)
    return pair


@unit.helper
def read_shape(shape: ptr, dims: ptr) -> i64:
    """The rank of a tuple of sizes, which go to `dims`; -1 for one that is not for machine code."""
    if PyObject(shape).type != tuple_type or PyVar(shape).size > MAX_RANK:
        return -1
    for k in range(PyVar(shape).size):
        size = PyLong_AsSsize_t(load_ptr(PyTuple.at(shape).items, 8 * k))
        if size < 0:
            return -1
        store_i64(dims, 8 * k, size)
    return PyVar(shape).size


@unit.helper
def write_line(line: ptr, aval: ptr, second: i64, dims: ptr, rank: i64) -> None:
    """A new line; the avals of lines are kept alive by them."""
    old = load_ptr(line, 0)
    incref(aval)
    store_ptr(line, 0, aval)
    store_i64(line, 8, second)
    store_i64(line, 16, rank)
    memcpy(line + _DIMS, dims, 8 * rank)
    xdecref(old)


@unit.function
def _learn_source(self: ptr, args: ptr, count: i64) -> ptr:
    """learn_source(aval, shape, itemsize): what an array of this aval looks like."""
    dims = alloca(8 * MAX_RANK)
    if count != 3:
        return refuse(type_error, "learn_source takes an aval, a shape and a size")
    rank, size = read_shape(load_ptr(args, 8), dims), PyLong_AsSsize_t(load_ptr(args, 16))
    if PyErr_Occurred():
        return NULL
    if rank >= 0:
        aval = load_ptr(args, 0)
        line = line_to_write(source_line(aval), source_pair(aval))
        write_line(line, aval, size, dims, rank)
    return new_reference(none)


@unit.function
def _learn_result(self: ptr, args: ptr, count: i64) -> ptr:
    """learn_result(aval, shape, result): the aval of a part of this shape."""
    dims = alloca(8 * MAX_RANK)
    if count != 3:
        return refuse(type_error, "learn_result takes an aval, a shape and an aval")
    rank = read_shape(load_ptr(args, 8), dims)
    if PyErr_Occurred():
        return NULL
    if rank >= 0:
        aval, result = load_ptr(args, 0), load_ptr(args, 16)
        line = line_to_write(result_line(aval, dims, rank), result_pair(aval, dims, rank))
        old = load_ptr(line, 8)
        incref(result)
        write_line(line, aval, i64(result), dims, rank)
        xdecref(old)
    return new_reference(none)


# ---- the parts of an index ----


@unit.helper
def kind_of(part: ptr) -> i64:
    kind = PyObject(part).type
    if kind == int_type:
        return AT
    if kind == slice_type:
        return SLICE
    if part == ellipsis:
        return WHOLE
    return NEW_AXIS if part == none else OTHER


@unit.helper
def whole_number(x: ptr, default: i64, to: ptr) -> i1:
    """An int (or the default for None); False for anything else, and for what does not fit a
    word."""
    overflow = alloca(8)
    if x == none:
        store_i64(to, 0, default)
        return i1(1)
    if PyObject(x).type != int_type:
        return i1(0)
    store_i64(to, 0, PyLong_AsLongLongAndOverflow(x, overflow))
    return load_i32(overflow, 0) == 0


@unit.helper
def bound(value: i64, n: i64, low: i64, high: i64) -> i64:
    return max(low, min(high, value + n if value < 0 else value))


@unit.function
def slice_of(part: ptr, n: i64, to: ptr) -> i1:
    """Start, length and step of a slice of an axis, by Python's rules; False when the slice is not
    for machine code."""
    if not whole_number(PySlice(part).step, 1, to + 16):
        return i1(0)
    step = load_i64(to, 16)
    if step == 0 or step > 1 << 40 or step < -(1 << 40):
        return i1(0)
    low = i64(0) if step > 0 else i64(-1)
    high = n if step > 0 else n - 1
    first = low if step > 0 else high
    last = high if step > 0 else low
    if PySlice(part).start != none:
        if not whole_number(PySlice(part).start, 0, to):
            return i1(0)
        first = bound(load_i64(to, 0), n, low, high)
    if PySlice(part).stop != none:
        if not whole_number(PySlice(part).stop, 0, to):
            return i1(0)
        last = bound(load_i64(to, 0), n, low, high)
    length = (last - first + step - 1) // step if step > 0 else (first - last - step - 1) // -step
    store_i64(to, 0, first)
    store_i64(to, 8, max(length, 0))
    return i1(1)


@unit.function
def parse(line: ptr, parts: ptr, count: i64, out: ptr) -> i64:
    """The rank of the result; its sizes and steps in bytes, and before them the byte offset, go to
    `out`. -1: not basic.

    `out` is a word for the offset, then MAX_RANK words of sizes, then as many of steps."""
    bounds, strides = alloca(24), alloca(8 * MAX_RANK)
    rank, step = load_i64(line, 16), load_i64(line, 8)
    used, wholes = 0, 0
    for i in range(count):
        kind = kind_of(load_ptr(parts, 8 * i))
        if kind == OTHER:
            return -1
        used += i64(kind == AT) + i64(kind == SLICE)
        wholes += i64(kind == WHOLE)
    if used > rank or wholes > 1 or count - used - wholes + rank > MAX_RANK:
        return -1
    for k in range(rank):
        store_i64(strides, 8 * (rank - 1 - k), step)
        step *= load_i64(line, _DIMS + 8 * (rank - 1 - k))
    axis, made, offset = 0, 0, 0
    for i in range(count + 1 - wholes):  # without an Ellipsis the rest of the axes follows
        part = load_ptr(parts, 8 * i) if i < count else ellipsis
        kind = kind_of(part)
        if kind == WHOLE:
            for _ in range(rank - used):
                made = put(out, made, load_i64(line, _DIMS + 8 * axis), load_i64(strides, 8 * axis))
                axis += 1
        elif kind == NEW_AXIS:
            made = put(out, made, 1, 0)
        else:
            n, stride = load_i64(line, _DIMS + 8 * axis), load_i64(strides, 8 * axis)
            axis += 1
            if kind == AT:
                if n == 0 or not whole_number(part, 0, bounds):
                    return -1
                offset += bound(load_i64(bounds, 0), n, 0, n - 1) * stride
            else:
                if not slice_of(part, n, bounds):
                    return -1
                offset += load_i64(bounds, 0) * stride
                made = put(out, made, load_i64(bounds, 8), load_i64(bounds, 16) * stride)
    store_i64(out, 0, offset)
    return made


@unit.helper
def put(out: ptr, made: i64, size: i64, step: i64) -> i64:
    store_i64(out, 8 + 8 * made, size)
    store_i64(out, 8 + 8 * MAX_RANK + 8 * made, step)
    return made + 1


@unit.helper
def parse_index(line: ptr, index: ptr, out: ptr) -> i64:
    """`parse` for an index, which may be a tuple."""
    single = alloca(8)
    store_ptr(single, 0, index)
    tuple_given = PyObject(index).type == tuple_type
    parts = PyTuple.at(index).items if tuple_given else single
    return parse(line, parts, PyVar(index).size if tuple_given else 1, out)


# ---- the result ----


@unit.function
def gather(to: ptr, source: ptr, itemsize: i64, out: ptr, rank: i64) -> None:
    """Copy elements that lie apart."""
    args = alloca(48 + 24 * MAX_RANK)
    axes = 0
    for k in range(rank):
        size = load_i64(out, 8 + 8 * k)
        if size != 1:
            store_i64(args, 48 + 24 * axes, size)
            store_i64(args, 64 + 24 * axes, load_i64(out, 8 + 8 * MAX_RANK + 8 * k))
            axes += 1
    step = itemsize
    for k in range(axes):
        at = 48 + 24 * (axes - 1 - k)
        store_i64(args, at + 8, step)
        step *= load_i64(args, at)
    store_ptr(args, 0, to)
    store_ptr(args, 8, source)
    store_i64(args, 16, itemsize)
    store_i64(args, 24, 0)
    store_i64(args, 32, 0)
    store_i64(args, 40, axes)
    calque_strided_copy(args, 0, 1)


@unit.function
def basic(self: ptr, index: ptr) -> ptr:
    """The part of an array that a basic index names; NOT_BASIC when machine code cannot say."""
    line = source_line(Array(self).aval)
    if line == NULL:
        return ptr(NOT_BASIC)
    out = alloca(8 + 16 * MAX_RANK)
    rank = parse_index(line, index, out)
    if rank < 0:
        return ptr(NOT_BASIC)
    found = result_line(Array(self).aval, out + 8, rank)
    if found == NULL:
        return ptr(NOT_BASIC)
    itemsize = load_i64(line, 8)
    nbytes, together = itemsize, i1(1)
    for k in range(rank):
        at = 8 * (rank - k)
        size = load_i64(out, at)
        if size != 1 and load_i64(out, at + 8 * MAX_RANK) != nbytes:
            together = i1(0)
        nbytes *= size
    return made(self, load_ptr(found, 8), out, rank, nbytes, itemsize, together)


@unit.helper
def made(
    self: ptr, aval: ptr, out: ptr, rank: i64, nbytes: i64, itemsize: i64, together: i1
) -> ptr:
    """The result as an Array: shared, or copied."""
    source = Array(self).data + load_i64(out, 0)
    if together and nbytes >= SHARED_BYTES:
        owner = lend(self)
        if owner == NULL:
            return NULL
        view = array_object(aval, source, NULL, owner)
        if view == NULL:
            decref(owner)
        return view
    if nbytes > COPIED_BYTES:
        return ptr(NOT_BASIC)
    array = fresh_array(aval, nbytes)
    if array and nbytes:
        if together:
            memcpy(Array(array).data, source, nbytes)
        else:
            gather(Array(array).data, source, itemsize, out, rank)
    return array


@unit.function
def calque_subscript(self: ptr, index: ptr) -> ptr:
    """mp_subscript of Array: not while a program is recorded, nor for arrays that say where they
    live."""
    now = epoch_here()
    if likely(now != 0 and now < CHECKED and Array(self).extra == NULL):
        answer = basic(self, index)
        if likely(i64(answer) != NOT_BASIC):
            return answer
    function = load_ptr(fallback, 0)
    if unlikely(function == NULL):
        return refuse(type_error, "arrays cannot be indexed before calque is imported")
    pair = alloca(24)
    store_ptr(pair, 8, self)
    store_ptr(pair, 16, index)
    return PyObject_Vectorcall(function, pair + 8, 2 | (1 << 63), NULL)


@unit.function
def _basic_shape(self: ptr, args: ptr, count: i64) -> ptr:
    """basic_shape(array, index): the shape of a part of an Array whose aval is known; None where
    machine code cannot say."""
    if count != 2 or PyObject(load_ptr(args, 0)).type != array_type:
        return refuse(type_error, "basic_shape takes an Array and an index")
    x, index = load_ptr(args, 0), load_ptr(args, 8)
    line = source_line(Array(x).aval)
    if line == NULL:
        return new_reference(none)
    out = alloca(8 + 16 * MAX_RANK)
    rank = parse_index(line, index, out)
    if rank < 0:
        return new_reference(none)
    shape = PyTuple_New(rank)
    for k in range(rank if shape else 0):
        size = PyLong_FromLongLong(load_i64(out, 8 + 8 * k))
        if size == NULL:
            decref(shape)
            return NULL
        store_ptr(PyTuple.at(shape).items, 8 * k, size)
    return shape


@unit.function
def _basic_part(self: ptr, args: ptr, count: i64) -> ptr:
    """basic_part(array, index): the part, where machine code knows all that it needs; else None."""
    if count != 2 or PyObject(load_ptr(args, 0)).type != array_type:
        return refuse(type_error, "basic_part takes an Array and an index")
    if Array(load_ptr(args, 0)).extra != NULL:
        return new_reference(none)
    answer = basic(load_ptr(args, 0), load_ptr(args, 8))
    return new_reference(none) if i64(answer) == NOT_BASIC else answer


# ---- from Python ----

basic_shape: Callable[[Any, Any], tuple[int, ...] | None] = make_builtin(_basic_shape)
basic_part: Callable[[Any, Any], Any] = make_builtin(_basic_part)
learn_source: Callable[[Any, tuple[int, ...], int], None] = make_builtin(_learn_source)
learn_result: Callable[[Any, tuple[int, ...], Any], None] = make_builtin(_learn_result)
_kept: Final[list[Any]] = process.container("what indexing points to", [])


def set_fallback(function: Callable[[Any, Any], Any]) -> None:
    """What indexes an array when machine code cannot."""
    _kept.append(function)
    fallback.write(id(function))


subscript_handler.write(calque_subscript.address)
