"""Machine code that compares the arguments of a call with an entry's matching program and fills the
input slots.

No Python code can run in here (types are compared exactly, and only str, int and bool are compared
by value), so nothing changes under our feet and borrowed references stay good.
"""

from __future__ import annotations

from calque.machine.call.layout import CELL, HALVES_BELOW, Match, ScalarKind, State
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    bits_i64,
    f32,
    f64,
    i1,
    i32,
    i64,
    likely,
    load_i32,
    load_i64,
    load_ptr,
    ptr,
    store_f32,
    store_f64,
    store_i64,
    store_ptr,
)
from calque.machine.objects.array_type import (
    Array,
    array_type,
    is_plain_ndarray,
    pending_mark,
    tuple_type,
)
from calque.machine.objects.pyapi import (
    NdArray,
    PyComplex,
    PyDescr,
    PyErr_Clear,
    PyErr_Occurred,
    PyFloat,
    PyList,
    PyObject,
    PyTuple,
    PyVar,
)

unit = Unit("calque_match")

float_type = unit.cell("calque_float_type", ptr, id(float))
int_type = unit.cell("calque_int_type", ptr, id(int))
bool_type = unit.cell("calque_bool_type", ptr, id(bool))
complex_type = unit.cell("calque_complex_type", ptr, id(complex))
list_type = unit.cell("calque_list_type", ptr, id(list))
dict_type = unit.cell("calque_dict_type", ptr, id(dict))
str_type = unit.cell("calque_str_type", ptr, id(str))
py_true = unit.cell("calque_py_true", ptr, id(True))

PyLong_AsLongLongAndOverflow = unit.extern("PyLong_AsLongLongAndOverflow", i64, ptr, ptr)
PyLong_AsUnsignedLongLong = unit.extern("PyLong_AsUnsignedLongLong", i64, ptr)
PyLong_AsDouble = unit.extern("PyLong_AsDouble", f64, ptr)
PyObject_RichCompareBool = unit.extern("PyObject_RichCompareBool", i32, ptr, ptr, i32)
PyDict_Next = unit.extern("PyDict_Next", i32, ptr, ptr, ptr, ptr)
PyDict_GetItemWithError = unit.extern("PyDict_GetItemWithError", ptr, ptr, ptr)
PyDict_Size = unit.extern("PyDict_Size", i64, ptr)
EQ = 2


@unit.helper
def keep(state: ptr, slot: i64, data: ptr, x: ptr) -> None:
    """Fill an input slot; -1 is an argument nobody needs."""
    if slot >= 0:
        store_ptr(State(state).inputs, 8 * slot, data)
        store_ptr(State(state).objects, 8 * slot, x)


@unit.helper
def match_array(state: ptr, pc: ptr, x: ptr) -> i1:
    """An Array with exactly this aval, and nothing that says where it lives: Python follows placed
    arrays."""
    if PyObject(x).type != array_type or Array(x).aval != load_ptr(pc, 8) or Array(x).extra != NULL:
        return i1(0)
    keep(state, load_i64(pc, 16), Array(x).data, x)
    return i1(1)


@unit.helper
def match_elsewhere(state: ptr, pc: ptr, x: ptr) -> i1:
    """An Array with exactly this aval for a program that Python runs: placed just there, or
    nowhere. It may be pending."""
    if PyObject(x).type != array_type or Array(x).aval != load_ptr(pc, 8):
        return i1(0)
    extra = Array(x).extra
    if (NULL if extra == pending_mark else extra) != load_ptr(pc, 24):
        return i1(0)
    keep(state, load_i64(pc, 16), Array(x).data, x)
    return i1(1)


# ---- scalars ----


@unit.function
def store_int(kind: i64, cell: ptr, x: ptr) -> i1:
    """Store a Python int (or bool) if its value fits the kind."""
    overflow = alloca(8)
    value = PyLong_AsLongLongAndOverflow(x, overflow)
    big = load_i32(overflow, 0) != 0
    if kind in (ScalarKind.F32, ScalarKind.F64, ScalarKind.C64, ScalarKind.C128):
        return store_int_as_float(kind, cell, x, value, big)
    if big:
        if kind != ScalarKind.U64:
            return i1(0)
        value = PyLong_AsUnsignedLongLong(x)
        if PyErr_Occurred():
            PyErr_Clear()
            return i1(0)
        store_i64(cell, 0, value)
        return i1(1)
    store_i64(cell, 0, value)  # little-endian: the low bytes are the narrow value
    match kind:
        case ScalarKind.I8:
            return -(1 << 7) <= value < 1 << 7
        case ScalarKind.I16:
            return -(1 << 15) <= value < 1 << 15
        case ScalarKind.I32:
            return -(1 << 31) <= value < 1 << 31
        case ScalarKind.U8:
            return 0 <= value < 1 << 8
        case ScalarKind.U16:
            return 0 <= value < 1 << 16
        case ScalarKind.U32:
            return 0 <= value < 1 << 32
        case ScalarKind.U64:
            return value >= 0
        case ScalarKind.BOOL:
            return 0 <= value <= 1
        case _:
            return i1(1)


