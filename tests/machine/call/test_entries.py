"""Entries for arguments of any size: a Python function chooses the program, machine code does the
rest."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from calque.machine.call import entries as callpath_entries
from calque.machine.call.entries import drop_entries
from calque.machine.call.functions import (
    Entry,
    Jitted,
    OpFunction,
    add_entry,
    clear_entries,
    entry_count,
    set_epoch,
)
from calque.machine.call.spec import PythonProgram
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.objects.array_type import ArrayImpl, delete_array, new_array, wrap_numpy
from tests.machine.call.helpers import (
    ARRAYS,
    F4,
    F32,
    add_program,
    array,
    copy_program,
    fixed_epoch,
    jitted,
    missing,
    values,
)

epoch = fixed_epoch


class Aval:
    """An aval with a kind, as those of `core` have one."""

    __slots__ = ("kind", "size")

    def __init__(self, kind: Any, size: int) -> None:
        self.kind, self.size = kind, size


VECTOR, OTHER = ("vector",), ("other",)


def vector(count: int, kind: Any = VECTOR) -> Any:
    return wrap_numpy(Aval(kind, count), np.arange(count, dtype=np.float32))


def copying(aval: Any) -> Any:
    builder = ProgramBuilder(1, [(aval, 4 * aval.size)])
    builder.copy(builder.output(0), builder.input(0), 4 * aval.size)
    return builder.build()


def numbers(x: Any) -> list[float]:
    return list((ctypes.c_float * x.aval.size).from_address(x._ptr))


class Chooser:
    """Counts what it is asked."""

    def __init__(self, most: int = 100) -> None:
        self.asked: list[Any] = []
        self.most = most

    def __call__(self, *given: Any) -> Any:
        self.asked.append(given)
        return copying(given[0]) if given[0].size <= self.most else None


@pytest.mark.parametrize("make", [Jitted, OpFunction])
def test_any_size_of_a_kind(make: Any) -> None:
    f, choose = make(missing), Chooser()
    template = copying(Aval(VECTOR, 3))
    add_entry(f, Entry([("kind", Aval(VECTOR, 3), 0)], (), template, ("out", 0), 7, choose=choose))
    for n in (1, 5, 5, 60):
        x = vector(n)
        out = f(x)
        assert numbers(out) == list(range(n)) and out.aval is x.aval
    assert [aval.size for (aval,) in choose.asked] == [1, 5, 5, 60]
    assert f(vector(101))[0] == "miss" and len(choose.asked) == 5  # it gave None
    assert f(vector(4, OTHER))[0] == "miss" and f(array())[0] == "miss" and f(1.0)[0] == "miss"
    placed = vector(4)
    placed._extra = "elsewhere"
    assert f(placed)[0] == "miss" and len(choose.asked) == 5


@pytest.mark.parametrize("make", [Jitted, OpFunction])
def test_exact_entries_come_first(make: Any) -> None:
    f, choose = make(missing), Chooser()
    x, y = vector(4), vector(5)
    add_entry(f, Entry([("kind", x.aval, 0)], (), copying(x.aval), ("out", 0), 7, choose=choose))
    add_entry(f, Entry([("array", x.aval, 0)], (), copying(x.aval), ("tuple", [("out", 0)]), 7))
    add_entry(f, Entry([("array", y.aval, None)], (), copy_program(0), ("const", "five"), 7))
    for _ in range(3):
        assert numbers(f(x)[0]) == [0, 1, 2, 3] and f(y) == "five"
    assert not choose.asked
    assert numbers(f(vector(6))) == list(range(6)) and len(choose.asked) == 1
    clear_entries(f)
    assert entry_count(f) == 0 and f(x)[0] == "miss" and f(vector(6))[0] == "miss"


@pytest.mark.parametrize("make", [Jitted, OpFunction])
def test_of_many_the_oldest_go(make: Any) -> None:
    f, limit = make(missing), callpath_entries.CHOOSING_LIMIT
    kinds = [(i,) for i in range(limit + 10)]
    for kind in kinds:
        x = vector(3, kind)
        add_entry(
            f, Entry([("kind", x.aval, 0)], (), copying(x.aval), ("out", 0), 7, choose=Chooser())
        )
    for i in range(300):
        add_entry(f, Entry([("eq", i)], (), copy_program(0), ("const", i), 7))
    assert f(vector(3, kinds[9]))[0] == "miss" and numbers(f(vector(3, kinds[10]))) == [0, 1, 2]
    assert numbers(f(vector(4, kinds[-1]))) == [0, 1, 2, 3] and f(299) == 299
    assert entry_count(f) == (callpath_entries.JITTED_LIMIT if make is Jitted else limit + 300)


def test_arguments_of_the_choice_are_in_the_order_of_the_inputs() -> None:
    f, given = Jitted(missing), []

    def choose(*avals: Any) -> Any:
        given.append(avals)
        return template

    builder = ProgramBuilder(3, [(F4, 16)])
    builder.copy(builder.output(0), builder.input(2), 16)
    template = builder.build()
    a, b, c = vector(4), vector(4), np.arange(4, dtype=np.float32) + 1
    spec = [
        ("list", [("kind", a.aval, 1), ("pyfloat", F32, 3)]),
        ("dict", {"c": ("ndarray_kind", F32, 1, 2)}),
    ]
    spec.append(("kind", b.aval, 0))
    f = Jitted(missing)
    add_entry(
        f, Entry(spec, ("b",), template, ("tuple", [("out", 0), ("input", 3)]), 7, choose=choose)
    )
    out, number = f([a, 2.5], {"c": c}, b=b)
    assert values(out) == [1, 2, 3, 4] and number == 2.5
    assert given[0][0] is b.aval and given[0][1] is a.aval and given[0][2] is c
    assert (
        f([a, 2.5], {"c": c[::2]}, b=b)[0] == "miss"
        and f([a, 2.5], {"c": c.reshape(2, 2)}, b=b)[0] == "miss"
    )
    assert f([a, 2.5], {"c": c.astype("f8")}, b=b)[0] == "miss" and len(given) == 1


def test_captured_values_are_compared_first() -> None:
    f, choose, table = Jitted(missing), Chooser(), {"k": "old"}
    x = vector(4)
    guards = [("item", table, "k", table["k"])]
    add_entry(f, Entry([("kind", x.aval, 0)], (), copying(x.aval), ("out", 0), 7, guards, choose))
    assert numbers(f(x)) == [0, 1, 2, 3]
    table["k"] = "new"
    assert f(x)[0] == "miss" and len(choose.asked) == 1


def test_what_the_choice_raises_and_what_it_does_to_the_arguments() -> None:
    x = vector(4)
    fails = Jitted(missing)
    add_entry(
        fails,
        Entry([("kind", x.aval, 0)], (), copying(x.aval), ("out", 0), 7, choose=lambda a: 1 / 0),
    )
    with pytest.raises(ZeroDivisionError):
        fails(x)
    wrong = Jitted(missing)
    add_entry(
        wrong, Entry([("kind", x.aval, 0)], (), copying(x.aval), ("out", 0), 7, choose=lambda a: a)
    )
    with pytest.raises(AttributeError, match="handle"):
        wrong(x)
    mine = new_array(Aval(VECTOR, 4), 16)
    np.ctypeslib.as_array((ctypes.c_float * 4).from_address(mine._ptr))[:] = range(4)
    items = [mine]

    def deleting(aval: Any) -> Any:
        delete_array(mine)
        items.clear()
        clear_entries(f)
        gc.collect()
        return copying(aval)

    f = Jitted(missing)
    spec = [("list", [("kind", mine.aval, 0)])]
    add_entry(f, Entry(spec, (), copying(mine.aval), ("out", 0), 7, choose=deleting))
    assert numbers(f(items)) == [0, 1, 2, 3]


@pytest.mark.parametrize("make", [Jitted, OpFunction])
def test_threads_add_and_drop_entries(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f, failed, x = make(missing), [], vector(3)
    monkeypatch.setattr(callpath_entries, "OPERATOR_LIMIT", 50)
    before = sys.getswitchinterval()

    def work(seed: int) -> None:
        try:
            for i in range(400):
                kind = (
                    ("kind", Aval((seed, i), 3), 0) if i % 3 else ("array", Aval((seed, i), 3), 0)
                )
                choose = (lambda aval: None) if i % 3 else None
                add_entry(f, Entry([kind], (), copying(x.aval), ("out", 0), 7, choose=choose))
                assert f(x)[0] == "miss"
                if i % 100 == 99:
                    clear_entries(f)
        except BaseException as e:
            failed.append(e)

    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(before)
    assert not failed and entry_count(f) <= callpath_entries.JITTED_LIMIT


def test_a_cycle_through_the_choice_is_collected() -> None:
    class Witness:
        pass

    f, witness, x = Jitted(missing), Witness(), vector(3)

    def choose(aval: Any, f: Any = f, witness: Any = witness) -> Any:
        return None

    add_entry(f, Entry([("kind", x.aval, 0)], (), copying(x.aval), ("out", 0), 7, choose=choose))
    gone = weakref.ref(witness)
    del f, witness, choose
    gc.collect()
    assert gone() is None


def test_what_a_choice_needs() -> None:
    x, template = vector(3), copying(Aval(VECTOR, 3))
    with pytest.raises(ValueError, match="need a function"):
        Entry([("kind", x.aval, 0)], (), template, ("out", 0), 7)
    with pytest.raises(ValueError, match="need a function"):
        Entry(
            [("array", F4, 0), ("array", F4, 1)], (), add_program(), ("out", 0), 7, choose=Chooser()
        )
    with pytest.raises(ValueError, match="cannot be passed"):
        Entry([("ndarray_kind", object, 1, 0)], (), template, ("out", 0), 7, choose=Chooser())


def test_epochs() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    x = array()
    for number, hit in ((0, False), (6, False), (7, True)):
        set_epoch(number)
        assert (type(f(x, x)) is ArrayImpl) is hit
    with pytest.raises(ValueError, match="positive"):
        Entry(ARRAYS, (), add_program(), ("out", 0), 0)
    with pytest.raises(TypeError):
        set_epoch("x")  # type: ignore[arg-type]


def test_many_entries_the_last_used_is_tried_first() -> None:
    avals = [Aval(VECTOR, 1) for _ in range(200)]
    f = Jitted(missing)
    for i, aval in enumerate(avals):
        add_entry(f, Entry([("array", aval, None)], (), copy_program(0), ("const", i), 7))
    assert entry_count(f) == callpath_entries.JITTED_LIMIT
    for i in (199, 100, 199, 72, 150):
        assert f(new_array(avals[i], 4)) == i
        assert f._entries[0] is not f._entries[1]
    assert f(new_array(avals[10], 4))[0] == "miss"
    assert len(set(map(id, f._entries))) == callpath_entries.JITTED_LIMIT
    clear_entries(f)
    assert entry_count(f) == 0 and f(new_array(avals[199], 4))[0] == "miss"


def test_what_is_no_entry_and_what_takes_none() -> None:
    program = add_program()
    with pytest.raises(TypeError):
        add_entry(Jitted(missing), "no entry")
    with pytest.raises(TypeError):
        add_entry(missing, Entry(ARRAYS, (), program, ("out", 0), 7))
    for refused in (clear_entries, entry_count, lambda f: drop_entries(f, program)):
        with pytest.raises(TypeError, match="expected a Jitted or an OpFunction"):
            refused(missing)


def test_entries_of_a_program_are_dropped() -> None:
    first, second = copy_program(1), ProgramBuilder(0, []).build()
    specs: list[tuple[Any, Any]] = [(("array", F4, 0), first), (("eq", 1), second)]
    specs += [(("eq", 2), second), (("ndarray", F32, (4,), 0), first)]
    f = Jitted(missing)
    for spec, program in specs:
        add_entry(f, Entry([spec], (), program, ("const", spec[0]), 7))
    drop_entries(f, second)
    assert entry_count(f) == 2 and f(1)[0] == f(2)[0] == "miss"
    assert f(array()) == "array" and f(np.zeros(4, np.float32)) == "ndarray"
    drop_entries(f, second)
    assert entry_count(f) == 2
    drop_entries(f, first)
    assert entry_count(f) == 0


def test_entries_of_a_program_in_python_are_dropped() -> None:
    x = vector(4)
    first, second = (PythonProgram(1, 1, lambda *args: list(args)) for _ in range(2))
    f = Jitted(missing)
    for spec, program in ((("array", x.aval, 0), first), (("pyfloat", F32, 0), second)):
        add_entry(f, Entry([spec], (), program, ("const", program), 7))
    drop_entries(f, second)
    assert entry_count(f) == 1 and f(x) is first and f(1.0)[0] == "miss"
    drop_entries(f, first)
    assert entry_count(f) == 0


def test_those_that_choose_stay_when_others_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callpath_entries, "JITTED_LIMIT", 4)
    x, choose = vector(4), Chooser()
    f = Jitted(missing)
    add_entry(f, Entry([("kind", x.aval, 0)], (), copying(x.aval), ("out", 0), 7, choose=choose))
    for i in range(10):
        add_entry(f, Entry([("eq", i)], (), copy_program(0), ("const", i), 7))
    assert entry_count(f) == 4 and [f(i) for i in (9, 8, 7)] == [9, 8, 7]
    assert f(6)[0] == "miss" and numbers(f(x)) == [0, 1, 2, 3]
    assert [callpath_entries.chooses(e) for e in f._entries] == [False, False, False, True]
