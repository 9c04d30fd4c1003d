"""The nouns of the machine language: types, signatures, structs, globals and functions."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from calque.machine.lang import types
from calque.machine.lang import unit as words
from calque.machine.lang.types import F32, I8, I64, PTR, Function, LangError
from calque.machine.lang.unit import Unit, f64, i8, i16, i64, layout, ptr, signature


def test_types_by_annotation() -> None:
    assert types.as_type(None) is None and types.as_type("None") is None
    assert types.as_type(I8) is I8
    for wrong in ("i7", int, 3):
        with pytest.raises(LangError, match="no machine type; there are i1, i8"):
            types.as_type(wrong)
    with pytest.raises(LangError, match="is a cast"):
        I64(3)
    assert [t.size for t in types.TYPES.values()] == [
        ctypes.sizeof(t.ctype) for t in types.TYPES.values()
    ]


def test_signatures_are_called_with_an_address() -> None:
    compare = signature(I64, I64, I64)
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(lambda a, b: a - b)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert compare(address, 9, 4) == 5
    with pytest.raises(LangError, match="called with an address"):
        compare(callback, 9, 4)
    with pytest.raises(LangError, match="argument cannot be None"):
        signature(None, I64, None)
    assert signature(None).ir_ret == "void" and signature(F32, PTR).ir_ret == "float"


def test_functions_of_the_process() -> None:
    unit = Unit("test_types_extern")
    strlen = unit.extern("strlen", i64, ptr)
    text = ctypes.create_string_buffer(b"seven..")
    assert strlen(ctypes.addressof(text)) == 7
    here = unit.extern("anything", i64, address=1234)
    assert here.resolve() == 1234
    with pytest.raises(LangError, match="no C function named calque_does_not_exist"):
        unit.extern("calque_does_not_exist", i64).resolve()


class CStruct(ctypes.Structure):
    _fields_ = [
        ("a", ctypes.c_int8),
        ("b", ctypes.c_int64),
        ("c", ctypes.c_int16),
        ("d", ctypes.c_int8),
        ("e", ctypes.c_double),
        ("f", ctypes.c_int8),
    ]


def test_structs_have_the_alignment_of_c() -> None:
    found = layout("S", a=i8, b=i64, c=i16, d=i8, e=f64, f=i8)
    for name, *_ in CStruct._fields_:
        assert found.offset(name) == getattr(CStruct, name).offset, name
    assert found.size == ctypes.sizeof(CStruct)
    moved = layout("T", first=i64, second=i64, at={"second": 40})
    assert (moved.offset("second"), moved.size) == (40, 48)
    with pytest.raises(LangError, match="field x has no type"):
        layout("U", x=None)
    with pytest.raises(LangError, match="inside machine functions"):
        found.at(0)


def test_structs_seen_from_python() -> None:
    struct = CStruct(a=-3, b=1 << 40, e=2.5)
    view = layout("S", a=i8, b=i64, c=i16, d=i8, e=f64, f=i8)(ctypes.addressof(struct))
    assert (view.a, view.b, view.e) == (-3, 1 << 40, 2.5)
    view.b, view.c = 7, -5
    assert (struct.b, struct.c, struct.a) == (7, -5, -3)
    with pytest.raises(KeyError):
        view.nothing


def test_globals_and_cells() -> None:
    """Memory of the code: zeros, and words that are set when it is linked."""
    unit = Unit("test_types_globals")
    numbers = unit.var("numbers", i16, 4)
    made: list[int] = []

    def value() -> int:
        made.append(1)
        return 42

    answer, seven = unit.cell("answer", i64, value), unit.cell("seven", i64, 7)

    @unit.function
    def sum_of() -> i64:
        return answer + seven

    assert sum_of() == 49 and len(made) == 1
    assert [numbers.read(k) for k in range(4)] == [0] * 4
    numbers.write(-9, 2)
    assert [numbers.read(k) for k in range(4)] == [0, 0, -9, 0]
    assert int(numbers) == numbers.address == unit.address("numbers")
    assert (ctypes.c_int16 * 4).from_address(numbers.__index__())[2] == -9
    assert "numbers i16 4" in numbers.describe() != answer.describe()


def test_words_of_the_language_mean_nothing_outside() -> None:
    for word in (words.load_i64, words.atomic_add, words.fence, words.alloca):
        with pytest.raises(LangError, match=f"{word.name} means something inside"):
            word(0)


def plain(x: i64, y: ptr) -> i64:
    return x


def test_functions_know_their_signature_and_source() -> None:
    f = Function(Unit("test_types_function"), plain, exported=True)
    assert f.params == ("x", "y") and f.signature == signature(I64, I64, PTR)
    tree, file, line = f.tree()
    assert tree.name == "plain" and file == __file__ and line == plain.__code__.co_firstlineno
    assert f.describe().startswith("function test_types_function.plain ('x', 'y')")
    assert Function(f.unit, plain, exported=False).describe().startswith("helper ")
    copy = Function(f.unit, plain, True, "again", {})
    assert copy._read is None  # not before it is asked for
    assert (copy.params, copy.signature) == (f.params, f.signature) and copy._read is not None


def variadic(*x: i64) -> i64:
    return 0


def keyword(x: i64, *, y: i64) -> i64:
    return x


def default(x: i64 = 3) -> i64:
    return x


def unknown(x: int) -> i64:
    return x


def unannotated(x, y: i64) -> i64:  # type: ignore[no-untyped-def]
    return y


@pytest.mark.parametrize(
    "function, message",
    [
        (variadic, "only plain positional"),
        (keyword, "only plain positional"),
        (default, "without defaults"),
        (unknown, "x: 'int' is no machine type"),
        (unannotated, "x needs a type annotation"),
    ],
)
def test_what_is_no_function_of_the_language(function: Any, message: str) -> None:
    """The error names the file and the line."""
    with pytest.raises(LangError, match=message) as caught:
        Function(Unit("test_types_bad"), function, exported=True)
    assert f"{__file__}:{function.__code__.co_firstlineno}: {function.__name__}" in str(
        caught.value
    )


def test_free_names_are_looked_up_in_closures_first() -> None:
    LIMIT = 5

    def f(x: i64) -> i64:
        return x + LIMIT + CONSTANT

    function = Function(Unit("test_types_lookup"), f, exported=True)
    assert function.lookup("LIMIT") == 5 and function.lookup("CONSTANT") == 11
    with pytest.raises(KeyError):
        function.lookup("nowhere")


CONSTANT = 11
