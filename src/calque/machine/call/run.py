"""Machine code of a call: find the entry that matches, run its program, build the result; else ask
Python (`miss`)."""

from __future__ import annotations

from calque.machine.call.build import build
from calque.machine.call.donation import make_donated_results
from calque.machine.call.epochs import PyLong_AsVoidPtr, epoch_here
from calque.machine.call.layout import (
    NEAR_FRAME,
    CallableObject,
    EntryObject,
    Guard,
    Header,
    ProgramHeader,
    State,
)
from calque.machine.call.match import equal, list_type, match_items, statics_equal
from calque.machine.driver.interpreter import DONATES, calque_run
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i1,
    i32,
    i64,
    likely,
    load_i64,
    load_ptr,
    ptr,
    sizeof,
    store_i64,
    store_ptr,
    unlikely,
)
from calque.machine.objects.active_runs import ActiveRun, begin_active, end_active
from calque.machine.objects.array_type import (
    Array,
    array_object,
    array_type,
    fresh_array,
    has_memory,
    refuse,
    tuple_type,
)
from calque.machine.objects.pyapi import (
    VECTORCALL_OFFSET_FLAG,
    PyCell,
    PyDict,
    PyErr_Clear,
    PyErr_NoMemory,
    PyErr_Occurred,
    PyList,
    PyObject,
    PyTuple,
    PyVar,
    decref,
    incref,
    new_reference,
    none,
    runtime_error,
    type_error,
    xdecref,
)

unit = Unit("calque_run_entries")

PyMem_Malloc = unit.extern("PyMem_Malloc", ptr, i64)
PyMem_Free = unit.extern("PyMem_Free", None, ptr)
PyTuple_New = unit.extern("PyTuple_New", ptr, i64)
PyList_New = unit.extern("PyList_New", ptr, i64)
PyDict_New = unit.extern("PyDict_New", ptr)
PyDict_GetItemWithError = unit.extern("PyDict_GetItemWithError", ptr, ptr, ptr)
PyDict_SetItem = unit.extern("PyDict_SetItem", i32, ptr, ptr, ptr)
PyObject_Vectorcall = unit.extern("PyObject_Vectorcall", ptr, ptr, ptr, i64, ptr)
PyObject_GetAttr = unit.extern("PyObject_GetAttr", ptr, ptr, ptr)

calls_served = unit.var("calque_calls", i64)  # of jitted functions, without Python
handle_name = unit.cell("calque_handle_name", ptr, lambda: id(HANDLE_NAME))
HANDLE_NAME = "handle"
GUARD_ITEM, GUARD_CELL, GUARD_LENGTH = int(Guard.ITEM), int(Guard.CELL), int(Guard.LENGTH)
NOT_MATCHED = -1  # no address of an object
COUNT_MASK = (1 << 63) - 1  # vectorcall keeps a flag in the top bit of the count


# ---- running a program ----


@unit.function
def make_results(program: ptr, outputs: ptr, results: ptr) -> i64:
    """Make all output arrays; 0 with an exception set, and nothing made, when memory is out."""
    nbytes, avals = ProgramHeader(program).nbytes, ProgramHeader(program).avals
    for k in range(ProgramHeader(program).n_out):
        aval, size = load_ptr(avals, 8 * k), load_i64(nbytes, 8 * k)
        array = (
            fresh_array(aval, size) if likely(size >= 0) else array_object(aval, NULL, NULL, NULL)
        )
        if unlikely(array == NULL):
            drop_results(results, k)
            return 0
        store_ptr(results, 8 * k, array)
        store_ptr(outputs, 8 * k, Array(array).data)
    return 1


@unit.helper
def drop_results(results: ptr, count: i64) -> None:
    """Drop references and leave NULLs."""
    for k in range(count):
        x = load_ptr(results, 8 * k)
        store_ptr(results, 8 * k, NULL)
        xdecref(x)


@unit.helper
def hold_arguments(objects: ptr, count: i64) -> None:
    for j in range(count):
        incref(load_ptr(objects, 8 * j))


@unit.helper
def adopt_blocks(program: ptr, outputs: ptr, results: ptr) -> None:
    """Results whose size was known only while running: the program has allocated their blocks."""
    nbytes = ProgramHeader(program).nbytes
    for k in range(ProgramHeader(program).n_out):
        if unlikely(load_i64(nbytes, 8 * k) < 0):
            array = load_ptr(results, 8 * k)
            Array(array).data = load_ptr(outputs, 8 * k)
            Array(array).block = load_ptr(outputs, 8 * k)


@unit.helper
def run_checked(program: ptr, inputs: ptr, outputs: ptr, results: ptr) -> i64:
    """Run; 0 when the program failed, and then an exception is set."""
    if likely(calque_run(program, inputs, outputs) == 0):
        adopt_blocks(program, outputs, results)
        return 1
    if not PyErr_Occurred():
        refuse(runtime_error, "a compiled program failed without saying why")
    return 0


