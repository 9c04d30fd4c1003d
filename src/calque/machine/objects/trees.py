"""Trees of Python's containers by machine code: their leaves and structure, the tree of a structure
again, and the parts of a tree that stand where a structure has leaves.

A structure is a tuple, the tree from the root on: None for a leaf, and (class, auxiliary data,
number of children) for a container, before its children. `kinds` says of the classes that somebody
registered how they are taken apart and made; `plain_trees` is the same in Python."""

from __future__ import annotations

from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i32,
    i64,
    likely,
    load_i64,
    load_ptr,
    ptr,
    store_i64,
    store_ptr,
)
from calque.machine.objects.array_type import (
    PyObject_Vectorcall,
    array_type,
    refuse,
    tuple_type,
)
from calque.machine.objects.plain_trees import Functions, children_of, kinds, sorted_keys
from calque.machine.objects.pyapi import (
    PyErr_Clear,
    PyErr_Format,
    PyErr_Occurred,
    PyList,
    PyObject,
    PyTuple,
    PyVar,
    make_builtin,
    none,
    type_error,
    value_error,
)
from calque.machine.objects.shortcuts import call_one

unit = Unit("calque_trees", plain=True)  # the interpreter takes most of the time

PyDict_Keys = unit.extern("PyDict_Keys", ptr, ptr)
PyDict_New = unit.extern("PyDict_New", ptr)
PyDict_Size = unit.extern("PyDict_Size", i64, ptr)
PyDict_GetItemWithError = unit.extern("PyDict_GetItemWithError", ptr, ptr, ptr)
PyDict_SetItem = unit.extern("PyDict_SetItem", i32, ptr, ptr, ptr)
PyList_New = unit.extern("PyList_New", ptr, i64)
PyList_Append = unit.extern("PyList_Append", i32, ptr, ptr)
PyList_Sort = unit.extern("PyList_Sort", i32, ptr)
PyErr_ExceptionMatches = unit.extern("PyErr_ExceptionMatches", i32, ptr)
PyList_AsTuple = unit.extern("PyList_AsTuple", ptr, ptr)
PyLong_AsSsize_t = unit.extern("PyLong_AsSsize_t", i64, ptr)
PyLong_FromSsize_t = unit.extern("PyLong_FromSsize_t", ptr, i64)
PyObject_Call = unit.extern("PyObject_Call", ptr, ptr, ptr, ptr)
PyObject_HasAttr = unit.extern("PyObject_HasAttr", i32, ptr, ptr)
PyObject_IsTrue = unit.extern("PyObject_IsTrue", i32, ptr)
PyObject_RichCompareBool = unit.extern("PyObject_RichCompareBool", i32, ptr, ptr, i32)
PySequence_Tuple = unit.extern("PySequence_Tuple", ptr, ptr)
PyTuple_New = unit.extern("PyTuple_New", ptr, i64)
PyType_GetFlags = unit.extern("PyType_GetFlags", i64, ptr)
decref = unit.extern("Py_DecRef", None, ptr)  # also of NULL; not inlined, it would be half the code
Py_NewRef = unit.extern("Py_NewRef", ptr, ptr)
Py_EnterRecursiveCall = unit.extern("Py_EnterRecursiveCall", i32, ptr)
Py_LeaveRecursiveCall = unit.extern("Py_LeaveRecursiveCall", None)

EQUAL = 2  # Py_EQ
TUPLE_SUBCLASS = 1 << 26  # Py_TPFLAGS_TUPLE_SUBCLASS
CALL_WITH_SPACE = (1 << 63) | 2  # two arguments, and a free place before them

_fields = "_fields"
list_type = unit.cell("tree_list_type", ptr, id(list))
dict_type = unit.cell("tree_dict_type", ptr, id(dict))
none_type = unit.cell("tree_none_type", ptr, id(type(None)))
known_kinds = unit.cell("tree_kinds", ptr, id(kinds))
fields_name = unit.cell("tree_fields_name", ptr, id(_fields))
check_pair = unit.cell("tree_check_pair", ptr, id(children_of))
sort_keys = unit.cell("tree_sort_keys", ptr, id(sorted_keys))


@unit.helper
def item(values: ptr, i: i64) -> ptr:
    """An item of a tuple."""
    return load_ptr(PyTuple.at(values).items, 8 * i)


@unit.called
def is_named(kind: ptr) -> i32:
    """Whether a class is one of named tuples that nobody registered."""
    if (PyType_GetFlags(kind) & TUPLE_SUBCLASS) == 0:
        return i32(0)
    return PyObject_HasAttr(kind, fields_name)


@unit.called
def tree_keys(table: ptr) -> ptr:
    """The keys of a dict, sorted, as a tuple."""
    keys, made = PyDict_Keys(table), NULL
    if keys == NULL:
        return NULL
    if PyList_Sort(keys) == 0:
        made = PyList_AsTuple(keys)
    elif PyErr_ExceptionMatches(type_error):
        PyErr_Clear()
        made = call_one(sort_keys, table)
    decref(keys)
    return made


