"""The machine language: every construct computes what its Python reading says, and errors name the
line."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import sys
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from calque.machine.code import llvm, target
from calque.machine.lang import types as lang_types
from calque.machine.lang import unit as unit_module
from calque.machine.lang.unit import (
    NULL,
    LangError,
    Unit,
    address,
    alloca,
    apart,
    atomic_add,
    atomic_cas,
    atomic_cas_i32,
    atomic_load,
    atomic_store,
    atomic_xchg,
    begin_together,
    bits_f32,
    bits_f64,
    bits_i32,
    bits_i64,
    f32,
    f64,
    fence,
    i1,
    i8,
    i16,
    i32,
    i64,
    layout,
    likely,
    load_f32,
    load_f64,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    load_u16,
    load_u32,
    lshr,
    memcpy,
    memmove,
    memset,
    pause,
    ptr,
    sdiv,
    signature,
    sizeof,
    sqrt,
    srem,
    store_f32,
    store_f64,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
    store_ptr,
    udiv,
    ule,
    ult,
    unlikely,
    urem,
)

unit = Unit("test_lang")
base = Unit("test_lang_base")
PyLong_FromLong = unit.extern("PyLong_FromLong", ptr, i64)
PyUnicode_FromFormat = unit.extern("PyUnicode_FromFormat", ptr, ptr, vararg=True)
strlen = unit.extern("strlen", i64, ptr)
binary = signature(i64, i64, i64)
Node = layout("Node", next=ptr, value=i64, small=i8, half=i16, real=f64)
total = base.var("total", i64)
table = unit.var("table", i64, 8)
none = unit.cell("none", ptr, id(None))
LIMIT = 40
SCALE = 2.5


class Op(IntEnum):
    ADD = 1
    SUB = 2
    NEG = 7


@base.helper
def bump(amount: i64) -> i64:
    store_i64(total, 0, load_i64(total, 0) + amount)
    return load_i64(total, 0)


@base.function
def bump_twice(amount: i64) -> i64:
    bump(amount)
    return bump(amount)


@unit.function
def collatz(n: i64) -> i64:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > LIMIT * 100:
            return -1
    return steps


@unit.function
def arithmetic(op: i64, a: i64, b: i64) -> i64:
    match op:
        case 0:
            return a + b - a * b
        case 1:
            return a // b
        case 2:
            return a % b
        case 3:
            return sdiv(a, b)
        case 4:
            return srem(a, b)
        case 5:
            return (a & b) | (a ^ ~b)
        case 6:
            return a << (b & 63)
        case 7:
            return a >> (b & 63)
        case 8:
            return lshr(a, b & 63)
        case 9:
            return min(a, b) + 3 * max(a, b) - abs(a)
        case 10:
            return -a
        case 11 | 12:
            return udiv(a, b) + urem(a, b)
        case _:
            return -1


@unit.function
def compare(a: i64, b: i64, c: i64) -> i64:
    bits = (
        i64(a < b)
        | i64(a <= b) << 1
        | i64(a == b) << 2
        | i64(a != b) << 3
        | i64(a > b) << 4
        | i64(a >= b) << 5
    )
    bits |= (
        i64(a < b < c) << 6 | i64(a < b and b < c) << 7 | i64(a < b or b < c) << 8 | i64(not a) << 9
    )
    bits |= i64(ult(a, b)) << 10 | i64(ule(a, b)) << 11
    return bits


@unit.function
def loops(n: i64) -> i64:
    out = 0
    for i in range(n):
        if i == 3:
            continue
        if i == 20:
            break
        out = out * 3 + i
        i = 100  # does not disturb the loop
    for j in range(10, 0, -3):
        out += j
    for k in range(2, n):
        out ^= k
    return out


@unit.function
def short_circuit(p: ptr) -> i64:
    if (p and load_i64(p, 0) == 5) or not p:
        return 1
    return 0 if p != NULL and load_i64(p, 8) > 0 else 2


@unit.function
def fields(p: ptr) -> i64:
    Node(p).value = Node(p).value + 1
    Node(p).value *= 2
    Node(p).small = i8(-3)
    Node(p).half = i16(300)
    Node(p).real = SCALE * 2
    Node(p).next = Node.at(p).value
    return load_i64(Node(p).next, 0) + Node(p).small + Node(p).half + sizeof(Node)


@unit.function
def memory(p: ptr) -> i64:
    store_i8(p, 0, 255)
    store_i16(p, 2, -2)
    store_i32(p, 4, -5)
    store_f32(p, 8, 1.5)
    store_f64(p, 16, f64(load_f32(p, 8)) + 1)
    store_ptr(p, 24, p)
    copy = alloca(64)
    memset(copy, 1, 64)
    memcpy(copy, p, 32)
    memmove(copy + 1, copy, 4)
    q = load_ptr(copy, 24)
    if q != p or q - p != 0:
        return -1
    total_ = (
        load_i8(p, 0)
        + load_u8(p, 0)
        + load_i16(p, 2)
        + load_u16(p, 2)
        + i64(load_i32(p, 4))
        + load_u32(p, 4)
    )
    return total_ + i64(load_f64(p, 16) * 2) + load_u8(copy, 1) + load_u8(copy, 40)


@unit.function
def floats(a: f64, b: f64) -> f64:
    c: f32 = f32(a)
    if a < b:
        return f64(c) / b - 1
    if a != a:
        return 0.25
    return -(a * b) + f64(3)


@unit.function
def root(x: f64) -> f64:
    return sqrt(x)


@unit.function
def bits(x: f64) -> i64:
    same = bits_f64(bits_i64(x)) == x
    return bits_i64(x) + i64(bits_i32(f32(x))) + i64(f64(bits_f32(i32(0x3F800000)))) + i64(same)


@unit.function
def atomics(p: ptr) -> i64:
    store_i64(p, 0, 5)
    old = atomic_add(p, 0, 3)
    ok = atomic_cas(p, 0, 8, 20)
    no = atomic_cas(p, 0, 8, 30)
    was = atomic_xchg(p, 0, 40)
    atomic_store(p, 8, 7)
    fence()
    pause()
    store_i32(p, 16, 1)
    narrow = atomic_cas_i32(p, 16, i32(1), i32(2))
    return (
        old * 1000000
        + i64(ok) * 100000
        + i64(no) * 10000
        + was * 100
        + atomic_load(p, 8)
        + i64(narrow)
    )


@unit.function
def apply(f: ptr, a: i64, b: i64) -> i64:
    return binary(f, a, b)


@unit.function
def add(a: i64, b: i64) -> i64:
    return a + b


@unit.function
def apply_own(a: i64, b: i64) -> i64:
    f = add
    return binary(f, a, b) + bump_twice(1) + bump(1)


@unit.function
def python_int(n: i64) -> i64:
    return i64(PyLong_FromLong(n))


@unit.function
def is_none(p: ptr) -> i1:
    return p == none


@unit.function
def text_length() -> i64:
    return strlen('caf\u00e9 "quoted" \\ \n')


@unit.function
def formatted(n: i64) -> i64:
    return i64(PyUnicode_FromFormat("%zd and %s", n, "text"))


@unit.function
def use_table(i: i64) -> i64:
    store_i64(table, i * 8, i * i)
    store_ptr(address(none), 0, none)
    return load_i64(table, i * 8)


@unit.function
def enum_case(op: i64, x: i64) -> i64:
    match op:
        case Op.ADD:
            return x + 1
        case Op.SUB:
            return x - 1
    return -x if op == Op.NEG else 0


@unit.function
def member(x: i64) -> i64:
    return i64(x in (1, LIMIT)) + 2 * i64(x not in (3, 4))


@unit.function
def dead_code(x: i64) -> i64:
    while True:
        if likely(x > 10):
            break
        if unlikely(x < -100):
            return 7
        x += 4
    a, b = x, 1
    a, b = b, a
    return b - a


@unit.function
def mixed(a: i32, b: i8, p: ptr) -> i64:
    wide = a + b
    n: i32 = 0
    n += 1
    chosen = wide if b > 0 else a
    pointer = p if p else NULL
    return i64(wide) * 10 + i64(chosen) + n + i64(pointer)


def test_arithmetic_rounds_and_shifts_as_python_does() -> None:
    for a in (-7, -1, 0, 5, 13, 2**40):
        for b in (-3, -1, 1, 4, 9):
            u = 2**64
            want = [
                a + b - a * b,
                a // b,
                a % b,
                int(a / b) if abs(a) < 2**40 else abs(a) // abs(b) * (1 if a * b > 0 else -1),
                None,
                (a & b) | (a ^ ~b),
                None,
                a >> (b & 63),
                (a % u) >> (b & 63),
                min(a, b) + 3 * max(a, b) - abs(a),
                -a,
            ]
            want[4] = a - b * want[3]
            for op, expected in enumerate(want):
                if expected is not None:
                    assert arithmetic(op, a, b) == ctypes.c_int64(expected).value, (op, a, b)
            assert arithmetic(6, a, b) == ctypes.c_int64(a << (b & 63)).value
            assert (
                arithmetic(12, a, b) == ctypes.c_int64((a % u) // (b % u) + (a % u) % (b % u)).value
            )
    assert arithmetic(99, 1, 1) == -1


def test_comparisons() -> None:
    for a in (-2, 0, 3):
        for b in (-2, 0, 3):
            for c in (-1, 5):
                want = [
                    a < b,
                    a <= b,
                    a == b,
                    a != b,
                    a > b,
                    a >= b,
                    a < b < c,
                    a < b < c,
                    a < b or b < c,
                    not a,
                ]
                want += [a % 2**64 < b % 2**64, a % 2**64 <= b % 2**64]
                assert compare(a, b, c) == sum(int(w) << i for i, w in enumerate(want))


def test_control_flow() -> None:
    def reference(n: int) -> int:
        out = 0
        for i in range(n):
            if i == 3:
                continue
            if i == 20:
                break
            out = out * 3 + i
        for j in range(10, 0, -3):
            out += j
        for k in range(2, n):
            out ^= k
        return out

    assert collatz(27) == 111
    assert [loops(n) for n in (0, 1, 5, 30)] == [reference(n) for n in (0, 1, 5, 30)]
    assert dead_code(0) == 11
    assert [member(x) for x in (1, 40, 3, 5)] == [3, 3, 0, 2]
    assert [enum_case(o, 5) for o in (1, 2, 7, 9)] == [6, 4, -5, 0]


def test_short_circuit_does_not_read_null() -> None:
    words = (ctypes.c_int64 * 2)(5, 0)
    assert short_circuit(None) == 1
    assert short_circuit(ctypes.addressof(words)) == 1
    words[0] = 4
    assert short_circuit(ctypes.addressof(words)) == 2
    words[1] = 1
    assert short_circuit(ctypes.addressof(words)) == 0


def test_layout_and_memory() -> None:
    block = ctypes.create_string_buffer(256)
    place = (ctypes.addressof(block) + 15) & ~15
    view = Node(place)
    view.value = 9
    assert Node.size == 32 and Node.offset("half") == 18 and Node.offset("real") == 24
    assert fields(place) == 20 - 3 + 300 + 32
    assert (view.value, view.small, view.half, view.real) == (20, -3, 300, 5.0)
    assert view.next == place + 8
    assert memory(place) == -1 + 255 - 2 + 65534 - 5 + (2**32 - 5) + 5 + 255 + 1


def test_floats() -> None:
    assert floats(1.0, 4.0) == -0.75
    assert floats(5.0, 4.0) == -17.0
    assert floats(float("nan"), 1.0) == 0.25
    assert [root(x) for x in (0.0, 2.0, 1e300)] == [x**0.5 for x in (0.0, 2.0, 1e300)]
    assert root(-1.0) != root(-1.0)
    one = 0x3FF0000000000000
    assert bits(1.0) == one + 0x3F800000 + 1 + 1


def test_atomics() -> None:
    words = (ctypes.c_int64 * 4)()
    assert atomics(ctypes.addressof(words)) == 5100000 + 2000 + 7 + 1


def test_calls_between_units_and_through_pointers() -> None:
    assert apply(add.address, 2, 3) == 5
    before = total.read()
    assert apply_own(1, 2) == 3 + before + 2 + before + 3
    assert total.read() == before + 3


def test_python_objects_and_globals() -> None:
    assert ctypes.cast(python_int(41), ctypes.py_object).value == 41
    assert is_none(id(None)) and not is_none(id(5))
    assert text_length() == len('caf\u00e9 "quoted" \\ \n'.encode())
    assert ctypes.cast(formatted(3), ctypes.py_object).value == "3 and text"
    assert use_table(5) == 25 and table.read(5) == 25
    table.write(3, 5)
    assert table.read(5) == 3


def test_widening() -> None:
    assert mixed(100, 5, None) == 1050 + 105 + 1
    assert mixed(100, -5, None) == 950 + 100 + 1


def test_key_follows_constants() -> None:
    def build(constant: int) -> Unit:
        fresh = Unit("test_key")

        def f() -> i64:
            return constant

        fresh.function(f)
        return fresh

    assert build(1).key() == build(1).key() != build(2).key()
    first, second = build(3), build(4)
    assert first.functions[0]() == 3 and second.functions[0]() == 4
    with pytest.raises(LangError, match="already compiled"):
        first.var("late", i64)


def bad_unknown() -> i64:
    return mystery + 1  # noqa: F821


def bad_fall_off(x: i64) -> i64:
    if x:
        return 1


def bad_narrow(x: i64) -> i32:
    return x


def bad_mix(p: ptr, x: f64) -> i64:
    return p * x


def bad_statement(x: i64) -> None:
    try:
        store_i64(0, 0, x)
    finally:
        pass


def bad_arguments(x: i64) -> i64:
    return add(x)


def bad_field(p: ptr) -> i64:
    return Node(p).missing


def bad_retype(x: i64) -> None:
    y = x
    y = 1.5
    store_f64(0, 0, y)


def bad_object(x: i64) -> i64:
    return len(sys.argv)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (bad_unknown, "unknown name mystery"),
        (bad_fall_off, "may end without return"),
        (bad_narrow, "expected i32, got i64"),
        (bad_mix, "pointers know"),
        (bad_statement, "no Try in the machine language"),
        (bad_arguments, "expected 2 arguments, got 1"),
        (bad_field, "Node has no field missing"),
        (bad_retype, "1.5 is no i64"),
        (bad_object, "unknown name len"),
    ],
)
def test_errors_name_the_line(function: object, message: str) -> None:
    fresh = Unit("bad")
    fresh.function(function)  # type: ignore[arg-type]
    with pytest.raises(LangError, match=message) as caught:
        fresh.ir()
    line = function.__code__.co_firstlineno  # type: ignore[attr-defined]
    reported = int(str(caught.value).split(".py:")[1].split(":")[0])
    assert line <= reported <= line + 4


def test_signatures_need_annotations() -> None:
    def no_note(x) -> i64:  # type: ignore[no-untyped-def]
        return x

    def default(x: i64 = 3) -> i64:
        return x

    for function, message in ((no_note, "needs a type"), (default, "plain positional")):
        with pytest.raises(LangError, match=message):
            Unit("bad").function(function)
    with pytest.raises(LangError, match="inside machine functions"):
        load_i64(0, 0)
    assert lang_types.as_type(None) is None


def test_rounds_that_run_at_once():
    unit = Unit("test_apart")

    @unit.helper
    def scaled(x: f64) -> f64:
        return x * 2.0 + 1.0

    @unit.function
    def scale_all(to: ptr, x: ptr, n: i64, times: i64) -> None:
        for k in range(times):
            for i in apart(n):
                store_f64(to, 8 * i, scaled(load_f64(x, 8 * i)) + load_f64(x, 8 * k))

    vector = re.compile(r"fmul <\d+ x double>")
    assert vector.search(llvm.optimized(unit.ir()))
    for n in (0, 1, 7, 100):
        x, out = np.random.default_rng(n).normal(size=max(n, 3)), np.full(max(n, 3), -1.0)
        scale_all(out.ctypes.data, x.ctypes.data, n, 3)
        np.testing.assert_array_equal(out[:n], (x * 2 + 1 + x[2])[:n])
        np.testing.assert_array_equal(out[n:], -1)


def test_units_that_call_each_other_are_compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is compiled once, and is linked behind those that it calls."""
    inner, middle, outer = Unit("together_inner"), Unit("together_middle"), Unit("together_outer")
    step = inner.var("together_step", i64)

    @inner.function
    def together_one(n: i64) -> i64:
        return n + load_i64(step, 0)

    @middle.function
    def together_two(n: i64) -> i64:
        return together_one(n) * 2

    @outer.function
    def together_three(n: i64) -> i64:
        return together_two(n) + together_one(n)

    asked = []
    codes = llvm.Codes

    def seen(wanted: Any, *options: Any) -> Any:
        asked.append(len(wanted))
        return codes(wanted, *options)

    monkeypatch.setattr(llvm, "Codes", seen)
    assert together_three(5) == 15
    assert asked == [3]
    assert inner.compile()._addresses and middle.compile()._addresses and asked == [3]


