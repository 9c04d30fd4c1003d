"""The interpreter of driver programs: machine code that runs kernels, copies, loops, branches and
host calls in a few nanoseconds a step.

A program is data (`program.Program` holds it). Its code is an array of 64-bit words: an operation,
then its operands. An operand is nearly always the byte offset of a word in the frame, an array made
anew for each run, so that programs are immutable, recursive and usable from many threads at once::

    inputs | outputs | owned blocks, registers, slots, constants (copied from the template) | arena
    slots | run | arguments of the next call

No step needs to know what kind of operand it has: immediates stand in the template as constants do.
Raw operands (jump targets, widths, counts) stand in the code itself. Names in capitals below:
``dst`` and so on are frame offsets, ``#x`` is raw.
"""

import enum
from typing import Any

from calque.machine.clock import nanoseconds_now
from calque.machine.driver.stamps import Run, interp_stamp, unit
from calque.machine.integers import load_integer, product_fits, store_integer
from calque.machine.lang.unit import (
    NULL,
    alloca,
    atomic_load,
    atomic_store,
    i1,
    i32,
    i64,
    layout,
    likely,
    load_i64,
    load_ptr,
    load_u8,
    memcpy,
    memmove,
    memset,
    ptr,
    signature,
    store_i16,
    store_i32,
    store_i64,
    store_ptr,
    unlikely,
)
from calque.machine.memory import bytes_refused, calque_alloc, calque_free
from calque.machine.threads import calque_parallel_for


class Op(enum.IntEnum):
    """Operations and their operands."""

    END = 0
    CALL = 1  # #kernel #count args...
    CALL_RANGE = 2  # #kernel begin end grain #count args...
    COPY = 3  # dst src nbytes
    FILL = 4  # dst nbytes value #width
    ADDRESS = 5  # dst src index stride offset
    SWAP = 6  # a b
    MOVE = 7  # dst src
    LOOP = 8  # register start stop step #exit
    NEXT = 9  # register stop step #body
    BACK = 10  # #target
    JUMP = 11  # #target
    UNLESS = 12  # slot offset #target
    SWITCH = 13  # index #count #targets...
    HOST = 14  # function #result #count args...
    LOAD = 15  # dst slot offset #kind
    STORE = 16  # slot offset src #kind
    ALLOC = 17  # owned nbytes
    FREE = 18  # owned
    GIVE = 19  # #output owned
    ADD = 20  # dst a b, as all that follow
    SUB = 21
    MUL = 22
    FLOORDIV = 23
    MOD = 24
    MIN = 25
    MAX = 26
    LT = 27
    LE = 28
    EQ = 29
    NE = 30
    STAMP = 31  # #record #what, in the timed form of a program


OK, RAISED, NO_MEMORY, TOO_LARGE, DIVIDED_BY_ZERO = range(5)
RELEASE_GIL = 1
RUNS_PYTHON = 2  # host calls, and loops: they let signal handlers and other threads run
DONATES = 4  # takes the memory of arguments

_NEAR_FRAME = 2048  # frames and arenas up to these sizes live on the stack
_NEAR_ARENA = 8192
_POLL_NS = 10_000_000
_MAX_TURNS = 256  # loop turns between looks at the clock
_ENTRY_TURNS = 16
_FILL_BLOCK = 16 << 10

