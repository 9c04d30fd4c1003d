"""Runs of programs during which other Python code may go on: which Arrays they use, whose memory
nobody may take meanwhile."""

from __future__ import annotations

import os

from calque.machine.lang.unit import NULL, Unit, i1, i64, layout, load_ptr, ptr, store_ptr

unit = Unit("calque_active_runs")

# A run in the list of those that have not ended; `objects` are its arguments.
ActiveRun = layout("ActiveRun", previous=ptr, next=ptr, objects=ptr, count=i64, thread=i64)
active_runs = unit.var("calque_first_active_run", ptr)
pthread_self = unit.extern("pthread_self", i64)


@unit.helper
def begin_active(run: ptr, objects: ptr, count: i64) -> None:
    """Note that a run uses these arguments. The GIL is held, here and below."""
    first = load_ptr(active_runs, 0)
    ActiveRun(run).previous = NULL
    ActiveRun(run).next = first
    ActiveRun(run).objects = objects
    ActiveRun(run).count = count
    ActiveRun(run).thread = pthread_self()
    if first:
        ActiveRun(first).previous = run
    store_ptr(active_runs, 0, run)


@unit.helper
def end_active(run: ptr) -> None:
    previous, following = ActiveRun(run).previous, ActiveRun(run).next
    if previous:
        ActiveRun(previous).next = following
    else:
        store_ptr(active_runs, 0, following)
    if following:
        ActiveRun(following).previous = previous


@unit.function
def calque_active_after_fork() -> None:
    """In a forked child: the runs of other threads are no more, nor are their stacks."""
    run, kept = load_ptr(active_runs, 0), NULL
    store_ptr(active_runs, 0, NULL)
    while run:
        following = ActiveRun(run).next
        if ActiveRun(run).thread == pthread_self():
            ActiveRun(run).previous = kept
            ActiveRun(run).next = NULL
            if kept:
                ActiveRun(kept).next = run
            else:
                store_ptr(active_runs, 0, run)
            kept = run
        run = following


@unit.function
def is_in_use(x: ptr) -> i1:
    """Whether a run that has not ended was given this Array."""
    run = load_ptr(active_runs, 0)
    while run:
        for j in range(ActiveRun(run).count):
            if load_ptr(ActiveRun(run).objects, 8 * j) == x:
                return i1(1)
        run = ActiveRun(run).next
    return i1(0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=calque_active_after_fork)
