"""The thread pool: every index once, whoever runs it."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from calque.machine import threads
from calque.machine.lang.unit import (
    Unit,
    atomic_add,
    atomic_load,
    i64,
    load_i64,
    load_ptr,
    pause,
    ptr,
    store_i64,
)
from calque.machine.processors import available_cpus
from calque.machine.threads import calque_parallel_for

unit = Unit("test_threads")
calls = unit.var("test_threads_calls", i64)


@unit.function
def count_up(args: ptr, begin: i64, end: i64) -> None:
    """Add one to each element of a range."""
    data = load_ptr(args, 0)
    for k in range(begin, end):
        store_i64(data, 8 * k, load_i64(data, 8 * k) + 1)
    atomic_add(calls, 0, 1)


@unit.function
def nested(args: ptr, begin: i64, end: i64) -> None:
    """Run another range inside."""
    for k in range(begin, end):
        calque_parallel_for(count_up, args, 16 * k, 16 * k + 16, 1)


@unit.function
def repeat(args: ptr, turns: i64, n: i64, grain: i64) -> None:
    """Many jobs one after the other."""
    for _ in range(turns):
        calque_parallel_for(count_up, args, 0, n, grain)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = threads.get_num_threads()
    threads.set_num_threads(2)
    yield
    threads.set_num_threads(before)


class Data:
    """An array of counts and the argument block that points to it."""

    def __init__(self, size: int) -> None:
        self.counts = np.zeros(size, np.int64)
        self.pointer = np.array([self.counts.ctypes.data], np.int64)
        self.args = int(self.pointer.ctypes.data)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("size", "grain"), [(0, 1), (1, 1), (7, 1), (100, 3), (1000, 499), (1000, 0), (1000, 5000)]
)
def test_every_index_runs_once(count: int, size: int, grain: int) -> None:
    threads.set_num_threads(count)
    data = Data(size)
    for _ in range(50):
        threads.parallel_for(count_up.address, data.args, 0, size, grain)
    assert (data.counts == 50).all()


def test_a_range_may_begin_anywhere() -> None:
    data = Data(100)
    threads.parallel_for(count_up.address, data.args, 30, 70, 2)
    threads.parallel_for(count_up.address, data.args, 70, 30, 2)
    assert data.counts.nonzero()[0].tolist() == list(range(30, 70))


def test_cuts_are_multiples_of_the_grain() -> None:
    data = Data(1000)
    before = calls.read()
    threads.parallel_for(count_up.address, data.args, 0, 1000, 100)
    assert calls.read() - before == 10
    before = calls.read()
    threads.parallel_for(count_up.address, data.args, 0, 199, 100)  # less than two grains
    assert calls.read() - before == 1


def test_many_jobs_in_a_row() -> None:
    data = Data(64)
    repeat(data.args, 20_000, 64, 8)
    assert (data.counts == 20_000).all()


def test_a_job_inside_a_job_runs_where_it_is() -> None:
    data = Data(16 * 100)
    threads.parallel_for(nested.address, data.args, 0, 100, 1)
    assert (data.counts == 1).all()


def test_many_python_threads_at_once() -> None:
    data = [Data(1000) for _ in range(4)]
    word = ctypes.c_int64
    without_gil = ctypes.CFUNCTYPE(None, word, word, word, word, word)(calque_parallel_for.address)

    def work(mine: Data) -> None:
        for _ in range(300):
            without_gil(count_up.address, mine.args, 0, 1000, 10)

    workers = [threading.Thread(target=work, args=(mine,)) for mine in data]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((mine.counts == 300).all() for mine in data)


def test_the_number_is_exact() -> None:
    threads.set_num_threads(4)
    assert threads.get_num_threads() == 4
    data = Data(100)
    threads.parallel_for(count_up.address, data.args, 0, 100, 1)
    assert threads.started_threads() >= 3
    threads.set_num_threads(1)
    before = calls.read()
    threads.parallel_for(count_up.address, data.args, 0, 100, 1)
    assert calls.read() - before == 1


@pytest.mark.parametrize("count", [0, -1, 257, 1.5, "2", True, None])
def test_other_numbers_are_refused(count: object) -> None:
    with pytest.raises(ValueError, match="from 1 to 256"):
        threads.set_num_threads(count)  # type: ignore[arg-type]


def run_child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )


def test_the_environment_decides() -> None:
    code = (
        "from calque.machine import threads; print(threads.get_num_threads(),"
        " threads.started_threads())"
    )
    assert run_child(code, CALQUE_NUM_THREADS="3").stdout.split() == ["3", "0"]
    assert run_child(code, CALQUE_NUM_THREADS="").stdout.split() == [
        str(available_cpus()),
        "0",
    ]
    bad = run_child(code, CALQUE_NUM_THREADS="many")
    assert "CALQUE_NUM_THREADS must be a whole number from 1 to 256, not 'many'" in bad.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore")  # libraries that keep threads of their own warn of any fork
def test_a_forked_child_starts_its_own_threads() -> None:
    data = Data(1000)
    threads.parallel_for(count_up.address, data.args, 0, 1000, 10)
    assert threads.started_threads() >= 1
    child = os.fork()
    if child == 0:
        fine = threads.started_threads() == 0
        for _ in range(100):
            threads.parallel_for(count_up.address, data.args, 0, 1000, 10)
        fine = fine and threads.started_threads() == 1 and bool((data.counts == 101).all())
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0
    threads.parallel_for(count_up.address, data.args, 0, 1000, 10)
    assert (data.counts == 2).all()


def test_sleeping_workers_wake_and_stop() -> None:
    data = Data(1000)
    threads.parallel_for(count_up.address, data.args, 0, 1000, 10)
    threads.threads_stop()
    assert threads.started_threads() == 0
    threads.parallel_for(count_up.address, data.args, 0, 1000, 10)
    assert threads.started_threads() == 1 and (data.counts == 2).all()


def test_the_process_ends_while_workers_wait() -> None:
    code = """
