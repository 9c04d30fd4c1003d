"""Shared libraries that no linker has written: the system loads them and finds their exports."""

import ctypes
import shutil
import struct
import subprocess

import pytest

from calque.machine.code import image, llvm
from calque.machine.code.shared_object import Contents, Table, shared_object

pytestmark = pytest.mark.skipif(not image.on_this_system(), reason="no images on this system")

FIRST = """
declare i64 @doubled(i64)
@count = global i64 0
@words = external global [3 x i64]
define i64 @next(i64 %x) {
 %n = load i64, ptr @count
 %m = add i64 %n, %x
 store i64 %m, ptr @count
 %y = call i64 @doubled(i64 %m)
 ret i64 %y
}
define i64 @word(i64 %k) {
 %p = getelementptr [3 x i64], ptr @words, i64 0, i64 %k
 %v = load i64, ptr %p
 ret i64 %v
}
define i64 @through(i64 %x) {
 %p = getelementptr [3 x i64], ptr @words, i64 0, i64 1
 %f = load ptr, ptr %p
 %y = call i64 %f(i64 %x)
 ret i64 %y
}
"""
SECOND = """
declare i64 @strlen(ptr)
@text = external global [6 x i8]
define i64 @doubled(i64 %x) {
 %y = mul i64 %x, 2
 ret i64 %y
}
define i64 @length() {
 %n = call i64 @strlen(ptr @text)
 ret i64 %n
}
"""
EXPORTS = ("next", "word", "through", "length")


def code(text):
    made = llvm.object_code(text, cache=False)
    return made if image.is_image(made) else image.image_of(made)


def library(values=None, exports=EXPORTS, system=("strlen",), soname="libx.so", needed=None):
    tables = [
        Table("words", struct.pack("<3q", 7, 0, 9), [(8, "doubled", 0)]),
        Table("text", b"hello\0"),
    ]
    contents = Contents([code(FIRST), code(SECOND)], tables, exports, values or {})
    return shared_object(contents, soname, system, needed or {})


def opened(path, content):
    path.write_bytes(content)
    made = ctypes.CDLL(str(path))
    for name in EXPORTS:
        function = getattr(made, name)
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * (name != "length")
    return made


def test_code_data_and_tables_find_each_other(tmp_path):
    made = opened(tmp_path / "a.so", library())
    assert [made.next(5), made.next(6)] == [10, 22]
    assert [made.word(0), made.word(2), made.through(21)] == [7, 9, 42]
    assert made.length() == 5


def test_words_of_data_begin_with_values(tmp_path):
    made = opened(tmp_path / "a.so", library({"count": 100}))
    assert made.next(1) == 202
    other = opened(tmp_path / "b.so", library({"count": "text"}))
    assert other.next(0) // 2 > 1 << 12  # an address


def test_two_libraries_with_the_same_names_know_nothing_of_each_other(tmp_path):
    first, second = (opened(tmp_path / f"{n}.so", library(soname=n)) for n in ("a", "b"))
    assert [first.next(1), first.next(1), second.next(1)] == [2, 4, 2]


def test_what_is_not_exported_is_not_seen(tmp_path):
    made = opened(tmp_path / "a.so", library())
    with pytest.raises(AttributeError):
        made.doubled
    tables = [Table("words", bytes(24)), Table("text", b"\0")]
    with pytest.raises(KeyError):
        contents = Contents([code(FIRST), code(SECOND)], tables, ("nothing",), {})
        shared_object(contents, "x", ["strlen"], {})


def test_a_table_without_places_cannot_be_written(tmp_path):
    content = library()
    segments = [struct.unpack_from("<IIQQQQQQ", content, 64 + 56 * k) for k in range(5)]
    at = content.index(b"hello\0")
    rights = [s[1] for s in segments if s[0] == 1 and s[2] <= at < s[2] + s[5]]
    assert rights == [4]
    assert not any(s[1] & 3 == 3 for s in segments)  # nothing is writable and executable


def test_what_nobody_has_is_named():
    with pytest.raises(LookupError, match="cannot call strlen"):
        library(system=())


def test_a_name_that_is_there_twice():
    tables = [Table("words", bytes(24)), Table("text", b"\0"), Table("doubled", b"")]
    with pytest.raises(ValueError, match="doubled twice"):
        shared_object(Contents([code(FIRST), code(SECOND)], tables, (), {}), "x", ["strlen"], {})


def test_a_library_that_is_needed_is_named():
    assert b"libm.so.6" not in library()
    assert b"libm.so.6" in library(needed={"strlen": "libm.so.6", "cos": "libm.so.6"})


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
def test_other_tools_read_it(tmp_path):
    path = tmp_path / "a.so"
    path.write_bytes(library())
    command = ["readelf", "-W", "--dyn-syms", "-d", "-S", "-l", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "" and "[libx.so]" in done.stdout
    assert all(f" {name}\n" in done.stdout for name in (*EXPORTS, "strlen"))
