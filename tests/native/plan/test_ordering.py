"""Steps in an order that needs little memory: what they compute stays, and how many bytes are
needed at the same time falls."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.backends import Options
from calque.native.executable import NativeExecutable
from calque.native.plan import ordering
from calque.native.plan.memory import arrange
from calque.native.plan.ordering import LEAST, ordered
from calque.native.plan.steps import Call, Copy, Count, Host, Repeat, Step, walk
from calque.native.scalars.expr import Buffer, const

A, X, Y = (Buffer(n, (const(100),), "f32") for n in "axy")
T = [Buffer(f"t{k}", (const(100),), "f32") for k in range(8)]
S = [Buffer(f"s{k}", (const(1),), "f32") for k in range(8)]
BYTES = dict.fromkeys([A, X, Y, *T], LEAST) | dict.fromkeys(S, 64)
OWN = {*T, *S}


def calls(op: str, args: Sequence[Buffer], outs: Sequence[Buffer]) -> Host:
    return Host(op, {}, args, outs, [], [])


def room(steps: Sequence[Step]) -> int:
    return arrange(steps, OWN, BYTES)[1]


def wide(n: int) -> list[Step]:
    """All are made before the first is read."""
    makes: list[Step] = [Copy(T[k], A) for k in range(n)]
    return [*makes, *[Copy(S[k], T[k]) for k in range(n)], *[Copy(Y, S[k]) for k in range(n)]]


def test_what_is_made_waits_until_it_is_read() -> None:
    steps = wide(8)
    found = ordered(steps, OWN, BYTES)
    assert sorted(map(id, found)) == sorted(map(id, steps))
    assert room(steps) >= 8 * LEAST and room(found) < 2 * LEAST
    assert found[:6] == [steps[k] for k in (0, 8, 16, 1, 9, 17)]


def test_what_ends_more_than_it_makes_is_done_at_once() -> None:
    """Updates at the end of a program that each end a large temporary."""
    steps: list[Step] = []
    for k in range(8):
        steps.append(Copy(T[k], T[k - 1] if k else A))
    steps += [Copy(Y, T[k]) for k in range(8)]
    found = ordered(steps, OWN, BYTES)
    assert room(steps) >= 8 * LEAST and room(found) == 2 * LEAST


def test_little_and_good_orders_stay() -> None:
    steps = wide(8)
    assert ordered(steps, OWN, dict.fromkeys(BYTES, 64)) is steps
    good = ordered(steps, OWN, BYTES)
    assert list(ordered(good, OWN, BYTES)) == list(good)


def test_sizes_that_are_found_keep_the_order() -> None:
    steps = [*wide(4), Count("n", A), *wide(4)]
    assert list(ordered(steps, OWN, BYTES)) == steps


def test_rounds_of_loops_are_ordered() -> None:
    """Their own temporaries, not those that a round takes over or that others read."""
    loop = Repeat(wide(8), [], const(3), "k")
    (found,) = ordered([loop], OWN, BYTES)
    assert isinstance(found, Repeat) and room([found]) < room([loop]) / 3
    outside = [loop, *[Copy(X, t) for t in T]]
    first = ordered(outside, OWN, BYTES)[0]
    assert isinstance(first, Repeat) and list(first.body) == list(loop.body)


def test_python_sees_the_order_of_the_program() -> None:
    says: list[Step] = [calls(str(k), [T[k]], [S[k]]) for k in range(8)]
    steps = [*[Copy(T[k], A) for k in reversed(range(8))], *says]
    found = ordered(steps, OWN, BYTES)
    assert room(found) < room(steps)
    assert [s for s in found if isinstance(s, Host)] == says


@pytest.mark.parametrize("seed", range(30))
def test_every_order_computes_the_same(seed: int) -> None:
    """Random programs of copies and of steps that mix what they read: values are names."""
    rng = random.Random(seed)
    steps: list[Step] = [Copy(t, A) for t in T]
    for k in range(40):
        picked = rng.sample([*T, *S], 3)
        steps.append(Copy(*picked[:2]) if k % 2 else calls(str(k), picked[:2], picked[2:]))
    steps.append(calls("end", [*T[:3]], [Y]))
    found = ordered(steps, OWN, BYTES)
    assert sorted(map(id, found)) == sorted(map(id, steps))
    assert room(found) <= room(steps)

    def value(steps: Sequence[Step]) -> Any:
        held: dict[Buffer, Any] = {}
        for s in steps:
            if isinstance(s, Copy):
                held[s.dst] = held.get(s.src, s.src.name)
            elif isinstance(s, Host):
                held[s.outs[0]] = hash((s.op, *[held.get(b, b.name) for b in s.args]))
        return held[Y]

    assert value(found) == value(steps)


def test_programs_written_in_width_run_in_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    g = np.random.default_rng(0)
    x = g.standard_normal((256, 256)).astype("f")
    ws = [g.standard_normal((256, 1024)).astype("f") / 16 for _ in range(6)]

    def f(x: Any, ws: Any) -> Any:
        wide = [jnp.tanh(x @ w) for w in ws]
        return jnp.stack([(y @ w.T).sum() for y, w in zip(wide, ws)])

    closed = calque.make_jaxpr(f)(x, ws)
    deep = NativeExecutable(closed, Options())
    monkeypatch.setattr(ordering, "LEAST", 1 << 60)
    kept = NativeExecutable(calque.make_jaxpr(f)(x, ws), Options())
    once, six = 256 * 1024 * 4, 6 * 256 * 1024 * 4
    assert kept.memory_analysis().temp_size_in_bytes > six
    assert deep.memory_analysis().temp_size_in_bytes < 4 * once
    assert np.array_equal(deep.call([x, *ws])[0], kept.call([x, *ws])[0])
    kernels = [{c.schedule for c in walk(e.steps) if isinstance(c, Call)} for e in (deep, kept)]
    assert len(kernels[0]) == len(kernels[1])