# The first five words are known to the dispatcher as well.
Header = layout(
    "Header",
    n_in=i64,
    n_out=i64,
    out_nbytes=ptr,
    out_avals=ptr,
    flags=i64,
    code=ptr,
    frame_bytes=i64,
    template=ptr,
    template_at=i64,
    template_bytes=i64,
    owned=i64,
    arena_bytes=i64,
    arena_offsets=ptr,
    arena_at=i64,
    arena_slots=i64,
    args_at=i64,
    donated=ptr,
)
POLL = "calque_poll"  # what a kernel calls that may take long
_save_thread = unit.extern("PyEval_SaveThread", ptr)
_restore_thread = unit.extern("PyEval_RestoreThread", None, ptr)
_check_signals = unit.extern("PyErr_CheckSignals", i32)
_format_error = unit.extern("PyErr_Format", ptr, ptr, ptr, vararg=True)
_set_error = unit.extern("PyErr_SetString", None, ptr, ptr)
_error_occurred = unit.extern("PyErr_Occurred", ptr)
_tuple_new = unit.extern("PyTuple_New", ptr, i64)
_tuple_set = unit.extern("PyTuple_SetItem", i32, ptr, i64, ptr)
_long_new = unit.extern("PyLong_FromLongLong", ptr, i64)
_long_value = unit.extern("PyLong_AsLongLong", i64, ptr)
_call_object = unit.extern("PyObject_CallObject", ptr, ptr, ptr)
_decref = unit.extern("Py_DecRef", None, ptr)
_pthread_self = unit.extern("pthread_self", i64)
_memory_error: Any = unit.cell("interp_memory_error", ptr, id(MemoryError))
_overflow_error: Any = unit.cell("interp_overflow_error", ptr, id(OverflowError))
_zero_division_error: Any = unit.cell("interp_zero_division_error", ptr, id(ZeroDivisionError))
_kernel_type = signature(None, ptr, i64, i64)


@unit.helper
def word(frame: ptr, pc: ptr, index: i64) -> i64:
    """The value of the operand of this number."""
    return load_i64(frame, load_i64(pc, 8 * index))


@unit.helper
def pointer(frame: ptr, pc: ptr, index: i64) -> ptr:
    """The same, for a slot."""
    return load_ptr(frame, load_i64(pc, 8 * index))


@unit.helper
def put(frame: ptr, pc: ptr, index: i64, number: i64) -> None:
    """Set the frame word that an operand names."""
    store_i64(frame, load_i64(pc, 8 * index), number)


@unit.helper
def gather(frame: ptr, pc: ptr, args: ptr, count: i64) -> None:
    """Lay out the arguments of a kernel."""
    for k in range(count):
        store_i64(args, 8 * k, load_i64(frame, load_i64(pc, 8 * k)))


@unit.helper
def call_over_range(frame: ptr, pc: ptr, run: ptr) -> i64:
    """Call a kernel on a range, in parallel where it is long."""
    args = Run(run).args
    gather(frame, pc + 48, args, load_i64(pc, 40))
    begin = word(frame, pc, 2)
    end = word(frame, pc, 3)
    Run(run).owner = _pthread_self()
    calque_parallel_for(load_ptr(pc, 8), args, begin, end, word(frame, pc, 4))
    Run(run).owner = 0
    return Run(run).stopped


@unit.helper
def clock(run: ptr) -> i64:
    """Look at the clock: whether ten milliseconds have gone by."""
    now = nanoseconds_now()
    if Run(run).looked != 0 and now - Run(run).looked >= _POLL_NS:
        Run(run).looked = now
        return 1
    if Run(run).looked == 0:
        Run(run).looked = now
    return 0


@unit.helper
def handle_signals(run: ptr) -> i64:
    """Let signal handlers run. A program that runs that long gives up the GIL as well."""
    if Run(run).thread == NULL:
        Run(run).thread = _save_thread()
    _restore_thread(Run(run).thread)
    failed = _check_signals()
    Run(run).thread = _save_thread()
    return RAISED if failed != 0 else OK


@unit.function
def interp_poll(run: ptr) -> i64:
    """Look at the clock; every ten milliseconds or so at pending signals."""
    allowed = Run(run).allowed
    late = clock(run)
    allowed = max(allowed >> 2, 1) if late else min(2 * allowed, _MAX_TURNS)
    Run(run).allowed = allowed
    Run(run).turns = allowed
    return handle_signals(run) if late else OK


@unit.function
def calque_poll(run: ptr) -> i32:
    """Asked by kernels in long loops, from any thread: whether to return early. Signals are looked
    at by the thread that runs the program."""
    if atomic_load(Run.at(run).stopped, 0) != 0:
        return 1
    if Run(run).owner != 0 and Run(run).owner != _pthread_self():
        return 0
    if clock(run) == 0 or handle_signals(run) == OK:
        return 0
    atomic_store(Run.at(run).stopped, 0, RAISED)
    return 1


@unit.helper
def turn(run: ptr) -> i64:
    """One turn of a loop: now and then, poll."""
    left = Run(run).turns - 1
    Run(run).turns = left
    if unlikely(left <= 0):
        return interp_poll(run)
    return OK