@unit.function
def execute(words: ptr, state: ptr) -> ptr:
    """Run an entry whose arguments have matched."""
    if unlikely(Header(words).hold):
        return execute_holding(words, state)
    program, n_out = Header(words).program, Header(words).n_out
    if not make_results(program, State(state).outputs, State(state).results):
        return NULL
    answer = NULL
    if run_checked(program, State(state).inputs, State(state).outputs, State(state).results):
        State(state).cursor = words + Header(words).building
        answer = build(state)
    drop_results(State(state).results, n_out)
    return answer


@unit.function
def execute_holding(words: ptr, state: ptr) -> ptr:
    """The same for a program during which other Python code may run: it keeps its arguments alive
    and says that it uses them."""
    program, n_out, slots = Header(words).program, Header(words).n_out, Header(words).slots
    objects, outputs, results = State(state).objects, State(state).outputs, State(state).results
    active = alloca(sizeof(ActiveRun))
    hold_arguments(objects, slots)
    answer = NULL
    if all_results(program, State(state).inputs, objects, outputs, results):
        begin_active(active, objects, slots)
        finished = run_checked(program, State(state).inputs, outputs, results)
        end_active(active)
        if finished:
            State(state).cursor = words + Header(words).building
            answer = build(state)
        drop_results(results, n_out)
    drop_results(objects, slots)
    return answer


@unit.function
def execute_chosen(words: ptr, state: ptr) -> ptr:
    """Run the program that a Python function chooses by the sizes of the arguments; NOT_MATCHED
    where it gives None."""
    if Header(words).program == NULL:
        return execute_served(words, state)
    active, objects, slots = alloca(sizeof(ActiveRun)), State(state).objects, Header(words).slots
    count = Header(words).chosen_by | VECTORCALL_OFFSET_FLAG
    hold_arguments(objects, slots)
    begin_active(active, objects, slots)  # nobody may take their memory while Python runs
    program = PyObject_Vectorcall(
        Header(words).choose, State(state).scratch + Header(words).chosen_at, count, NULL
    )
    answer = ptr(NOT_MATCHED) if program == none else NULL
    if program not in (NULL, none):
        answer = run_chosen(words, state, handle_of(program))
    end_active(active)
    xdecref(program)
    drop_results(objects, slots)
    return answer


@unit.helper
def run_chosen(words: ptr, state: ptr, program: ptr) -> ptr:
    """Run a program that takes no memory of its arguments, which are held."""
    answer, outputs, results = NULL, State(state).outputs, State(state).results
    if program and make_results(program, outputs, results):
        if run_checked(program, State(state).inputs, outputs, results):
            State(state).cursor = words + Header(words).building
            answer = build(state)
        drop_results(results, Header(words).n_out)
    return answer


@unit.function
def execute_served(words: ptr, state: ptr) -> ptr:
    """Let a Python function run an entry that has no program: it takes the arguments and gives a
    list of the outputs, or None where it cannot (NOT_MATCHED)."""
    active, objects, slots = alloca(sizeof(ActiveRun)), State(state).objects, Header(words).slots
    hold_arguments(objects, slots)
    begin_active(active, objects, slots)  # nobody may take their memory while Python runs
    made = PyObject_Vectorcall(Header(words).choose, objects, slots, NULL)
    end_active(active)
    answer = ptr(NOT_MATCHED) if made == none else NULL
    if made not in (NULL, none):
        results, n_out = State(state).results, Header(words).n_out
        if PyObject(made).type != list_type or PyVar(made).size != n_out:
            refuse(type_error, "a served entry gives a list of its outputs")
        else:
            for k in range(n_out):
                store_ptr(results, 8 * k, new_reference(load_ptr(PyList(made).items, 8 * k)))
            State(state).cursor = words + Header(words).building
            answer = build(state)
            drop_results(results, n_out)
    xdecref(made)
    drop_results(objects, slots)
    return answer


@unit.function
def handle_of(program: ptr) -> ptr:
    """The address of a program; NULL with an exception set."""
    handle = PyObject_GetAttr(program, handle_name)
    if handle == NULL:
        return NULL
    address = PyLong_AsVoidPtr(handle)
    decref(handle)
    if address == NULL and not PyErr_Occurred():
        return refuse(type_error, "the program has no handle")
    return address


@unit.helper
def all_results(program: ptr, inputs: ptr, objects: ptr, outputs: ptr, results: ptr) -> i64:
    """Make the output arrays; those of donated arguments take their memory."""
    if ProgramHeader(program).flags & DONATES:
        return make_donated_results(program, inputs, objects, outputs, results)
    return make_results(program, outputs, results)


