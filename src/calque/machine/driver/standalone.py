"""What runs a program in a library that knows no Python: the interpreter without signals, host
calls and exceptions, and threads that the host of the library may give.

`host` has, under their names, the functions that the interpreter and the routines call in a process
of Python: linked to it instead of the pool of threads and of what looks at signals, they are the
same machine code otherwise.
"""

from __future__ import annotations

from typing import Any

from calque.machine.driver.interpreter import (
    NO_MEMORY,
    OK,
    RAISED,
    Header,
    execute,
    fill_bytes,
    prepare_frame,
)
from calque.machine.driver.stamps import Run
from calque.machine.lang.unit import (
    NULL,
    Unit,
    address,
    alloca,
    atomic_load,
    atomic_store,
    atomic_xchg,
    i32,
    i64,
    load_i64,
    load_ptr,
    ptr,
    signature,
    store_i64,
    store_ptr,
)
from calque.machine.memory import calque_alloc, calque_free, calque_trim

_NEAR_FRAME = 2048  # frames and arenas up to these sizes live on the stack
_NEAR_ARENA = 8192
_TURNS = 1 << 62  # loop turns between looks at a clock that nobody needs

host = Unit("library_host")
unit = Unit("library", host=host)

# what shares a range among threads, and what it is told: both are the host's
_parallel: Any = host.var("library_parallel", i64, 2)
_busy: Any = host.var("library_busy", i64)
_threads: Any = host.cell("threads_wanted", i64, 1)
_kernel_type = signature(None, ptr, i64, i64)
_parallel_type = signature(None, ptr, ptr, ptr, i64, i64, i64)


# ---------------------------------------------------------------- in the place of what Python has


@host.function
def calque_parallel_for(kernel: ptr, args: ptr, begin: i64, end: i64, grain: i64) -> None:
    """Run ``kernel(args, first, last)`` over parts of a range, cut at multiples of ``grain`` from
    its beginning: by the host, unless it is at that already, or gave nothing that does it."""
    if begin >= end:
        return
    share = load_ptr(_parallel, 0)
    if share == NULL or grain <= 0 or end - begin < 2 * grain or atomic_xchg(_busy, 0, 1) != 0:
        _kernel_type(kernel, args, begin, end)
        return
    _parallel_type(share, load_ptr(_parallel, 8), kernel, args, begin, end, grain)
    atomic_store(_busy, 0, 0)


@host.function
def calque_poll(run: ptr) -> i32:
    """Asked by kernels in long loops: nobody stops a library, but for a kernel of the same
    program."""
    return i32(atomic_load(Run.at(run).stopped, 0) != 0)


@host.function
def interp_poll(run: ptr) -> i64:
    """Asked by loops of a program: there is nothing to look at."""
    Run(run).turns = _TURNS
    return OK


@host.function
def interp_host(run: ptr, frame: ptr, pc: ptr) -> i64:
    """A host call: programs with one become no libraries."""
    return RAISED


@host.function
def interp_stamp(run: ptr, record: ptr, what: i64) -> None:
    """A stamp: programs that are not profiled have none."""
    return


@host.function
def interp_fill(target: ptr, nbytes: i64, value: i64, width: i64) -> None:
    """As that of the interpreter."""
    fill_bytes(target, nbytes, value, width)


@host.function
def library_share(share: ptr, context: ptr, threads: i64) -> None:
    """From now on the host shares ranges among so many threads; NULL: it does not."""
    store_ptr(_parallel, 8, context)
    store_ptr(_parallel, 0, share)
    store_i64(address(_threads), 0, 1 if share == NULL else max(threads, 1))


@host.function
def library_release() -> None:
    """Give the memory back that is kept for later calls."""
    calque_trim(0)


# ---------------------------------------------------------------- a run


@unit.helper
def put_sizes(program: ptr, frame: ptr, arena: ptr, places: ptr, values: ptr) -> None:
    """What depends on free sizes: the places of the arena, then words of the frame."""
    slots = frame + Header(program).arena_at
    count = Header(program).arena_slots
    for k in range(count):
        store_ptr(slots, 8 * k, arena + load_i64(values, 8 * k))
    for k in range(load_i64(places, 0)):
        store_i64(frame, load_i64(places, 8 + 8 * k), load_i64(values, 8 * (count + k)))


@unit.helper
def run_in(
    program: ptr, frame: ptr, arena: ptr, inputs: ptr, outputs: ptr, places: ptr, values: ptr
) -> i64:
    """Run a program in a frame and an arena."""
    prepare_frame(program, frame, arena, inputs, outputs)
    if places != NULL:
        put_sizes(program, frame, arena, places, values)
    run = alloca(96)
    Run(run).thread = NULL
    Run(run).turns = _TURNS
    Run(run).allowed = _TURNS
    Run(run).looked = 0
    Run(run).outputs = outputs
    Run(run).args = frame + Header(program).args_at
    Run(run).owner = 0
    Run(run).stopped = 0
    store_ptr(frame + Header(program).args_at, -8, run)  # where kernels find it
    status = execute(Header(program).code, frame, run)
    owned = frame + Header(program).template_at
    for k in range(Header(program).owned):
        calque_free(load_ptr(owned, 8 * k))
    return status


@unit.function
def library_run(
    program: ptr, inputs: ptr, outputs: ptr, places: ptr, values: ptr, arena_bytes: i64
) -> i64:
    """Run a program on arrays of pointers; gives its status. With free sizes `places` are their
    number and where they stand in the frame, and `values` what they are."""
    near_frame = alloca(_NEAR_FRAME)
    near_arena = alloca(_NEAR_ARENA + 64)
    frame = near_frame
    arena = ptr((i64(near_arena) + 63) & ~63)
    far_frame = Header(program).frame_bytes > _NEAR_FRAME
    far_arena = arena_bytes > _NEAR_ARENA
    if far_frame:
        frame = calque_alloc(Header(program).frame_bytes)
    if far_arena:
        arena = calque_alloc(arena_bytes)
    status = NO_MEMORY
    if frame != NULL and arena != NULL:
        status = run_in(program, frame, arena, inputs, outputs, places, values)
    if far_frame:
        calque_free(frame)
    if far_arena:
        calque_free(arena)
    return status
