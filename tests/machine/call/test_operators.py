"""Operators: their table of entries, and entries of programs that Python runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calque.machine.call.functions import (
    Entry,
    Jitted,
    OpFunction,
    PythonProgram,
    add_entry,
    calls_served,
    entry_count,
)
from calque.machine.objects.array_type import wrap_numpy
from calque.machine.objects.pending import pending_arrays
from tests.machine.call.helpers import (
    F4,
    Aval,
    add_program,
    array,
    fixed_epoch,
    missing,
    values,
)

epoch = fixed_epoch


def test_the_table_finds_an_entry_among_many() -> None:
    f = OpFunction(missing)
    avals = [Aval() for _ in range(40)]
    for aval in avals:
        spec = [("array", aval, 0), ("array", F4, 1)]
        add_entry(f, Entry(spec, (), add_program(), ("out", 0), 7))
    assert entry_count(f) == len(avals)
    y = array(1.0, 2.0, 3.0, 4.0)
    for aval in avals:
        x = wrap_numpy(aval, np.full(4, 2.0, np.float32))
        np.testing.assert_array_equal(values(f(x, y)), [3, 4, 5, 6])


class Served:
    """A function that Python runs for an entry: it notes what it was given."""

    def __init__(self, result: Any) -> None:
        self.result, self.given = result, []  # type: ignore[var-annotated]

    def __call__(self, *args: Any) -> Any:
        self.given.append(args)
        return self.result


def test_python_serves_what_machine_code_has_matched() -> None:
    aval, place = object(), object()
    run = Served(None)
    f = Jitted(lambda args, kwargs: "asked")
    spec = [("elsewhere", aval, None, 1), ("tuple", [("elsewhere", aval, place, 0), ("none",)])]
    out = ("dict", {"a": ("out", 1), "b": ("out", 0)})
    add_entry(f, Entry(spec, (), PythonProgram(2, 2, run), out, 7))
    (x,) = pending_arrays((aval,), [np.ones(1)], (None,))
    (y,) = pending_arrays((aval,), [np.ones(1)], (place,))
    assert f(x, (y, None)) == "asked"  # it gave None: it cannot
    assert run.given == [(y, x)]
    run.result, before = [x, y], calls_served()
    assert f(x, (y, None)) == {"a": y, "b": x} and calls_served() == before + 1
    assert f(y, (y, None)) == "asked" and f(x, (x, None)) == "asked"  # placed otherwise
    here = wrap_numpy(aval, np.ones(1))
    assert f(here, (y, None)) == {"a": y, "b": x}  # placed nowhere, and not pending
    run.result = [x]
    with pytest.raises(TypeError, match="a list of its outputs"):
        f(x, (y, None))


def test_errors_of_what_serves_reach_the_caller() -> None:
    def fails(x: Any) -> Any:
        raise ZeroDivisionError("there")

    f = Jitted(missing)
    add_entry(f, Entry([("pyfloat", "f4", 0)], (), PythonProgram(1, 1, fails), ("out", 0), 7))
    with pytest.raises(ZeroDivisionError, match="there"):
        f(1.5)


def test_numbers_and_arrays_of_numpy_come_as_they_are() -> None:
    run, f = Served([1, 2]), Jitted(missing)
    spec = [("pyint", "i4", 1), ("ndarray", "f4", (2,), 0)]
    entry = Entry(spec, (), PythonProgram(2, 2, run), ("tuple", [("out", 0), ("out", 1)]), 7)
    add_entry(f, entry)
    x = np.ones(2, "f4")
    assert f(7, x) == (1, 2)
    assert run.given[0][0] is x and run.given[0][1] == 7
