"""Which kernels take next to none of a program's time, and which are worth haste."""

import numpy as np

import calque.numpy as jnp
from calque import lax
from calque.native.lower.sizes import Sizes
from calque.native.plan.shares import (
    LITTLE,
    PRODUCTS_SLOWER,
    ROUNDS,
    SAVED_NS,
    SLOWER,
    brief,
    hasty,
)
from calque.native.plan.steps import Call, Repeat, Switch
from calque.native.scalars.expr import Buffer, const
from calque.native.schedule.nests import Schedule
from tests.native.programs import compiled


def call(ns: float) -> Call:
    return Call(Schedule((), ns))


def test_the_shortest_kernels_that_together_take_little_are_brief():
    long, *short = steps = [call(1000 / LITTLE), call(300), call(400), call(500)]
    assert brief(steps, Sizes()) == {s.schedule for s in short[:2]}
    assert brief([long], Sizes()) == set()


def test_a_kernel_is_as_long_as_all_its_calls():
    long, short = call(100 / LITTLE), call(30)
    assert brief([long, short], Sizes()) == {short.schedule}
    assert brief([long, short, short, short, short], Sizes()) == set()


def test_rounds_of_a_loop_count():
    long, short = call(100 / LITTLE), call(30)
    thrice, often = (Repeat([short], [], count=const(n)) for n in (3, 4))
    assert brief([long, thrice], Sizes()) == {short.schedule}
    assert brief([long, often], Sizes()) == set()
    endless = Repeat([call(100 / LITTLE)], [], flag=Buffer("go", (), "u8"))
    once = call(ROUNDS * 99)
    assert brief([endless, once], Sizes()) == {once.schedule}
    assert brief([endless, once, once], Sizes()) == set()


def test_the_longest_case_of_a_choice_counts():
    long, short = call(100 / LITTLE), call(90)
    choice = Switch(Buffer("k", (), "i32"), [[long], [short]])
    assert brief([choice], Sizes()) == {short.schedule}
    assert brief([Switch(Buffer("k", (), "i32"), [[short], [short]])], Sizes()) == set()


def test_what_runs_once_beside_a_long_loop_is_brief():
    x = np.random.default_rng(0).normal(size=(300, 300)).astype("f")

    def f(x):
        return lax.fori_loop(0, 1000, lambda i, y: jnp.tanh(y @ x), x), jnp.sin(x[0])

    e = compiled(f, x)
    few = brief(e.steps, e.planner.sizes)
    assert few and len(few) < len({c.schedule for c in e.calls})


def test_a_kernel_is_made_in_haste_if_that_saves_more_than_one_call_loses():
    saved = 100 * SAVED_NS
    short, long = call(saved / SLOWER * 0.9), call(saved / SLOWER * 1.1)
    steps = [short, long]
    assert hasty(steps, Sizes(), (), lambda s: 100) == {short.schedule}
    assert hasty(steps, Sizes(), (), lambda s: 200) == {short.schedule, long.schedule}
    assert hasty(steps, Sizes(), {long.schedule}, lambda s: 100) == {
        short.schedule,
        long.schedule,
    }
    slow = call(saved / PRODUCTS_SLOWER * 1.1)
    assert hasty([slow], Sizes(), {slow.schedule}, lambda s: 100) == set()
    assert hasty([Repeat(steps, [], count=const(2))], Sizes(), (), lambda s: 100) == set()
