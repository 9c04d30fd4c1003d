"""Calls of another engine by machine code: which buffers it is given, what becomes of its results
and of its errors, and who is asked while somebody watches."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from calque.machine.call.arrays import pending_arrays, set_owner, share, wrap_numpy
from calque.machine.call.functions import Entry, Jitted, PythonProgram, add_entry
from calque.machine.call.relay import Engine, Relay
from calque.machine.state import ProcessValue
from tests.machine.call.helpers import F4, fixed_epoch, missing

epoch = fixed_epoch
HERE, THERE = ["here"], ["there"]  # where buffers are
HANDLERS = ["handlers"]


class Given:
    """What the engine gives: its buffers are asked for."""

    def __init__(self, buffers: Any) -> None:
        self.buffers, self.asked = buffers, 0
        self.while_asked: Callable[[], None] = lambda: None

    def take(self, handlers: Any) -> Any:
        assert handlers is HANDLERS
        self.asked += 1
        self.while_asked()
        if self.buffers is None:
            raise ZeroDivisionError
        return self.buffers


class Broken(Exception):
    """What the user sees of a failure."""


def failed(error: Exception, args: list[Any]) -> None:
    raise Broken(error, args)


def relayed(
    execute: Callable[[list[Any]], Any],
    inputs: int = 0,
    outputs: int = 1,
    *,
    bring: Callable[[Any], Any] = lambda x: ("brought", x),
    donated: Sequence[int] = (),
    constants: Sequence[Any] = (),
    watcher: Any = None,
    places: Sequence[Any] = (None, None, None),
    through_a_call: bool = False,
) -> Any:
    """A relay whose operands are its arguments, or a function with an entry for Arrays that has
    it."""
    value = ProcessValue("watcher of a test", watcher)
    engine = Engine(
        execute, ("take", HANDLERS), failed, lambda *args: ["watched", args], value, [*constants]
    )
    made = [(F4, HERE, place) for place in places[:outputs]]
    relay = Relay(inputs, engine, [(i, HERE, bring, None) for i in range(inputs)], made, donated)
    if not through_a_call:
        return relay
    program = PythonProgram(inputs, outputs, relay)
    spec = [("elsewhere", "aval", None, i) for i in range(inputs)]
    function = Jitted(missing)
    add_entry(function, Entry(spec, (), program, ("list", [("out", 0)]), 7))
    return function


def held(buffer: Any, where: Any) -> Any:
    """An Array of which the engine has this buffer."""
    x = wrap_numpy("aval", np.zeros(1))
    set_owner(x, buffer, where)
    return x


def test_buffers_that_are_there_are_given_and_others_brought() -> None:
    seen: list[Any] = []
    bring_nobody = [held("a", HERE), held("b", THERE), wrap_numpy("aval", np.zeros(1)), 2.5]

    def execute(buffers: list[Any]) -> Given:
        seen.extend(buffers)
        return Given(["r"])

    relayed(execute, 4, constants=["c", "d"])(*bring_nobody)
    assert seen == ["c", "d", "a", *[("brought", x) for x in bring_nobody[1:]]]


def test_operands_are_the_arguments_that_the_program_reads() -> None:
    seen: list[Any] = []
    engine = Engine(
        lambda buffers: seen.append(buffers) or Given([]),  # type: ignore[func-returns-value]
        ("take", HANDLERS), failed, print, ProcessValue("watcher", None), [],
    )  # fmt: skip
    relay = Relay(3, engine, [(2, HERE, str, None), (0, HERE, repr, None)], [])
    assert relay("a", "b", "c") == [] and seen == [["c", "'a'"]]


def test_results_are_pending_arrays() -> None:
    given, place = Given(["p", "q"]), ["place"]
    x, y = relayed(lambda buffers: given, outputs=2, places=(None, place))()
    assert given.asked == 1 and (x._owner, y._owner) == ("p", "q")
    assert x.aval is F4 and x._ptr == 0 and (x._extra, y._extra) == (None, place)


def test_a_result_is_an_argument_of_the_next_call() -> None:
    rounds: list[Any] = []

    def execute(buffers: list[Any]) -> Given:
        rounds.append(buffers[0])
        return Given([len(rounds)])

    relay = relayed(execute, 1, bring=lambda x: 0)
    (x,) = relay(None)
    for _ in range(3):
        (x,) = relay(x)
    assert rounds == [0, 1, 2, 3]


def test_what_cannot_be_made_of_an_argument_is_raised() -> None:
    (x,) = relayed(lambda buffers: Given(None))()
    with pytest.raises(Broken) as told:
        relayed(lambda buffers: Given(None), 1, 2)(held("a", HERE))
    assert type(told.value.args[0]) is ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        relayed(lambda buffers: Given(["r"]), 1)(x)
    with pytest.raises(ZeroDivisionError):
        relayed(lambda buffers: Given(["r"]), 2, bring=lambda x: 1 / 0)(held("a", HERE), 1)


def test_failures_are_told_with_the_arguments() -> None:
    x = held("a", HERE)
    with pytest.raises(Broken) as told:
        relayed(lambda buffers: buffers[7], 2)(x, 5)
    error, args = told.value.args
    assert type(error) is IndexError and args == [x, 5]
    for wrong in (Given("no list"), Given(["one"])):
        with pytest.raises(Broken) as told:
            relayed(lambda buffers, wrong=wrong: wrong, outputs=2)()
        assert "a list of its results" in str(told.value.args[0])


def test_donated_arguments_are_deleted_when_the_program_ran() -> None:
    x, y = held("a", HERE), held("b", HERE)
    with pytest.raises(Broken):
        relayed(lambda buffers: 1 / 0, 2, donated=[1])(x, y)
    relayed(lambda buffers: Given(["r"]), 2, donated=[1])(x, y)
    assert x._owner == "a" and x._extra is None
    with pytest.raises(RuntimeError, match="deleted"):
        share(y, y.aval)
    brought: list[Any] = []
    relayed(lambda buffers: Given(["r"]), 2, donated=[1], bring=brought.append)(x, y)
    assert brought == [y]  # a deleted one has no buffer, though its owner may live


def test_whoever_watches_serves() -> None:
    relay = relayed(lambda buffers: Given(["r"]), 1, watcher="somebody")
    assert relay(3) == ["watched", (3,)]


def test_calls_have_the_arguments_of_the_program() -> None:
    relay = relayed(lambda buffers: Given(["r"]), 1)
    for call in (lambda: relay(), lambda: relay(1, 2), lambda: relay(x=1)):
        with pytest.raises(TypeError, match="the arguments of its program"):
            call()
    engine = Engine(print, ("take", []), failed, print, ProcessValue("watcher", None), [])
    with pytest.raises(ValueError, match="no argument 1"):
        Relay(1, engine, [(1, HERE, str, None)], [])
    with pytest.raises(ValueError, match="no argument 3"):
        Relay(1, engine, [], [], [3])
    with pytest.raises(TypeError, match="a list"):
        Relay(1, engine._replace(constants=()), [], [])  # type: ignore[arg-type]


def test_machine_code_serves_calls_with_it() -> None:
    (x,) = pending_arrays(("aval",), ["elsewhere"], (None,))
    function = relayed(lambda buffers: Given(buffers), 1, bring=lambda x: x._owner + "!",
                       through_a_call=True)  # fmt: skip
    (made,) = function(x)
    assert made._owner == "elsewhere!" and function(3)[0] == "miss"


def test_cycles_through_a_relay_are_collected() -> None:
    class Program:
        def execute(self, buffers: list[Any]) -> Given:
            return Given(["r"])

    program = Program()
    program.relay = relayed(program.execute)  # type: ignore[attr-defined]
    seen = weakref.ref(program)
    holder = Jitted(missing)
    add_entry(holder, Entry([], (), PythonProgram(0, 1, program.relay), ("out", 0), 7))  # type: ignore[attr-defined]
    program.holder = holder  # type: ignore[attr-defined]
    del program, holder
    gc.collect()
    assert seen() is None
