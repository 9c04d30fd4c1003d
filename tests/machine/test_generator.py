"""Objects made by one call give the code that one call after the other gives."""

import ctypes
import threading

import pytest

from calque.machine import generator
from calque.machine.code import generation, llvm

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
