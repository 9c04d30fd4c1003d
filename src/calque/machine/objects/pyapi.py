"""CPython and NumPy from machine code: struct layouts, reference counts, C types and functions made
without a C compiler.

Only builds with a GIL of CPython 3.11 to 3.14 on 64-bit little-endian machines are known;
`check_interpreter` compares every offset used here with live objects and raises ImportError when
one is wrong.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from calque.machine import variables
from calque.machine.lang.unit import Function, Unit, f64, i32, i64, layout, likely, ptr
from calque.machine.state import process

unit = Unit("calque_pyapi")

# ---- struct layouts ----

PyObject = layout("PyObject", refcount=i64, type=ptr)
PyObject32 = layout(  # the half that counts from 3.12 on; from 3.14 on the other one holds flags
    "PyObject32", refcount=i32, at={"refcount": 0}
)
PyVar = layout("PyVar", refcount=i64, type=ptr, size=i64)
PyTuple = (  # `at(p).items` is the first item; from 3.14 on a tuple keeps its hash before them
    layout("PyTuple", refcount=i64, type=ptr, size=i64, hash=i64, items=ptr)
    if sys.version_info >= (3, 14)
    else layout("PyTuple", refcount=i64, type=ptr, size=i64, items=ptr)
)
PyList = layout("PyList", refcount=i64, type=ptr, size=i64, items=ptr)  # `items` points to them
PyFloat = layout("PyFloat", refcount=i64, type=ptr, value=f64)
PyBytes = layout("PyBytes", refcount=i64, type=ptr, size=i64, hash=i64, data=ptr)
PyComplex = layout("PyComplex", refcount=i64, type=ptr, real=f64, imag=f64)
PySlice = layout("PySlice", refcount=i64, type=ptr, start=ptr, stop=ptr, step=ptr)
PyDict = layout("PyDict", refcount=i64, type=ptr, used=i64)
NdArray = layout(
    "NdArray",
    refcount=i64,
    type=ptr,
    data=ptr,
    nd=i32,
    dims=ptr,
    strides=ptr,
    base=ptr,
    descr=ptr,
    flags=i32,
)
PyCell = layout("PyCell", refcount=i64, type=ptr, value=ptr)
PyDescr = layout("PyDescr", refcount=i64, type=ptr, scalar_type=ptr, kind=ptr, at={"kind": 24})
DESCR_BYTEORDER = 26
TYPE_ALLOC = 304  # PyTypeObject.tp_alloc
MEMBER_DEFINITION = 40  # PyMemberDescrObject.d_member

NDARRAY_C_CONTIGUOUS, NDARRAY_ALIGNED = 0x1, 0x100
VECTORCALL_OFFSET_FLAG = 1 << 63
HAS_IMMORTALS = int(sys.version_info >= (3, 12))

# ---- functions of the interpreter ----

_Py_Dealloc = unit.extern("_Py_Dealloc", None, ptr)
PyErr_SetString = unit.extern("PyErr_SetString", None, ptr, ptr)
PyErr_NoMemory = unit.extern("PyErr_NoMemory", ptr)
PyErr_Format = unit.extern("PyErr_Format", ptr, ptr, ptr, vararg=True)
PyErr_Occurred = unit.extern("PyErr_Occurred", ptr)
PyErr_Clear = unit.extern("PyErr_Clear", None)

type_error = unit.cell("type_error", ptr, id(TypeError))
memory_error = unit.cell("memory_error", ptr, id(MemoryError))
runtime_error = unit.cell("runtime_error", ptr, id(RuntimeError))
value_error = unit.cell("value_error", ptr, id(ValueError))
none = unit.cell("py_none", ptr, id(None))


@unit.helper
def incref(p: ptr) -> None:
    """Py_INCREF."""
    if HAS_IMMORTALS:
        half = PyObject32(p).refcount
        if likely(half >= 0):
            PyObject32(p).refcount = half + i32(1)
    else:
        PyObject(p).refcount += 1


@unit.helper
def decref(p: ptr) -> None:
    """Py_DECREF."""
    if HAS_IMMORTALS:
        half = PyObject32(p).refcount
        if half < 0:
            return
        PyObject32(p).refcount = half - i32(1)
        if half == 1:
            _Py_Dealloc(p)
    else:
        count = PyObject(p).refcount - 1
        PyObject(p).refcount = count
        if count == 0:
            _Py_Dealloc(p)


@unit.helper
def xdecref(p: ptr) -> None:
    """Py_XDECREF."""
    if p:
        decref(p)


@unit.helper
def new_reference(p: ptr) -> ptr:
    """Py_NewRef."""
    incref(p)
    return p


# ---- making C functions and types from Python ----

METH_FASTCALL, METH_O, METH_NOARGS = 0x80, 0x8, 0x4
FLAGS_DEFAULT, FLAGS_BASETYPE, FLAGS_HAVE_GC = 1 << 18, 1 << 10, 1 << 14
FLAGS_VECTORCALL, FLAGS_METHOD_DESCRIPTOR, FLAGS_NO_NEW = 1 << 11, 1 << 17, 1 << 7
SLOTS: Final = {
    "bf_getbuffer": 1,
    "mp_subscript": 5,
    "sq_item": 44,
    "tp_call": 50,
    "tp_clear": 51,
    "tp_dealloc": 52,
    "tp_descr_get": 54,
    "tp_doc": 56,
    "tp_new": 65,
    "tp_traverse": 71,
    "tp_members": 72,
    "tp_getset": 73,
}
OBJECT, ULONGLONG, PYSSIZET = 6, 18, 19  # kinds of PyMemberDef
READONLY = 1

_keep_alive: Final[list[Any]] = process.container("definitions of C objects", [])


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _MemberDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _GetSetDef(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("name", "get", "set", "doc", "closure")]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    ]


_cfunction_new = ctypes.pythonapi.PyCFunction_NewEx
_cfunction_new.restype, _cfunction_new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
_method_new = ctypes.pythonapi.PyDescr_NewMethod
_method_new.restype, _method_new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
_type_from_spec = ctypes.pythonapi.PyType_FromSpec
_type_from_spec.restype, _type_from_spec.argtypes = ctypes.py_object, [ctypes.c_void_p]


def definition_of(function: Function, flags: int) -> int:
    """The address of what C calls the definition of a method, with a machine function as body."""
    doc = (function.__doc__ or "").encode()
    definition = _MethodDef(function.name.removeprefix("_").encode(), function.address, flags, doc)
    _keep_alive.append(definition)
    return ctypes.addressof(definition)


def make_builtin(function: Function, flags: int = METH_FASTCALL) -> Callable[..., Any]:
    """A builtin function object whose body is a machine function."""
    return builtin_with(definition_of(function, flags), None)


def builtin_with(definition: int, own: Any) -> Callable[..., Any]:
    """A builtin function object that hands its body, besides the arguments, an object of its
    own."""
    held = None if own is None else id(own)
    made: Callable[..., Any] = _cfunction_new(definition, held, None)
    return made


def make_method(kind: type, function: Function, flags: int = METH_FASTCALL) -> Callable[..., Any]:
    """A method of a class whose body is a machine function."""
    made: Callable[..., Any] = _method_new(kind, definition_of(function, flags))
    return made


@dataclass
class TypeSpec:
    """What a C type is made of; `slots` maps names of `SLOTS` to machine functions or C
    addresses."""

    name: str
    size: int
    flags: int
    doc: str
    slots: dict[str, Function | int] = field(default_factory=dict)
    members: Sequence[tuple[str, int, int, int]] = ()  # name, kind, offset, flags
    dict_access: bool = False
    properties: dict[str, tuple[Function, Function]] = field(default_factory=dict)  # get, set


def make_type(spec: TypeSpec) -> type:
    """A heap type through PyType_FromSpec."""
    slots: list[tuple[int, int]] = []
    doc = ctypes.create_string_buffer(spec.doc.encode())
    members = (_MemberDef * (len(spec.members) + 1))(
        *(
            _MemberDef(name.encode(), kind, offset, flags, None)
            for name, kind, offset, flags in spec.members
        )
    )
    slots += [
        (SLOTS["tp_doc"], ctypes.addressof(doc)),
        (SLOTS["tp_members"], ctypes.addressof(members)),
    ]
    keep: list[Any] = [doc, members]
    access = {n: (get.address, put.address) for n, (get, put) in spec.properties.items()}
    if spec.dict_access:
        access["__dict__"] = (
            c_address("PyObject_GenericGetDict"),
            c_address("PyObject_GenericSetDict"),
        )
    if access:
        names = [ctypes.create_string_buffer(n.encode()) for n in access]
        table = (_GetSetDef * (len(access) + 1))(
            *(
                _GetSetDef(ctypes.addressof(n), *functions, None, None)
                for n, functions in zip(names, access.values())
            )
        )
        slots.append((SLOTS["tp_getset"], ctypes.addressof(table)))
        keep += [*names, table]
    for slot, function in spec.slots.items():
        slots.append((SLOTS[slot], function if isinstance(function, int) else function.address))
    array = (_Slot * (len(slots) + 1))(*(_Slot(*slot) for slot in slots))
    c_spec = _Spec(spec.name.encode(), spec.size, 0, spec.flags, ctypes.addressof(array))
    _keep_alive.extend([*keep, array, c_spec])
    made: type = _type_from_spec(ctypes.addressof(c_spec))
    return made


def c_address(name: str) -> int:
    """The address of a C function of the interpreter."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