@unit.function
def store_int_as_float(kind: i64, cell: ptr, x: ptr, value: i64, big: i1) -> i1:
    """Store a Python int as a float; False when it is beyond double."""
    number = f64(value)
    if big:
        number = PyLong_AsDouble(x)
        if number == -1.0 and PyErr_Occurred():
            PyErr_Clear()
            return i1(0)
    return store_float(kind, cell, number, 0.0)


@unit.helper
def store_float(kind: i64, cell: ptr, real: f64, imag: f64) -> i1:
    """Store a floating number; False for kinds that cannot hold one."""
    match kind:
        case ScalarKind.F32:
            store_f32(cell, 0, f32(real))
        case ScalarKind.F64:
            store_f64(cell, 0, real)
        case ScalarKind.C64:
            store_f32(cell, 0, f32(real))
            store_f32(cell, 4, f32(imag))
        case ScalarKind.C128:
            store_f64(cell, 0, real)
            store_f64(cell, 8, imag)
        case _:
            return i1(0)
    return i1(1)


@unit.helper
def is_fraction(kind: i64, x: f64) -> i1:
    """What `layout.is_fraction` says of the number, rounded to its kind."""
    y = f64(f32(x)) if kind in (ScalarKind.F32, ScalarKind.C64) else x
    if not (y > -HALVES_BELOW and y < HALVES_BELOW):
        return i1(1)
    return f64(i64(y + y)) != y + y


@unit.function
def match_scalar(state: ptr, pc: ptr, x: ptr) -> i1:
    """A Python number of exactly this type, converted into its cell."""
    op, kind = load_i64(pc, 0), load_i64(pc, 8)
    cell = State(state).scratch + CELL * load_i64(pc, 24)
    kind_of_object = PyObject(x).type
    fits = i1(0)
    if op == Match.FLOAT and kind_of_object == float_type:
        fits = store_float(kind, cell, PyFloat(x).value, 0.0)
    elif op == Match.FRACTION and kind_of_object == float_type:
        fits = is_fraction(kind, PyFloat(x).value) and store_float(
            kind, cell, PyFloat(x).value, 0.0
        )
    elif (op == Match.INT and kind_of_object == int_type) or (
        op == Match.BOOL and kind_of_object == bool_type
    ):
        fits = store_int(kind, cell, x)
    elif op == Match.COMPLEX and kind_of_object == complex_type:
        fits = store_float(kind, cell, PyComplex(x).real, PyComplex(x).imag)
    if fits:
        keep(state, load_i64(pc, 16), cell, x)
    return fits


# ---- other leaves ----


@unit.function
def match_ndarray(state: ptr, pc: ptr, x: ptr) -> i1:
    """A plain ndarray of this dtype and shape."""
    if not is_plain_ndarray(x) or PyDescr(NdArray(x).descr).scalar_type != load_ptr(pc, 8):
        return i1(0)
    rank = load_i64(pc, 24)
    if i64(NdArray(x).nd) != rank:
        return i1(0)
    for axis in range(rank):
        if load_i64(NdArray(x).dims, 8 * axis) != load_i64(pc, 32 + 8 * axis):
            return i1(0)
    keep(state, load_i64(pc, 16), NdArray(x).data, x)
    return i1(1)


@unit.helper
def equal(x: ptr, y: ptr) -> i1:
    """Identity, or the same exact type (str, int, bool or float) and value (of floats: bits). Runs
    no Python code."""
    if x == y:
        return i1(1)
    kind = PyObject(x).type
    if kind == float_type and PyObject(y).type == float_type:
        return bits_i64(PyFloat(x).value) == bits_i64(PyFloat(y).value)
    if kind != PyObject(y).type or kind not in (str_type, int_type, bool_type):
        return i1(0)
    return PyObject_RichCompareBool(x, y, EQ) == 1


@unit.function
def statics_equal(args: ptr, words: ptr, count: i64) -> i64:
    """Whether arguments have the type of a value and equal it. Python code may run."""
    for i in range(count):
        x, value = load_ptr(args, 8 * load_i64(words, 16 * i)), load_ptr(words, 16 * i + 8)
        if PyObject(x).type != PyObject(value).type:
            return 0
        same = PyObject_RichCompareBool(x, value, EQ)
        if same != 1:
            if same < 0:
                PyErr_Clear()
            return 0
    return 1


# ---- leaves whose sizes are free ----


@unit.helper
def pass_on(state: ptr, place: i64, x: ptr) -> None:
    """An argument of `choose`."""
    store_ptr(State(state).scratch, place, x)


@unit.function
def match_kind(state: ptr, pc: ptr, x: ptr) -> i1:
    """An Array whose aval is of this kind, placed nowhere; `choose` gets the aval."""
    if PyObject(x).type != array_type or Array(x).extra != NULL:
        return i1(0)
    aval = Array(x).aval
    if PyObject(aval).type != load_ptr(pc, 8) or load_ptr(aval, load_i64(pc, 16)) != load_ptr(
        pc, 24
    ):
        return i1(0)
    keep(state, load_i64(pc, 32), Array(x).data, x)
    pass_on(state, load_i64(pc, 40), aval)
    return i1(1)


