"""Small arguments that another engine reads in memory that calls write anew: which are, when the
memory is free, and what becomes of it."""

from __future__ import annotations

import gc
import math
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calque.machine.call.functions import LEARNS
from tests.machine.call.helpers import F4, fixed_epoch

pytestmark = pytest.mark.skipif(not LEARNS, reason="calls are plain Python here")
if LEARNS:
    from calque.machine.call.relay import Engine, Relay
    from calque.machine.call.staging import new_stage
    from calque.machine.state import ProcessValue

epoch = fixed_epoch
FLOAT = np.dtype(np.float32)


class Buffer:
    """What the engine has for the memory of a stage."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory


class Result:
    """A result of the engine: `state` is whether it is computed, or why it cannot say."""

    def __init__(self, state: bool | Exception = True) -> None:
        self.state = state

    def is_ready(self) -> bool:
        if isinstance(self.state, Exception):
            raise self.state
        return self.state

    def take(self, handlers: Any) -> list[Any]:
        return [self]


def memory_for(
    dtype: np.dtype[Any], shape: tuple[int, ...], made: list[Any]
) -> Callable[[], tuple[Any, int]]:
    """What makes the buffers of a stage, seen in `made`."""

    def make() -> tuple[Any, int]:
        memory = np.zeros(64, np.uint8)
        made.append(Buffer(memory[: dtype.itemsize * math.prod(shape)]))
        return made[-1], memory.ctypes.data

    return make


class Calls:
    """A relay of so many operands with stages, and what the engine saw."""

    def __init__(self, dtype: Any = FLOAT, shape: tuple[int, ...] = (4,), inputs: int = 1) -> None:
        self.dtype, self.shape = np.dtype(dtype), shape
        self.made: list[Any] = []  # buffers of stages
        self.seen: list[Any] = []  # what each run found in its operands, or "brought"
        self.results: list[Any] = []
        self.next_result: Callable[[], Result] = Result
        self.stages = [
            new_stage(self.dtype, shape, memory_for(self.dtype, shape, self.made), "is_ready")
            for _ in range(inputs)
        ]
        engine = Engine(
            self.execute, ("take", []), self.failed, print, ProcessValue("watcher", None), []
        )
        operands = [(i, None, lambda x: "brought", s) for i, s in enumerate(self.stages)]
        self.relay = Relay(inputs, engine, operands, [(F4, ["here"], None)])

    def execute(self, buffers: list[Any]) -> Result:
        self.seen.append([
            b if type(b) is str else b.memory.view(self.dtype).tolist() for b in buffers
        ])  # fmt: skip
        result = self.next_result()
        self.results.append(weakref.ref(result))
        return result

    def failed(self, error: Exception, args: list[Any]) -> None:
        raise error


def test_each_call_writes_the_same_memory() -> None:
    calls = Calls()
    for k in range(3):
        calls.relay(np.full(4, k, np.float32))
    assert calls.seen == [[[k] * 4] for k in (0.0, 1.0, 2.0)] and len(calls.made) == 1


def test_memory_is_made_when_it_is_needed() -> None:
    calls = Calls()
    calls.relay("something else")
    assert calls.seen == [["brought"]] and calls.made == []


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(4, np.float64),
        np.zeros(4, np.int32),
        np.zeros(3, np.float32),
        np.zeros(8, np.float32)[::2],
        np.zeros(4, np.dtype(np.float32).newbyteorder()),
        np.zeros(4, np.float32).view(np.recarray),
        np.float32(1),
        1.0,
        True,
    ],
    ids=repr,
)
def test_other_arguments_are_brought(x: Any) -> None:
    calls = Calls()
    calls.relay(x)
    assert calls.seen == [["brought"]]


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("float32", 2.5, 2.5),
        ("float64", 0.1, 0.1),
        ("float32", 3, 3.0),
        ("int32", -7, -7),
        ("uint8", 255, 255),
        ("int32", 1 << 40, "brought"),
        ("uint8", -1, "brought"),
        ("int32", 2.5, "brought"),
        ("float32", True, "brought"),
        ("float16", 2.5, "brought"),
    ],
)
def test_numbers_are_written_where_they_fit(dtype: str, number: Any, expected: Any) -> None:
    calls = Calls(dtype, ())
    calls.relay(number)
    assert calls.seen == [["brought" if expected == "brought" else [expected]]]
    calls.relay(np.array(1, dtype))  # the stage is free again
    assert calls.seen[-1] == [[1]]


def test_memory_that_a_run_may_still_read_is_left_alone() -> None:
    calls = Calls()
    slow = Result(False)
    calls.next_result = lambda: slow
    calls.relay(np.ones(4, np.float32))
    calls.next_result = Result
    calls.relay(np.full(4, 2, np.float32))
    assert calls.seen == [[[1.0] * 4], ["brought"]] and calls.made[0].memory[3] == 0x3F
    slow.state = True
    calls.relay(np.full(4, 3, np.float32))
    assert calls.seen[-1] == [[3.0] * 4] and len(calls.made) == 1


def test_a_stage_that_is_taken_serves_nobody_else() -> None:
    calls = Calls()

    def meanwhile() -> Result:  # as another thread would
        calls.next_result = Result
        calls.relay(np.full(4, 2, np.float32))
        return Result()

    calls.next_result = meanwhile
    calls.relay(np.ones(4, np.float32))
    assert calls.seen == [[[1.0] * 4], ["brought"]]
    calls.relay(np.full(4, 3, np.float32))
    assert calls.seen[-1] == [[3.0] * 4]


def test_results_that_were_given_away_cost_the_buffer() -> None:
    calls = Calls()
    calls.next_result = lambda: Result(RuntimeError("Array has been deleted"))
    for k in range(40):
        calls.relay(np.full(4, k, np.float32))
    assert 4 <= len(calls.made) < 16  # then it gives up
    assert [s for s in calls.seen if s != ["brought"]] == [
        [[float(k)] * 4] for k in range(0, 40, 2) if k < 2 * len(calls.made)
    ]


def test_a_run_that_fails_costs_the_buffer() -> None:
    calls = Calls(inputs=2)

    def fail() -> Result:
        raise ZeroDivisionError

    ones = np.ones(4, np.float32)
    calls.next_result = fail
    with pytest.raises(ZeroDivisionError):
        calls.relay(ones, ones)
    calls.next_result = Result
    calls.relay(ones, 2 * ones)
    assert calls.seen[-1] == [[1.0] * 4, [2.0] * 4] and len(calls.made) == 4


def test_what_was_written_is_free_again_when_another_argument_cannot_be_brought() -> None:
    stage_calls = Calls()

    def refuse(x: Any) -> Any:
        raise ZeroDivisionError

    engine = Engine(
        stage_calls.execute, ("take", []), stage_calls.failed, print,
        ProcessValue("watcher", None), [],
    )  # fmt: skip
    operands = [(0, None, str, stage_calls.stages[0]), (1, None, refuse, None)]
    relay = Relay(2, engine, operands, [(F4, ["here"], None)])
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            relay(np.ones(4, np.float32), "no array")
    stage_calls.relay(np.ones(4, np.float32))
    assert stage_calls.seen == [[[1.0] * 4]] and len(stage_calls.made) == 1


@pytest.mark.parametrize("made", [None, "no pair", (1, 2, 3), ("buffer", "no address")], ids=repr)
def test_where_there_is_no_such_memory(made: Any) -> None:
    calls = Calls()
    asked: list[Any] = []
    stage = new_stage(FLOAT, (4,), lambda: asked.append(0) or made, "is_ready")  # type: ignore[func-returns-value]
    engine = Engine(
        calls.execute, ("take", []), calls.failed, print, ProcessValue("watcher", None), []
    )
    relay = Relay(1, engine, [(0, None, lambda x: "brought", stage)], [(F4, ["here"], None)])
    for _ in range(2):
        if made is None:
            relay(np.ones(4, np.float32))
        else:
            with pytest.raises(TypeError):
                relay(np.ones(4, np.float32))
    assert len(asked) == (1 if made is None else 2)
    assert calls.seen == ([["brought"]] * 2 if made is None else [])


def test_a_result_is_kept_until_the_next_call_and_nothing_longer() -> None:
    calls = Calls()
    ones = np.ones(4, np.float32)
    calls.relay(ones)
    calls.relay(ones)
    first, second = calls.results
    assert first() is None and second() is not None
    buffer = weakref.ref(calls.made.pop())
    memory = sys.getrefcount(ones)
    del calls
    gc.collect()
    assert second() is None and buffer() is None and sys.getrefcount(ones) == memory


def test_stages_need_a_result_to_ask() -> None:
    calls = Calls()
    engine = Engine(print, ("take", []), print, print, ProcessValue("watcher", None), [])
    with pytest.raises(ValueError, match="ask result 0 of 0"):
        Relay(1, engine, [(0, None, str, calls.stages[0])], [])