def _numpy_table() -> Any:
    """NumPy's C API: a table of addresses."""
    core = (
        sys.modules.get("numpy._core._multiarray_umath")
        or sys.modules["numpy.core._multiarray_umath"]
    )
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))


_table = _numpy_table()
NDARRAY_TYPE: int = _table[2]
PyArray_NewFromDescr = unit.extern(
    "calque_PyArray_NewFromDescr", ptr, ptr, ptr, i32, ptr, ptr, ptr, i32, ptr, address=_table[94]
)
PyArray_SetBaseObject = unit.extern(
    "calque_PyArray_SetBaseObject", i32, ptr, ptr, address=_table[282]
)
DESCR_TYPE: int = _table[3]


# ---- does this interpreter look as we think? ----


def check_interpreter() -> None:
    """Compare the offsets used by machine code with live objects; ImportError names the first that
    is wrong."""
    wrong = [name for name, holds in _facts() if not holds]
    if wrong:
        raise ImportError(
            f"calque cannot run on this Python ({sys.version}): {wrong[0]} is not where it"
            " should be"
        )


def _facts() -> list[tuple[str, bool]]:
    free_threaded = (
        "t" in getattr(sys, "abiflags", "") or not getattr(sys, "_is_gil_enabled", lambda: True)()
    )
    facts = [
        (
            "a 64-bit little-endian machine",
            sys.byteorder == "little" and ctypes.sizeof(ctypes.c_void_p) == 8,
        ),
        (
            "CPython 3.11 to 3.14",
            sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 14),
        ),
        ("the GIL (free-threaded builds are not supported)", not free_threaded),
        (
            "a release build's object header",
            not hasattr(sys, "gettotalrefcount") and object.__basicsize__ == 16,
        ),
    ]
    if all(holds for _, holds in facts):
        facts += [*_object_facts(), *_numpy_facts()]
    return facts


