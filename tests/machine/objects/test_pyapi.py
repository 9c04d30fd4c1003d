"""CPython from machine code: counts of references, types made at run time, where structs are."""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import Any

import pytest

from calque.machine.lang.unit import (
    NULL,
    Unit,
    i64,
    layout,
    load_ptr,
    ptr,
)
from calque.machine.objects import pyapi
from calque.machine.objects.pyapi import (
    METH_NOARGS,
    METH_O,
    PyErr_SetString,
    TypeSpec,
    c_address,
    decref,
    incref,
    make_builtin,
    make_type,
    new_reference,
    none,
    slot_offset,
    value_error,
    xdecref,
)

unit = Unit("test_pyapi")

Pair = layout("PairObject", refcount=i64, type=ptr, first=ptr, second=ptr, number=i64)
tp_alloc = unit.extern("PyType_GenericAlloc", ptr, ptr, i64)
tp_free = unit.extern("PyObject_Free", None, ptr)
message = ctypes.create_string_buffer(b"no such thing")
no_such_thing = unit.cell("test_message", ptr, ctypes.addressof(message))


@unit.function
def _second(self: ptr, args: ptr, count: i64) -> ptr:
    """second(x, y): the last of two."""
    if count != 2:
        PyErr_SetString(value_error, no_such_thing)
        return NULL
    return new_reference(load_ptr(args, 8))


@unit.function
def same(self: ptr, x: ptr) -> ptr:
    """The object itself, after some counting."""
    incref(x)
    incref(x)
    decref(x)
    xdecref(NULL)
    return x


@unit.function
def nothing(self: ptr, x: ptr) -> ptr:
    return new_reference(none)


@unit.function
def forget(self: ptr, x: ptr) -> ptr:
    """Drops one reference that somebody gave away."""
    xdecref(x)
    return new_reference(none)


@unit.function
def pair_new(kind: ptr, args: ptr, kwargs: ptr) -> ptr:
    made = tp_alloc(kind, 0)
    if made:
        Pair(made).first = new_reference(args)
        Pair(made).number = 41
    return made


@unit.function
def pair_dealloc(self: ptr) -> None:
    kind = Pair(self).type
    xdecref(Pair(self).first)
    xdecref(Pair(self).second)
    tp_free(self)
    decref(kind)


@unit.function
def get_second(self: ptr, closure: ptr) -> ptr:
    second = Pair(self).second
    return new_reference(second if second else none)


@unit.function
def set_second(self: ptr, value: ptr, closure: ptr) -> i64:
    old = Pair(self).second
    incref(value)
    Pair(self).second = value
    xdecref(old)
    return 0


def pair_type(**changes: Any) -> Any:
    spec = TypeSpec(
        name="tests.Pair",
        size=Pair.size,
        flags=pyapi.FLAGS_DEFAULT,
        doc="Two things.",
        slots={"tp_new": pair_new, "tp_dealloc": pair_dealloc},
        members=[
            ("first", pyapi.OBJECT, Pair.offset("first"), pyapi.READONLY),
            ("number", pyapi.PYSSIZET, Pair.offset("number"), 0),
        ],
        properties={"second": (get_second, set_second)},
    )
    for name, value in changes.items():
        setattr(spec, name, value)
    return make_type(spec)


# ---- functions ----


def test_functions_take_arguments_in_each_way() -> None:
    second = make_builtin(_second)
    assert second.__name__ == "second" and second.__doc__ == "second(x, y): the last of two."
    assert second(1, "y") == "y"
    with pytest.raises(TypeError, match="keyword"):
        second(1, y=2)
    with pytest.raises(ValueError, match="no such thing"):
        second(1)
    one = make_builtin(same, METH_O)
    thing = object()
    assert one(thing) is thing
    for wrong in ((), (1, 2)):
        with pytest.raises(TypeError, match="exactly one argument"):
            one(*wrong)
    assert make_builtin(nothing, METH_NOARGS)() is None
    with pytest.raises(TypeError, match="no arguments"):
        make_builtin(nothing, METH_NOARGS)(1)


def test_references_are_counted_and_the_last_one_deletes() -> None:
    class Thing:
        pass

    one, drop = make_builtin(same, METH_O), make_builtin(forget, METH_O)
    thing = Thing()
    before = sys.getrefcount(thing)
    for _ in range(100):
        one(thing)
    assert sys.getrefcount(thing) == before
    gone = weakref.ref(thing)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    assert sys.getrefcount(thing) == before + 1
    drop(thing)
    assert sys.getrefcount(thing) == before
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    address = id(thing)
    del thing
    assert gone() is not None
    pyapi_forget = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    pyapi_forget(forget.address)(None, address)
    assert gone() is None


def test_none_may_be_counted_as_often_as_one_likes() -> None:
    drop = make_builtin(forget, METH_O)
    give = make_builtin(nothing, METH_NOARGS)
    if not pyapi.HAS_IMMORTALS:
        pytest.skip("None has a true count here")
    before = sys.getrefcount(None)
    for _ in range(1000):
        drop(None)
    for _ in range(10):
        give()
    assert sys.getrefcount(None) == before


@pytest.mark.skipif(sys.version_info < (3, 14), reason="the whole word counts")
def test_flags_beside_the_count_are_left_alone() -> None:
    class Thing:
        pass

    one, drop = make_builtin(same, METH_O), make_builtin(forget, METH_O)
    thing, unused = Thing(), 1 << 12
    flags = ctypes.c_uint16.from_address(id(thing) + 6)
    flags.value |= unused
    before, gone = sys.getrefcount(thing), weakref.ref(thing)
    one(thing)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    drop(thing)
    assert sys.getrefcount(thing) == before and flags.value & unused
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    address = id(thing)
    del thing
    ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(forget.address)(
        None, address
    )
    assert gone() is None


