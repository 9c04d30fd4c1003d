"""Objects made by one call give the code that one call after the other gives; queues of modules."""

import ctypes
import os
import threading
import time
from collections.abc import Callable

import pytest

from calque.machine import generator
from calque.machine.code import generation, llvm, machines, target

GOOD = """
define i64 @generator_test(i64 %x) {
  %y = mul i64 %x, 3
  %z = add i64 %y, 4
  ret i64 %z
}
"""
UNKNOWN = "define i64 @generator_test() {\n  ret i64 %nothing\n}\n"
WRONG = """
define i64 @generator_test(i1 %c) {
  br i1 %c, label %a, label %b
a:
  %x = add i64 1, 2
  br label %b
b:
  ret i64 %x
}
"""


@pytest.fixture
def at_once() -> None:
    generator.get_ready()
    if not generation.at_once:
        pytest.skip("another library of llvmlite")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("passes", [None, "O2"])
def test_one_call_gives_the_same_object(
    passes: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = llvm._compile(GOOD, 2, passes)
    monkeypatch.setattr(generation, "at_once", [])
    assert made == llvm._compile(GOOD, 2, passes)
    linked = llvm.link_object(made, ["generator_test"], {}, GOOD, [])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(linked.addresses["generator_test"])
    assert function(5) == 19


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("text", "said"), [(UNKNOWN, "nothing"), (WRONG, "dominate")])
def test_what_llvm_refuses_is_told(text: str, said: str) -> None:
    for _ in range(3):
        with pytest.raises(llvm.LLVMError, match=said):
            llvm._compile(text, 2, None)
    assert llvm._compile(GOOD, 2, None)


@pytest.mark.usefixtures("at_once")
def test_several_threads_may_make_objects() -> None:
    want, found = llvm._compile(GOOD, 2, "O2"), []

    def work() -> None:
        for _ in range(5):
            found.append(llvm._compile(GOOD, 2, "O2"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [want] * 20


def test_an_unknown_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "_functions", lambda: None)
    assert generation.addresses(["LLVMPY_ContextCreate"]) is None


def function(name: str, value: int) -> str:
    return f"define i64 @{name}() {{ ret i64 {value} }}"


@pytest.fixture
def queue(at_once: None) -> generator.Queue:
    made: generator.Queue = generation.queues[0]()
    return made


def make(
    queue: generator.Queue, most: int = 1 << 40, patience: int = 0, leave: bool = False
) -> int:
    triple = target.describe().triple.encode()
    own = machines.take_all()
    try:
        return queue.make(triple, own, ctypes.c_int64(leave), most, patience)
    finally:
        machines.give_back_all(own)


def test_a_queue_gives_objects_in_the_order_of_its_modules(queue: generator.Queue) -> None:
    texts = [function(f"f{k}", k) for k in range(5)]
    for text in texts[:3]:
        assert queue.add(text, 2)
    assert make(queue, 2) == 2
    first = [*queue.collect(wait=False)]
    assert [x.text for x in first] == texts[:2] and all(x.ns > 0 for x in first)
    for text in texts[3:]:
        queue.add(text, 0)
    assert make(queue) == 3 and make(queue) == 0
    rest = [*queue.collect(wait=True)]
    assert [x.text for x in rest] == texts[2:]
    assert [x.object is not None for x in first + rest] == [True] * 5


def test_what_a_queue_refuses_has_no_object(queue: generator.Queue) -> None:
    for text in (GOOD, UNKNOWN, WRONG):
        queue.add(text, 2)
    assert make(queue) == 3
    assert [x.object is None for x in queue.collect(wait=True)] == [False, True, True]


def test_nothing_is_begun_where_all_are_to_leave_or_a_queue_is_closed(
    queue: generator.Queue,
) -> None:
    queue.add(GOOD, 2)
    assert make(queue, leave=True, patience=1 << 60) == 0
    queue.close()
    assert make(queue, patience=1 << 60) == 0
    assert not [*queue.collect(wait=True)]


def test_a_thread_waits_for_modules_until_the_queue_is_closed(queue: generator.Queue) -> None:
    made: list[int] = []
    thread = threading.Thread(target=lambda: made.append(make(queue, patience=1 << 60)))
    thread.start()
    for k in range(20):
        queue.add(function("f", k), 2)
        if k % 5 == 0:
            time.sleep(0.002)
    while len(queue._texts) != queue._collected:
        assert all(x.object for x in queue.collect(wait=True))
    queue.close()
    thread.join(60)
    assert made == [20]


def test_several_threads_share_a_queue(queue: generator.Queue) -> None:
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda: made.append(make(queue, patience=1 << 60)))
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for k in range(200):
        queue.add(function(f"f{k}", k), k % 3)
    made.append(make(queue))
    found = [*queue.collect(wait=True)]
    queue.close()
    for t in threads:
        t.join(60)
    assert sum(made) == 200 and len({x.object for x in found}) == 200
    assert [x.text for x in found] == [function(f"f{k}", k) for k in range(200)]


def test_a_queue_has_room_for_so_many(
    queue: generator.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "MOST", 2)
    assert [queue.add(GOOD, 2) for _ in range(3)] == [True, True, False]
    compiling = llvm.Compiling(2)
    texts = [function(f"f{k}", k) for k in range(6)]
    for k, text in enumerate(texts):
        compiling.add(text, 2, "instcombine" if k == 1 else None)
    assert compiling._queued == [True, False, True, False, False, False]
    made = compiling.results()
    assert made == [llvm.object_code(text, cache=False) for text in texts]


@pytest.mark.usefixtures("at_once")
def test_no_thread_is_left_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in (llvm.Compiling.drop, llvm.Compiling.results):
        compiling = llvm.Compiling(3)
        compiling.start()
        compiling.start()
        assert compiling._begun == 1
        end(compiling)
        wait_until(lambda c=compiling: c._begun == 0)
    compiling = llvm.Compiling(3)
    monkeypatch.setattr(llvm._thread, "start_new_thread", refuse)
    compiling.add(GOOD, 2)
    assert len(compiling.results()) == 1


def refuse(*_: object) -> None:
    raise RuntimeError("can't start new thread")


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.usefixtures("at_once")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")  # of any fork while there are threads
def test_a_fork_does_not_wait_for_threads_that_wait() -> None:
    compiling = llvm.Compiling(2)
    compiling.start()
    wait_until(lambda: generation.gate._inside == 1)
    child = os.fork()
    if child == 0:
        compiling.add(GOOD, 2)
        os._exit(len(compiling.results()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert compiling._begun == 0  # it has left, and another one comes
    compiling.add(GOOD, 2)
    assert len(compiling.results()) == 1
