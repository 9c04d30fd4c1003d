"""Short ways through what Python is asked all the time: machine code answers the plain case, a
function of Python all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calque.machine.lang.unit import NULL, Unit, alloca, likely, load_ptr, ptr, store_ptr
from calque.machine.objects.array_type import PyObject_Vectorcall, array_type, tuple_type
from calque.machine.objects.pyapi import (
    METH_O,
    PyObject,
    PyTuple,
    PyVar,
    builtin_with,
    decref,
    definition_of,
    make_method,
    new_reference,
)

unit = Unit("calque_shortcuts")

_true = unit.cell("py_true", ptr, id(True))
_otherwise: Any = unit.cell("array_instance_otherwise", ptr, id(None))
_SPARE_PLACE = 1 << 63  # PY_VECTORCALL_ARGUMENTS_OFFSET


@unit.helper
def call_one(function: ptr, x: ptr) -> ptr:
    """function(x)"""
    place = alloca(16)
    store_ptr(place, 8, x)
    return PyObject_Vectorcall(function, place + 8, 1 | _SPARE_PLACE, NULL)


@unit.function
def calque_pair(functions: ptr, x: ptr) -> ptr:
    """What the first function makes of `x`, where that is a pair that begins with a tuple; else
    what the second makes of that."""
    made = call_one(load_ptr(PyTuple.at(functions).items, 0), x)
    if made == NULL:
        return NULL
    if PyObject(made).type == tuple_type and PyVar(made).size == 2:
        if PyObject(load_ptr(PyTuple.at(made).items, 0)).type == tuple_type:
            return made
    checked = call_one(load_ptr(PyTuple.at(functions).items, 8), made)
    decref(made)
    return checked


@unit.function
def calque_instancecheck(kind: ptr, x: ptr) -> ptr:
    """True for an array; else what the function says of the class and `x`."""
    if likely(PyObject(x).type == array_type):
        return new_reference(_true)
    place = alloca(24)
    store_ptr(place, 8, kind)
    store_ptr(place, 16, x)
    return PyObject_Vectorcall(_otherwise, place + 8, 2 | _SPARE_PLACE, NULL)


_pair = definition_of(calque_pair, METH_O)


def checked_pair(
    function: Callable[[Any], Any], check: Callable[[Any], tuple[Any, Any]]
) -> Callable[[Any], tuple[Any, Any]]:
    """`function` where it gives a pair that begins with a tuple, as it should; what else it gives
    goes through `check`."""
    return builtin_with(_pair, (function, check))


def instance_check(meta: type, otherwise: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """`__instancecheck__` of a metaclass: arrays are instances, and `otherwise` says it of all
    else. There is one in a process."""
    _otherwise.write(id(otherwise))
    made = make_method(meta, calque_instancecheck, METH_O)
    return made
