"""The callables of the call path as objects: operators, binding, collection, failure, reference
counts."""

from __future__ import annotations

import functools
import gc
import inspect
import resource
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from calque.machine.call import entries as callpath_entries
from calque.machine.call.functions import (
    Entry,
    Jitted,
    OpFunction,
    add_entry,
    clear_entries,
    entry_count,
    run_program,
)
from calque.machine.objects.array_type import ArrayImpl, new_array
from tests.machine.call.helpers import (
    ARRAYS,
    F4,
    F32,
    Aval,
    add_program,
    array,
    copy_program,
    failing_program,
    fixed_epoch,
    jitted,
    missing,
    values,
)

epoch = fixed_epoch


# ---- operators ----


def operator(*specs: Any) -> Any:
    function = OpFunction(missing)
    for spec, result in specs:
        add_entry(function, Entry(spec, (), copy_program(0), ("const", result), 7))
    return function


def test_operators_dispatch_on_types_and_avals() -> None:
    other = Aval()
    f = operator(
        ([("array", F4, None), ("array", F4, None)], "FF"),
        ([("array", F4, None), ("array", other, None)], "FO"),
        ([("array", F4, None), ("pyfloat", np.float32, None)], "Ff"),
        ([("array", F4, None), ("pyint", np.int32, None)], "Fi"),
        ([("array", F4, None), ("pybool", np.bool_, None)], "Fb"),
        ([("array", F4, None), ("pycomplex", np.complex64, None)], "Fc"),
        ([("array", F4, None), ("ndarray", F32, (2,), None)], "Fn"),
        ([("array", F4, None), ("none",)], "F0"),
        ([("array", F4, None)], "F"),
        ([("array", F4, None), ("eq", 3), ("eq", "s")], "F3s"),
        ([("array", F4, None), ("eq", 4), ("eq", "s")], "F4s"),
    )
    x, o = array(), new_array(other, 4)
    cases = [
        ((x, x), "FF"),
        ((x, o), "FO"),
        ((x, 1.0), "Ff"),
        ((x, 1), "Fi"),
        ((x, True), "Fb"),
        ((x, 1j), "Fc"),
    ]
    cases += [
        ((x, np.zeros(2, np.float32)), "Fn"),
        ((x, None), "F0"),
        ((x,), "F"),
        ((x, 3, "s"), "F3s"),
        ((x, 4, "s"), "F4s"),
    ]
    for args, want in cases:
        assert f(*args) == want
    for args in (
        (o, x),
        (),
        (x, "s"),
        (x, 2**40),
        (x, np.zeros(3, np.float32)),
        (x, 5, "s"),
        (1, x),
    ):
        assert f(*args) == ("miss", args, {})
    assert f(x, k=1) == ("miss", (x,), {"k": 1})
    clear_entries(f)
    assert entry_count(f) == 0 and f(x)[0] == "miss"
    add_entry(f, Entry([("array", F4, None)], (), copy_program(0), ("const", 1), 7))
    assert f(x) == 1


def test_operators_take_many_entries_then_start_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callpath_entries, "OPERATOR_LIMIT", 100)
    avals = [Aval() for _ in range(250)]
    f = OpFunction(missing)
    for i, aval in enumerate(avals):
        add_entry(f, Entry([("array", aval, None)], (), copy_program(0), ("const", i), 7))
    assert entry_count(f) == 50
    assert [f(new_array(a, 1)) for a in avals[200:]] == list(range(200, 250))
    assert f(new_array(avals[0], 1))[0] == "miss"