# ---- types ----


def test_a_type_with_members_and_properties() -> None:
    kind = pair_type()
    assert (kind.__module__, kind.__name__, kind.__doc__) == ("tests", "Pair", "Two things.")
    assert kind.__basicsize__ == Pair.size == 40
    pair = kind("a", 2)
    assert (pair.first, pair.second, pair.number) == (("a", 2), None, 41)
    with pytest.raises(AttributeError, match="readonly"):
        pair.first = 1
    with pytest.raises(AttributeError):
        pair.other = 1
    value = object()
    before = sys.getrefcount(value)
    pair.second, pair.number = value, -3
    assert sys.getrefcount(value) == before + 1
    assert pair.second is value and pair.number == -3
    counts = sys.getrefcount(value), sys.getrefcount(kind)
    del pair
    assert (sys.getrefcount(value), sys.getrefcount(kind)) == (counts[0] - 1, counts[1] - 1)
    with pytest.raises(TypeError, match="acceptable base"):
        type("Child", (kind,), {"__slots__": ()})


def test_what_the_flags_of_a_type_allow() -> None:
    base = pair_type(flags=pyapi.FLAGS_DEFAULT | pyapi.FLAGS_BASETYPE)
    assert type("Child", (base,), {"__slots__": ()}).__mro__[1:] == (base, object)
    with pytest.raises(TypeError, match="cannot create"):
        pair_type(flags=pyapi.FLAGS_DEFAULT | pyapi.FLAGS_NO_NEW, slots={})()


def test_slots_have_the_numbers_of_the_interpreter() -> None:
    """Each slot named leads to the attribute that CPython makes of it."""
    call = c_address("PyObject_CallObject")
    for slot, attribute in {
        "mp_subscript": "__getitem__",
        "tp_call": "__call__",
        "tp_descr_get": "__get__",
    }.items():
        assert attribute in vars(pair_type(slots={slot: call}))
    assert "__getitem__" in vars(pair_type(slots={"sq_item": call}))
    with pytest.raises(KeyError, match="nb_add"):
        pair_type(slots={"nb_add": call})


# ---- where things are ----


def test_interpreter_check_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    pyapi.check_interpreter()
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    with pytest.raises(ImportError, match=r"CPython 3\.11"):
        pyapi.check_interpreter()
    monkeypatch.undo()
    monkeypatch.setitem(pyapi.NdArray.fields, "data", (24, pyapi.NdArray.fields["data"][1]))
    with pytest.raises(ImportError, match="ndarray data"):
        pyapi.check_interpreter()


@pytest.mark.parametrize(
    ("where", "name", "fact"),
    [
        (pyapi.PyObject, "type", "ob_type"),
        (pyapi.PyTuple, "items", "tuple items"),
        (pyapi.PyFloat, "value", "float value"),
        (pyapi.PyComplex, "imag", "complex value"),
        (pyapi.PyBytes, "data", "bytes data"),
        (pyapi.PySlice, "step", "slice parts"),
        (pyapi.PyDict, "used", "dict size"),
        (pyapi.NdArray, "strides", "ndarray strides"),
        (pyapi.PyDescr, "scalar_type", "dtype scalar type"),
    ],
)
def test_each_offset_is_compared(
    where: Any, name: str, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset, kind = where.fields[name]
    wrong = offset - 8 if fact in ("ndarray strides", "slice parts") else 0
    monkeypatch.setitem(where.fields, name, (wrong, kind))
    with pytest.raises(ImportError, match=f"{fact} is not where it should be"):
        pyapi.check_interpreter()


def test_a_python_without_its_gil_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(ImportError, match="PYTHON_GIL=1"):
        pyapi._is_known()


def test_an_interpreter_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALQUE_CALLPATH", raising=False)
    assert pyapi._is_known()
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    assert not pyapi._is_known()
    monkeypatch.undo()
    for off in ("off", " OFF ", "0", "no", "False"):
        monkeypatch.setenv("CALQUE_CALLPATH", off)
        assert not pyapi._is_known()
    for on in ("on", "", "1"):
        monkeypatch.setenv("CALQUE_CALLPATH", on)
        assert pyapi._is_known()


def test_where_a_class_keeps_a_slot() -> None:
    class Slotted:
        __slots__ = ("a", "b", "c")

        def __init__(self) -> None:
            self.a, self.b, self.c = "one", "two", "three"

    x = Slotted()
    offsets = [slot_offset(Slotted, name, x) for name in "abc"]
    assert offsets == [16, 24, 32]
    assert [ctypes.c_int64.from_address(id(x) + at).value for at in offsets] == [
        id(x.a),
        id(x.b),
        id(x.c),
    ]


def test_a_slot_that_says_something_else_is_refused() -> None:
    class Base:
        __slots__ = ("kind",)

    class Hiding(Base):
        __slots__ = ()

        @property
        def kind(self) -> str:
            return "computed"

    x = Hiding()
    Base.kind.__set__(x, "stored")  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"Base\.kind is not where it should be"):
        slot_offset(Base, "kind", x)
    with pytest.raises(KeyError):
        slot_offset(Hiding, "other", x)


def test_addresses_of_c_functions() -> None:
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(c_address("PyCallable_Check"))
    assert function(print) == 1 and function(3) == 0
    with pytest.raises(AttributeError):
        c_address("PyNothing_AtAll")
