"""One pool of native threads, on which kernels run parts of their range.

The pool has as many threads as this process may use (affinity and control group), or
``CALQUE_NUM_THREADS``, or what ``set_num_threads`` said, the calling thread counted. Threads start
when first needed and never run Python. A call made while the pool is busy, from a kernel or from
another Python thread, runs in the caller. A kernel must give the same results however its range is
split.

A job is published as one word, the ticket: its number in the upper half, the chunks not yet taken
in the lower. Whoever lowers the count by one owns a chunk, and as long as he has not reported it
done the job stays as it is: so nothing else needs a lock. Which chunk that is he finds among those
of his own part of the range, and in the parts of others when his is done: so what one kernel writes
the next one mostly reads in the same core. Idle threads spin for some microseconds and then sleep.

To wake them takes longer than many a job. When all sleep, the caller therefore runs jobs alone of
which it knows, from the last time, that they are short, until as much has been run alone, without a
pause between, as waking costs: a single short job wakes nobody, a stream of them does.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Any

from calque.machine.clock import nanoseconds_now
from calque.machine.daemons import keep_blas, park_daemon_threads
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    atomic_add,
    atomic_cas,
    atomic_load,
    atomic_store,
    atomic_xchg,
    i1,
    i32,
    i64,
    load_i64,
    load_ptr,
    pause,
    ptr,
    signature,
    store_i64,
    store_ptr,
    unlikely,
)
from calque.machine.processors import MAX_THREADS, wanted_threads

# Byte offsets in the state; what different threads write stands in different cache lines.
_TICKET = 0
_DONE = 128
_KERNEL = 256
_ARGS = 264
_BEGIN = 272
_END = 280
_CHUNK = 288
_COUNT = 296
_THREADS = 304
_BUSY = 384
_STARTED = 392
_STOP = 400
_SLEEPING = 512
_WAITING = 640
_MUTEX = 768
_WAKE = 896
_FINISHED = 1024
_ALONE = 1152
_LAST_END = 1160
_KNOWN = 1280
_PARTS = _KNOWN + 16 * 64  # chunks taken of the part of each thread, a cache line each
_HANDLES = _PARTS + 64 * MAX_THREADS

_REMAINING = 0xFFFFFFFF
_NEXT_JOB = 1 << 32
_SPINS = 2000
_FEWEST_CHUNKS = 4  # for each thread, where there are so many grains
_MOST_CHUNKS = 32
_CHUNK_NS = 5_000  # of one where there are more: a thread that comes late has less to wait for
_KNOWN_SLOTS = 64  # jobs of which the time is known, by kernel and range: a pair (key, nanoseconds)
_WAKE_NS = 50_000  # what sleeping threads must be worth
_PAUSE_NS = 50_000  # without jobs, after which the next one begins a new stream
_STACK_BYTES = 4 << 20
_EXIT_SECONDS = 1.0  # for what a daemon thread is doing; it is abandoned then, as Python does
_EXIT_POLL_SECONDS = 0.001
_SIG_SETMASK = 3 if sys.platform == "darwin" else 2

unit = Unit("threads")
_state: Any = unit.var("threads_state", i64, _HANDLES // 8 + MAX_THREADS)
_pthread_create = unit.extern("pthread_create", i32, ptr, ptr, ptr, ptr)
_pthread_join = unit.extern("pthread_join", i32, ptr, ptr)
_pthread_attr_init = unit.extern("pthread_attr_init", i32, ptr)
_pthread_attr_setstacksize = unit.extern("pthread_attr_setstacksize", i32, ptr, i64)
_pthread_attr_destroy = unit.extern("pthread_attr_destroy", i32, ptr)
_pthread_sigmask = unit.extern("pthread_sigmask", i32, i32, ptr, ptr)
_sigfillset = unit.extern("sigfillset", i32, ptr)
_system_pause = unit.extern("pause", i32)
_mutex_init = unit.extern("pthread_mutex_init", i32, ptr, ptr)
_mutex_lock = unit.extern("pthread_mutex_lock", i32, ptr)
_mutex_unlock = unit.extern("pthread_mutex_unlock", i32, ptr)
_cond_init = unit.extern("pthread_cond_init", i32, ptr, ptr)
_cond_wait = unit.extern("pthread_cond_wait", i32, ptr, ptr)
_cond_broadcast = unit.extern("pthread_cond_broadcast", i32, ptr)
_kernel_type = signature(None, ptr, i64, i64)


_wanted: Any = unit.cell("threads_wanted", i64, wanted_threads)


@unit.helper
def threads_in_use() -> i64:
    """How many threads work on one kernel."""
    return _wanted


@unit.helper
def owned_chunk(own: i64) -> i64:
    """The number of a chunk for a thread, which has made sure that there is one: of its own part,
    or of the next one that has any."""
    count = load_i64(_state, _COUNT)
    threads = load_i64(_state, _THREADS)
    part = own % threads
    while True:
        first = part * count // threads
        chunk = first + atomic_add(_state + _PARTS + 64 * part, 0, 1)
        if chunk < (part + 1) * count // threads:
            return chunk
        part = (part + 1) % threads


@unit.helper
def run_chunks(own: i64) -> i64:
    """Take chunks of the current job and run them until none is left: how many they were."""
    taken = 0
    while True:
        ticket = atomic_load(_state, _TICKET)
        remaining = ticket & _REMAINING
        if remaining == 0:
            return taken
        if not atomic_cas(_state, _TICKET, ticket, ticket - 1):
            continue
        count = load_i64(_state, _COUNT)
        chunk = load_i64(_state, _CHUNK)
        first = load_i64(_state, _BEGIN) + owned_chunk(own) * chunk
        last = min(first + chunk, load_i64(_state, _END))
        _kernel_type(load_ptr(_state, _KERNEL), load_ptr(_state, _ARGS), first, last)
        taken += 1
        if atomic_add(_state, _DONE, 1) + 1 == count and atomic_load(_state, _WAITING) != 0:
            _mutex_lock(_state + _MUTEX)
            _cond_broadcast(_state + _FINISHED)
            _mutex_unlock(_state + _MUTEX)


@unit.helper
def nothing_for(index: i64) -> i1:
    """Whether the worker of this number has nothing to do."""
    return atomic_load(_state, _TICKET) & _REMAINING == 0 or index + 1 >= _wanted


@unit.function
def threads_worker(argument: ptr) -> ptr:
    """The life of a worker."""
    index = i64(argument)
    spins = 0
    while True:
        if not nothing_for(index):
            run_chunks(index + 1)
            spins = 0
        elif atomic_load(_state, _STOP) != 0:
            return NULL
        elif spins < _SPINS:
            spins += 1
            pause()
        else:
            _mutex_lock(_state + _MUTEX)
            # Announced before looking once more: whoever publishes a job looks for sleepers after
            # publishing.
            atomic_add(_state, _SLEEPING, 1)
            while nothing_for(index) and atomic_load(_state, _STOP) == 0:
                _cond_wait(_state + _WAKE, _state + _MUTEX)
            atomic_add(_state, _SLEEPING, -1)
            _mutex_unlock(_state + _MUTEX)


@unit.helper
def wake() -> None:
    """Wake the threads that sleep."""
    if atomic_load(_state, _SLEEPING) != 0:
        _mutex_lock(_state + _MUTEX)
        _cond_broadcast(_state + _WAKE)
        _mutex_unlock(_state + _MUTEX)


@unit.function
def threads_start(count: i64) -> None:
    """Start workers until there are this many, or no more can be had. The caller owns the pool."""
    mask = alloca(128)
    old = alloca(128)
    attributes = alloca(128)
    if load_i64(_state, _STARTED) == 0:
        _mutex_init(_state + _MUTEX, NULL)
        _cond_init(_state + _WAKE, NULL)
        _cond_init(_state + _FINISHED, NULL)
    _sigfillset(mask)
    _pthread_sigmask(_SIG_SETMASK, mask, old)  # signals are for Python's main thread
    _pthread_attr_init(attributes)
    _pthread_attr_setstacksize(attributes, _STACK_BYTES)
    while load_i64(_state, _STARTED) < count:
        index = load_i64(_state, _STARTED)
        if (
            _pthread_create(_state + _HANDLES + 8 * index, attributes, threads_worker, ptr(index))
            != 0
        ):
            break
        store_i64(_state, _STARTED, index + 1)
    _pthread_attr_destroy(attributes)
    _pthread_sigmask(_SIG_SETMASK, old, NULL)


@unit.helper
def wait_until_done(count: i64) -> None:
    """Wait for the chunks that others still run."""
    spins = 0
    while atomic_load(_state, _DONE) != count:
        spins += 1
        if spins < _SPINS:
            pause()
            continue
        _mutex_lock(_state + _MUTEX)
        atomic_store(_state, _WAITING, 1)
        while atomic_load(_state, _DONE) != count:
            _cond_wait(_state + _FINISHED, _state + _MUTEX)
        atomic_store(_state, _WAITING, 0)
        _mutex_unlock(_state + _MUTEX)


@unit.helper
def run_job(
    kernel: ptr, args: ptr, begin: i64, end: i64, grain: i64, threads: i64, known: i64
) -> i64:
    """Publish a job, work on it, and wait for the rest: about how long one thread would have taken,
    which is what is `known` of it, if anything is."""
    total = end - begin
    worth = min(max(known // (threads * _CHUNK_NS), _FEWEST_CHUNKS), _MOST_CHUNKS)
    # rounded down: chunks that are a little larger are fewer, and some thread has one more of them
    chunk = max(total // (grain * threads * worth), 1) * grain
    count = (total + chunk - 1) // chunk
    store_ptr(_state, _KERNEL, kernel)
    store_ptr(_state, _ARGS, args)
    store_i64(_state, _BEGIN, begin)
    store_i64(_state, _END, end)
    store_i64(_state, _CHUNK, chunk)
    store_i64(_state, _COUNT, count)
    store_i64(_state, _THREADS, threads)
    for part in range(threads):
        store_i64(_state, _PARTS + 64 * part, 0)
    atomic_store(_state, _DONE, 0)
    atomic_store(
        _state, _TICKET, ((atomic_load(_state, _TICKET) & ~_REMAINING) + _NEXT_JOB) + count
    )
    wake()
    began = nanoseconds_now()
    taken = run_chunks(0)
    took = nanoseconds_now() - began
    wait_until_done(count)
    if taken == 0:
        return (nanoseconds_now() - began) * (threads - 1)
    return took * count // taken


@unit.helper
def slot_of(key: i64) -> ptr:
    """Where the time of such a job is kept."""
    return _state + (_KNOWN + 16 * ((key >> 40) & (_KNOWN_SLOTS - 1)))


@unit.helper
def is_short(slot: ptr, key: i64) -> i1:
    """Whether a job is not worth waking threads that sleep, with what has just been run alone."""
    if load_i64(slot, 0) != key or atomic_load(_state, _SLEEPING) < load_i64(_state, _STARTED):
        return False
    if nanoseconds_now() - load_i64(_state, _LAST_END) > _PAUSE_NS:
        store_i64(_state, _ALONE, 0)
    alone = load_i64(_state, _ALONE) + load_i64(slot, 8)
    store_i64(_state, _ALONE, alone if alone < _WAKE_NS else 0)
    return alone < _WAKE_NS


@unit.helper
def run_shared(kernel: ptr, args: ptr, begin: i64, end: i64, grain: i64, threads: i64) -> None:
    """Run a job by as many threads as are worth it, and remember how long it takes."""
    # the grain of a kernel says how long its turns are: the same range of others is another job
    key = (i64(kernel) + 31 * (end - begin) + grain) * 0x9E3779B97F4A7C1
    slot = slot_of(key)
    known = load_i64(slot, 8) if load_i64(slot, 0) == key else 0
    if is_short(slot, key):
        began = nanoseconds_now()
        _kernel_type(kernel, args, begin, end)
        took = nanoseconds_now() - began
    else:
        took = run_job(kernel, args, begin, end, grain, threads, known)
    # the system may have taken the processor away meanwhile: what was short is not long at once
    most = 2 * known + 1_000
    store_i64(slot, 8, most if load_i64(slot, 0) == key and took > most else took)
    store_i64(slot, 0, key)
    store_i64(_state, _LAST_END, nanoseconds_now())


@unit.function
def calque_parallel_for(kernel: ptr, args: ptr, begin: i64, end: i64, grain: i64) -> None:
    """Run ``kernel(args, first, last)`` over parts of a range, cut at multiples of ``grain`` from
    its beginning."""
    if begin >= end:
        return
    threads = _wanted
    if threads < 2 or grain <= 0 or end - begin < 2 * grain or atomic_xchg(_state, _BUSY, 1) != 0:
        _kernel_type(kernel, args, begin, end)
        return
    if unlikely(load_i64(_state, _STARTED) + 1 < threads):
        threads_start(threads - 1)
    if load_i64(_state, _STARTED) == 0:
        _kernel_type(kernel, args, begin, end)
    else:
        run_shared(kernel, args, begin, end, grain, threads)
    atomic_store(_state, _BUSY, 0)


@unit.function
def threads_stop() -> i64:
    """End the workers and wait for their end: 1, or 0 at once where they are at work."""
    if atomic_xchg(_state, _BUSY, 1) != 0:
        return 0
    started = load_i64(_state, _STARTED)
    if started > 0:
        atomic_store(_state, _STOP, 1)
        _mutex_lock(_state + _MUTEX)
        _cond_broadcast(_state + _WAKE)
        _mutex_unlock(_state + _MUTEX)
        for index in range(started):
            _pthread_join(load_ptr(_state, _HANDLES + 8 * index), NULL)
        atomic_store(_state, _STOP, 0)
        store_i64(_state, _STARTED, 0)
    atomic_store(_state, _BUSY, 0)
    return 1


@unit.function
def threads_park(status: ptr) -> None:
    """The end of a daemon thread: it waits until the process is gone."""
    mask = alloca(128)
    _sigfillset(mask)
    _pthread_sigmask(_SIG_SETMASK, mask, NULL)
    while True:
        _system_pause()


@unit.function
def threads_after_fork() -> None:
    """In a forked child, where the workers do not exist: start anew when needed."""
    store_i64(_state, _STARTED, 0)
    atomic_store(_state, _TICKET, 0)
    atomic_store(_state, _SLEEPING, 0)
    atomic_store(_state, _WAITING, 0)
    atomic_store(_state, _STOP, 0)
    atomic_store(_state, _BUSY, 0)


def get_num_threads() -> int:
    """Gives the number of threads that work on one kernel, the calling thread counted.

    Returns:
        An int; at first as many as the process has cores, or what CALQUE_NUM_THREADS says.

    Differs from JAX:
        It is calque's own.

    >>> jax.get_num_threads() >= 1
    True"""
    unit.compile()
    return int(_wanted.read())


def set_num_threads(count: int) -> None:
    """Sets the number of threads that work on one kernel, from the next kernel on.

    Results do not depend on it.

    Args:
        count: How many, at least 1; the calling thread counts.

    Returns:
        None.

    Differs from JAX:
        It is calque's own.

    >>> jax.set_num_threads(jax.get_num_threads())"""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_THREADS:
        raise ValueError(
            f"the number of threads must be a whole number from 1 to {MAX_THREADS}, not {count!r}"
        )
    unit.compile()
    _wanted.write(count)


def started_threads() -> int:
    """How many native threads exist now."""
    return int(_state.read(_STARTED // 8)) if is_linked() else 0


def sleeping_threads() -> int:
    """How many of them wait to be woken."""
    return int(_state.read(_SLEEPING // 8)) if is_linked() else 0


def is_linked() -> bool:
    """Whether the pool's code was needed yet."""
    return unit._addresses is not None


def parallel_for(kernel: int, args: int, begin: int, end: int, grain: int) -> None:
    """``calque_parallel_for`` from Python, with addresses; keeps the GIL."""
    calque_parallel_for(kernel, args, begin, end, grain)


def stop_threads(seconds: float) -> bool:
    """End the workers, if they are done within that time. Other Python threads may run meanwhile:
    the workers may be at work for one, which cannot go on without the GIL."""
    end = time.monotonic() + seconds
    while not threads_stop():
        if time.monotonic() >= end:
            return False
        time.sleep(_EXIT_POLL_SECONDS)
    return True


def _at_exit() -> None:
    # Workers read and write no Python object. What a daemon thread has them do may go on until the
    # process ends: its frame keeps the arrays alive.
    if is_linked():
        _wanted.write(1)
        stop_threads(_EXIT_SECONDS)
    if len(sys._current_frames()) > 1:
        park_daemon_threads(threads_park.address)
        keep_blas()


def _after_fork_in_child() -> None:
    if is_linked():
        threads_after_fork()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
