"""Caches are declared by name, bounded, counted, and cleared together."""

import gc
import threading

import pytest

from calque.machine import caches as caches_module
from calque.machine.caches import Caches, Interned, Table, Tables, WeakTable, memo


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """What a test declares is known to this test alone."""
    monkeypatch.setattr(caches_module, "caches", Caches())


def registry():
    return caches_module.caches


def of(name):
    return next(c for c in registry().counters() if c.name == name)


def test_a_memo_keeps_and_counts():
    calls = []

    @memo("squares", 2)
    def square(x):
        calls.append(x)
        return x * x

    assert [square(x) for x in (1, 1, 2, 3, 1)] == [1, 1, 4, 9, 1]
    assert calls == [1, 2, 3, 1]  # 1 was the oldest when 3 came
    assert of("squares") == ("squares", 1, 4, 2, 2, 2)


def test_failures_are_no_evictions():
    @memo("roots", 8)
    def root(x):
        if x < 0:
            raise ValueError(x)
        return x**0.5

    for _ in range(3):
        with pytest.raises(ValueError):
            root(-1)
    root(4)
    assert of("roots") == ("roots", 0, 4, 1, 8, 0)


def test_counters_outlive_clearing():
    @memo("kept", 2, programs=True)
    def double(x):
        return 2 * x

    for x in (1, 2, 3, 3):
        double(x)
    registry().clear_programs()
    assert of("kept") == ("kept", 1, 3, 0, 2, 1)
    assert double(3) == 6
    assert of("kept") == ("kept", 1, 4, 1, 2, 1)


def test_a_memo_of_few_results_says_why_they_are_few():
    @memo("names", "types of arrays")
    def name(x):
        return str(x)

    for x in range(2000):
        name(x)
    assert of("names") == ("names", 0, 2000, 2000, "types of arrays", 0)


def test_only_programs_are_cleared():
    table, programs = Table("numbers", 4), Table("programs", 4, programs=True)
    table["a"] = programs["a"] = 1
    registry().clear_programs()
    assert table == {"a": 1} and programs == {}


def test_a_table_drops_the_oldest():
    table = Table("few", 16)
    for i in range(17):
        table[i] = -i - 1
    assert sorted(table) == list(range(2, 17))  # an eighth at once
    assert table.find(0) is None and table.find(5) == -6
    assert of("few") == ("few", 1, 1, 15, 16, 2)
    for i in range(100):
        table.setdefault(i, i)
        assert len(table) <= 16


def test_tables_of_many_objects_count_together():
    tables = Tables("seen", 4, programs=True)
    a, b = tables.new(), tables.new()
    a["x"], b["x"], b["y"] = 1, 2, 3
    assert a.find("x") == 1 and a.find("y") is None
    assert of("seen") == ("seen", 1, 1, 3, "4 of each object", 0)
    del b
    gc.collect()
    assert of("seen").size == 1
    registry().clear_programs()
    assert a == {} and of("seen").size == 0


def test_a_weak_table_forgets_the_dead():
    class Thing:
        pass

    thing, table = Thing(), WeakTable("things")
    table[thing] = 1
    assert table.find(thing) == 1
    del thing
    gc.collect()
    assert of("things") == ("things", 1, 0, 0, "the keys that live", 0)


def test_interned_values_are_counted_when_they_are_made():
    names = Interned("names of things", "things")
    names["a"] = object()
    names.made += 1
    assert of("names of things") == ("names of things", None, 1, 1, "things", 0)


def test_names_are_unique_and_bounds_are_needed():
    Table("once", 4)
    with pytest.raises(ValueError, match="once"):
        Table("once", 4)
    with pytest.raises(ValueError, match="needs a bound"):
        Table("unbounded", 0)
    with pytest.raises(ValueError, match="needs a bound"):
        memo("without reason", "")(lambda x: x)


def test_threads_may_add_and_clear():
    table, tables, failures = Table("shared", 64, True), Tables("of each", 64, True), []

    def work(seed):
        try:
            for i in range(2000):
                table[seed, i] = i
                own = tables.new()
                own[i] = i
                if i % 50 == 0:
                    registry().clear_programs()
                    registry().counters()
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and len(table) <= 64 + 4  # one of each thread may be on its way
