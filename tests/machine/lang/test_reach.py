"""What machine functions refer to: all that decides their code, and so their key on disk."""

from __future__ import annotations

import enum
import types

from calque.machine.lang import reach
from calque.machine.lang.unit import Unit, i64, layout, load_i64, ptr

base, unit = Unit("test_reach_base"), Unit("test_reach")
Pair = layout("Pair", first=i64, second=i64)
shared = base.var("shared", i64)
strlen = base.extern("strlen", i64, ptr)


class Sizes:
    SMALL = 3
    LARGE = 300
    UNUSED = 9


class Kind(enum.IntEnum):
    ONE = 1
    TWO = 2


space = types.SimpleNamespace(LIMIT=17, other=18)


@base.helper
def deep(p: ptr) -> i64:
    return load_i64(shared, 0) + strlen(p) + Sizes.SMALL


@base.helper
def middle(p: ptr) -> i64:
    return deep(p) + Pair(p).second


@base.function
def exported(p: ptr) -> i64:
    return deep(p) + Kind.TWO


@unit.function
def top(p: ptr) -> i64:
    return middle(p) + exported(p) + space.LIMIT


def test_helpers_of_other_units_are_looked_through() -> None:
    """Exported functions are called as they are: what they need is theirs."""
    found = reach.reachable([top])
    assert found[0] is top
    assert {id(x) for x in found} == {
        id(x) for x in (top, middle, deep, exported, shared, strlen, Pair)
    }
    assert {id(x) for x in reach.reachable([exported])} == {
        id(x) for x in (exported, deep, shared, strlen)
    }


def test_everything_is_found_once() -> None:
    found = reach.reachable([top, exported, top])
    assert len({id(x) for x in found}) == len(found)


def test_numbers_from_outside() -> None:
    """Those that it names, with their names; of classes only the attributes that it names."""
    assert reach.constants(deep) == [("Sizes.SMALL", 3)]
    assert reach.constants(exported) == [("Kind.TWO", Kind.TWO)]
    assert reach.constants(top) == [("space.LIMIT", 17)]


def test_numbers_of_closures() -> None:
    def build(n: int) -> Unit:
        fresh = Unit("test_reach_closure")

        def f() -> i64:
            return n

        fresh.function(f)
        return fresh

    assert [reach.constants(build(n).functions[0]) for n in (4, 5)] == [[("n", 4)], [("n", 5)]]


def test_members_of_every_namespace() -> None:
    missing = reach._MISSING
    assert reach.member(Sizes, "LARGE") == 300 and reach.member(Sizes, "NONE") is missing
    assert reach.member(Kind, "ONE") is Kind.ONE and reach.member(Kind, "THREE") is missing
    assert reach.member(space, "other") == 18 and reach.member(space, "none") is missing

    class Heir(Sizes):
        pass

    assert reach.member(Heir, "SMALL") == 3
    assert reach.member(enum, "IntEnum") is enum.IntEnum
