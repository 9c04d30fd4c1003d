"""Text over vectors, run as machine code."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calque.machine.lang.unit import Unit, i64, ptr
from calque.machine.routines.fft.vectors import Code, Kind, Steps, vector

_numbers = itertools.count()
ITEMS = (4, 8)


def of_x_and_y(x: ptr, y: ptr, n: i64) -> None:
    """What the tests write has these."""


def machine(write: Callable[[Code], None]) -> Any:
    """The function whose body was written."""

    def writer() -> str:
        code = Code()
        write(code)
        return code.finished()

    unit = Unit(f"test_vectors_{next(_numbers)}")
    made = unit.written(f"{unit.name}_f", of_x_and_y, writer, {})
    return lambda x, y, n=0: made(x.ctypes.data, y.ctypes.data, n)


def test_constants_are_rounded_to_their_precision() -> None:
    assert Kind(8, 1).constant(0.1) == "0x3FB999999999999A"
    assert Kind(4, 1).constant(0.1) == "0x3FB99999A0000000"
    assert Kind(4, 8).constant(0.5) == "splat (float 0x3FE0000000000000)"
    assert (vector(4).lanes, vector(8).lanes, vector(8).bytes) == (8, 4, 32)


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("whole_only", [False, True])
def test_ranges_reach_every_number_and_no_other(item: int, whole_only: bool) -> None:
    """Numbers are doubled, also where the last vector takes some again."""

    def write(c: Code) -> None:
        for kind, at in c.ranges(item, c.times("%n", item), whole_only):
            x = c.load(kind, c.at("%x", at))
            c.store(kind, c.let(f"fadd {kind.text} {x}, {x}"), c.at("%y", at))

    run = machine(write)
    for n in range(8 if whole_only else 0, 30):
        x, y = np.arange(40).astype(f"f{item}"), np.full(40, -1, f"f{item}")
        run(x, y, n)
        np.testing.assert_array_equal(y[:n], 2 * x[:n])
        assert (y[n:] == -1).all()


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 8])
def test_weaving(item: int, count: int) -> None:
    """The numbers of all vectors in place 0, then those in place 1, ..."""
    kind = vector(item)

    def write(c: Code) -> None:
        rows = [c.load(kind, c.at("%x", str(k * kind.bytes))) for k in range(count)]
        c.store_woven(kind, rows, "%y")

    x = np.arange(count * kind.lanes).astype(f"f{item}")
    y = np.zeros(len(x) + 1, x.dtype)
    machine(write)(x, y)
    np.testing.assert_array_equal(y[:-1], x.reshape(count, -1).T.reshape(-1))
    assert y[-1] == 0


@pytest.mark.parametrize("item", ITEMS)
def test_pairs_are_gathered_scattered_and_reversed(item: int) -> None:
    kind, gap = vector(item), 5 * item

    def write(c: Code) -> None:
        places = [c.at("%x", str(k * gap)) for k in range(kind.lanes)]
        pairs = Kind(item, 2 * kind.lanes)
        both = c.reversed(pairs, c.gathered(item, places))
        parts = [c.shuffle(pairs, both, "poison", range(k, pairs.lanes, 2)) for k in range(2)]
        c.scatter_woven(kind, parts, [c.at("%y", str(k * gap)) for k in range(kind.lanes)])

    x = np.arange(5 * kind.lanes).astype(f"f{item}")
    y = np.full_like(x, -1)
    machine(write)(x, y)
    rows, made = x.reshape(-1, 5), y.reshape(-1, 5)
    np.testing.assert_array_equal(made[:, :2], rows[::-1, 1::-1])
    assert (made[:, 2:] == -1).all()


def test_steps_and_early_ends() -> None:
    """Any multiple of a distance; nothing is done behind an end."""

    def write(c: Code) -> None:
        one, steps = Kind(8, 1), Steps(c, c.times("%n", 8), 23)
        for k in range(24):
            c.store(one, one.constant(float(k)), steps.at("%y", k))
        with c.either(c.let("icmp eq i64 %n, 1")):
            c.store(one, one.constant(-1.0), "%y")
        c.store(one, one.constant(-2.0), "%y")

    run = machine(write)
    for n, first in ((1, -1), (2, -2)):
        y = np.full(48, 99.0)
        run(y, y, n)
        np.testing.assert_array_equal(y[: 24 * n : n], [first, *range(1, 24)])
