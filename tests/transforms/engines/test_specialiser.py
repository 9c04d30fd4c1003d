"""When sizes become free, which stay fixed, and which program serves which sizes."""

from typing import Any

import numpy as np
import pytest

from calque.core.avals import ShapedArray
from calque.transforms.engines.specialiser import (
    MOST_FAMILIES,
    MOST_PROGRAMS,
    MOST_SPECIALISED,
    REMEMBERED,
    CallCounts,
    Family,
    GenericProgram,
    SizedCall,
    Specialiser,
    TooEarly,
    chooser,
    new_families,
)


class Sized:
    """Stands for a program at some sizes."""

    def __init__(self, values: tuple[int, ...]) -> None:
        self.program = ("program", values)


class Executable:
    def __init__(self) -> None:
        self.made: list[tuple[int, ...]] = []

    def resized(self, values: tuple[int, ...]) -> Sized:
        self.made.append(values)
        return Sized(values)


def aval(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.dtype("float32"))


class User:
    """One who asks for programs: what its function asks of the sizes is `question`."""

    def __init__(self, question: Any = lambda *avals: None, **options: Any) -> None:
        self.family, self.question = Family(), question
        self.traces: list[list[str]] = []
        self.compilations = 0
        self.reports: list[str] = []
        self.specialiser = Specialiser(
            self.trace, self.compile, report=lambda _, text: self.reports.append(text), **options
        )

    def trace(self, call: SizedCall, program: GenericProgram) -> Any:
        avals = program.avals(call.avals)
        self.traces.append([str(a.shape) for a in avals])
        self.question(*avals)
        return avals

    def compile(self, call: SizedCall, program: GenericProgram) -> Executable:
        self.compilations += 1
        return Executable()

    def ask(self, *shapes: tuple[int, ...]) -> tuple[int, ...] | None:
        """The free sizes of a call with such arguments, or None."""
        sizes = tuple([n for s in shapes for n in s])
        call = SizedCall(self.family, [aval(*s) for s in shapes], sizes)
        found = self.specialiser.program_for(call)
        return None if found is None else found[1]


def test_the_second_size_makes_a_dimension_free() -> None:
    user = User()
    assert user.ask((3, 4)) is None and not user.traces
    assert user.ask((5, 4)) == (5,) and user.ask((6, 4)) == (6,)
    assert user.traces == [["(n, 4)"]] and user.compilations == 1
    assert user.ask((6, 7)) == (6, 7) and user.traces[1:] == [["(n, m)"]]


def test_dimensions_that_were_always_equal_are_one() -> None:
    user = User()
    user.ask((3,), (3,))
    assert user.ask((5,), (5,)) == (5,)
    assert user.ask((6,), (7,)) == (6, 7), "which one symbol does not serve"
    assert len(user.traces) == 2


def test_guards_part_the_calls_of_programs() -> None:
    user = User(lambda a: a.shape[0] > 10)
    user.ask((3,))
    assert user.ask((4,)) == (4,) and user.ask((9,)) == (9,) and len(user.traces) == 1
    assert user.ask((11,)) == (11,) and user.ask((30,)) == (30,) and len(user.traces) == 2
    assert user.family.programs[0].guards() == ["-n + 10 >= 0"]
    assert user.ask((0,)) is None, "symbols are at least 1"


def test_declared_sizes_are_free_at_once() -> None:
    user = User()
    call = SizedCall(user.family, [aval(3)], (3,))
    found = user.specialiser.new_program(call, frozenset((0,)))
    assert found is not None and found[1] == (3,)


@pytest.mark.parametrize("again", [False, True])
def test_sizes_that_are_needed_as_numbers_stay_fixed(again: bool) -> None:
    """At once, or when a second trace needs them as well."""
    user = User(lambda a: range(a.shape[0]), pins_again=again)
    for n in range(3, 13):
        assert user.ask((n,)) is None
    assert len(user.traces) == 1 + again and user.compilations == 0


@pytest.mark.parametrize("again", [False, True])
def test_what_fails_with_free_sizes_stays_fixed(again: bool) -> None:
    def question(a: ShapedArray) -> None:
        raise TypeError("no such thing")

    user = User(question, tries_again=again)
    for n in range(3, 13):
        assert user.ask((n,)) is None
    assert len(user.traces) == 1 + again
    assert user.reports[0] == "tracing with a free size failed: no such thing"


def test_what_is_not_for_free_sizes_is_refused_without_a_reason() -> None:
    user = User()
    user.specialiser.trace = lambda call, program: None
    assert user.ask((3,)) is user.ask((4,)) is user.ask((5,)) is None
    assert user.family.fixed == {0} and not user.family.failure and not user.compilations


def test_one_size_may_be_pinned_while_another_is_free() -> None:
    user = User(lambda a: int(a.shape[1]))
    user.ask((3, 4))
    assert user.ask((5, 6)) == (5, 6) and user.ask((7, 6)) == (7, 6)
    assert user.family.fixed == {1} and user.ask((7, 8)) == (7,)


def test_patience() -> None:
    user = User(patience=REMEMBERED)
    for n in range(2, 1 + REMEMBERED):
        assert user.ask((n,)) is None
    assert user.ask((99,)) == (99,)


def test_too_early_leaves_the_family_as_it_is() -> None:
    user = User()
    compile = user.specialiser.compile

    def later(call: SizedCall, program: GenericProgram) -> Any:
        if len(call.family.seen) < 3:
            raise TooEarly
        return compile(call, program)

    user.specialiser.compile = later
    assert user.ask((3,)) is user.ask((4,)) is None and not user.family.pinned
    assert user.ask((5,)) == (5,)


def test_a_family_has_few_programs() -> None:
    """What asks many questions would have one for every size."""
    user = User(lambda a: [a.shape[0] > k for k in range(2, 200, 3)])
    for n in range(3, 150):
        user.ask((n,))
    assert len(user.family.programs) == MOST_PROGRAMS
    assert len(user.traces) == MOST_PROGRAMS


def test_programs_of_sizes_and_families_are_bounded() -> None:
    user = User()
    for n in range(3, 3 + 2 * MOST_SPECIALISED):
        user.ask((n,))
        for program in user.family.programs:
            program.at((n,))
    (program,) = user.family.programs
    assert MOST_SPECIALISED // 2 < len(program.specialised) <= MOST_SPECIALISED
    families = new_families()
    for k in range(MOST_FAMILIES + 10):
        assert families.of(k) is families.of(k)
        assert len(families) <= MOST_FAMILIES


def test_outdated_programs_serve_the_sizes_they_have_served() -> None:
    user = User()
    user.ask((3,)), user.ask((4,))
    (old,) = user.family.programs
    old.at((4,))
    old.is_outdated = lambda: True
    assert user.family.find((4,)) == (old, (4,)) and user.family.find((5,)) is None
    assert user.ask((5,)) == (5,) and len(user.family.programs) == 2
    assert user.family.programs[1].groups == old.groups
    assert user.family.is_for(old, (4,)) and not user.family.is_for(user.family.programs[1], (4,))


def test_the_chooser_gives_up_sizes_that_are_hot() -> None:
    user = User()
    user.ask((3,)), user.ask((4,))
    (program,) = user.family.programs
    choose = chooser(program, user.family, CallCounts(hot_after=3))
    assert [choose(aval(7)) for _ in range(4)] == [("program", (7,))] * 3 + [None]
    assert choose(aval(0)) is None and choose(aval(8)) == ("program", (8,))
    user.family.programs.clear()
    assert choose(aval(8)) is None, "a program that was given up"