def _object_facts() -> list[tuple[str, bool]]:
    fresh, pair, items, table = object(), ("a", "b"), ["c", "d", "e"], {1: 2, 3: 4}
    text, number, pi = b"text of bytes", complex(1.5, -2.5), 3.25
    before = PyObject(id(fresh)).refcount
    part = slice("from", "to", "by")
    cell = types.CellType(text)
    holder = [fresh]
    tuple_items = PyTuple.offset("items")
    list_items = PyList(id(items)).items
    return [
        ("ob_type", PyObject(id(fresh)).type == id(object)),
        ("ob_refcnt", PyObject(id(holder[0])).refcount == before + 1 and 0 < before < 10),
        ("tuple size", PyTuple(id(pair)).size == 2),
        ("tuple items", _word(id(pair) + tuple_items + 8) == id(pair[1])),
        ("list size", PyList(id(items)).size == 3),
        ("list items", _word(list_items + 16) == id(items[2])),
        (
            "float value",
            ctypes.c_double.from_address(id(pi) + PyFloat.offset("value")).value == 3.25,
        ),
        (
            "complex value",
            ctypes.c_double.from_address(id(number) + PyComplex.offset("imag")).value == -2.5,
        ),
        ("bytes data", ctypes.string_at(id(text) + PyBytes.offset("data")) == text),
        (
            "slice parts",
            PySlice(id(part)).start == id(part.start) and PySlice(id(part)).step == id(part.step),
        ),
        ("cell value", PyCell(id(cell)).value == id(text)),
        ("dict size", PyDict(id(table)).used == 2),
        ("tp_alloc", _word(id(tuple) + TYPE_ALLOC) == c_address("PyType_GenericAlloc")),
    ]