def test_operators_as_methods_of_array(monkeypatch: pytest.MonkeyPatch) -> None:
    add = OpFunction(lambda args, kwargs: NotImplemented)
    add_entry(add, Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    monkeypatch.setattr(ArrayImpl, "__add__", add, raising=False)
    x = array()
    assert values(x + x) == [2, 4, 6, 8]  # type: ignore[operator]
    with pytest.raises(TypeError):
        x + "text"  # type: ignore[operator]


# ---- objects like any other ----


def test_attributes_wraps_and_binding() -> None:
    def original(self: Any, x: Any) -> Any:
        """The doc."""

    f = functools.wraps(original)(Jitted(missing))
    assert f.__name__ == "original" and f.__doc__ == "The doc." and f.__wrapped__ is original
    assert list(inspect.signature(f).parameters) == ["self", "x"]
    f.extra = 3
    assert f.__dict__["extra"] == 3

    class Holder:
        method = f
        static = staticmethod(f)

    holder = Holder()
    assert holder.method(1) == ("miss", (holder, 1), {})
    assert holder.method(1, k=2) == ("miss", (holder, 1), {"k": 2})
    bound = holder.method
    assert bound(5) == ("miss", (holder, 5), {}) and bound.__self__ is holder
    assert Holder.method is f and Holder.static(1) == ("miss", (1,), {})
    reference = weakref.ref(f)
    assert reference() is f and callable(f) and repr(f)


def test_a_callable_is_made_of_one_function() -> None:
    for make in (Jitted, OpFunction):
        for args in ((), (1,), (missing, missing)):
            with pytest.raises(TypeError):
                make(*args)
        with pytest.raises(TypeError):
            make(miss=missing)


def test_cycles_are_collected() -> None:
    class Witness:
        pass

    for kind in (Jitted, OpFunction):
        witness = Witness()
        f = kind(lambda args, kwargs, w=witness: None)
        f.me = f
        f.closure = lambda f=f: f
        add_entry(f, Entry([("is", witness)], (), copy_program(0), ("const", f), 7))
        assert f(witness) is f
        gone = weakref.ref(witness)
        del witness, f
        gc.collect()
        assert gone() is None


def test_miss_may_do_anything() -> None:
    def miss(args: Any, kwargs: Any) -> Any:
        clear_entries(f)
        add_entry(f, Entry([("pyint", np.int32, None)], (), copy_program(0), ("const", "added"), 7))
        if args[0] == "raise":
            raise KeyError("from miss")
        return "missed"

    f = Jitted(miss)
    assert f("x") == "missed" and f(3) == "added"
    with pytest.raises(KeyError, match="from miss"):
        f("raise")


# ---- failure and reference counts ----


def test_failing_programs_raise_and_leak_nothing() -> None:
    f = jitted(
        Entry(
            [("array", F4, 0)],
            (),
            failing_program(ValueError),
            ("tuple", [("out", 0), ("out", 1)]),
            7,
        )
    )
    x = array()
    counts = [sys.getrefcount(F4), sys.getrefcount(x), sys.getrefcount(ArrayImpl)]
    for _ in range(50):
        with pytest.raises(ValueError, match="on purpose"):
            f(x)
        with pytest.raises(ValueError, match="on purpose"):
            run_program(failing_program(ValueError), [x])
    assert [sys.getrefcount(F4), sys.getrefcount(x), sys.getrefcount(ArrayImpl)] == counts


def test_reference_counts_of_everything() -> None:
    marker, constant, key = object(), object(), "key" + str(len(sys.argv))
    program = copy_program(2)
    x = array()
    spec = [
        ("array", F4, 0),
        ("tuple", [("is", marker), ("array", F4, 1)]),
        ("dict", {key: ("none",)}),
    ]
    result = (
        "tuple",
        [
            ("const", constant),
            ("dict", {key: ("out", 0)}),
            ("input", 1),
            ("out", 0),
            ("out", 1),
            ("none",),
        ],
    )
    f = jitted(Entry(spec, (), program, result, 7))
    watched = [marker, constant, key, x, F4, f, program, ArrayImpl, f._entries[0], tuple, dict]
    argument, table = (marker, x), {key: None}
    f(x, argument, table)
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(100):
        f(x, argument, table)
        f(x, argument, {})
        f(x, (marker, None), table)
        f(x, c=table)
        run_program(program, (x, x))
    assert [sys.getrefcount(w) for w in watched] == before


def test_entries_let_go_of_what_they_held() -> None:
    class Thing:
        pass

    things = [Thing() for _ in range(4)]
    gone = [weakref.ref(t) for t in things]
    spec = [("array", things[0], None), ("is", things[1]), ("dict", {things[2]: ("none",)})]
    f = jitted(Entry(spec, (), copy_program(0), ("dict", {things[3]: ("none",)}), 7))
    del things, spec
    assert all(g() is not None for g in gone)
    del f
    assert all(g() is None for g in gone)


def test_a_million_calls_keep_memory() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("list", [("out", 0), ("input", 1)]), 7))
    x = array()
    for _ in range(10_000):
        f(x, x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1_000_000):
        f(x, x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096
