"""Names that code loads and stores, beside what the disassembler of Python says."""

import ast
import dis
import inspect
import types
from collections.abc import Iterator
from typing import Any

import calque
from calque.transforms.jit import bytecode
from calque.transforms.jit.bytecode import assigned_outside, steps_of

MODULES = (ast, dis, inspect, types)
UNSEEN = ("COPY", "PRECALL", "CACHE", "PUSH_NULL", "EXTENDED_ARG", "NOP", "RESUME", "NOT_TAKEN")


def disassembled(code: types.CodeType) -> list[tuple[str, Any]]:
    """The steps as the disassembler tells them."""
    cells = {*code.co_cellvars, *code.co_freevars}
    steps: list[tuple[str, Any]] = []
    for i in dis.get_instructions(code):
        if i.opname in UNSEEN:
            continue
        kind = bytecode.OPERATIONS.get(i.opname, "")
        if i.opname.startswith("LOAD_FAST"):
            names = i.argval if isinstance(i.argval, tuple) else (i.argval,)
            steps += [("", None) if n in cells else ("LOAD", n) for n in names]
        elif i.opname == "STORE_FAST_LOAD_FAST":
            name = i.argval[1]
            steps += [("", None), ("", None) if name in cells else ("LOAD", name)]
        else:
            steps.append((kind, i.argval if kind else None))
    return steps


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from codes_in(c)


def test_steps_are_what_the_disassembler_says():
    count = 0
    for module in MODULES:
        for code in codes_in(compile(inspect.getsource(module), module.__name__, "exec")):
            assert list(steps_of(code)) == disassembled(code), code
            count += 1
    assert count > 300


def test_steps_of_code_with_more_names_than_a_byte_counts():
    lines = [f"    total = total + name_{k}.field_{k}" for k in range(700)]
    source = "def f(total, name_3):\n" + "\n".join(lines) + "\n    return lambda: total"
    for code in codes_in(compile(source, "many", "exec")):
        assert list(steps_of(code)) == disassembled(code)


def test_names_that_code_assigns_outside_of_itself():
    held, other = {}, []

    def items(x):
        held["a"]["b"] += x

    def attributes(x):
        calque.no_such_name = x

    def inside(x):
        def f(held):
            held["a"] = x

        own = {}
        own["a"] = f
        return own, held, other

    assert assigned_outside(items.__code__) == {"held"}
    assert assigned_outside(attributes.__code__) == {"calque"}
    assert assigned_outside(inside.__code__) == set()


def test_code_that_assigns_nothing_outside_is_not_disassembled(monkeypatch):
    def refused(code):
        raise AssertionError(code)

    monkeypatch.setattr(bytecode, "_assigned", refused)
    factor = 3.0

    def f(x):
        parts = [x * factor for _ in range(3)]
        total = sum(parts)
        return [total, *parts]

    assert assigned_outside(f.__code__) == frozenset()
