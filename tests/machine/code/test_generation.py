"""Modules compiled by several threads: order, errors, forks, libraries that are not known."""

import _thread
import os
import threading
import time

import pytest

from calque.machine.code import generation, llvm, machines, target


def function(name, value):
    return f"define i64 @{name}() {{ ret i64 {value} }}"


def test_results_come_in_the_order_of_the_modules():
    compiling = llvm.Compiling(4)
    before = llvm.stats.compiled
    texts = [function(f"f{k}", k) for k in range(9)]
    for text in texts:
        compiling.add(text, 2)
    made = compiling.results()
    assert llvm.stats.compiled == before + 9
    assert made == [llvm.object_code(text, cache=False) for text in texts]


def test_one_thread_does_all_by_itself():
    seen = []
    work = generation.Work(0)
    for k in range(3):
        work.add(lambda k=k: seen.append(threading.get_ident()) or bytes([k]))
    assert not seen and work.results() == [b"\0", b"\1", b"\2"]
    assert set(seen) == {threading.get_ident()}


def test_helpers_begin_before_anybody_asks():
    work, begun = generation.Work(1), threading.Event()
    work.add(lambda: begun.set() or b"a")
    assert begun.wait(60) and work.results() == [b"a"]


def test_what_a_handler_raises_while_a_helper_starts_is_what_the_caller_gets(monkeypatch):
    class Now(Exception):
        pass

    def stopped_on_the_way(*args, start=_thread.start_new_thread):
        start(*args)
        raise Now

    work = generation.Work(1)
    monkeypatch.setattr(generation._thread, "start_new_thread", stopped_on_the_way)
    with pytest.raises(Now):
        work.add(lambda: b"a")
    monkeypatch.undo()
    begun = threading.Event()
    work.add(lambda: begun.set() or b"b")
    assert begun.wait(60) and work.results() == [b"a", b"b"]


def test_an_error_is_told_to_whoever_asks():
    compiling = llvm.Compiling(3)
    for text in (function("f", 1), "define i64 @g() { ret i64 %nothing }", function("h", 2)):
        compiling.add(text, 2)
    with pytest.raises(llvm.LLVMError, match="use of undefined value '%nothing'"):
        compiling.results()


def test_passes_are_run():
    text = "define i64 @f() { %a = add i64 1, 2 \n %b = mul i64 %a, 7 \n ret i64 %b }"
    folded = llvm.object_code(function("f", 21), cache=False)
    assert llvm.object_code(text, passes="instcombine", cache=False) == folded


def test_unknown_libraries_are_left_to_llvmlite(monkeypatch):
    text = function("f", 5)
    known = llvm.object_code(text, cache=False)
    monkeypatch.setattr(generation, "_functions", lambda: None)
    with machines.one_for(2) as machine:
        triple = target.describe().triple
        assert generation.make_object(text, triple, machine, None) is None
    assert llvm.object_code(text, cache=False) == known
    with pytest.raises(llvm.LLVMError):
        llvm.object_code("nonsense", cache=False)


def test_a_function_that_was_declared_otherwise_is_not_called(monkeypatch):
    monkeypatch.setitem(generation._SHORT, "LLVMPY_SetTarget", (None, generation._POINTER))
    assert generation._functions.__wrapped__() is None
    monkeypatch.setitem(generation._SHORT, "LLVMPY_SetTarget", (None,) * 3)
    monkeypatch.setitem(generation._SHORT, "LLVMPY_NobodyHasThis", (None,))
    assert generation._functions.__wrapped__() is None


def test_a_closed_gate_lets_only_its_owner_in():
    gate, entered = generation.Gate(), threading.Event()

    def enter():
        with gate.entered():
            entered.set()

    gate.close()
    assert gate.is_closed
    with gate.entered():
        pass
    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.wait(0.05)
    gate.open()
    thread.join(60)
    assert entered.is_set() and not gate.is_closed


def test_whoever_closes_a_gate_waits_for_those_inside():
    gate, inside, leave = generation.Gate(), threading.Event(), threading.Event()

    def stay():
        with gate.entered():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(60)
    gate.close(0.01)  # not for ever
    assert gate._inside == 1
    leave.set()
    gate.close(60)
    assert gate._inside == 0
    thread.join(60)


def test_no_handler_can_stop_whoever_has_just_taken_a_lock():
    """What a signal's handler raises may come within `Condition.__enter__`, which then has the lock
    for ever."""

    class Stopping(threading.Condition):
        def __enter__(self):
            super().__enter__()
            raise KeyboardInterrupt

    gate, work = generation.Gate(), generation.Work(1)
    for x in (gate, work):
        x._changed = Stopping(x._lock)
    with gate.entered():
        assert gate._inside == 1
    gate.close(60)
    gate.open()
    work.add(lambda: b"a")
    assert work.results() == [b"a"] and work.drop() is None
    assert not gate._lock._is_owned() and not work._lock._is_owned()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")  # of any fork while there are threads
def test_a_child_compiles_while_its_parent_does():
    stop = threading.Event()

    def compile_on():
        k = 0
        while not stop.is_set():
            k += 1
            llvm.object_code(function("f", k), cache=False)

    threads = [threading.Thread(target=compile_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                compiling = llvm.Compiling(2)
                for k in range(3):
                    compiling.add(function("g", k), 2)
                os._exit(len(compiling.results()))
            deadline = time.monotonic() + 60
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            assert os.waitstatus_to_exitcode(ended[1]) == 3
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