@unit.called
def tree_values(table: ptr, keys: ptr) -> ptr:
    """The values of a dict for some keys, as a tuple; NULL, perhaps without an exception, where
    one is missing."""
    count = PyVar(keys).size
    values = PyTuple_New(count)
    if values == NULL:
        return NULL
    for i in range(count):
        value = PyDict_GetItemWithError(table, item(keys, i))
        if value == NULL:
            decref(values)
            return NULL
        store_ptr(PyTuple.at(values).items, 8 * i, Py_NewRef(value))
    return values


@unit.called
def tree_parts(way: ptr, x: ptr) -> ptr:
    """What a registered class says it is flattened to: a pair that begins with a tuple."""
    made = call_one(item(way, 0), x)
    if made == NULL:
        return NULL
    if PyObject(made).type == tuple_type and PyVar(made).size == 2:
        if PyObject(item(made, 0)).type == tuple_type:
            return made
    checked = call_one(check_pair, made)
    decref(made)
    return checked


# ---- leaves and structure ----


@unit.called
def note_leaf(x: ptr, leaves: ptr, code: ptr) -> i32:
    """Add a leaf."""
    if PyList_Append(leaves, x) < 0:
        return i32(-1)
    return PyList_Append(code, none) if code else i32(0)


@unit.called
def note_node(kind: ptr, aux: ptr, count: i64, code: ptr) -> i32:
    """Add what a container is to the structure."""
    if code == NULL:
        return i32(0)
    number = PyLong_FromSsize_t(count)
    if number == NULL:
        return i32(-1)
    failed = i32(0)
    if (
        PyList_Append(code, kind) < 0
        or PyList_Append(code, aux) < 0
        or PyList_Append(code, number) < 0
    ):
        failed = i32(-1)
    decref(number)
    return failed


@unit.called
def visit_children(kind: ptr, aux: ptr, parts: ptr, is_leaf: ptr, leaves: ptr, code: ptr) -> i32:
    """Go through the children of a container; takes the reference to them."""
    if parts == NULL:
        return i32(-1)
    count = PyVar(parts).size
    failed = note_node(kind, aux, count, code)
    if failed == 0 and Py_EnterRecursiveCall(" in a tree") != 0:
        failed = i32(-1)
    elif failed == 0:
        for i in range(count):
            failed = visit(item(parts, i), is_leaf, leaves, code)
            if failed != 0:
                break
        Py_LeaveRecursiveCall()
    decref(parts)
    return failed


@unit.called
def visit_dict(x: ptr, is_leaf: ptr, leaves: ptr, code: ptr) -> i32:
    """Go through the values of a dict, in the order of the keys."""
    keys = tree_keys(x)
    if keys == NULL:
        return i32(-1)
    values = tree_values(x, keys)
    if values == NULL and not PyErr_Occurred():
        refuse(value_error, "a dict changed while it was flattened")
    failed = visit_children(dict_type, keys, values, is_leaf, leaves, code)
    decref(keys)
    return failed


@unit.called
def visit_registered(x: ptr, way: ptr, is_leaf: ptr, leaves: ptr, code: ptr) -> i32:
    """Go through the children of an object of a registered class."""
    pair = tree_parts(way, x)
    if pair == NULL:
        return i32(-1)
    kind, parts = PyObject(x).type, Py_NewRef(item(pair, 0))
    failed = visit_children(kind, item(pair, 1), parts, is_leaf, leaves, code)
    decref(pair)
    return failed


@unit.called
def visit_other(x: ptr, is_leaf: ptr, leaves: ptr, code: ptr) -> i32:
    """Go through what is neither an array nor a tuple."""
    kind = PyObject(x).type
    if kind == list_type:
        parts = PyList_AsTuple(x)
        return visit_children(kind, none, parts, is_leaf, leaves, code)
    if kind == dict_type:
        return visit_dict(x, is_leaf, leaves, code)
    if x == none:
        return note_node(none_type, none, 0, code)
    way = PyDict_GetItemWithError(known_kinds, kind)
    if way:
        return visit_registered(x, way, is_leaf, leaves, code)
    if PyErr_Occurred():
        return i32(-1)
    if is_named(kind):
        return visit_children(kind, none, Py_NewRef(x), is_leaf, leaves, code)
    return note_leaf(x, leaves, code)


@unit.called
def is_leaf_by(is_leaf: ptr, x: ptr) -> i32:
    """What the caller's function says of a part: 1 for a leaf; -1 with an exception."""
    said = call_one(is_leaf, x)
    if said == NULL:
        return i32(-1)
    answer = PyObject_IsTrue(said)
    decref(said)
    return answer


