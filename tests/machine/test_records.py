"""Classes of values."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

import pytest

from calque.machine.records import record, replace


@record
class Place:
    row: int
    column: int = 0
    notes: list[str] = field(default_factory=list, repr=False)

    @cached_property
    def far(self) -> int:
        return self.row + self.column


@record(eq=False)
class Named:
    name: str


@record(eq=False)
class Longer(Named):
    more: str = "?"

    def __post_init__(self) -> None:
        self.__dict__["whole"] = self.name + self.more


@record
class Nothing:
    def here(self) -> bool:
        return True


def test_fields_are_given_by_place_or_by_name() -> None:
    assert (Place(1).row, Place(1).column, Place(1).notes) == (1, 0, [])
    assert Place(1, 2).far == 3 and Place(row=1, column=5).far == 6
    assert Place(1).notes is not Place(1).notes
    with pytest.raises(TypeError, match=r"Place\.__init__.*'row'"):
        Place()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        Place(1, depth=2)  # type: ignore[call-arg]


def test_equal_are_those_of_equal_fields() -> None:
    assert Place(1, 2) == Place(1, 2) != Place(2, 1)
    assert Place(1) != (1, 0, []) and Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1
    a, b = Named("a"), Named("a")
    assert a == a and a != b and len({a, b}) == 2


def test_of_hashable_fields_they_are_hashable() -> None:
    @record
    class Pair:
        a: int
        b: str

    assert hash(Pair(1, "x")) == hash(Pair(1, "x")) and {Pair(1, "x"): 2}[Pair(1, "x")] == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place(1))


def test_text() -> None:
    assert repr(Place(1, 2)) == "Place(row=1, column=2)" and repr(Nothing()) == "Nothing()"


def test_a_class_inherits_fields() -> None:
    x = Longer("a", "b")
    assert (x.name, x.more, x.__dict__["whole"]) == ("a", "b", "ab") and Longer("a").more == "?"


def test_replaced_fields() -> None:
    p = Place(1, 2)
    assert p.far == 3
    q = replace(p, column=5)
    assert (q.row, q.column, q.far) == (1, 5, 6) and q.notes is p.notes and p.column == 2
    assert replace(Longer("a"), name="b").__dict__["whole"] == "b?"
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        replace(p, depth=2)