@unit.helper
def enters(frame: ptr, pc: ptr, run: ptr) -> i1:
    """Begin a loop: whether it has a first turn. Its turns may take longer than the ones before, so
    look at the clock soon."""
    start = word(frame, pc, 2)
    stop = word(frame, pc, 3)
    step = word(frame, pc, 4)
    put(frame, pc, 1, start)
    Run(run).allowed = min(Run(run).allowed, _ENTRY_TURNS)
    Run(run).turns = min(Run(run).turns, _ENTRY_TURNS)
    return start < stop if step > 0 else (step < 0 and start > stop)


@unit.helper
def goes_on(frame: ptr, pc: ptr) -> i1:
    """Count a loop's register on: whether there is another turn. The difference is compared, for
    the sum may wrap around."""
    at = word(frame, pc, 1)
    left = word(frame, pc, 2) - at
    step = word(frame, pc, 3)
    put(frame, pc, 1, at + step)
    return left > step if step > 0 else left < step


@unit.helper
def call_with_gil(frame: ptr, pc: ptr) -> i64:
    """Call a Python function on integers; its result goes to a register when one is named."""
    count = load_i64(pc, 24)
    args = _tuple_new(count)
    if args == NULL:
        return RAISED
    for k in range(count):
        number = _long_new(load_i64(frame, load_i64(pc, 32 + 8 * k)))
        if number == NULL:
            _decref(args)
            return RAISED
        _tuple_set(args, k, number)
    result = _call_object(pointer(frame, pc, 1), args)
    _decref(args)
    if result == NULL:
        return RAISED
    status = OK
    if load_i64(pc, 16) >= 0:
        value = _long_value(result)
        if value == -1 and _error_occurred() != NULL:
            status = RAISED
        put(frame, pc, 2, value)
    _decref(result)
    return status


@unit.function
def interp_host(run: ptr, frame: ptr, pc: ptr) -> i64:
    """A host call, holding the GIL for as long as it takes."""
    released = Run(run).thread != NULL
    if released:
        _restore_thread(Run(run).thread)
        Run(run).thread = NULL
    status = call_with_gil(frame, pc)
    if released:
        Run(run).thread = _save_thread()
    return status


@unit.helper
def fill_bytes(target: ptr, nbytes: i64, value: i64, width: i64) -> None:
    """Fill bytes with a value of 1, 2, 4 or 8 bytes, doubling what is written up to a block that
    the cache holds."""
    if nbytes <= 0:
        return
    if width == 1 or value == 0:
        memset(target, value, nbytes)
        return
    pattern = alloca(64)
    k = 0
    while k < 64:
        if width == 2:
            store_i16(pattern, k, value)
        elif width == 4:
            store_i32(pattern, k, value)
        else:
            store_i64(pattern, k, value)
        k += width
    done = min(nbytes, 64)
    memcpy(target, pattern, done)
    while done < nbytes:
        more = min(min(done, _FILL_BLOCK), nbytes - done)
        memcpy(target + done, target, more)
        done += more


@unit.function
def interp_fill(target: ptr, nbytes: i64, value: i64, width: i64) -> None:
    """A step that fills: not inlined, as it is rare."""
    fill_bytes(target, nbytes, value, width)


