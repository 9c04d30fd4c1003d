"""The work of planning grows with the size of a program, not with its square; and no kernel grows
with it.

Work is counted in lines of `calque/native` that run, rounds of comprehensions among them."""

import collections
import pathlib
import re
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import native

SIZE = 100
OFTEN = 4000
NATIVE = str(pathlib.Path(native.__file__).parent)

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def updates(n: int) -> Program:
    """Each element of an array is written for itself."""

    def f(x: Any) -> Any:
        for i in range(n):
            x = x.at[i].set(x[(i * 7) % n] + 1.0)
        return x

    return f, (jnp.arange(n) * 1.0,)


def elements(n: int) -> Program:
    return lambda x: [x[i] for i in range(n)], (jnp.arange(n) * 1.0,)


def scalars(n: int) -> Program:
    def f(x: Any) -> Any:
        for i in range(n):
            x = (x + 1.0 / (i % 7 + 1)) * 0.5 if i % 2 else x - x * 0.25
        return x

    return f, (0.5,)


def arguments(n: int) -> Program:
    """An optimiser's step."""

    def f(weights: list[Any], slopes: list[Any]) -> Any:
        return [w - 0.1 * g for w, g in zip(weights, slopes, strict=True)]

    return f, ([jnp.ones((4, i % 7 + 1)) for i in range(n)],) * 2


def totals(n: int) -> Program:
    def f(x: Any) -> Any:
        for i in range(n):
            x = x * (i + 0.5) + x.sum()
        return x

    return f, (jnp.ones(64),)


PROGRAMS = (updates, elements, scalars, arguments, totals)


def lines_run(program: Program) -> collections.Counter[CodeType]:
    """How many lines of each function of the compiler run for the first call."""
    function, arguments = program
    count: collections.Counter[CodeType] = collections.Counter()

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            count[frame.f_code] += 1
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(NATIVE) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        calque.jit(function).lower(*arguments).compile()
    finally:
        sys.settrace(before)
    return count


def test_rounds_of_comprehensions_are_counted() -> None:
    assert lines_run(elements(40)).total() > 40


@pytest.mark.parametrize("make", PROGRAMS)
def test_planning_grows_with_the_program(make: Callable[[int], Program]) -> None:
    """Also that of each function which runs often."""
    lines_run(make(SIZE // 2))  # what is done once, and patterns known from now on
    once, twice = lines_run(make(SIZE)), lines_run(make(2 * SIZE))
    assert twice.total() < 2.3 * once.total()
    steep = [
        (code.co_filename, code.co_firstlineno, once[code], lines)
        for code, lines in twice.items()
        if lines > OFTEN and lines > 2.6 * once[code]
    ]
    assert not steep


@pytest.mark.parametrize("make", [updates, elements, scalars])
def test_kernels_do_not_grow_with_the_program(make: Callable[[int], Program]) -> None:
    def longest(n: int) -> int:
        function, arguments = make(n)
        text = calque.jit(function).lower(*arguments).compile().as_text("loops")
        return max(len(k.splitlines()) for k in re.split("^kernel|^driver", text, flags=re.M))

    assert longest(1200) == longest(2400) < 1200


def test_programs_in_several_kernels_are_right() -> None:
    for make in (updates, elements, scalars):
        function, arguments = make(700)
        got, want = calque.jit(function)(*arguments), function(*arguments)
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


@pytest.mark.parametrize(
    "turn",
    [
        lambda x: jnp.roll(x.T, 1, 0),
        lambda x: jnp.pad(x.T[1:], ((0, 1), (0, 0))),
        lambda x: x.T.reshape(8, 32).T.reshape(16, 16),
        lambda x: jnp.stack([x[:8], x[8:]], 1).reshape(16, 16),
    ],
)
def test_index_maps_through_many_joins_are_cut(turn: Callable[[Any], Any]) -> None:
    """What moves elements costs nothing to compute, but an index through all of it grows."""
    x = np.arange(256, dtype="f4").reshape(16, 16)

    def program(n: int) -> Program:
        def f(x: Any) -> Any:
            for _ in range(n):
                x = turn(x)
            return x @ jnp.eye(16)

        return f, (jnp.asarray(x),)

    lines_run(program(8))
    once, twice = lines_run(program(32)), lines_run(program(64))
    assert twice.total() < 2.6 * once.total()
    function, arguments = program(40)
    np.testing.assert_array_equal(calque.jit(function)(*arguments), function(*arguments))