@unit.called
def visit(x: ptr, is_leaf: ptr, leaves: ptr, code: ptr) -> i32:
    """Add the leaves and the structure of a part; -1 with an exception."""
    if is_leaf != none:
        said = is_leaf_by(is_leaf, x)
        if said < 0:
            return i32(-1)
        if said:
            return note_leaf(x, leaves, code)
    if likely(PyObject(x).type == array_type):
        return note_leaf(x, leaves, code)
    if PyObject(x).type == tuple_type:
        return visit_children(tuple_type, none, Py_NewRef(x), is_leaf, leaves, code)
    return visit_other(x, is_leaf, leaves, code)


@unit.function
def _tree_leaves(self: ptr, args: ptr, count: i64) -> ptr:
    """tree_leaves(tree, is_leaf): the leaves, as a list."""
    if count != 2:
        return refuse(type_error, "tree_leaves takes a tree and a function or None")
    leaves = PyList_New(0)
    if leaves and visit(load_ptr(args, 0), load_ptr(args, 8), leaves, NULL) < 0:
        decref(leaves)
        return NULL
    return leaves


@unit.function
def _tree_flatten(self: ptr, args: ptr, count: i64) -> ptr:
    """tree_flatten(tree, is_leaf): a pair of the leaves, as a list, and the structure."""
    if count != 2:
        return refuse(type_error, "tree_flatten takes a tree and a function or None")
    leaves, code = PyList_New(0), PyList_New(0)
    pair = NULL
    if leaves and code:
        if visit(load_ptr(args, 0), load_ptr(args, 8), leaves, code) >= 0:
            pair = PyTuple_New(2)
    if pair:
        structure = PyList_AsTuple(code)
        store_ptr(PyTuple.at(pair).items, 0, Py_NewRef(leaves))
        store_ptr(PyTuple.at(pair).items, 8, structure)
        if structure == NULL:
            decref(pair)
            pair = NULL
    decref(leaves)
    decref(code)
    return pair


# ---- the tree of a structure ----
# The words of a walk: how far it is in the structure and among the leaves, the two, and a list.
AT, TAKEN, CODE, LEAVES, WORDS = 0, 8, 16, 24, 32


@unit.called
def fill_parts(walk: ptr, parts: ptr, items: ptr, count: i64) -> ptr:
    """Put made children into a fresh container, which is dropped where one fails."""
    if Py_EnterRecursiveCall(" in a tree") != 0:
        decref(parts)
        return NULL
    for i in range(count):
        made = make(walk)
        if made == NULL:
            decref(parts)
            parts = NULL
            break
        store_ptr(items, 8 * i, made)
    Py_LeaveRecursiveCall()
    return parts


@unit.called
def made_dict(keys: ptr, values: ptr) -> ptr:
    """A dict of keys and values."""
    made = PyDict_New()
    for i in range(PyVar(values).size):
        if made and PyDict_SetItem(made, item(keys, i), item(values, i)) < 0:
            decref(made)
            made = NULL
    return made


@unit.called
def made_registered(kind: ptr, aux: ptr, parts: ptr) -> ptr:
    """An object of a registered class, or a named tuple."""
    way = PyDict_GetItemWithError(known_kinds, kind)
    if way == NULL:
        return NULL if PyErr_Occurred() else PyObject_Call(kind, parts, NULL)
    place = alloca(24)
    store_ptr(place, 8, aux)
    store_ptr(place, 16, parts)
    return PyObject_Vectorcall(item(way, 1), place + 8, CALL_WITH_SPACE, NULL)


@unit.called
def make_node(walk: ptr, kind: ptr, aux: ptr, count: i64) -> ptr:
    """The container of which the children follow."""
    if kind == list_type:
        made = PyList_New(count)
        return fill_parts(walk, made, PyList(made).items, count) if made else NULL
    parts = PyTuple_New(count)
    if parts == NULL:
        return NULL
    parts = fill_parts(walk, parts, PyTuple.at(parts).items, count)
    if parts == NULL or kind == tuple_type:
        return parts
    made = made_dict(aux, parts) if kind == dict_type else made_registered(kind, aux, parts)
    decref(parts)
    return made


@unit.called
def make(walk: ptr) -> ptr:
    """The part of the tree that begins here."""
    code, at = load_ptr(walk, CODE), load_i64(walk, AT)
    kind = item(code, at)
    if likely(kind == none):
        taken = load_i64(walk, TAKEN)
        store_i64(walk, AT, at + 1)
        store_i64(walk, TAKEN, taken + 1)
        return Py_NewRef(item(load_ptr(walk, LEAVES), taken))
    store_i64(walk, AT, at + 3)
    if kind == none_type:
        return Py_NewRef(none)
    return make_node(walk, kind, item(code, at + 1), PyLong_AsSsize_t(item(code, at + 2)))


