"""A call from its arguments to its result: which entry is taken, when Python is asked."""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any

import pytest

from calque.machine.call.entries import PythonProgram, calls_served
from calque.machine.call.functions import (
    Entry,
    entry_count,
    run_program,
    set_epoch,
)
from calque.machine.call.functions import (
    epoch as current_epoch,
)
from calque.machine.call.layout import (
    CHECKED,
)
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.objects.array_type import (
    ArrayImpl,
    delete_array,
    new_array,
)
from tests.machine.call.helpers import (
    ARRAYS,
    F4,
    Aval,
    add_program,
    array,
    copy_program,
    fixed_epoch,
    jitted,
    kernel,
    values,
)

epoch = fixed_epoch


def test_a_hit_runs_the_program() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    out = f(array(1, 2, 3, 4), array(10, 20, 30, 40))
    assert type(out) is ArrayImpl and out.aval is F4
    assert values(out) == [11, 22, 33, 44]
    assert out._ptr % 64 == 0 and entry_count(f) == 1


def test_odd_calls_go_to_python() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    x = array()
    for args in (
        (),
        (x,),
        (x, x, x),
        (x, 1),
        (None, x),
        (x, new_array(Aval(), 16)),
        (x, [x]),
        tuple(range(300)),
    ):
        assert f(*args) == ("miss", args, {})
    assert f(x, b=x) == ("miss", (x,), {"b": x})
    assert f(x, x, k=1) == ("miss", (x, x), {"k": 1})
    assert f(a=1, b=2) == ("miss", (), {"a": 1, "b": 2})
    assert f.__call__(x) == ("miss", (x,), {})
    assert type(functools.partial(f, x)(x)) is ArrayImpl


def test_keywords() -> None:
    f = jitted(Entry(ARRAYS, ("b",), add_program(), ("out", 0), 7))
    x, y = array(), array(5, 6, 7, 8)
    assert values(f(x, b=y)) == [6, 8, 10, 12]
    assert values(f(x, **{"".join(("b",)): y})) == [6, 8, 10, 12]
    assert f(x, y)[0] == f(x, c=y)[0] == f(a=x, b=y)[0] == "miss"
    g = jitted(Entry(ARRAYS, ("a", "b"), add_program(), ("out", 0), 7))
    assert type(g(a=x, b=y)) is ArrayImpl and g(b=y, a=x)[0] == "miss"


def test_large_frames() -> None:
    count = 500
    leaves = [("array", F4, i) for i in range(count)]
    f = jitted(
        Entry(
            [("list", leaves)],
            (),
            copy_program(count),
            ("list", [("out", i) for i in range(count)]),
            7,
        )
    )
    xs = [array(i, 0, 0, 0) for i in range(count)]
    out = f(xs)
    assert [values(o)[0] for o in out] == list(range(count))
    assert f([*xs[:-1], None])[0] == "miss"


def test_captured_values_must_be_what_they_were() -> None:
    value, other = object(), object()
    table: dict[str, Any] = {"k": value, "l": 1}
    items: list[Any] = [value, 1]
    captured: Any = value

    def closure() -> Any:
        return captured

    cell = closure.__closure__[0]  # type: ignore[index]
    guards = [
        ("item", table, "k", value),
        ("cell", cell, value),
        ("list", items, (value, 1)),
        ("length", table, 2),
    ]
    f = jitted(Entry([], (), copy_program(0), ("const", "hit"), 7, guards))
    assert f() == "hit"

    def changed(do: Any, undo: Any) -> None:
        do()
        assert f()[0] == "miss"
        undo()
        assert f() == "hit"

    changed(lambda: table.update(k=other), lambda: table.update(k=value))
    changed(lambda: table.pop("k"), lambda: table.update(k=value))
    changed(lambda: table.update(more=1), lambda: table.pop("more"))
    changed(lambda: items.append(3), items.pop)
    changed(lambda: items.reverse(), lambda: items.reverse())
    put = functools.partial(setattr, cell, "cell_contents")
    changed(lambda: put(other), lambda: put(value))


def test_an_entry_that_was_used_goes_to_the_front() -> None:
    entries = [
        Entry([("eq", i)], (), copy_program(0), ("const", f"number {i}"), 7) for i in range(5)
    ]
    f = jitted(*entries)
    assert f._entries == entries[::-1]  # the newest first
    assert f(1) == "number 1"
    assert f._entries[0] is entries[1] and set(map(id, f._entries)) == set(map(id, entries))
    assert f(1) == "number 1" and f._entries[0] is entries[1]
    assert f(5)[0] == "miss" and f._entries[0] is entries[1]


def test_only_calls_without_python_are_counted() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    x, before = array(), calls_served()
    for _ in range(10):
        f(x, x)
    assert calls_served() == before + 10
    f(x)
    f(x, x, k=1)
    assert calls_served() == before + 10


def test_programs_without_code_are_refused() -> None:
    class Program:
        def __init__(self, handle: Any) -> None:
            self.handle = handle

    with pytest.raises(TypeError, match="has no handle"):
        run_program(Program(0), [])
    with pytest.raises(TypeError):
        run_program(Program("text"), [])
    with pytest.raises(AttributeError, match="handle"):
        run_program(object(), [])
    x = array()
    delete_array(x)
    with pytest.raises(RuntimeError, match="deleted"):
        run_program(copy_program(1), [x])


def test_what_python_serves_must_be_its_outputs() -> None:
    answers: list[Any] = [["one"], None, ["one", "two"], ("one",), "one"]
    f = jitted(Entry([], (), PythonProgram(0, 1, lambda: answers.pop(0)), ("out", 0), 7))
    assert f() == "one"
    assert f()[0] == "miss"
    for _ in range(3):
        with pytest.raises(TypeError, match="a list of its outputs"):
            f()
    with pytest.raises(IndexError):
        f()


def test_the_epoch_is_a_number_that_fits() -> None:
    for number in (0, 7, CHECKED + 3):
        set_epoch(number)
        assert current_epoch() == number
    with pytest.raises(OverflowError):
        set_epoch(1 << 64)
    assert current_epoch() == CHECKED + 3


def test_run_program() -> None:
    x, y = array(), array(1, 1, 1, 1)
    assert values(run_program(add_program(), [x, y])[0]) == [2, 3, 4, 5]
    assert values(run_program(add_program(), (x, y))[0]) == [2, 3, 4, 5]
    assert run_program(copy_program(0), []) == []
    xs = [array(i, 0, 0, 0) for i in range(500)]
    assert [values(o)[0] for o in run_program(copy_program(500), xs)] == list(range(500))
    program = add_program()
    for arguments in (
        (),
        (program,),
        (program, [x]),
        (program, [x, 1]),
        (program, {1: x, 2: y}),
        (program, [x, y, x]),
    ):
        with pytest.raises(TypeError):
            run_program(*arguments)
    with pytest.raises(AttributeError):
        run_program(None, [x])


def test_arguments_live_while_the_gil_is_released() -> None:
    builder = ProgramBuilder(2, [(F4, 16)])
    builder.call(kernel("callpath_add4"), [builder.input(0), builder.input(1), builder.output(0)])
    leaves = ("list", [("array", F4, 0), ("array", F4, 1)])
    f = jitted(Entry([leaves], (), builder.build(release_gil=True), ("out", 0), 7))
    shared = [array(), array()]
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            shared[0], shared[1] = array(), array()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(3000):
            assert values(f(shared)) == [2, 4, 6, 8]
    finally:
        stop.set()
        thread.join()
    counts = [sys.getrefcount(shared[0]), sys.getrefcount(array())]
    assert counts[0] == counts[1] + 1