@unit.helper
def divide(frame: ptr, pc: ptr, modulo: i1) -> i64:
    """Quotient or remainder, rounded down; the machine traps on 0 and may on -1."""
    a = word(frame, pc, 2)
    b = word(frame, pc, 3)
    if b == 0:
        return DIVIDED_BY_ZERO
    if b == -1:
        put(frame, pc, 1, 0 if modulo else 0 - a)
    else:
        put(frame, pc, 1, a % b if modulo else a // b)
    return OK


@unit.helper
def allocate(frame: ptr, pc: ptr) -> i64:
    """A new block for an owned slot, in the place of the one it had."""
    calque_free(pointer(frame, pc, 1))
    block = calque_alloc(word(frame, pc, 2))
    store_ptr(frame, load_i64(pc, 8), block)
    return OK if block != NULL else NO_MEMORY


@unit.helper
def integers(operation: i64, a: i64, b: i64) -> i64:
    """Arithmetic on sizes that cannot fail."""
    match operation:
        case Op.ADD:
            return a + b
        case Op.SUB:
            return a - b
        case Op.MIN:
            return min(a, b)
        case Op.MAX:
            return max(a, b)
        case Op.LT:
            return i64(a < b)
        case Op.LE:
            return i64(a <= b)
        case Op.EQ:
            return i64(a == b)
        case _:
            return i64(a != b)


@unit.helper
def execute(code: ptr, frame: ptr, run: ptr) -> i64:
    """Run to the end, or to the first failure."""
    pc = code
    args = Run(run).args
    status = OK
    while True:
        operation = load_i64(pc, 0)
        match operation:
            case Op.END:
                return OK
            case Op.CALL:
                count = load_i64(pc, 16)
                gather(frame, pc + 24, args, count)
                _kernel_type(load_ptr(pc, 8), args, 0, 1)
                status = Run(run).stopped
                pc = pc + 24 + 8 * count
            case Op.CALL_RANGE:
                status = call_over_range(frame, pc, run)
                pc = pc + 48 + 8 * load_i64(pc, 40)
            case Op.COPY:
                memmove(pointer(frame, pc, 1), pointer(frame, pc, 2), word(frame, pc, 3))
                pc = pc + 32
            case Op.FILL:
                interp_fill(
                    pointer(frame, pc, 1), word(frame, pc, 2), word(frame, pc, 3), load_i64(pc, 32)
                )
                pc = pc + 40
            case Op.ADDRESS:
                offset = word(frame, pc, 3) * word(frame, pc, 4) + word(frame, pc, 5)
                put(frame, pc, 1, word(frame, pc, 2) + offset)
                pc = pc + 48
            case Op.SWAP:
                first = word(frame, pc, 1)
                put(frame, pc, 1, word(frame, pc, 2))
                put(frame, pc, 2, first)
                pc = pc + 24
            case Op.MOVE:
                put(frame, pc, 1, word(frame, pc, 2))
                pc = pc + 24
            case Op.LOOP:
                pc = pc + 48 if enters(frame, pc, run) else code + load_i64(pc, 40)
            case Op.NEXT:
                status = turn(run)
                pc = code + load_i64(pc, 32) if goes_on(frame, pc) else pc + 40
            case Op.BACK:
                status = turn(run)
                pc = code + load_i64(pc, 8)
            case Op.JUMP:
                pc = code + load_i64(pc, 8)
            case Op.UNLESS:
                flag = load_u8(pointer(frame, pc, 1) + word(frame, pc, 2), 0)
                pc = pc + 32 if flag != 0 else code + load_i64(pc, 24)
            case Op.SWITCH:
                branch = max(min(word(frame, pc, 1), load_i64(pc, 16) - 1), 0)
                pc = code + load_i64(pc, 24 + 8 * branch)
            case Op.HOST:
                status = interp_host(run, frame, pc)
                pc = pc + 32 + 8 * load_i64(pc, 24)
            case Op.LOAD:
                read = pointer(frame, pc, 2) + word(frame, pc, 3)
                put(frame, pc, 1, load_integer(read, load_i64(pc, 32)))
                pc = pc + 40
            case Op.STORE:
                written = pointer(frame, pc, 1) + word(frame, pc, 2)
                store_integer(written, word(frame, pc, 3), load_i64(pc, 32))
                pc = pc + 40
            case Op.ALLOC:
                status = allocate(frame, pc)
                pc = pc + 24
            case Op.FREE:
                calque_free(pointer(frame, pc, 1))
                put(frame, pc, 1, 0)
                pc = pc + 16
            case Op.GIVE:
                store_ptr(Run(run).outputs, 8 * load_i64(pc, 8), pointer(frame, pc, 2))
                put(frame, pc, 2, 0)
                pc = pc + 24
            case Op.STAMP:
                interp_stamp(run, load_ptr(pc, 8), load_i64(pc, 16))
                pc = pc + 24
            case Op.MUL:
                a = word(frame, pc, 2)
                b = word(frame, pc, 3)
                put(frame, pc, 1, a * b)
                status = OK if product_fits(a, b) else TOO_LARGE
                pc = pc + 32
            case Op.FLOORDIV:
                status = divide(frame, pc, False)
                pc = pc + 32
            case Op.MOD:
                status = divide(frame, pc, True)
                pc = pc + 32
            case _:
                put(frame, pc, 1, integers(operation, word(frame, pc, 2), word(frame, pc, 3)))
                pc = pc + 32
        if unlikely(status != OK):
            return status


@unit.helper
def prepare_frame(program: ptr, frame: ptr, arena: ptr, inputs: ptr, outputs: ptr) -> None:
    """Lay out the frame of a run."""
    n_in = Header(program).n_in
    for k in range(n_in):
        store_i64(frame, 8 * k, load_i64(inputs, 8 * k))
    results = frame + 8 * n_in
    for k in range(Header(program).n_out):
        store_i64(results, 8 * k, load_i64(outputs, 8 * k))
    memcpy(
        frame + Header(program).template_at,
        Header(program).template,
        Header(program).template_bytes,
    )
    offsets = Header(program).arena_offsets
    slots = frame + Header(program).arena_at
    for k in range(Header(program).arena_slots):
        store_ptr(slots, 8 * k, arena + load_i64(offsets, 8 * k))


@unit.helper
def clear_given(program: ptr, outputs: ptr, release: i1) -> None:
    """Outputs that the program allocates are NULL before it runs, and again after it failed."""
    sizes = Header(program).out_nbytes
    for k in range(Header(program).n_out):
        if unlikely(load_i64(sizes, 8 * k) < 0):
            if release:
                calque_free(load_ptr(outputs, 8 * k))
            store_ptr(outputs, 8 * k, NULL)


@unit.helper
def report(status: i64) -> i32:
    """Set the Python exception of a status, unless it is set already."""
    if likely(status == OK):
        return 0
    if status == NO_MEMORY:
        _format_error(
            _memory_error,
            "no memory for what a program computes in between: %zd bytes were asked for",
            bytes_refused(),
        )
    elif status == TOO_LARGE:
        _set_error(_overflow_error, "a size computed while the program ran does not fit in 64 bits")
    elif status == DIVIDED_BY_ZERO:
        _set_error(
            _zero_division_error, "a size computed while the program ran was divided by zero"
        )
    return 1


@unit.helper
def run_in(program: ptr, frame: ptr, arena: ptr, inputs: ptr, outputs: ptr) -> i64:
    """Run a program in a frame and an arena."""
    clear_given(program, outputs, False)
    prepare_frame(program, frame, arena, inputs, outputs)
    run = alloca(96)
    Run(run).thread = NULL
    Run(run).turns = 1
    Run(run).allowed = 1
    Run(run).looked = 0
    Run(run).outputs = outputs
    Run(run).args = frame + Header(program).args_at
    Run(run).owner = 0
    Run(run).stopped = 0
    store_ptr(frame + Header(program).args_at, -8, run)  # where kernels find it
    if Header(program).flags & RELEASE_GIL:
        Run(run).thread = _save_thread()
    status = execute(Header(program).code, frame, run)
    owned = frame + Header(program).template_at
    for k in range(Header(program).owned):
        calque_free(load_ptr(owned, 8 * k))
    if unlikely(status != OK):
        clear_given(program, outputs, True)
    if Run(run).thread != NULL:
        _restore_thread(Run(run).thread)
    return status


@unit.function
def calque_run(program: ptr, inputs: ptr, outputs: ptr) -> i32:
    """Run a program on arrays of pointers. The GIL must be held. 0, or 1 with a Python exception
    set."""
    near_frame = alloca(_NEAR_FRAME)
    near_arena = alloca(_NEAR_ARENA + 64)
    frame = near_frame
    arena = ptr((i64(near_arena) + 63) & ~63)
    far_frame = Header(program).frame_bytes > _NEAR_FRAME
    far_arena = Header(program).arena_bytes > _NEAR_ARENA
    if far_frame:
        frame = calque_alloc(Header(program).frame_bytes)
    if far_arena:
        arena = calque_alloc(Header(program).arena_bytes)
    status = NO_MEMORY
    if frame != NULL and arena != NULL:
        status = run_in(program, frame, arena, inputs, outputs)
    if far_frame:
        calque_free(frame)
    if far_arena:
        calque_free(arena)
    return report(status)
