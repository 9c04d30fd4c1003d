"""Routines that do not wait for each other become one step, and all else keeps its order."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.plan.beside import FAR, SHORT_NS, beside
from calque.native.plan.ordering import dependencies
from calque.native.plan.steps import Copy, Repeat, Routine, Step
from calque.native.scalars.expr import Buffer, const

B = [Buffer(f"b{k}", (const(100),), "f32") for k in range(300)]


def fft(out: int, *ins: int, name: str = "fft", ns: int = 1000, able: bool = True) -> Routine:
    args, outs = [B[k] for k in ins], [B[out]]
    return Routine(name, 64, [*args, *outs, 7], args, outs, ns, beside=able)


def copy(out: int, src: int) -> Copy:
    return Copy(B[out], B[src])


def joined(steps: Sequence[Step]) -> list[int]:
    """How many routines each step has."""
    return [s.name.count("fft") if isinstance(s, Routine) else 0 for s in steps]


def test_two_wait_for_each_other_and_their_readers_wait() -> None:
    steps: list[Step] = [fft(1, 0), copy(2, 1), copy(4, 3), fft(5, 4), copy(6, 5)]
    found = beside(steps, 2)
    assert joined(found) == [0, 2, 0, 0]
    assert [found[k] for k in (0, 2, 3)] == [steps[k] for k in (2, 1, 4)]
    both = found[1]
    assert isinstance(both, Routine)
    assert both.turns == 2 and both.args == [B[0], B[4]] and both.outs == [B[1], B[5]]
    assert both.words[0] == 6 and both.words[1:4] == [64, 1, 0] and both.words[7:10] == [64, 1, 0]


@pytest.mark.parametrize(
    "steps",
    [
        [fft(1, 0), fft(2, 1)],
        [fft(1, 0), copy(2, 1), fft(3, 2)],
        [fft(1, 0), fft(0, 2)],  # would write what the first reads
        [fft(1, 0), fft(1, 2)],
        [fft(1, 0), fft(3, 2, name="sort fft")],
        [fft(1, 0), fft(3, 2, able=False)],
        [fft(1, 0), fft(3, 2, ns=2500)],
        [fft(1, 0), *[copy(k + 5, 4) for k in range(FAR)], fft(3, 2)],
    ],
)
def test_what_stays_alone(steps: list[Step]) -> None:
    assert beside(steps, 2) == steps


def test_few_long_ones_are_shared_by_more_threads() -> None:
    steps: list[Step] = [fft(k, 100 + k, ns=SHORT_NS + 1) for k in range(4)]
    assert joined(beside(steps, 2)) == [2, 2] and joined(beside(steps, 4)) == [4]
    assert joined(beside(steps, 5)) == [1] * 4 and beside(steps, 1) == steps
    assert joined(beside([fft(k, 100 + k) for k in range(4)], 5)) == [4]


def test_loops_and_what_they_hold() -> None:
    loop = Repeat([fft(1, 0), fft(3, 2)], [], const(5))
    found = beside([loop, copy(5, 1)], 2)
    assert [joined(s.body) for s in found if isinstance(s, Repeat)] == [[2]]


@pytest.mark.parametrize("seed", range(30))
def test_nothing_runs_before_what_it_waits_for(seed: int) -> None:
    r = random.Random(seed)
    steps: list[Step] = []
    for _ in range(40):
        out, *ins = (r.randrange(12) for _ in range(3))
        able = out not in ins and r.random() < 0.5
        steps.append(fft(out, *ins) if able else copy(out, (out + 1 + ins[0] % 11) % 12))
    found = beside(steps, 4)
    names = {id(s): k for k, s in enumerate(steps)}
    # the place of each step: routines that were joined by their arguments and results
    at: dict[int, int] = {}
    for place, s in enumerate(found):
        if id(s) in names:
            at[names[id(s)]] = place
            continue
        assert isinstance(s, Routine)
        left = [(list(s.args[2 * k : 2 * k + 2]), s.outs[k]) for k in range(len(s.outs))]
        for args, out in left:
            k = next(
                k
                for k, t in enumerate(steps)
                if isinstance(t, Routine)
                and k not in at
                and list(t.args) == args
                and t.outs[0] is out
            )
            at[k] = place
    assert sorted(at) == list(range(len(steps)))
    for k, waits in enumerate(dependencies(steps)):
        assert all(at[w] < at[k] for w in waits)


def test_transforms_of_a_program_run_beside_each_other() -> None:
    x = np.random.default_rng(0).standard_normal((3, 64, 64)).astype(np.float32)

    def f(x: calque.Array) -> calque.Array:
        a, b = jnp.fft.rfft2(x[0]), jnp.fft.rfft2(x[1] + 1)
        return jnp.fft.irfft2(a * b) + x[2]

    before = calque.get_num_threads()
    calque.set_num_threads(2)
    try:
        made = calque.jit(f).lower(x).compile()
        found = np.asarray(made(x))
    finally:
        calque.set_num_threads(before)
    assert "fft beside fft" in made.as_text("driver")
    calque.set_num_threads(1)
    try:
        alone = calque.jit(lambda x: f(x)).lower(x).compile()
        np.testing.assert_array_equal(found, np.asarray(alone(x)))
    finally:
        calque.set_num_threads(before)
    assert "beside" not in alone.as_text("driver")
