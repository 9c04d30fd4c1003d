"""LLVM text to addresses: linking, the disk cache of objects, errors."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.machine.code import diskcache, llvm, target

ADD = "define i64 @f(i64 %x) nounwind {\n %y = add i64 %x, NUMBER\n ret i64 %y\n}\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CALQUE_CACHE", raising=False)
    diskcache.reload()
    yield tmp_path
    monkeypatch.undo()
    diskcache.reload()


def call(address: int, *args: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(address)(*args))


def add(number: int) -> str:
    return ADD.replace("NUMBER", str(number))


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "passes",
    [None, "O1", "O2", "O3", "sroa,instcombine,simplifycfg,gvn,dce,dse,sccp,inline,globaldce"],
)
def test_a_function_is_compiled_and_runs(opt: int, passes: str | None) -> None:
    addresses = llvm.link_module(add(2), ["f"], opt=opt, passes=passes, cache=False)
    assert call(addresses["f"], 40) == 42


def test_the_same_name_may_be_linked_again() -> None:
    first, second = (llvm.link_module(add(n), ["f"], cache=False)["f"] for n in (1, 2))
    assert (call(first, 0), call(second, 0)) == (1, 2)


def test_imports_are_given_or_found_in_the_process() -> None:
    given = llvm.link_module(add(5), ["f"], cache=False)["f"]
    ir = """
declare i64 @mine(i64)
declare double @cos(double)
declare i64 @PyLong_AsLongLong(ptr)
@PyExc_ValueError = external global ptr
@table = constant [2 x ptr] [ptr @g, ptr @h]
define i64 @g(i64 %x) { %y = call i64 @mine(i64 %x) ret i64 %y }
define double @h(double %x) { %y = call double @cos(double %x) ret double %y }
define ptr @error() { %p = load ptr, ptr @PyExc_ValueError ret ptr %p }
"""
    found = llvm.link_module(
        ir.replace(" ret", "\n ret"), ["g", "h", "error", "table"], {"mine": given}, cache=False
    )
    assert call(found["g"], 1) == 6
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found["h"])(0.0) == 1.0
    assert call(found["error"]) == id(ValueError)
    assert list((ctypes.c_int64 * 2).from_address(found["table"])) == [found["g"], found["h"]]


def test_bad_text_is_shown_where_it_is_bad() -> None:
    with pytest.raises(llvm.LLVMError, match=r"expected 'i32'[\s\S]*>    2 \|  %y = add i32 %x, 1"):
        llvm.link_module(add(1).replace("add i64", "add i32"), ["f"], cache=False)


def test_what_the_verifier_refuses_is_an_error() -> None:
    ir = (
        "define i64 @f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %x = add i64 1, 2\n br label"
        " %b\nb:\n ret i64 %x\n}"
    )
    with pytest.raises(llvm.LLVMError, match="does not dominate"):
        llvm.link_module(ir, ["f"], cache=False)


def test_a_symbol_that_nobody_defines_is_named() -> None:
    ir = (
        "declare i64 @nowhere_to_be_found()\ndefine i64 @f() {\n %y = call i64"
        " @nowhere_to_be_found()\n ret i64 %y\n}"
    )
    with pytest.raises(llvm.LLVMError, match="nowhere_to_be_found"):
        llvm.link_module(ir, ["f"], cache=False)
    with pytest.raises(llvm.LLVMError, match="g"):
        llvm.link_module(add(1), ["g"], cache=False)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown pass 'magic'"):
        llvm.link_module(add(1), ["f"], passes="magic", cache=False)
    with pytest.raises(ValueError, match="opt must be"):
        llvm.link_module(add(1), ["f"], opt=4)


def test_an_object_is_compiled_once(cache: Path) -> None:
    before = llvm.stats.compiled
    for _ in range(3):
        assert call(llvm.link_module(add(7), ["f"])["f"], 1) == 8
    assert llvm.stats.compiled == before + 1
    llvm.link_module(add(7), ["f"], opt=1)
    llvm.link_module(add(7), ["f"], passes="O1")
    llvm.link_module(add(7), ["f"], cache=False)
    assert llvm.stats.compiled == before + 4


def test_text_known_by_a_key_is_made_once(cache: Path) -> None:
    made = []

    def make() -> str:
        made.append(1)
        return add(9)

    for _ in range(3):
        assert call(llvm.link_cached("a key of the test", make, ["f"])["f"], 1) == 10
    assert len(made) == 1


def test_a_damaged_object_is_compiled_again(cache: Path) -> None:
    llvm.link_module(add(11), ["f"])
    for path in cache.rglob("*.object"):
        path.write_bytes(path.read_bytes()[:-20])
    assert call(llvm.link_module(add(11), ["f"])["f"], 1) == 12


CHILD = """
import ctypes
from calque.machine.code import llvm
before = llvm.stats.compiled  # importing the package may have compiled its runtime
a = llvm.link_module({ir!r}, ["f"])["f"]
print(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(a)(1), llvm.stats.compiled - before)
"""


def run_child(**environment: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    out = subprocess.run(
        [sys.executable, "-c", CHILD.format(ir=add(13))],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert out.returncode == 0, out.stderr
    return out.stdout.strip()


def test_a_second_process_compiles_nothing_and_another_processor_its_own(cache: Path) -> None:
    assert run_child(CALQUE_CPU="") == "14 1"
    assert run_child(CALQUE_CPU="") == "14 0"
    if target.describe().is_x86:
        assert run_child(CALQUE_CPU="x86-64") == "14 1"


def test_assembly_can_be_read() -> None:
    assert "f:" in llvm.assembly(add(3)) or "_f:" in llvm.assembly(add(3))
    assert "add i64" in llvm.optimized(add(3))


def test_many_threads_may_compile() -> None:
    results: dict[int, int] = {}

    def work(number: int) -> None:
        results[number] = call(llvm.link_module(add(100 + number), ["f"], cache=False)["f"], 0)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 100 + number for number in range(8)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore")  # libraries that keep threads of their own warn of any fork
def test_a_forked_child_may_compile() -> None:
    llvm.link_module(add(1), ["f"], cache=False)
    child = os.fork()
    if child == 0:
        ok = call(llvm.link_module(add(2), ["f"], cache=False)["f"], 1) == 3
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_llvm_gets_ready_once() -> None:
    """Where it was not imported yet there is nothing to be had: who finds all code on disk never
    imports it."""
    code = (
        "import sys, threading, time\n"
        "from calque.machine.code import llvm\n"
        "llvm.get_ready()\n"
        "assert 'llvmlite' not in sys.modules and threading.active_count() == 1\n"
        "import llvmlite.binding\n"
        "made = []\n"
        "real = llvm.generation.make_object\n"
        "llvm.generation.make_object = lambda *given: made.append(real(*given)) or made[-1]\n"
        "llvm.get_ready(), llvm.get_ready()\n"
        "for _ in range(1000):\n"
        "    if made: break\n"
        "    time.sleep(0.01)\n"
        "assert len(made) == 1 and made[0] and llvm.stats.compiled == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
