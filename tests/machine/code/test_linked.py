"""Machine code lives as long as somebody has it."""

import ctypes
import gc
from pathlib import Path

import pytest

from calque.machine.code import image, llvm
from calque.machine.code.arena import Arena, Room, arena
from calque.machine.code.linked import Linked

needs_images = pytest.mark.skipif(not image.usable(), reason="this system has no images")


def constant(n: int) -> str:
    return f"define i64 @f() {{\n ret i64 {n}\n}}"


def call(linked: Linked) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(linked.addresses["f"])())


@needs_images
def test_memory_for_code_is_used_again() -> None:
    first = llvm.link_object(llvm.object_code(constant(1), cache=False), ["f"])
    used, where = arena.used(), first.addresses["f"]
    del first
    assert arena.used() < used
    second = llvm.link_object(llvm.object_code(constant(2), cache=False), ["f"])
    assert second.addresses["f"] == where and call(second) == 2
    assert arena.used() == used


@needs_images
def test_code_keeps_what_it_calls() -> None:
    inner = llvm.link_object(llvm.object_code(constant(41), cache=False), ["f"])
    text = (
        "declare i64 @inner()\ndefine i64 @f() {\n %x = call i64 @inner()\n"
        " %y = add i64 %x, 1\n ret i64 %y\n}"
    )
    code = llvm.object_code(text, cache=False)
    outer = llvm.link_object(code, ["f"], {"inner": inner.addresses["f"]}, needs=[inner])
    del inner
    others = [llvm.link_object(llvm.object_code(constant(n), cache=False), ["f"]) for n in range(3)]
    assert call(outer) == 42 and [call(o) for o in others] == [0, 1, 2]


def test_what_llvm_links_is_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALQUE_LINKER", "llvm")
    first = llvm.link_object(llvm.object_code(constant(7), cache=False), ["f"])
    assert call(first) == 7 and not llvm._unneeded
    del first
    gc.collect()
    assert len(llvm._unneeded) == 1
    second = llvm.link_object(llvm.object_code(constant(8), cache=False), ["f"])
    assert not llvm._unneeded and call(second) == 8


def test_ranges_that_are_freed_join() -> None:
    room = Room(100)
    places = [room.take(10, 1) for _ in range(10)]
    assert places == [10 * k for k in range(10)] and room.take(1, 1) is None and room.free == 0
    for k in (3, 1, 2, 9, 7, 8, 0):
        room.give(10 * k, 10)
    assert room.take(41, 1) is None and room.free == 70
    assert room.take(40, 1) == 0 and room.take(17, 8) == 72 and room.take(3, 1) == 89
    assert room.take(2, 1) == 70
    assert room.take(8, 4) == 92 and room.free == 0


@needs_images
def test_regions_without_images_are_unmapped() -> None:
    own = Arena()
    places = [own.place(300_000, 100, 16) for _ in range(9)]
    assert len(own.regions) == 3
    for p in places[1:]:
        own.give_back(p)
    assert own.used() == (places[0].code_bytes, places[0].data_bytes) and len(own.regions) == 1
    assert Path("/proc/self/maps").exists()
    own.give_back(places[0])
    assert own.used() == (0, 0) and len(own.regions) == 1