def begun_pair() -> tuple[Unit, Unit, Any]:
    """Two new units, of which the second calls the first, and the function of the second."""
    tag = next(tags)
    inner, outer = Unit(f"begun_inner_{tag}"), Unit(f"begun_outer_{tag}")

    @inner.function
    def begun_one(n: i64) -> i64:
        return n + 1

    @outer.function
    def begun_two(n: i64) -> i64:
        return begun_one(n) * 2

    return inner, outer, begun_two


tags = itertools.count()


def test_units_that_are_begun_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for an address waits for all that is under way; to begin again adds nothing."""
    inner, outer, function = begun_pair()
    asked = []
    codes = llvm.Codes

    def seen(wanted: Any, *options: Any) -> Any:
        asked.append(len(wanted))
        return codes(wanted, *options)

    monkeypatch.setattr(llvm, "Codes", seen)
    begin_together([outer])
    begin_together([outer, inner])
    assert asked == [2] and inner._addresses is None and outer._addresses is None
    assert function(5) == 12
    assert asked == [2] and inner._addresses and outer._addresses
    begin_together([outer, inner])
    assert asked == [2] and not unit_module._under_way


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore")  # a peer that was imported before warns of any fork
def test_a_forked_child_compiles_what_its_parent_has_begun() -> None:
    """It has none of the threads that do."""
    _, outer, function = begun_pair()
    begin_together([outer])
    child = os.fork()
    if child == 0:
        os._exit(0 if function(5) == 12 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert function(6) == 14


number, load_number, store_number, ITEM = f64, load_f64, store_f64, 8
template = Unit("test_template")


@template.helper
def halved(x: number) -> number:
    return x * number(0.5)


@template.function
def halve_all(x: ptr, n: i64) -> None:
    for i in apart(n):
        store_number(x, ITEM * i, halved(load_number(x, ITEM * i)))


def test_a_unit_over_other_types():
    """The same functions, whose outside names mean something else, as code of its own."""
    names = {"number": f32, "load_number": load_f32, "store_number": store_f32, "ITEM": 4}
    narrow, meanings = template.over("_narrow", 4, names)
    assert meanings["halve_all"].name == "halve_all_narrow"
    assert meanings["halved"].signature == lang_types.signature(f32, f32)
    assert narrow.key() != template.key()
    assert narrow.key() != template.over("_narrow", 4, {**names, "ITEM": 8})[0].key()
    lanes = target.describe().vector_bytes // 4
    assert re.search(rf"fmul <{min(lanes, 8)} x float>", llvm.optimized(narrow.ir()))
    for function, dtype in ((halve_all, "f8"), (meanings["halve_all"], "f4")):
        x = np.arange(38, dtype=dtype)
        function(x.ctypes.data, 37)
        np.testing.assert_array_equal(x[:37], np.arange(37) / 2)
        assert x[37] == 37


def test_what_is_there_once_is_not_made_again():
    with pytest.raises(LangError, match="globals"):
        unit.over("_again", 8, {})


def test_a_host_takes_the_place_of_other_units() -> None:
    """Also for what helpers of theirs call; the units themselves stay as they are."""
    inner, host = Unit("hosted_inner"), Unit("hosted_host")
    outer = Unit("hosted_outer", host=host)

    @inner.function
    def hosted_step(n: i64) -> i64:
        return n + 1

    @inner.helper
    def hosted_twice(n: i64) -> i64:
        return hosted_step(hosted_step(n))

    def of_host() -> Any:
        @host.function
        def hosted_step(n: i64) -> i64:
            return n + 100

        return hosted_step

    @outer.function
    def hosted_calls(n: i64) -> i64:
        return hosted_twice(n)

    assert (of_host()(0), hosted_step(0), hosted_calls(0)) == (100, 1, 200)


def test_a_function_that_is_written_by_another() -> None:
    """Its text is taken as it is, and functions of other units call it."""
    made, calls = Unit("test_lang_written"), Unit("test_lang_calls_written")

    def doubled_types(p: ptr, x: f64) -> None:
        """Put twice a number into memory."""

    written = made.written(
        "test_lang_doubled",
        doubled_types,
        lambda: "%y = fadd double %x, %x\nstore double %y, ptr %p\nret void",
        {},
    )

    @calls.function
    def test_lang_doubled_next(p: ptr, x: f64) -> None:
        written(p + 8, x)

    assert made.passes == ""
    assert "define void @test_lang_doubled(ptr %p, double %x) nounwind {" in made.ir()
    y = np.zeros(3)
    test_lang_doubled_next(y.ctypes.data, 1.5)
    np.testing.assert_array_equal(y, [0, 3, 0])


def test_files_beside_a_writer_decide_the_key(tmp_path: Any, monkeypatch: Any) -> None:
    made = Unit("test_lang_written_key")

    def nothing(p: ptr) -> None:
        """Nothing."""

    made.written("test_lang_nothing", nothing, lambda: "ret void", {})
    before, beside = made.key(), unit_module._beside

    def with_another(path: str) -> list[str]:
        other = tmp_path / "other.py"
        other.write_text("x = 1")
        return [*beside(path), str(other)] if path == __file__ else beside(path)

    monkeypatch.setattr(unit_module, "_beside", with_another)
    assert made.key() != before


@pytest.mark.parametrize("kind", ["leads", "plain", ""])
def test_helpers_take_the_place_of_their_calls_where_few_passes_run(kind: str) -> None:
    """LLVM is not asked whether that pays; of a unit that leads it does not improve the
    instructions, either."""
    name = f"test_lang_{kind or 'heavy'}"
    made = Unit(name, leads=kind == "leads", plain=kind == "plain")
    compiled: list[tuple[int, str | None]] = []
    compile_one = llvm._compile

    def seen(text: str, opt: int, passes: str | None) -> bytes:
        compiled.append((opt, passes))
        return compile_one(text, opt, passes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm, "_compile", seen)
        patch.setattr(llvm, "_from_disk", lambda key: None)

        @made.helper
        def one_more(x: i64) -> i64:
            return x + 1

        @made.function
        def two_more(x: i64) -> i64:
            return one_more(one_more(x))

        assert ("alwaysinline" in made.ir()) == bool(kind)
        assert "@one_more" not in llvm.optimized(made.ir(), made.passes)
        made.functions[1].name = f"two_more_{kind}"
        assert two_more(40) == 42
    assert compiled == [(0 if kind == "leads" else llvm.OPT, made.passes)]
    assert (made.passes == "O2") == (not kind)
    assert ("instcombine" in made.passes) == (kind == "plain")
    other, _ = made.over("_other", 4, {})
    assert (other.level, other.passes) == (made.level, made.passes)
