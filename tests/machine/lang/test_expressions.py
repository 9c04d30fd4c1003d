"""Expressions of the machine language: types that come together, constants, casts, choices."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import pytest

from calque.machine.lang.unit import (
    NULL,
    LangError,
    Unit,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    layout,
    load_i64,
    ptr,
    store_i64,
)

unit = Unit("test_expressions")
BIG, HALF, NAMED = 1 << 40, 0.5, 7
Node = layout("Node", value=i64, small=i8)


@unit.function
def casts(x: i64, how: i64) -> i64:
    match how:
        case 0:
            return i64(i8(x))
        case 1:
            return i64(i16(x))
        case 2:
            return i64(i32(x))
        case 3:
            return i64(i1(x))
        case 4:
            return i64(f32(x))
        case 5:
            return i64(f64(x) / 2.0)
        case 6:
            return i64(ptr(x))
        case 7:
            return i64(f64(x > 3) * 10.0)
        case _:
            return i64(f32(f64(x) * 0.1) > f32(0.1))


def test_casts_between_all_types() -> None:
    for x in (0, 1, -1, 127, 128, -129, 70000, 2**40 + 3, -(2**33)):
        want = [
            ctypes.c_int8(x).value,
            ctypes.c_int16(x).value,
            ctypes.c_int32(x).value,
            int(x != 0),
            int(ctypes.c_float(x).value),
            int(x / 2),
            x,
            10 * (x > 3),
        ]
        assert [casts(x, how) for how in range(8)] == want


@unit.function
def constants(x: i64) -> i64:
    small: i8 = 255  # the bits of -1
    wide = BIG + NAMED * 2 - (3 // 2) ** 2 % 5
    return wide + small + i64(HALF * 6.0) + ~x + (-x) + (+x) + i64(0.1 + 0.2 == 0.30000000000000004)


def test_constants_are_folded_as_python_does() -> None:
    for x in (0, 5, -9):
        want = BIG + 14 - 1 - 1 + 3 + ~x + 1
        assert constants(x) == want


@unit.function
def widened(a: i8, b: i16, c: i32, d: i64) -> i64:
    sums = i64(a + b) * 1000000 + i64(b + c) * 1000
    return sums + (c - d) + i64(a < d) + i64(c == 5)


def test_integers_widen_with_their_sign() -> None:
    for a, b, c, d in itertools.product((-128, 127), (-300, 5), (-70000, 5), (-1, 2**33)):
        want = (a + b) * 1000000 + (b + c) * 1000 + (c - d) + (a < d) + (c == 5)
        assert widened(a, b, c, d) == want


@unit.function
def pointers(p: ptr, q: ptr, n: i64) -> i64:
    further = p + 8 * n
    back = 16 + further - 16
    both = i64(p < q) + 2 * i64(p == back - 8 * n) + 4 * i64(q is None) + 8 * i64(p is not NULL)
    return both + 100 * (further - p)


def test_pointers_count_bytes_and_compare_without_sign() -> None:
    high = 2**63 + 64
    assert pointers(8, high, 3) == 1 + 2 + 8 + 2400
    assert pointers(8, None, 0) == 2 + 4 + 8


@unit.function
def chosen(a: i64, b: i64, p: ptr) -> i64:
    first = a if a < b else b
    nested = 1 if a > 10 else 2 if a > 5 else load_i64(p, 0) if p else -1
    flag = a > 0 and (b > 0 or a > b)
    wide = i8(3) if b else a
    return first * 1000 + nested * 10 + i64(flag) + wide


def test_choices_evaluate_one_side() -> None:
    """The other one would read from nowhere."""
    word = ctypes.c_int64(77)
    here = ctypes.addressof(word)
    for a, b, p in itertools.product((-4, 0, 3, 7, 20), (-2, 0, 9), (None, here)):
        nested = 1 if a > 10 else 2 if a > 5 else 77 if p else -1
        flag = a > 0 and (b > 0 or a > b)
        assert chosen(a, b, p) == min(a, b) * 1000 + nested * 10 + flag + (3 if b else a)


@unit.function
def builtins(a: i32, b: i32) -> i64:
    found = i64(a in (1, 2)) + i64(b not in (1,))
    return i64(min(a, b)) * 10000 + i64(max(a, b)) * 100 + i64(abs(a - b)) + found


def test_builtins_and_membership() -> None:
    for a, b in itertools.product((-3, 1, 2), (1, 5)):
        want = min(a, b) * 10000 + max(a, b) * 100 + abs(a - b) + (a in (1, 2)) + (b not in (1,))
        assert builtins(a, b) == want


@unit.function
def compared(x: f64, y: f64) -> i64:
    return (
        i64(x < y) + 2 * i64(x <= y) + 4 * i64(x == y) + 8 * i64(x != y) + 16 * i64(not x > y)
        + 32 * i64(x < y < 5.0)
    )  # fmt: skip


def test_comparisons_of_floats_know_nans() -> None:
    nan = float("nan")
    for x, y in itertools.product((1.0, 2.0, nan, 0.0, -0.0), repeat=2):
        want = (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * (x != y) + 16 * (not x > y)
        assert compared(x, y) == want + 32 * (x < y < 5.0)


def bad_unary(p: ptr) -> i64:
    return i64(-p)


def bad_mixed(a: i64, b: f64) -> f64:
    return a + b


def bad_literal(x: i8) -> i64:
    return x + 300


def bad_condition(x: f64) -> i64:
    return 1 if x else 0


def bad_pointers(p: ptr, q: ptr) -> ptr:
    return p + q


def bad_float(x: f64) -> f64:
    return x % 2.0


def bad_keywords(x: i64) -> i64:
    return min(a=x, b=x)


def bad_min(x: i64) -> i64:
    return min(x, x, x)


def bad_in(x: i64) -> i64:
    return i64(x in 5)


def bad_layout(p: ptr) -> i64:
    return NAMED(p).value


def bad_class(x: i64) -> i64:
    return Unit.nothing


def bad_list(x: i64) -> i64:
    return [x][0]


def bad_value(x: i64) -> i64:
    y = store_i64(0, 0, x)
    return y


def bad_cast(x: i64) -> i64:
    return i64(x, x)


def bad_call(x: i64) -> i64:
    return Unit(x)


@pytest.mark.parametrize(
    "function, message",
    [
        (bad_unary, "no USub on ptr"),
        (bad_mixed, "i64 and f64 do not mix; cast one of them"),
        (bad_literal, "300 does not fit into i8"),
        (bad_condition, "f64 is no condition; compare it"),
        (bad_pointers, "pointers know \\+ and - with integers"),
        (bad_float, "no Mod on f64"),
        (bad_keywords, "no keyword arguments"),
        (bad_min, "wrong number of arguments for min"),
        (bad_in, "`in` takes a tuple"),
        (bad_layout, "NAMED is no layout"),
        (bad_class, "Unit.nothing does not exist"),
        (bad_list, "no Subscript in the machine language"),
        (bad_value, "y would have no value"),
        (bad_cast, "a cast takes one value"),
        (bad_call, "Unit cannot be called from a machine function"),
    ],
)
def test_errors(function: Any, message: str) -> None:
    """They name the line, and say what to do where something can be done."""
    fresh = Unit("test_expressions_bad")
    fresh.function(function)
    with pytest.raises(LangError, match=message) as caught:
        fresh.ir()
    first = function.__code__.co_firstlineno
    reported = int(str(caught.value).split(".py:")[1].split(":")[0])
    assert first < reported <= first + 2
