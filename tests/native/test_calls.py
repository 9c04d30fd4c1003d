"""Calls of compiled programs from Python."""

import numpy as np
import pytest

import calque
from calque.machine import huge_pages, memory
from calque.native import backend
from calque.native.calls import call_program, memory_of


def test_arguments_must_be_what_the_program_was_compiled_for() -> None:
    x = np.arange(6, dtype="f")
    made = backend.compile(calque.make_jaxpr(lambda x: x * 2 + 1)(x))
    np.testing.assert_array_equal(call_program(made, [x])[0], x * 2 + 1)
    with pytest.raises(TypeError, match=r"compiled for f32\[6\] was called with f32\[5\]"):
        call_program(made, [x[:5]])


def test_results_that_take_memory_of_arguments_are_counted_once() -> None:
    x = np.arange(6, dtype="f")
    made = backend.compile(calque.make_jaxpr(lambda x: (x * 2, x.sum()))(x))
    plain, sharing = memory_of(made, []), memory_of(made, [0])
    assert plain.alias_size_in_bytes == 0 and sharing.alias_size_in_bytes == 24
    assert plain.output_size_in_bytes == 28


def test_the_first_run_of_a_program_says_that_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []

    class Noted(huge_pages.FirstRun):
        def __enter__(self) -> None:
            runs.append(1)
            super().__enter__()

    monkeypatch.setattr(huge_pages, "FirstRun", Noted)
    f = calque.jit(lambda x, y: x @ y + 1)
    x = np.ones((3, 3), "f")
    for _ in range(3):
        np.testing.assert_array_equal(f(x, x), x @ x + 1)
    assert runs == [1]
    assert memory._first_runs.read(0) == 0