@unit.function
def _tree_unflatten(self: ptr, args: ptr, count: i64) -> ptr:
    """tree_unflatten(structure, number of leaves, leaves): the tree."""
    if count != 3 or PyObject(load_ptr(args, 0)).type != tuple_type:
        return refuse(type_error, "tree_unflatten takes a structure, its number of leaves, leaves")
    wanted, leaves = PyLong_AsSsize_t(load_ptr(args, 8)), PySequence_Tuple(load_ptr(args, 16))
    if leaves == NULL:
        return NULL
    given = PyVar(leaves).size
    made = NULL
    if given == wanted:
        walk = alloca(WORDS)
        store_i64(walk, AT, 0)
        store_i64(walk, TAKEN, 0)
        store_ptr(walk, CODE, load_ptr(args, 0))
        store_ptr(walk, LEAVES, leaves)
        made = make(walk)
    elif given < wanted:
        PyErr_Format(
            value_error, "Too few leaves for PyTreeDef; expected %zd, got %zd", wanted, given
        )
    else:
        PyErr_Format(
            value_error, "Too many leaves for PyTreeDef; expected %zd, got %zd", wanted, given
        )
    decref(leaves)
    return made


# ---- the parts where a structure has leaves ----


@unit.called
def follow_children(walk: ptr, parts: ptr, wanted: i64) -> i32:
    """Follow the structure into the children; takes the reference to them."""
    if parts == NULL:
        return i32(-1) if PyErr_Occurred() else i32(0)
    fits = i32(1) if PyVar(parts).size == wanted else i32(0)
    if fits == 1 and Py_EnterRecursiveCall(" in a tree") != 0:
        fits = i32(-1)
    if fits == 1:
        for i in range(wanted):
            fits = follow(walk, item(parts, i))
            if fits != 1:
                break
        Py_LeaveRecursiveCall()
    decref(parts)
    return fits


@unit.called
def follow_registered(walk: ptr, x: ptr, aux: ptr, wanted: i64) -> i32:
    """Follow the structure into an object of a registered class, or a named tuple."""
    way = PyDict_GetItemWithError(known_kinds, PyObject(x).type)
    if way == NULL:
        if PyErr_Occurred():
            return i32(-1)
        if not is_named(PyObject(x).type):
            return i32(0)
        return follow_children(walk, Py_NewRef(x), wanted)
    pair = tree_parts(way, x)
    if pair == NULL:
        return i32(-1)
    fits = PyObject_RichCompareBool(item(pair, 1), aux, EQUAL)
    if fits == 1:
        fits = follow_children(walk, Py_NewRef(item(pair, 0)), wanted)
    decref(pair)
    return fits


@unit.called
def follow(walk: ptr, x: ptr) -> i32:
    """Whether a part fits, and where it does the parts at the leaves; -1 with an exception."""
    code, at = load_ptr(walk, CODE), load_i64(walk, AT)
    kind = item(code, at)
    if likely(kind == none):
        store_i64(walk, AT, at + 1)
        return i32(1) if PyList_Append(load_ptr(walk, LEAVES), x) == 0 else i32(-1)
    store_i64(walk, AT, at + 3)
    if PyObject(x).type != kind:
        return i32(0)
    if kind == none_type:
        return i32(1)
    aux, wanted = item(code, at + 1), PyLong_AsSsize_t(item(code, at + 2))
    if kind == tuple_type:
        return follow_children(walk, Py_NewRef(x), wanted)
    if kind == list_type:
        return follow_children(walk, PyList_AsTuple(x), wanted)
    if kind == dict_type:
        if PyDict_Size(x) != wanted:
            return i32(0)
        return follow_children(walk, tree_values(x, aux), wanted)
    return follow_registered(walk, x, aux, wanted)


@unit.function
def _tree_follow(self: ptr, args: ptr, count: i64) -> ptr:
    """tree_follow(structure, tree): the parts of a tree where a structure has leaves, as a list;
    None where the tree does not begin like this."""
    if count != 2 or PyObject(load_ptr(args, 0)).type != tuple_type:
        return refuse(type_error, "tree_follow takes a structure and a tree")
    parts = PyList_New(0)
    if parts == NULL:
        return NULL
    walk = alloca(WORDS)
    store_i64(walk, AT, 0)
    store_ptr(walk, CODE, load_ptr(args, 0))
    store_ptr(walk, LEAVES, parts)
    fits = follow(walk, load_ptr(args, 8))
    if fits == 1:
        return parts
    decref(parts)
    return NULL if fits < 0 else Py_NewRef(none)


def made() -> Functions:
    """The functions, compiled where they are not on disk."""
    return Functions(
        make_builtin(_tree_flatten),
        make_builtin(_tree_leaves),
        make_builtin(_tree_unflatten),
        make_builtin(_tree_follow),
    )
