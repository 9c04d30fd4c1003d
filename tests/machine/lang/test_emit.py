"""Statements of the machine language, and the module around its functions."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from calque.machine.code import llvm, target
from calque.machine.lang.emit import ModuleParts, emit_unit
from calque.machine.lang.types import I32, I64
from calque.machine.lang.unit import (
    LangError,
    Unit,
    apart,
    f64,
    i32,
    i64,
    layout,
    load_f32,
    load_f64,
    load_i64,
    ptr,
    signature,
    store_f32,
    store_f64,
    store_i64,
)

base, unit = Unit("test_emit_base"), Unit("test_emit")
shared = base.var("shared", i64, 3)
strlen = base.extern("strlen", i64, ptr)
Pair = layout("Pair", a=i64, b=i32)


@base.helper
def inner(x: i64) -> i64:
    return x * 3 + load_i64(shared, 8)


@base.function
def outer(x: i64) -> i64:
    return inner(x) + 1


@unit.function
def both(x: i64) -> i64:
    return inner(x) + outer(x) + strlen("four") + strlen("four") + strlen("")


def test_helpers_are_copied_and_functions_declared() -> None:
    """Of other units; their globals are external, equal strings stand there once."""
    text = emit_unit(unit)
    assert "define internal i64 @inner(" in text and "declare i64 @outer(i64)" in text
    assert "define i64 @both(" in text and "@shared = external global i64" in text
    assert len(re.findall(r"@\.str\.\d+ = private", text)) == 2
    assert text.count("declare i64 @strlen(ptr)") == 1
    own = emit_unit(base)
    assert "@shared = global [3 x i64] zeroinitializer, align 16" in own
    shared.write(5, 1)
    assert both(2) == (6 + 5) + (6 + 5 + 1) + 8


def test_one_name_has_one_signature() -> None:
    parts = ModuleParts()
    parts.declare("f", signature(I64, I64))
    parts.declare("f", signature(I64, I64))
    with pytest.raises(LangError, match="f is declared with two signatures"):
        parts.declare("f", signature(I64, I32))
    parts.declare("g", signature(None, I64, vararg=True))
    assert parts.text().splitlines() == ["declare i64 @f(i64)", "declare void @g(i64, ...)"]


@unit.function
def assigned(p: ptr, n: i64) -> i64:
    a, b = n, n + 1
    a, b = b, a - b
    Pair(p).a = a
    Pair(p).a -= 10
    Pair(p).b = i32(n)
    Pair(p).b += i32(1)
    c: i64 = Pair(p).b
    c <<= 2
    c |= 1
    return Pair(p).a * 100 + b + c


def test_assignments() -> None:
    """Values first, then the names; fields as well as variables."""
    block = ctypes.create_string_buffer(16)
    for n in (-5, 0, 7):
        want = (n + 1 - 10) * 100 - 1 + (((n + 1) << 2) | 1)
        assert assigned(ctypes.addressof(block), n) == want


@unit.function
def loops(n: i64, step: i64) -> i64:
    total = 0
    for i in range(n):
        for j in range(i, 0, -2):
            if j == 4:
                break
            total += i * j
        if i == step:
            continue
        total += 1
    k = 0
    while True:
        k += 1
        if k * k > n:
            break
    while k > 0:
        k -= 1
        if k == 2:
            continue
        total += k
    return total


def reference(n: int, step: int) -> int:
    total = 0
    for i in range(n):
        for j in range(i, 0, -2):
            if j == 4:
                break
            total += i * j
        if i == step:
            continue
        total += 1
    k = 0
    while True:
        k += 1
        if k * k > n:
            break
    while k > 0:
        k -= 1
        if k == 2:
            continue
        total += k
    return total


def test_loops_in_loops() -> None:
    for n in (0, 1, 9, 30):
        for step in (-1, 3):
            assert loops(n, step) == reference(n, step)


@unit.function
def switched(n: i32) -> i64:
    out = 0
    match n:
        case 1 | 2:
            out = 10
        case -5:
            return 20
        case 7:
            pass
        case _:
            out = 30
    match n:
        case 1:
            out += 1
    return out


def test_switches_fall_through_nothing() -> None:
    assert [switched(n) for n in (1, 2, -5, 7, 99)] == [11, 10, 20, 0, 30]


@unit.function
def returns(n: i64) -> i64:
    if n > 0:
        return 1
    else:
        return 2
    return 3  # never reached, and no code


def test_dead_code_is_none() -> None:
    assert [returns(n) for n in (1, -1)] == [1, 2]
    assert emit_unit(unit).count("ret i64 3\n") == 0


def test_rounds_apart_are_marked() -> None:
    """Each access of the loop, and of the helpers put into it, belongs to its group."""
    fresh = Unit("test_emit_apart")

    @fresh.helper
    def twice(x: f64) -> f64:
        return x * 2.0

    @fresh.function
    def scale(p: ptr, n: i64) -> None:
        for i in apart(n):
            store_f64(p, 8 * i, twice(load_f64(p, 8 * i)))

    text = fresh.ir()
    assert text.count("!llvm.access.group") >= 3 and "llvm.loop.parallel_accesses" in text
    assert "alwaysinline" in text
    x = (ctypes.c_double * 37)(*range(37))
    scale(ctypes.addressof(x), 37)
    assert list(x) == [2.0 * k for k in range(37)]


def test_a_constant_number_of_rounds_is_vectors_alone() -> None:
    """Neither one round behind the other, nor a loop for what is left."""
    fresh = Unit("test_emit_known", item=4)

    @fresh.function
    def scale_eight(p: ptr) -> None:
        for i in apart(8):
            store_f32(p, 4 * i, load_f32(p, 4 * i) * 2.0)

    assert "llvm.loop.unroll.disable" in fresh.ir()
    text = llvm.optimized(fresh.ir())
    lanes = min(target.describe().vector_bytes, 32) // 4
    assert f"fmul <{lanes} x float>" in text and "fmul float" not in text
    x = np.arange(9, dtype="f4")
    scale_eight(x.ctypes.data)
    assert x.tolist() == [2.0 * k for k in range(8)] + [8.0]


def test_a_function_may_stay_out_of_its_callers() -> None:
    fresh = Unit("test_emit_called")

    @fresh.called
    def doubled(n: i64) -> i64:
        return n * 2

    @fresh.function
    def quadruple(n: i64) -> i64:
        return doubled(doubled(n))

    assert llvm.optimized(fresh.ir()).count("call i64 @doubled") == 2
    copied, _ = fresh.over("_again", 8, {})
    assert copied.ir().count("noinline") == 1
    assert quadruple(5) == 20


def bad_else(n: i64) -> None:
    while n > 0:
        n -= 1
    else:
        n = 1


def bad_iteration(n: i64) -> None:
    for _ in (1, 2):
        n += 1


def bad_step(n: i64) -> None:
    for _ in range(0, 10, n):
        n += 1


def bad_tuple(n: i64) -> None:
    a, b = n, n, n  # type: ignore[misc]  # noqa: F841


def bad_targets(n: i64) -> None:
    a = b = n  # noqa: F841


def bad_unused(n: i64) -> None:
    n + 1


def bad_twice(n: i64) -> i64:
    match n:
        case 1:
            return 1
        case 1 | 2:
            return 2
    return 3


def bad_guard(n: i64) -> i64:
    match n:
        case 1 if n > 0:
            return 1
    return 3


def bad_capture(n: i64) -> i64:
    match n:
        case other:
            return other
    return 3


def bad_return(n: i64) -> None:
    return n  # type: ignore[return-value]


def bad_nothing(n: i64) -> i64:
    return  # type: ignore[return-value]


def bad_annotation(n: i64) -> None:
    x: int = n  # noqa: F841


def bad_match(x: f64) -> i64:
    match x:
        case 1:
            return 1
    return 2


@pytest.mark.parametrize(
    "function, message",
    [
        (bad_else, "no else on loops"),
        (bad_iteration, "loops are `for name in range"),
        (bad_step, "step of a range must be a constant other than 0"),
        (bad_tuple, "as many values as names"),
        (bad_targets, "one target per assignment"),
        (bad_unused, "whose value nobody uses"),
        (bad_twice, "case 1 stands twice"),
        (bad_guard, "no guards on cases"),
        (bad_capture, "a case is an integer constant"),
        (bad_return, "bad_return returns None"),
        (bad_nothing, "bad_nothing returns i64"),
        (bad_annotation, "expected `name: type = value`"),
        (bad_match, "match works on integers"),
    ],
)
def test_errors(function: Any, message: str) -> None:
    fresh = Unit("test_emit_bad")
    fresh.function(function)
    with pytest.raises(LangError, match=message):
        fresh.ir()


def test_stores_of_exported_globals_are_seen() -> None:
    fresh = Unit("test_emit_seen")

    @fresh.function
    def put(x: i64) -> None:
        store_i64(shared, 16, x)

    put(123)
    assert shared.read(2) == 123
