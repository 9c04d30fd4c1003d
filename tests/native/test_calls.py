"""Calls of compiled programs from Python."""

import numpy as np
import pytest

import calque
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