# ---- trying an entry ----


@unit.helper
def same_names(wanted: ptr, given: ptr, count: i64) -> i1:
    """Whether the keyword names of a call are those of the entry, in order."""
    if count == 0 or wanted == given:
        return i1(1)
    for i in range(count):
        if not equal(
            load_ptr(PyTuple.at(wanted).items, 8 * i), load_ptr(PyTuple.at(given).items, 8 * i)
        ):
            return i1(0)
    return i1(1)


@unit.helper
def attempt(
    entry: ptr, args: ptr, count: i64, names: ptr, epoch: i64, near: ptr, rank: i64, entries: ptr
) -> ptr:
    """The result of a call if the entry fits, NOT_MATCHED if not; `near` is a frame of NEAR_FRAME
    bytes.

    The entry moves to the front of the list `entries` if its `rank` there is not 0."""
    words = EntryObject(entry).words
    keywords = PyVar(names).size if names else 0
    if (
        Header(words).epoch != epoch
        or Header(words).positional != count
        or Header(words).keywords != keywords
    ):
        return ptr(NOT_MATCHED)
    if not same_names(Header(words).names, names, keywords):
        return ptr(NOT_MATCHED)
    frame = near
    if unlikely(Header(words).frame_bytes > NEAR_FRAME):
        frame = PyMem_Malloc(Header(words).frame_bytes)
        if frame == NULL:
            return PyErr_NoMemory()
    answer = attempt_in(entry, args, count + keywords, frame, rank, entries)
    if frame != near:
        PyMem_Free(frame)
    return answer


@unit.function
def guards_hold(guard: ptr, count: i64) -> i64:
    """Whether captured values are what they were when the function was traced."""
    for _ in range(count):
        kind, holder, key, value = (
            load_i64(guard, 0),
            load_ptr(guard, 8),
            load_ptr(guard, 16),
            load_ptr(guard, 24),
        )
        if kind == GUARD_ITEM:
            found = PyDict_GetItemWithError(holder, key)
            if found != value:
                if found == NULL:
                    PyErr_Clear()
                return 0
        elif kind == GUARD_CELL:
            if PyCell(holder).value != value:
                return 0
        elif kind == GUARD_LENGTH:
            if PyDict(holder).used != i64(value):
                return 0
        elif not same_list(holder, value):
            return 0
        guard = guard + 32
    return 1


@unit.helper
def same_list(items: ptr, wanted: ptr) -> i64:
    """Whether a list holds just the items of a tuple."""
    if PyVar(items).size != PyVar(wanted).size:
        return 0
    for i in range(PyVar(wanted).size):
        if load_ptr(PyList(items).items, 8 * i) != load_ptr(PyTuple.at(wanted).items, 8 * i):
            return 0
    return 1


@unit.function
def attempt_in(entry: ptr, args: ptr, total: i64, frame: ptr, rank: i64, entries: ptr) -> ptr:
    """Ask about static arguments, then about the others."""
    words = EntryObject(entry).words
    if unlikely(Header(words).statics):
        incref(entry)  # Python code may drop it, and change the order of the others
        same = statics_equal(args, words + Header(words).static_words, Header(words).statics)
        answer = matched(entry, args, total, frame, -1, entries) if same else ptr(NOT_MATCHED)
        decref(entry)
        return answer
    return matched(entry, args, total, frame, rank, entries)


@unit.function
def matched(entry: ptr, args: ptr, total: i64, frame: ptr, rank: i64, entries: ptr) -> ptr:
    """Match all but static arguments, and run."""
    words = EntryObject(entry).words
    state = alloca(sizeof(State))
    slots = 8 * Header(words).slots
    results = 8 * Header(words).n_out
    State(state).cursor = words + Header(words).matching
    State(state).inputs = frame
    State(state).objects = frame + slots
    State(state).outputs = frame + slots + slots
    State(state).results = frame + slots + slots + results
    State(state).scratch = frame + slots + slots + results + results
    if not match_items(state, args, total):
        return ptr(NOT_MATCHED)
    if unlikely(Header(words).guards) and not guards_hold(
        words + Header(words).guard_words, Header(words).guards
    ):
        return ptr(NOT_MATCHED)
    incref(entry)  # the program may drop it: callbacks, other threads
    answer = ptr(0)
    if unlikely(Header(words).choose != NULL):
        answer = execute_chosen(words, state)
    else:
        if rank > 0:
            bring_forward(PyList(entries).items, rank)
        answer = execute(words, state)
    decref(entry)
    return answer


@unit.helper
def bring_forward(items: ptr, i: i64) -> None:
    """Swap an entry with the first one."""
    entry = load_ptr(items, 8 * i)
    store_ptr(items, 8 * i, load_ptr(items, 0))
    store_ptr(items, 0, entry)