from calque.machine import threads
from calque.machine.processors import available_cpus
from calque.machine.lang.unit import Unit
threads.set_num_threads(4)
threads.threads_start(3)
"""
    assert run_child(code).returncode == 0


@unit.function
def wait_for_word(args: ptr, begin: i64, end: i64) -> None:
    """Run until somebody writes a word."""
    while atomic_load(load_ptr(args, 0), 0) == 0:
        pause()


def test_workers_that_are_busy_are_not_waited_for() -> None:
    word = (ctypes.c_int64 * 1)(0)
    args = (ctypes.c_int64 * 1)(ctypes.addressof(word))
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)(calque_parallel_for.address)  # without GIL
    job = threading.Thread(
        target=run, args=(wait_for_word.address, ctypes.addressof(args), 0, 1000, 1)
    )
    assert threads.stop_threads(60.0)  # those that other tests have started
    threads.set_num_threads(2)
    job.start()
    try:
        while threads.started_threads() == 0:
            pass
        stopped, left = threads.stop_threads(0.0), threads.started_threads()
    finally:  # the thread reads memory of this test
        word[0] = 1
        job.join()
    assert not stopped and left == 1
    assert threads.stop_threads(60.0) and threads.started_threads() == 0


@unit.function
def spin(args: ptr, begin: i64, end: i64) -> None:
    """Take some time for each element of a range, or none."""
    for _ in range(begin, end):
        for _ in range(load_i64(args, 8)):
            pause()
    atomic_add(calls, 0, 1)


@unit.function
def stream(args: ptr, turns: i64, n: i64) -> None:
    """Many jobs one after the other."""
    for _ in range(turns):
        calque_parallel_for(spin, args, 0, n, 1)


def _parts_of(data: Data, size: int) -> int:
    before = int(calls.read())
    threads.parallel_for(spin.address, data.args, 0, size, 1)
    return int(calls.read()) - before


def _all_sleep() -> None:
    while threads.sleeping_threads() < threads.started_threads():
        time.sleep(0.001)


def _spinning(size: int, turns: int) -> Data:
    data = Data(size)
    data.pointer = np.array([data.counts.ctypes.data, turns], np.int64)
    data.args = int(data.pointer.ctypes.data)
    return data


def test_a_short_job_wakes_nobody() -> None:
    data = _spinning(64, 0)
    assert _parts_of(data, 48) > 1  # nobody knows how long it takes
    alone = 0
    for _ in range(20):
        _all_sleep()
        time.sleep(0.001)
        alone += _parts_of(data, 48) == 1
    assert alone > 10  # all, unless the system takes the processor away in the midst of one


def test_a_long_job_is_shared_by_threads_that_slept() -> None:
    data = _spinning(64, 100_000)
    for _ in range(3):
        _all_sleep()
        assert _parts_of(data, 40) > 1


def test_a_stream_of_short_jobs_wakes_threads() -> None:
    data = _spinning(64, 2)
    _parts_of(data, 56)
    _all_sleep()
    time.sleep(0.001)
    before = int(calls.read())
    stream(data.args, 5_000, 56)
    assert int(calls.read()) - before > 5_000
