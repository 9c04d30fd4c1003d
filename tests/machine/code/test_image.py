"""Images of machine code: what becomes one, and that it runs as what LLVM links."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from calque.machine.code import image, llvm, target

MODULE = """
declare i64 @mine(i64)
declare double @cos(double)
@PyExc_ValueError = external global ptr
@PyExc_TypeError = external global ptr
@count = global i64 40
@room = global [5000 x i64] zeroinitializer, align 64
@table = constant [3 x ptr] [ptr @g, ptr @h, ptr @PyExc_TypeError]
@text = private constant [6 x i8] c"hello\\00"
define i64 @g(i64 %x) {
 %y = call i64 @mine(i64 %x)
 %n = load i64, ptr @count
 %z = add i64 %n, %y
 store i64 %z, ptr @count
 %p = getelementptr i64, ptr @room, i64 4999
 store i64 %z, ptr %p
 ret i64 %z
}
define double @h(double %x) {
 %y = call double @cos(double %x)
 %z = fadd double %y, 0.125
 ret double %z
}
define ptr @error() {
 %p = load ptr, ptr @PyExc_ValueError
 ret ptr %p
}
define ptr @greeting() {
 ret ptr @text
}
define i64 @choose(i64 %x) {
 switch i64 %x, label %d [ i64 0, label %a
 i64 1, label %b
 i64 2, label %c
 i64 3, label %e
 i64 4, label %a ]
a:
 ret i64 10
b:
 ret i64 21
c:
 ret i64 35
e:
 ret i64 47
d:
 ret i64 -1
}
"""
EXPORTS = ["g", "h", "error", "greeting", "choose", "table", "count", "room"]

needs_images = pytest.mark.skipif(not image.usable(), reason="this system has no images")


def elf(ir: str) -> bytes:
    target.initialize()
    with llvm._lock:
        return bytes(target.create_machine(2).emit_object(llvm._parse(ir)))


def function(address: int, result: type, *arguments: type) -> object:
    return ctypes.CFUNCTYPE(result, *arguments)(address)


def check(found: dict[str, int]) -> None:
    word, real = ctypes.c_int64, ctypes.c_double
    assert [function(found["g"], word, word)(n) for n in (1, 2)] == [40 + 101, 40 + 101 + 102]
    assert function(found["h"], real, real)(0.0) == 1.125
    assert function(found["error"], word)() == id(ValueError)
    assert function(found["greeting"], ctypes.c_char_p)() == b"hello"
    assert [function(found["choose"], word, word)(n) for n in range(6)] == [10, 21, 35, 47, 10, -1]
    table = list((word * 3).from_address(found["table"]))
    assert table[:2] == [found["g"], found["h"]] and word.from_address(table[2]).value == id(
        TypeError
    )
    assert word.from_address(found["count"]).value == 243
    room = (word * 5000).from_address(found["room"])
    assert found["room"] % 64 == 0 and room[4999] == 243 and not any(room[:4999])


@needs_images
def test_an_image_runs_as_what_llvm_links() -> None:
    hundred = llvm.link_module(
        "define i64 @f(i64 %x) {\n %y = add i64 %x, 100\n ret i64 %y\n}", ["f"], cache=False
    )["f"]
    obj = elf(MODULE)
    made = image.image_of(obj)
    assert made is not None and image.is_image(made) and not image.is_image(obj)
    for code in (obj, made, made):  # each loading has data of its own
        linked = llvm.link_object(code, EXPORTS, {"mine": hundred})
        check(linked.addresses)


@needs_images
def test_symbols_that_nobody_defines_are_named() -> None:
    made = image.image_of(elf(MODULE))
    assert made is not None
    with pytest.raises(llvm.LLVMError, match="not found anywhere: mine"):
        llvm.link_object(made, EXPORTS)
    with pytest.raises(llvm.LLVMError, match="no definition of another"):
        llvm.link_object(made, ["another"], {"mine": 1})


@needs_images
@pytest.mark.parametrize(
    "ir",
    [
        "@x = thread_local global i64 0\ndefine i64 @f() {\n %y = load i64, ptr @x\n ret i64 %y\n}",
        "@x = common global i64 0\ndefine ptr @f() {\n ret ptr @x\n}",
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32"
            " 1, ptr @f, ptr null }]\ndefine void @f() {\n ret void\n}"
        ),
    ],
)
def test_unusual_objects_stay_objects(ir: str) -> None:
    assert image.image_of(elf(ir)) is None


def test_other_files_are_no_images() -> None:
    assert image.image_of(b"\xcf\xfa\xed\xfe") is None and not image.is_image(b"")


PROGRAM = """
import sys, calque, calque.numpy as jnp
from calque.machine.code import llvm
x = jnp.ones((3, 4))
y = calque.jit(lambda x: jnp.sin(x) @ x.T + calque.lax.fori_loop(0, 3, lambda i, c: c * 1.5, x.sum()))(x)
print(llvm.stats.compiled > 0, "llvmlite" in sys.modules, y.tolist())
"""


def run(folder: Path, **environment: str) -> list[str]:
    full = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "CALQUE_CACHE_DIR": str(folder),
        **environment,
    }
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=full, capture_output=True, text=True, timeout=100
    )
    assert out.returncode == 0, out.stderr
    return out.stdout.split(maxsplit=2)


@needs_images
def test_a_second_process_needs_no_llvm(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert (first[:2], second[:2]) == (["True", "True"], ["False", "False"]) and first[2] == second[
        2
    ]
    third, fourth = run(tmp_path, CALQUE_LINKER="llvm"), run(tmp_path, CALQUE_LINKER="llvm")
    assert (third[:2], fourth[:2]) == (["True", "True"], ["False", "True"]) and first[2] == third[
        2
    ] == fourth[2]


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="reads the map of the memory")
@pytest.mark.parametrize("linker", ["", "llvm"])
def test_no_memory_is_writable_and_executable(linker: str) -> None:
    program = """
def both():
    with open("/proc/self/maps") as maps:
        return [line for line in maps if "wx" in line.split()[1]]
import llvmlite.binding  # whose callbacks are made by libffi, on a page of that sort
llvmlite.binding.initialize_native_target()
before = both()
import calque as jax, calque.numpy as jnp
x = jnp.arange(100.0)
jax.jit(lambda x: jnp.sin(x) @ jnp.sort(x))(x)
jnp.fft.fft(x)
print([line for line in both() if line not in before])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CALQUE_LINKER": linker}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@needs_images
def test_data_begin_as_zeros_where_others_were() -> None:
    """A counter in memory that an image had before, with another value in it."""
    ir = """
@count = internal global i64 0
define i64 @next() {
  %n = load i64, ptr @count
  %m = add i64 %n, 1
  store i64 %m, ptr @count
  ret i64 %m
}"""
    written = image.image_of(elf(ir))
    assert written is not None
    places = set()
    for _ in range(40):
        linked = image.load(written, ["next"], {})
        places.add(linked.addresses["next"])
        count = ctypes.CFUNCTYPE(ctypes.c_int64)(linked.addresses["next"])
        assert [count() for _ in range(3)] == [1, 2, 3]
        del linked, count
    assert len(places) < 40  # some stood where another had stood