# ---- asking Python ----


@unit.function
def ask_python(self: ptr, args: ptr, count: i64, names: ptr) -> ptr:
    """miss(args, kwargs): no entry fits."""
    miss = CallableObject(self).miss
    if miss == NULL:
        return refuse(runtime_error, "this function has been cleared by the garbage collector")
    pair = alloca(24)
    positional = PyTuple_New(count)
    if positional == NULL:
        return NULL
    for i in range(count):
        store_ptr(PyTuple.at(positional).items, 8 * i, new_reference(load_ptr(args, 8 * i)))
    keywords = PyDict_New()
    answer = NULL
    if keywords and fill_keywords(keywords, args + 8 * count, names):
        store_ptr(pair, 8, positional)
        store_ptr(pair, 16, keywords)
        incref(miss)
        answer = PyObject_Vectorcall(miss, pair + 8, 2 | VECTORCALL_OFFSET_FLAG, NULL)
        decref(miss)
    xdecref(keywords)
    decref(positional)
    return answer


@unit.function
def fill_keywords(table: ptr, values: ptr, names: ptr) -> i64:
    if names == NULL:
        return 1
    for i in range(PyVar(names).size):
        if (
            PyDict_SetItem(table, load_ptr(PyTuple.at(names).items, 8 * i), load_ptr(values, 8 * i))
            < 0
        ):
            return 0
    return 1


# ---- the vectorcall of a jitted function ----


@unit.function
def calque_jitted_call(self: ptr, args: ptr, flagged: i64, names: ptr) -> ptr:
    """Try the entries in turn, the last one used first."""
    near = alloca(NEAR_FRAME)
    count = flagged & COUNT_MASK
    epoch, entries = epoch_here(), CallableObject(self).entries
    if likely(epoch != 0 and entries != NULL):
        i = 0
        while i < PyVar(entries).size:
            entry = load_ptr(PyList(entries).items, 8 * i)
            answer = attempt(entry, args, count, names, epoch, near, i, entries)
            if i64(answer) != NOT_MATCHED:
                store_i64(calls_served, 0, load_i64(calls_served, 0) + 1)
                return answer
            i += 1
    return ask_python(self, args, count, names)


# ---- run_program ----


@unit.function
def _run_program(self: ptr, args: ptr, count: i64) -> ptr:
    """run_program(program, arrays): run a program on a list or tuple of Arrays; a list of
    Arrays."""
    if count != 2:
        return refuse(type_error, "run_program takes a program and a list of Arrays")
    arrays = load_ptr(args, 8)
    kind = PyObject(arrays).type
    if kind not in (list_type, tuple_type):
        return refuse(type_error, "run_program takes a program and a list or tuple of Arrays")
    program = handle_of(load_ptr(args, 0))
    if program == NULL:
        return NULL
    if PyVar(arrays).size != ProgramHeader(program).n_in:
        return refuse(type_error, "the program takes another number of arrays")
    items = PyList(arrays).items if kind == list_type else PyTuple.at(arrays).items
    return run_on_items(program, items)


@unit.function
def run_on_items(program: ptr, items: ptr) -> ptr:
    """Check the arrays, lay out a frame and run."""
    n_in, n_out = ProgramHeader(program).n_in, ProgramHeader(program).n_out
    near = alloca(NEAR_FRAME)
    frame = near
    for j in range(n_in):
        if PyObject(load_ptr(items, 8 * j)).type != array_type:
            return refuse(type_error, "run_program takes Arrays only")
        if not has_memory(load_ptr(items, 8 * j)):
            return NULL
    if 16 * n_in + 16 * n_out > NEAR_FRAME:
        frame = PyMem_Malloc(16 * n_in + 16 * n_out)
        if frame == NULL:
            return PyErr_NoMemory()
    answer = run_in_frame(program, items, frame, n_in, n_out)
    if frame != near:
        PyMem_Free(frame)
    return answer


@unit.function
def run_in_frame(program: ptr, items: ptr, frame: ptr, n_in: i64, n_out: i64) -> ptr:
    """Run with pointers in the frame; the results go into the list as they are."""
    objects, outputs = frame + 8 * n_in, frame + 16 * n_in
    active = alloca(sizeof(ActiveRun))
    for j in range(n_in):
        x = load_ptr(items, 8 * j)
        store_ptr(frame, 8 * j, Array(x).data)
        store_ptr(objects, 8 * j, new_reference(x))
    answer = PyList_New(n_out)
    if answer:
        results, finished = PyList(answer).items, i64(0)
        if all_results(program, frame, objects, outputs, results):
            begin_active(active, objects, n_in)
            finished = run_checked(program, frame, outputs, results)
            end_active(active)
        if not finished:
            decref(answer)
            answer = NULL
    drop_results(objects, n_in)
    return answer
