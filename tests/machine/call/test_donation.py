"""Programs that take the memory of their arguments: what moves, what is copied, what happens when
it cannot be."""

import os
import sys
import threading
from typing import Any

import numpy as np
import pytest

from calque.machine import memory
from calque.machine.call.functions import Entry, run_program
from calque.machine.driver.builder import ProgramBuilder, ProgramError
from calque.machine.objects.active_runs import is_in_use
from calque.machine.objects.array_type import (
    DELETED,
    as_numpy,
    delete_array,
    new_array,
    share,
)
from tests.machine.call.helpers import ARRAYS, F4, fixed_epoch, jitted, kernel, values

__all__ = ["fixed_epoch"]


def summing(*donated: tuple[int, int | None]) -> Any:
    """in0 + in1 where the first donated input that is a result lies, else in a result of its
    own."""
    b = ProgramBuilder(2, [(F4, 16)])
    place = next((b.input(i) for i, k in donated if k == 0), b.output(0))
    b.call(kernel("callpath_add4"), [b.input(0), b.input(1), place])
    for i, k in donated:
        b.donate(i, k, 16)
    return b.build()


def owned(*numbers: float) -> Any:
    """An array with a block of its own."""
    out = new_array(F4, 16)
    view = memory.view(out._ptr, 16).cast("B").cast("f")
    for k, x in enumerate(numbers or (1, 2, 3, 4)):
        view[k] = x
    return out


def test_a_result_takes_the_memory() -> None:
    program = summing((0, 0))
    for call in (
        lambda *xs: run_program(program, list(xs))[0],
        jitted(Entry(ARRAYS, (), program, ("out", 0), 7)),
    ):
        x, y = owned(), owned(10, 20, 30, 40)
        place, count = x._ptr, memory.stats().allocations
        out = call(x, y)
        assert out._ptr == place == out._block and memory.stats().allocations == count
        assert x._extra is DELETED and x._ptr == 0 and y._extra is None
        assert values(out) == [11, 22, 33, 44]


@pytest.mark.usefixtures("no_garbage")
def test_scratch_is_given_back() -> None:
    program = summing((0, None))
    x, y = owned(), owned()
    before = memory.stats().live_bytes
    (out,) = run_program(program, [x, y])
    assert values(out) == [2, 4, 6, 8] and x._extra is DELETED
    assert memory.stats().live_bytes == before  # one block more, one less


def test_what_others_see_is_copied() -> None:
    program = summing((0, 0))
    for look in (lambda x: as_numpy(x, np.dtype(np.float32), (4,)), lambda x: share(x, F4)):
        x = owned()
        seen = look(x)
        place = x._ptr
        (out,) = run_program(program, [x, owned()])
        assert out._ptr != place and values(out) == [2, 4, 6, 8] and x._extra is DELETED
        assert (seen.tolist() if isinstance(seen, np.ndarray) else values(seen)) == [1, 2, 3, 4]
    source = np.ones(4, np.float32)
    function = jitted(
        Entry(
            [("ndarray", np.dtype(np.float32), (4,), 0), ("array", F4, 1)],
            (),
            program,
            ("out", 0),
            7,
        )
    )
    assert values(function(source, owned())) == [2, 3, 4, 5] and source.tolist() == [1] * 4


@pytest.mark.usefixtures("no_garbage")
def test_one_array_in_two_places() -> None:
    both, one = summing((0, 0), (1, None)), summing((0, 0))
    for program, words in (
        (both, "donate the same buffer twice"),
        (one, "donated in the same call"),
    ):
        x = owned()
        before = memory.stats().live_bytes, sys.getrefcount(x)
        with pytest.raises(RuntimeError, match=words):
            run_program(program, [x, x])
        assert x._extra is None and values(x) == [1, 2, 3, 4]
        assert (memory.stats().live_bytes, sys.getrefcount(x)) == before


@pytest.mark.usefixtures("no_garbage")
def test_when_memory_is_short_nothing_has_happened() -> None:
    b = ProgramBuilder(1, [(F4, 16), (F4, 1 << 46)])
    b.donate(0, 0, 16)
    x = owned()
    before = memory.stats().live_bytes
    with pytest.raises(MemoryError):
        run_program(b.build(), [x])
    assert x._extra is None and values(x) == [1, 2, 3, 4] and memory.stats().live_bytes == before


@pytest.mark.usefixtures("no_garbage")
def test_a_program_that_fails_drops_what_it_was_given() -> None:
    b = ProgramBuilder(1, [(F4, 16)])
    b.donate(0, 0, 16)
    b.fail(KeyError, "on purpose")
    program = b.build()
    x = owned()
    before = memory.stats().live_bytes
    with pytest.raises(KeyError):
        run_program(program, [x])
    assert x._extra is DELETED and memory.stats().live_bytes == before - 64


@pytest.mark.usefixtures("no_garbage")
def test_deleted_arrays() -> None:
    x = owned()
    before = memory.stats().live_bytes
    delete_array(x)
    delete_array(x)
    assert memory.stats().live_bytes == before - 64 and x._ptr == 0
    for use in (
        lambda: run_program(summing(), [x, owned()]),
        lambda: as_numpy(x, np.dtype(np.float32), (4,)),
        lambda: share(x, F4),
    ):
        with pytest.raises(RuntimeError, match="Array has been deleted"):
            use()
    assert jitted(Entry(ARRAYS, (), summing(), ("out", 0), 7))(x, owned())[0] == "miss"
    with pytest.raises(TypeError):
        delete_array(3)


@pytest.mark.usefixtures("no_garbage")
def test_a_run_in_progress_keeps_its_arguments() -> None:
    """Deleted by a host call of the run itself: the block stays until the end."""
    held = [owned()]
    b = ProgramBuilder(1, [(F4, 16)])
    b.host(lambda: delete_array(held[0]))
    b.call(kernel("callpath_copy16"), [b.input(0), b.output(0)])
    before = memory.stats().live_bytes
    (out,) = run_program(b.build(), held)
    assert values(out) == [1, 2, 3, 4] and held[0]._extra is DELETED
    held.clear()
    assert memory.stats().live_bytes == before


@pytest.mark.filterwarnings("ignore:This process", "ignore:os.fork")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_forgets_the_runs_of_other_threads() -> None:
    """A thread is in the middle of a run; a child made meanwhile knows only its own runs."""
    began, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        assert go_on.wait(60)

    def waiting(function: Any) -> Any:
        b = ProgramBuilder(1, [])
        b.host(function)
        return b.build()

    x, codes = owned(), []

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            mine, theirs = is_in_use(id(y)), is_in_use(id(x))
            os._exit(0 if mine and not theirs else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    thread = threading.Thread(target=run_program, args=(waiting(wait), [x]))
    thread.start()
    assert began.wait(60)
    y = owned()
    run_program(waiting(fork), [y])
    assert is_in_use(id(x)) and not is_in_use(id(y))
    go_on.set()
    thread.join(60)
    assert codes == [0] and not is_in_use(id(x))


def test_what_cannot_be_donated() -> None:
    b = ProgramBuilder(2, [(F4, 16), (F4, 8)])
    b.donate(0, 0, 16)
    for wrong in ((0, None, 16), (1, 0, 16), (1, 1, 16), (2, None, 16), (1, 2, 16)):
        with pytest.raises(ProgramError):
            b.donate(*wrong)