def _numpy_facts() -> list[tuple[str, bool]]:
    matrix = np.zeros((3, 5), np.float32)
    view = matrix[:, 1:]
    a, v = NdArray(id(matrix)), NdArray(id(view))
    swapped = np.dtype(np.float32).newbyteorder()
    known = NDARRAY_C_CONTIGUOUS | NDARRAY_ALIGNED
    return [
        ("ndarray type", id(np.ndarray) == NDARRAY_TYPE and id(np.dtype) == DESCR_TYPE),
        ("ndarray data", a.data == matrix.ctypes.data and v.data == view.ctypes.data),
        ("ndarray rank", a.nd == 2),
        ("ndarray shape", (_word(a.dims), _word(a.dims + 8)) == (3, 5)),
        ("ndarray strides", (_word(a.strides), _word(a.strides + 8)) == matrix.strides),
        ("ndarray base", v.base == id(matrix)),
        ("ndarray descr", a.descr == id(matrix.dtype)),
        ("ndarray flags", a.flags & known == known and v.flags & known == NDARRAY_ALIGNED),
        ("dtype scalar type", PyDescr(id(matrix.dtype)).scalar_type == id(np.float32)),
        (
            "dtype byte order",
            _byte(id(swapped) + DESCR_BYTEORDER) == b">"
            and _byte(a.descr + DESCR_BYTEORDER) == b"=",
        ),
    ]


def slot_offset(kind: type, name: str, example: Any) -> int:
    """Where the objects of a class keep what is in a slot, as the class itself says; `example`
    shows whether that is so."""
    member = _word(id(kind.__dict__[name]) + MEMBER_DEFINITION)
    offset = _word(member + 16)
    if _word(id(example) + offset) != id(getattr(example, name)):
        raise ValueError(f"{kind.__name__}.{name} is not where it should be")
    return offset


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _byte(address: int) -> bytes:
    return ctypes.string_at(address, 1)


def refuse_without_gil() -> None:
    """ImportError where threads run Python at the same time. A free-threaded build that has its GIL
    on is an unknown interpreter, no more."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "calque needs the GIL, without which this Python runs: start it as `python -X gil=1` or"
            " with PYTHON_GIL=1, or take a build that is not free-threaded"
        )


def _is_known() -> bool:
    """Whether machine code may be used on objects; ``CALQUE_CALLPATH=off`` says no. Else plain
    Python takes over."""
    refuse_without_gil()
    if variables.choice("CALQUE_CALLPATH", (*variables.ON, *variables.OFF)) in variables.OFF:
        return False
    try:
        check_interpreter()
    except ImportError:
        return False
    return True


IS_KNOWN = _is_known()
