"""The call path that this interpreter has: machine code, or plain Python."""

from __future__ import annotations

import importlib.util
import inspect
from typing import Any

import pytest

from calque.machine.call import entries as callpath_entries
from calque.machine.call import functions
from calque.machine.call import plain as calls
from calque.machine.call.layout import (
    CHECKED,
    is_fraction,
)
from calque.machine.objects import pyapi

DECIDED = {"CHECKED", "LEARNS", "THREADS", "is_fraction"}  # the same for both


def loaded() -> Any:
    """The module as it would be on the interpreter that `pyapi` speaks of now."""
    spec = importlib.util.spec_from_file_location("tested_functions", functions.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_follows_what_is_known_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    for known, home in ((True, callpath_entries), (False, calls)):
        monkeypatch.setattr(pyapi, "IS_KNOWN", known)
        module = loaded()
        assert known is module.LEARNS
        for name in set(module.__all__) - DECIDED:
            assert getattr(module, name) is getattr(home, name), name
        assert module.is_fraction is is_fraction and module.CHECKED == CHECKED


def test_both_are_called_in_the_same_way() -> None:
    for name in ("Entry", "add_entry", "clear_entries", "drop_entries", "entry_count", "epoch"):
        first, second = (
            inspect.signature(getattr(home, name)).parameters for home in (callpath_entries, calls)
        )
        assert [(p.name, p.kind, p.default) for p in first.values()] == [
            (p.name, p.kind, p.default) for p in second.values()
        ]


def test_both_take_a_method_and_a_program_of_python() -> None:
    for home in (callpath_entries, calls):
        function = home.Jitted(lambda args, kwargs: (args, kwargs))

        class Holder:
            method = function

        holder = Holder()
        assert holder.method(1, k=2) == ((holder, 1), {"k": 2})
        program = home.PythonProgram(2, 1, print)
        assert (program.n_in, program.n_out, program.run) == (2, 1, print)