@unit.function
def match_ndarray_kind(state: ptr, pc: ptr, x: ptr) -> i1:
    """A plain ndarray of this dtype and rank; `choose` gets it."""
    if not is_plain_ndarray(x) or PyDescr(NdArray(x).descr).scalar_type != load_ptr(pc, 8):
        return i1(0)
    if i64(NdArray(x).nd) != load_i64(pc, 16):
        return i1(0)
    keep(state, load_i64(pc, 24), NdArray(x).data, x)
    pass_on(state, load_i64(pc, 32), x)
    return i1(1)


# ---- containers ----


@unit.function
def match_items(state: ptr, items: ptr, count: i64) -> i1:
    """Match `count` objects that lie side by side."""
    pc = State(state).cursor
    for i in range(count):
        x = load_ptr(items, 8 * i)
        if likely(load_i64(pc, 0) == Match.ARRAY):
            if not match_array(state, pc, x):
                return i1(0)
            pc += 24
        else:
            State(state).cursor = pc
            if not match_other(state, pc, x):
                return i1(0)
            pc = State(state).cursor
    State(state).cursor = pc
    return i1(1)


@unit.function
def match_other(state: ptr, pc: ptr, x: ptr) -> i1:
    """Match one object with anything, and step the cursor past it."""
    op = load_i64(pc, 0)
    match op:
        case Match.ARRAY:
            State(state).cursor = pc + 24
            return match_array(state, pc, x)
        case Match.FLOAT | Match.FRACTION | Match.INT | Match.BOOL | Match.COMPLEX:
            State(state).cursor = pc + 32
            return match_scalar(state, pc, x)
        case Match.NDARRAY:
            State(state).cursor = pc + 32 + 8 * load_i64(pc, 24)
            return match_ndarray(state, pc, x)
        case Match.IS:
            State(state).cursor = pc + 16
            return x == load_ptr(pc, 8)
        case Match.EQUAL:
            State(state).cursor = pc + 16
            return equal(x, load_ptr(pc, 8))
        case Match.TUPLE:
            State(state).cursor = pc + 24
            if PyObject(x).type != load_ptr(pc, 8) or PyVar(x).size != load_i64(pc, 16):
                return i1(0)
            return match_items(state, PyTuple.at(x).items, load_i64(pc, 16))
        case Match.LIST:
            State(state).cursor = pc + 16
            if PyObject(x).type != list_type or PyVar(x).size != load_i64(pc, 8):
                return i1(0)
            return match_items(state, PyList(x).items, load_i64(pc, 8))
        case Match.ANY:
            State(state).cursor = pc + 8
            return i1(1)
        case Match.ELSEWHERE:
            State(state).cursor = pc + 32
            return match_elsewhere(state, pc, x)
        case Match.KIND:
            State(state).cursor = pc + 48
            return match_kind(state, pc, x)
        case Match.NDARRAY_KIND:
            State(state).cursor = pc + 40
            return match_ndarray_kind(state, pc, x)
        case Match.DICT:
            State(state).cursor = pc + 16
            if PyObject(x).type != dict_type or PyDict_Size(x) != load_i64(pc, 8):
                return i1(0)
            return match_dict(state, x, load_i64(pc, 8))
        case _:
            return i1(0)


@unit.function
def match_dict(state: ptr, table: ptr, count: i64) -> i1:
    """Match a dict: in the order of the entry as long as the keys agree, then by looking keys
    up."""
    place = alloca(32)
    position, key_place, value_place = place, place + 8, place + 16
    store_i64(position, 0, 0)
    for i in range(count):
        wanted = load_ptr(State(state).cursor, 0)
        if not PyDict_Next(table, position, key_place, value_place):
            return i1(0)
        if load_ptr(key_place, 0) != wanted and not equal(load_ptr(key_place, 0), wanted):
            return match_by_lookup(state, table, count - i)
        pc = State(state).cursor + 8
        x = load_ptr(value_place, 0)
        if likely(load_i64(pc, 0) == Match.ARRAY):
            State(state).cursor = pc + 24
            if not match_array(state, pc, x):
                return i1(0)
        elif not match_other(state, pc, x):
            return i1(0)
    return i1(1)


@unit.function
def match_by_lookup(state: ptr, table: ptr, count: i64) -> i1:
    """Match the rest of a dict whose order differs; only with keys whose comparison runs no Python
    code."""
    place = alloca(32)
    store_i64(place, 0, 0)
    while PyDict_Next(table, place, place + 8, NULL):
        if PyObject(load_ptr(place, 8)).type not in (str_type, int_type):
            return i1(0)
    for _ in range(count):
        key = load_ptr(State(state).cursor, 0)
        if PyObject(key).type not in (str_type, int_type):
            return i1(0)
        x = PyDict_GetItemWithError(table, key)
        if x == NULL:
            return i1(0)
        if not match_other(state, State(state).cursor + 8, x):
            return i1(0)
    return i1(1)


__all__ = ["bool_type", "equal", "match_items", "py_true", "statics_equal", "tuple_type"]
